"""Sums of gradients that do not depend on who computes them.

A sum of floating-point numbers depends on its order, so that of an update is fixed: its batches are the
leaves of a binary tree, in their order. A worker that holds an aligned block of leaves sums a subtree
(`creamtea_workers.training.group`).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

Terms = list[Tensor]


def gradient_of(weight: Tensor) -> Tensor:
    """Return zeros if a batch does not use the weight."""
    return torch.zeros_like(weight) if weight.grad is None else weight.grad


class TreeSum:
    """((a + b) + (c + d)) + (e + f), of lists of tensors in the order in which they are added.

    Holds at most one list for each level of the tree. A list that is added belongs to the sum.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[int, Terms]] = []  # leaves, and their sum; each part is larger than the next

    def add(self, terms: Terms) -> None:
        leaves = 1
        while self._parts and self._parts[-1][0] == leaves:
            _, left = self._parts.pop()
            torch._foreach_add_(left, terms)
            terms, leaves = left, 2 * leaves
        self._parts.append((leaves, terms))

    def with_last(self, index: int, term: Tensor) -> Tensor:
        """Return the whole sum of the terms at `index`, of which `term` is the last. It is taken once."""
        for _, left in reversed(self._parts):
            term = left[index].add_(term)
        return term


def block(leaves: int, rank: int, size: int) -> range:
    """Which leaves of an update worker `rank` of `size`, a power of two, computes: a subtree."""
    width = max(1, power_of_two(leaves) // size)
    return range(min(rank * width, leaves), min((rank + 1) * width, leaves))


def power_of_two(number: int) -> int:
    """The smallest that is at least `number`, which is at least 1."""
    return 1 << (number - 1).bit_length()


def batch_seed(seed: int, update: int, position: int) -> int:
    """Of the dropout in batch `position` of an update, whichever worker computes it."""
    return int(np.random.SeedSequence((seed, update, position)).generate_state(1, np.uint64)[0])
