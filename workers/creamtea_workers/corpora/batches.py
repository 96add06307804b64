"""Batches of encoded sentence pairs, bounded by target tokens.

The batches of an epoch are a function of (pairs, limits, seed, epoch) alone: a training resumes at any
(epoch, position), and nothing depends on the number of processes or threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from creamtea_workers.models.interface import BOS, EOS, PAD

Ids = Sequence[int]


@dataclass(frozen=True)
class Batch:
    source: Tensor  # (B, S) subwords + eos, padded
    target: Tensor  # (B, T) subwords + eos, padded: what the decoder is to emit
    positions: Tensor  # (N,) where the flattened `target` is not padding

    @classmethod
    def of(cls, sources: Sequence[NDArray[np.int32]], targets: Sequence[NDArray[np.int32]]) -> Batch:
        target = pad(targets)
        return cls(pad(sources), target, target.flatten().ne(PAD).nonzero()[:, 0])

    @property
    def target_in(self) -> Tensor:
        """(B, T) what the decoder reads: bos + subwords, padded; eos at the end of the longest is cut."""
        shifted = self.target.new_full(self.target.shape, BOS)
        shifted[:, 1:] = self.target[:, :-1]
        return shifted

    @property
    def target_tokens(self) -> int:
        return len(self.positions)

    def real(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of hidden (B, T, D) and the targets at real positions: (N, D), (N,)."""
        hidden, target = hidden.flatten(0, 1), self.target.flatten()
        if len(self.positions) == len(target):
            return hidden, target
        return hidden.index_select(0, self.positions), target.index_select(0, self.positions)

    def to(self, device: torch.device) -> Batch:
        if device.type == "cpu":
            return self
        tensors = (self.source, self.target, self.positions)
        return Batch(*(ids.pin_memory().to(device, non_blocking=True) for ids in tensors))


class Pairs:
    """Encoded sentence pairs, eos added; pairs with more than `max_tokens` subwords on a side are skipped."""

    def __init__(self, sources: Iterable[Ids], targets: Iterable[Ids], max_tokens: int | None = None) -> None:
        self.sources: list[NDArray[np.int32]] = []
        self.targets: list[NDArray[np.int32]] = []
        self.left_out = 0
        for source, target in zip(sources, targets, strict=True):
            if max_tokens is not None and max(len(source), len(target)) > max_tokens:
                self.left_out += 1
                continue
            self.sources.append(np.array([*source, EOS], dtype=np.int32))
            self.targets.append(np.array([*target, EOS], dtype=np.int32))
        self.source_lengths = np.array([len(row) for row in self.sources], dtype=np.int64)
        self.target_lengths = np.array([len(row) for row in self.targets], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.sources)

    def batch(self, members: NDArray[np.int64]) -> Batch:
        return Batch.of([self.sources[i] for i in members], [self.targets[i] for i in members])


def pad(rows: Sequence[NDArray[np.int32]]) -> Tensor:
    """(B, longest) int64 of B rows of ids."""
    table = np.full((len(rows), max(len(row) for row in rows)), PAD, dtype=np.int64)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row
    return torch.from_numpy(table)


def plan_epoch(
    pairs: Pairs, batch_tokens: int, seed: int, epoch: int, batch_sentences: int | None = None
) -> list[NDArray[np.int64]]:
    """The members of each batch of an epoch, in training order: every pair once.

    The pairs are shuffled, then sorted by target and source length (ties stay shuffled), cut into batches
    of at most `batch_tokens` target positions, padding included, and the batches are shuffled. A pair
    longer than `batch_tokens` is a batch of its own. `batch_sentences`: batches of so many pairs instead.
    """
    random = np.random.default_rng((seed, epoch))
    shuffled = random.permutation(len(pairs))
    order = shuffled[np.lexsort((pairs.source_lengths[shuffled], pairs.target_lengths[shuffled]))]
    if batch_sentences is None:
        cuts = cut(pairs.target_lengths[order], batch_tokens)
    else:
        cuts = [*range(0, len(order), batch_sentences), len(order)]
    batches = [order[first:last] for first, last in pairwise(cuts)]
    return [batches[i] for i in random.permutation(len(batches))]


def plan_in_order(pairs: Pairs, batch_tokens: int) -> list[NDArray[np.int64]]:
    """Batches for evaluation: by length, without chance."""
    order = np.lexsort((pairs.source_lengths, pairs.target_lengths))
    cuts = cut(pairs.target_lengths[order], batch_tokens)
    return [order[first:last] for first, last in pairwise(cuts)]


def cut(lengths: NDArray[np.int64], batch_tokens: int) -> list[int]:
    """Where to cut ascending lengths so that rows × longest stays within `batch_tokens`."""
    cuts = [0]
    for position, length in enumerate(lengths):
        if position > cuts[-1] and (position + 1 - cuts[-1]) * length > batch_tokens:
            cuts.append(position)
    if len(lengths):
        cuts.append(len(lengths))
    return cuts
