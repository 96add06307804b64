"""Functions on tensors at fixed addresses, which a GPU replays as CUDA graphs.

A decoder's step starts about a hundred small kernels, and starting them takes ten times as long as they run.
A graph starts all of them at once. On a CPU the same functions run as they are.

All programs of a model share one block of memory for their tensors, since only one of them runs at a time,
and one pool for what they compute in between.
"""

from __future__ import annotations

import math
import time
import warnings
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any, TypeVar

import torch
from torch import Tensor

MAX_PROGRAMS = 256  # the one that was not used for longest goes first
MIN_ARENA = 1 << 26  # bytes
ALIGNMENT = 256  # bytes
LEAST_FREE = 0.1  # of a GPU's memory, below which what torch has cached is given back before a capture

New = Callable[[Sequence[int], torch.dtype], Tensor]  # shape, type → a tensor whose content is undefined


class Program(ABC):
    """Tensors, and functions that work on them in place, without reading back and with shapes that no data
    decides."""

    replays: Sequence[Callable[[], None]]  # of its functions

    @abstractmethod
    def functions(self) -> Sequence[Callable[[], None]]: ...


P = TypeVar("P", bound=Program)


class Graphs:
    """The programs of one model on one device, by key."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.seconds = 0.0  # that captures took
        self.lock = RLock()  # held while a program is used
        self._programs: OrderedDict[Hashable, Any] = OrderedDict()
        self._arena: Tensor | None = None
        self._pool: Any = None
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __deepcopy__(self, memo: Any) -> None:
        return None  # a copy of the model has other weights

    def program(self, key: Hashable, build: Callable[[New], P]) -> P | None:
        """Return the program of this key, which is captured at its first use; warn and return None if the GPU
        has no room.

        `build` makes it, with tensors that come from `New`; it is called twice, first to measure.
        """
        if key not in self._programs:
            try:
                self._reserve(build)
                while len(self._programs) >= MAX_PROGRAMS:
                    self._programs.popitem(last=False)
                program = build(_Cutter(self._arena))
                program.replays = self._captured(program.functions())
            except Exception as error:
                self.clear()  # a capture that failed leaves a pool that cannot be used again
                if not isinstance(error, torch.OutOfMemoryError):
                    raise
                warnings.warn(
                    "the GPU has no room for a CUDA graph: kernels are started one by one", stacklevel=2
                )
                return None
            self._programs[key] = program
        self._programs.move_to_end(key)
        return self._programs[key]

    def clear(self) -> None:
        """Give all memory back."""
        self._programs.clear()
        self._arena = self._pool = None  # torch takes a pool that no graph uses any more for a broken one
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _reserve(self, build: Callable[[New], Any]) -> None:
        """Make the shared memory as large as a program needs. Programs that use a smaller one are dropped."""
        measure = _Cutter(None)
        build(measure)
        if self._arena is None or len(self._arena) < measure.used:
            self.clear()
            size = max(MIN_ARENA, measure.used)
            self._arena = torch.empty(size, dtype=torch.uint8, device=self.device)

    def _captured(self, functions: Sequence[Callable[[], None]]) -> Sequence[Callable[[], None]]:
        if self._stream is None:
            return functions
        began = time.perf_counter()
        assert self._arena is not None
        self._arena.zero_()  # the first run, in which libraries choose their kernels, must not meet NaN
        free, total = torch.cuda.mem_get_info(self.device)
        if free < LEAST_FREE * total:
            torch.cuda.empty_cache()
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        graphs = [torch.cuda.CUDAGraph() for _ in functions]
        current = torch.cuda.current_stream(self.device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream), any_kernels():
            for function in functions:
                function()
            self._arena.zero_()
            self._stream.synchronize()
            for graph, function in zip(graphs, functions, strict=True):
                # other threads of this process may use the GPU meanwhile
                graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
                try:
                    function()
                except BaseException:
                    with suppress(RuntimeError):  # which says that the capture has failed
                        graph.capture_end()
                    raise
                graph.capture_end()
        current.wait_stream(self._stream)
        self.seconds += time.perf_counter() - began
        return [graph.replay for graph in graphs]


class _Cutter:
    """Cuts tensors off a block of memory, one after the other; without one it only counts."""

    def __init__(self, arena: Tensor | None) -> None:
        self.arena, self.used = arena, 0

    def __call__(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        size = math.prod(shape) * dtype.itemsize
        first, self.used = self.used, self.used + -(-size // ALIGNMENT) * ALIGNMENT
        if self.arena is None:
            return torch.empty(tuple(shape), dtype=dtype, device="meta")
        return self.arena[first : first + size].view(dtype).view(tuple(shape))


@contextmanager
def any_kernels() -> Iterator[None]:
    """Turn deterministic mode off.

    That mode turns `index_copy_` into a sort, though it is deterministic where no index repeats.
    """
    mode = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode(0)
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)


def bucket(size: int, step: int = 1) -> int:
    """Round `size` up to a multiple of `step` that is one of at most eight numbers per octave.

    There are few such sizes, and at most a seventh of a large one is unused.
    """
    grain = max(step, 1 << max(0, (size - 1).bit_length() - 3))
    return -(-size // grain) * grain
