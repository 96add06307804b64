"""How many WebSockets are open: of each session, and in all.

Every page that is open in a browser holds one, and with it memory and a script of this process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

MAX_OF_SESSION = 20


class Connections:
    """For one event loop."""

    def __init__(self, max_in_all: int) -> None:
        self.max_in_all = max_in_all
        self._open: Counter[int] = Counter()

    def refusal(self, session_id: int) -> str | None:
        """Why one more page cannot be opened by this session, as its user reads it; None if it can."""
        if self._open[session_id] >= MAX_OF_SESSION:
            return (
                f"You have {MAX_OF_SESSION} pages open here, the most that one sign-in may have. Close "
                "some of them, then load this page again."
            )
        if self._open.total() >= self.max_in_all:
            return "Too many people are using this site at the moment. Load this page again in a few minutes."
        return None

    @contextmanager
    def counted(self, session_id: int) -> Iterator[None]:
        self._open[session_id] += 1
        try:
            yield
        finally:
            self._open[session_id] -= 1
            if not self._open[session_id]:
                del self._open[session_id]
