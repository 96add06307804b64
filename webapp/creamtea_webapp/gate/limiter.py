"""How often something may fail within a while, counted by what failed."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable

MAX_COUNTED = 10_000  # so that a flood takes little memory


class Limiter:
    """At most `allowed` counts of one key in `seconds`; forgets older ones. For one event loop."""

    def __init__(
        self, allowed: int = 10, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.allowed, self.seconds, self.clock = allowed, seconds, clock
        self._moments: deque[tuple[float, str]] = deque()
        self._counts: Counter[str] = Counter()

    def blocked(self, key: str) -> bool:
        self._forget()
        return self._counts[key] >= self.allowed

    def count(self, key: str) -> None:
        self._moments.append((self.clock(), key))
        self._counts[key] += 1
        self._forget()

    def _forget(self) -> None:
        since = self.clock() - self.seconds
        while self._moments and (self._moments[0][0] <= since or len(self._moments) > MAX_COUNTED):
            _, key = self._moments.popleft()
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]
