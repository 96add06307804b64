"""The workers of one step: sharing values, and adding the gradients of a training."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, distributed

from creamtea.contract.step import GROUP_PATIENCE
from creamtea.errors import InfrastructureError

T = TypeVar("T")
Terms = list[Tensor]  # of a sum: the gradients of some weights, or losses
PART = 1 << 22  # numbers of a gradient to send together (more if one weight has more)


class Group:
    """A group of one worker; `ProcessGroup` has several."""

    rank = 0
    size = 1  # a power of two

    def share(self, value: Callable[[], T]) -> T:
        """Return worker 0's value at every worker; only worker 0 computes it."""
        return value()

    def gather(self, value: T) -> list[T]:
        """Return the values of all workers at every worker."""
        return [value]

    def add(self, terms: Terms) -> Terms:
        """Return the sums over all workers at every worker. `terms` may be overwritten.

        Sums have no -0.0, so that the zeros of a worker without batches change nothing.
        """
        torch._foreach_add_(terms, 0.0)
        return terms


class ProcessGroup(Group):
    """The processes of torch.distributed: gloo between CPUs, NCCL between GPUs.

    If the number of processes is not a power of two, processes from `size` on only receive the results.
    Every method raises an InfrastructureError if a process is lost.
    """

    def __init__(self) -> None:
        self.rank = distributed.get_rank()
        everybody = distributed.get_world_size()
        self.size = 1 << (everybody.bit_length() - 1)
        self._spare = everybody > self.size
        # for values that are not on a GPU; a new group does not inherit the first group's timeout
        patience = timedelta(seconds=GROUP_PATIENCE)
        self._messages = distributed.new_group(backend="gloo", timeout=patience)

    def share(self, value: Callable[[], T]) -> T:
        box = [value() if self.rank == 0 else None]
        with lost_worker():
            distributed.broadcast_object_list(box, src=0, group=self._messages)
        shared: T = box[0]  # type: ignore[assignment]
        return shared

    def gather(self, value: T) -> list[T]:
        boxes: list[T | None] = [None] * distributed.get_world_size()
        with lost_worker():
            distributed.all_gather_object(boxes, value, group=self._messages)
        gathered: list[T] = boxes  # type: ignore[assignment]
        return gathered

    def add(self, terms: Terms) -> Terms:
        """Add in pairs along a binary tree: 0 with 1 and 2 with 3, then 0 with 2 and 1 with 3, …

        Each worker of a pair adds one half of the vector; the halves are exchanged back at the end, so that a
        worker sends less than twice the vector. a + b = b + a exactly: it does not matter who adds.
        """
        lengths = [term.numel() for term in terms]
        rest = -sum(lengths) % self.size  # padding, so that the vector can be halved
        vector = torch.cat([*(term.flatten() for term in terms), terms[0].new_zeros(rest)])
        with lost_worker():
            if self.rank < self.size:
                self._add_in_pairs(vector)
            if self._spare:
                distributed.broadcast(vector, src=0)
        vector += 0.0
        parts = vector.split([*lengths, rest])
        return [part.view_as(term) for part, term in zip(parts, terms, strict=False)]

    def _add_in_pairs(self, vector: Tensor) -> None:
        low, high, halves = 0, len(vector), []
        distance = 1
        while distance < self.size:
            middle = (low + high) // 2
            first, second = (low, middle), (middle, high)
            kept, given = (second, first) if self.rank & distance else (first, second)
            received = torch.empty_like(vector[slice(*kept)])
            self._swap(vector[slice(*given)], received, distance)
            vector[slice(*kept)] += received
            halves.append((kept, given))
            (low, high), distance = kept, 2 * distance
        for kept, given in reversed(halves):
            distance //= 2
            self._swap(vector[slice(*kept)], vector[slice(*given)], distance)

    def _swap(self, sent: Tensor, received: Tensor, distance: int) -> None:
        partner = self.rank ^ distance
        both = [
            distributed.P2POp(distributed.isend, sent, partner),
            distributed.P2POp(distributed.irecv, received, partner),
        ]
        for request in distributed.batch_isend_irecv(both):
            request.wait()


@contextmanager
def lost_worker() -> Iterator[None]:
    """Turn torch.distributed's errors into an InfrastructureError: the step is tried again."""
    try:
        yield
    except torch.OutOfMemoryError:  # an error of this worker itself
        raise
    except RuntimeError as error:
        first_line = str(error).strip().partition("\n")[0]
        # gloo's messages begin with a source line in brackets, and end with advice for its developers
        reason = re.sub(r"^\[[^]]*\] *", "", first_line).split(". ")[0] or type(error).__name__
        raise InfrastructureError(f"another worker of this step was lost: {reason}") from error


def current_group() -> Group:
    """Return the group that torch.distributed has connected, or this process alone."""
    if distributed.is_available() and distributed.is_initialized():
        return ProcessGroup()
    return Group()


class Exchange:
    """Adds an update's gradients over all workers while each worker computes its last batch.

    Gradients are sent in parts, in the order of the backward pass: the last layers first. The parts are the
    same at every worker, and do not change the sums.
    """

    def __init__(self, group: Group, weights: Sequence[Tensor]) -> None:
        self._group, self._weights = group, weights
        self._parts: list[list[int]] = [[]]
        for index in reversed(range(len(weights))):
            if sum(weights[other].numel() for other in self._parts[-1]) >= PART:
                self._parts.append([])
            self._parts[-1].append(index)
        self._total: TreeSum | None = None  # sum of the earlier batches, set while the last is computed
        self._terms: dict[int, Tensor] = {}  # finished gradients, by the weight's index
        self._sent: list[Callable[[], tuple[Terms, torch.cuda.Event | None]]] = []  # each waits for its sums
        self._thread = ThreadPoolExecutor(1, "exchange")
        self._stream = torch.cuda.Stream() if group.size > 1 and weights[0].is_cuda else None
        if group.size > 1:
            for index, weight in enumerate(weights):
                weight.register_post_accumulate_grad_hook(partial(self._gradient_ready, index))

    def begin(self, total: TreeSum) -> None:
        """Send each gradient from now on as soon as the backward pass has computed it."""
        self._total = total

    def finish(self, total: TreeSum, losses: Tensor) -> Tensor:
        """Send the remaining gradients, wait for all sums, and set them. Return the sum of `losses`."""
        self._total = total
        for index, weight in enumerate(self._weights):
            if index not in self._terms:
                weight.grad = gradient_of(weight)
                self._gradient_ready(index, weight)
        self._send([total.with_last(len(self._weights), losses)])
        *parts, [losses] = [self._received(*wait()) for wait in self._sent]
        for index, gradient in zip(chain(*self._parts), chain(*parts), strict=True):
            self._weights[index].grad = gradient
        self._total, self._sent = None, []
        self._terms.clear()
        return losses

    def _gradient_ready(self, index: int, weight: Tensor) -> None:
        if self._total is None:  # not the last batch
            return
        assert weight.grad is not None
        self._terms[index] = self._total.with_last(index, weight.grad)
        while len(self._sent) < len(self._parts) and all(
            other in self._terms for other in self._parts[len(self._sent)]
        ):
            self._send([self._terms[other] for other in self._parts[len(self._sent)]])

    def _send(self, terms: Terms) -> None:
        ready = None if self._stream is None else torch.cuda.current_stream().record_event()
        if self._group.size > 1:
            self._sent.append(self._thread.submit(self._add, terms, ready).result)
        else:  # in the stream of this thread
            added = self._add(terms, ready)
            self._sent.append(lambda: added)

    def _add(self, terms: Terms, ready: torch.cuda.Event | None) -> tuple[Terms, torch.cuda.Event | None]:
        if self._stream is None or ready is None:
            return self._group.add(terms), None
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(ready)
            return self._group.add(terms), self._stream.record_event()

    def _received(self, terms: Terms, done: torch.cuda.Event | None) -> Terms:
        if done is not None:
            torch.cuda.current_stream().wait_event(done)
            for term in terms:
                term.record_stream(torch.cuda.current_stream())
        return terms


# Sums of gradients that do not depend on the number of workers.
#
# A sum of floating-point numbers depends on its order. So the order within an update is fixed: its batches
# are the leaves of a binary tree. A worker that holds an aligned block of leaves sums a subtree.


def gradient_of(weight: Tensor) -> Tensor:
    """Return the weight's gradient; zeros if a batch does not use the weight."""
    return torch.zeros_like(weight) if weight.grad is None else weight.grad


class TreeSum:
    """A sum ((a + b) + (c + d)) + (e + f) of lists of tensors, in the order of `add`.

    Holds at most one list for each level of the tree. Added lists belong to the sum, which changes them.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[int, Terms]] = []  # (number of leaves, their sum), in descending order

    def add(self, terms: Terms) -> None:
        leaves = 1
        while self._parts and self._parts[-1][0] == leaves:
            _, left = self._parts.pop()
            torch._foreach_add_(left, terms)
            terms, leaves = left, 2 * leaves
        self._parts.append((leaves, terms))

    def with_last(self, index: int, term: Tensor) -> Tensor:
        """Add the last `term` at `index`, and return the total there. Call it once per index."""
        for _, left in reversed(self._parts):
            term = left[index].add_(term)
        return term


def leaves_of(leaves: int, rank: int, size: int) -> range:
    """Return the leaves (a subtree) that worker `rank` of `size`, a power of two, computes."""
    width = max(1, next_power_of_two(leaves) // size)
    return range(min(rank * width, leaves), min((rank + 1) * width, leaves))


def next_power_of_two(number: int) -> int:
    """Return the smallest power of two that is at least `number`, which is at least 1."""
    return 1 << (number - 1).bit_length()


def batch_seed(seed: int, update: int, position: int) -> int:
    """Return the seed of dropout in batch `position` of an update, the same on every worker."""
    return int(np.random.SeedSequence((seed, update, position)).generate_state(1, np.uint64)[0])
