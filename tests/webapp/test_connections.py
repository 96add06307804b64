"""The server's limits on sockets, requests and messages, on a real server."""

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import uvicorn
from limits import ANSWER, START, wait_until
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.sync.client import connect

from creamtea_webapp.gate import connections

PATIENCE = 4.0  # seconds for a request
HEADERS = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
MAX_SOCKETS = 5


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", PATIENCE)
    routes = [
        Route("/", length, methods=["POST"]),
        WebSocketRoute("/", echo),
        WebSocketRoute("/refused", refuse),
    ]
    app = Starlette(routes=routes)
    settings = uvicorn.Config(
        app,
        port=0,
        http=connections.bounded(MAX_SOCKETS),
        ws=connections.RefusingProtocol,
        ws_max_size=connections.MAX_MESSAGE,
        log_config=None,
    )
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started, START)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(ANSWER)


async def length(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(len(await request.body())))


async def echo(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_bytes(await websocket.receive_bytes())


async def refuse(websocket: WebSocket) -> None:
    await websocket.send_denial_response(PlainTextResponse("", status_code=401))


def open_socket(port: int, begin: bytes) -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", port), timeout=ANSWER)
    opened.sendall(begin)
    return opened


def received(opened: socket.socket) -> bytes:
    """All that arrives until the server closes the connection."""
    parts = b""
    try:
        while part := opened.recv(4096):
            parts += part
    except ConnectionResetError:
        pass
    return parts


def test_only_requests_that_do_not_go_on_are_ended(port: int) -> None:
    parts = 6
    with ExitStack() as begun:
        page = begun.enter_context(
            connect(f"ws://127.0.0.1:{port}/")
        )  # which outlasts the time for a request
        beginnings = (b"", HEADERS[:-2] + b"X: ", HEADERS % 9 + b"ab")
        stopped = [begun.enter_context(open_socket(port, begin)) for begin in beginnings]
        with open_socket(port, HEADERS % parts) as goes_on:
            for _ in range(parts):  # 1.2 times as long as one part may take
                threading.Event().wait(PATIENCE / 5)
                goes_on.sendall(b"a")
            assert received(goes_on).endswith(b"6")
        assert [received(opened) for opened in stopped] == [b""] * 3
        page.send(b"still here")
        assert page.recv(ANSWER) == b"still here"


def test_sockets_beyond_the_limit_are_closed_at_once_and_later_ones_served(port: int) -> None:
    with ExitStack() as pages:
        for _ in range(MAX_SOCKETS):
            pages.enter_context(connect(f"ws://127.0.0.1:{port}/"))
        with open_socket(port, b"") as refused:
            assert received(refused) == b""
    wait_until(lambda: received(open_socket(port, HEADERS % 2 + b"ab")).endswith(b"2"), ANSWER)


def test_idle_connections_keep_nobody_out(port: int) -> None:
    with ExitStack() as flood:
        idle = [flood.enter_context(open_socket(port, b"")) for _ in range(3 * MAX_SOCKETS)]
        with open_socket(port, HEADERS % 2 + b"ab") as opened:
            opened.settimeout(PATIENCE / 2)  # the flood is still there
            assert received(opened).endswith(b"2")
        assert received(idle[0]) == b""


def test_a_refused_page_gets_its_status_and_logs_nothing(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[logging.LogRecord] = []
    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "handle", logged.append)
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://127.0.0.1:{port}/refused")
    assert refused.value.response.status_code == 401
    wait_until(lambda: received(open_socket(port, HEADERS % 2 + b"ab")).endswith(b"2"), ANSWER)
    assert [line for line in logged if line.levelno >= logging.WARNING] == []


def test_a_message_longer_than_a_page_sends_is_refused(port: int) -> None:
    with connect(f"ws://127.0.0.1:{port}/") as page:
        page.send(b"0" * (connections.MAX_MESSAGE + 1))
        with pytest.raises(ConnectionClosedError, match="1009"):
            page.recv(ANSWER)


def test_descriptors_limit_the_number_of_pages() -> None:
    assert connections.max_pages(1024) == (1024 - connections.RESERVED) // connections.PER_PAGE
    assert connections.max_pages(10) == 1
