"""The largest of more numbers than fit into memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BUFFER = 1 << 20  # numbers kept until the next cut


class Largest:
    """The `count` largest of all numbers added (fp32, with repetitions). Keeps about 2 × `count`."""

    def __init__(self, count: int) -> None:
        self.count = count  # 1 or more
        self._parts: list[NDArray[np.float32]] = []
        self._held = 0
        self._threshold = -np.inf  # smaller numbers can no longer be among the largest

    def add(self, values: NDArray[np.float32]) -> None:
        candidates = values[values >= self._threshold]
        self._parts.append(candidates)
        self._held += len(candidates)
        if self._held >= 2 * self.count + _BUFFER:
            self._cut()

    def descending(self) -> NDArray[np.float32]:
        """Fewer than `count` if fewer were added."""
        self._cut()
        return np.sort(self._parts[0])[::-1]

    def _cut(self) -> None:
        held = np.concatenate([np.empty(0, dtype=np.float32), *self._parts])
        if len(held) > self.count:
            held = np.partition(held, len(held) - self.count)[len(held) - self.count :]
            self._threshold = float(held[0])
        self._parts, self._held = [held], len(held)
