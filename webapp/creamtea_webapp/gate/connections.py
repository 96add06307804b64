"""Limits on connections: sockets of the server, and open pages of a session and of everybody.

Every page that is open in a browser holds a WebSocket, and with it memory and a script of this process.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

MAX_OF_SESSION = 20
# Descriptors of a page: its socket, and three of the event loop that Streamlit gives its script's thread
PER_PAGE = 4
MAX_OPEN_FILES = 2**16
RESERVED = 256  # descriptors for files, the database and sockets that are about to be closed
BACKLOG = 128  # sockets that are accepted at once, before any of them can be closed
REQUEST_SECONDS = 20.0  # for headers and body to arrive, or between two parts of them
# Bytes of a browser's message: a board's answer holds what a rater wrote, a page's form a study of 1 MB.
# Files are uploaded by HTTP.
MAX_MESSAGE = 4 * 2**20


class Connections:
    """The open WebSockets of each session. For one event loop."""

    def __init__(self, max_in_all: int) -> None:
        self.max_in_all = max_in_all
        self._open: Counter[int] = Counter()

    def refusal(self, session_id: int) -> str | None:
        """Return a message why the session can open no further page; None if it can."""
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


def raise_open_files() -> int:
    """Raise the soft limit of open files to the hard limit; return it."""
    if sys.platform == "win32":  # where sockets are not files
        return MAX_OPEN_FILES
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return most
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most


def max_pages(open_files: int) -> int:
    """Return how many pages may be open at once with this limit of open files."""
    return max(1, (open_files - RESERVED) // PER_PAGE)


def bounded(max_sockets: int) -> type[H11Protocol]:
    """Return a protocol with at most this many connections, including those of open pages."""
    return type("Bounded", (BoundedProtocol,), {"max_sockets": max_sockets, "waiting": {}})


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 with a bounded number of connections, each with a time limit for its requests.

    asyncio itself accepts connections until no descriptor is left, and then logs a traceback for each further
    one. uvicorn waits for a request for ever. At the limit a new connection takes the place of the one that
    has waited longest for a request, so that a flood of idle connections keeps nobody out.
    """

    max_sockets: int
    waiting: dict[BoundedProtocol, None]  # connections whose request has not arrived, the oldest first
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_request()
        if len(self.connections) > self.max_sockets:
            next(iter(self.waiting))._end()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        headers_begun = self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]
        body_begun = self.conn.their_state is h11.SEND_BODY
        upgraded = self not in self.connections
        if upgraded or not (headers_begun or body_begun):
            self._expect_nothing()
        elif body_begun or self._deadline is None:  # a body may take longer, as long as parts keep coming
            self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        super().connection_lost(exc)

    def _expect_request(self) -> None:
        self._expect_nothing()
        self.waiting[self] = None
        self._deadline = self.loop.call_later(REQUEST_SECONDS, self._end_slow_request)

    def _expect_nothing(self) -> None:
        self.waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end_slow_request(self) -> None:
        if self.flow.read_paused:  # the app has not read what has arrived
            self._expect_request()
        else:
            self._end()

    def _end(self) -> None:
        self._expect_nothing()
        self.transport.abort()


class RefusingProtocol(WebSocketsSansIOProtocol):
    """A WebSocket protocol in which the app answers refusals itself, without a line in the log for each."""

    async def send(self, message: Any) -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True  # uvicorn logs an error and sends a second answer otherwise
