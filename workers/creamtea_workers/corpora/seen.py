"""What a stream of pairs has held, in 8 bytes per pair: the filter of exact duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]


def pair_hash(source: str, target: str) -> int:
    """64 bits. Among 10 million different pairs the expected number of those that are taken for a repetition
    is 3 in a million, n² / 2⁶⁵; among 100 million it is 3 in ten thousand."""
    return int.from_bytes(blake2b(f"{source}\n{target}".encode(), digest_size=8).digest(), "little")


class SeenHashes:
    """A set of hashes as sorted arrays, each at least twice as long as the next: adding n of them costs
    O(n log² n), and memory is 8 bytes per hash, 16 while the longest two are merged."""

    def __init__(self) -> None:
        self._runs: list[Hashes] = []

    def add(self, hashes: Sequence[int]) -> NDArray[np.bool_]:
        """Whether each was not there before, among these either."""
        keys, places = np.unique(np.array(hashes, dtype=np.uint64), return_index=True)
        new = np.ones(len(keys), dtype=np.bool_)
        for run in self._runs:
            nearest = np.minimum(np.searchsorted(run, keys), len(run) - 1)
            new &= run[nearest] != keys
        self._append(keys[new])
        fresh = np.zeros(len(hashes), dtype=np.bool_)
        fresh[places[new]] = True
        return fresh

    def _append(self, keys: Hashes) -> None:
        if not len(keys):
            return
        self._runs.append(keys)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            merged = np.concatenate([self._runs.pop(), self._runs.pop()])
            merged.sort(kind="stable")  # which merges sorted runs
            self._runs.append(merged)
