"""The entrance: a one-time link becomes a browser session.

The link is `/enter#SECRET`. A browser never sends the part after the `#`, so the secret is in no log, no
`Referer` and no proxy, and fetching the link, as mail scanners and chat previews do, spends nothing: only
the page's script posts the secret, on loopback at once, elsewhere at the press of a button.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from urllib.parse import urlsplit

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from creamtea.human import access
from creamtea_webapp import session
from creamtea_webapp.gate.middleware import HERE, cookie_of
from creamtea_webapp.markup import render

MAX_SECRET = 200  # bytes


class Limiter:
    """At most `allowed` counts in `seconds` from one address; forgets older ones. For one event loop."""

    def __init__(
        self, allowed: int = 10, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.allowed, self.seconds, self.clock = allowed, seconds, clock
        self._counts: dict[str, deque[float]] = {}

    def blocked(self, address: str) -> bool:
        self._forget()
        return len(self._counts.get(address, ())) >= self.allowed

    def count(self, address: str) -> None:
        self._counts.setdefault(address, deque()).append(self.clock())

    def _forget(self) -> None:
        since = self.clock() - self.seconds
        for address, moments in list(self._counts.items()):
            while moments and moments[0] <= since:
                moments.popleft()
            if not moments:
                del self._counts[address]


def routes() -> list[BaseRoute]:
    limiter = Limiter()

    async def post(request: Request) -> Response:
        return await _exchange(request, limiter)

    return [
        Route("/enter", _page, methods=["GET"]),
        Route("/enter", post, methods=["POST"]),
        Route("/enter.js", _script, methods=["GET"]),
        Route("/gate.css", _style, methods=["GET"]),
    ]


async def _page(request: Request) -> Response:
    return HTMLResponse(render("gate/enter.html"))


async def _script(request: Request) -> Response:
    return FileResponse(HERE / "enter.js", media_type="text/javascript")


async def _style(request: Request) -> Response:
    return FileResponse(HERE / "gate.css", media_type="text/css")


async def _exchange(request: Request, limiter: Limiter) -> Response:
    """POST with the secret as its body: 204 and the cookie, or 401; 403 for a page of another site."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        return PlainTextResponse("A link can only be opened on its own site.", status_code=403)
    address = address_of(request)
    if limiter.blocked(address):
        return PlainTextResponse("Too many wrong links. Wait a minute.", status_code=429)
    secret = await _short_body(request)
    if secret is None:
        limiter.count(address)
        return PlainTextResponse("This link is not complete.", status_code=401)
    mine = cookie_of(request.scope)
    if mine is not None and await run_sync(access.opened_by, session.database(), mine, secret):
        return Response(status_code=204)  # the same browser opens its link once more
    try:
        opened = await run_sync(access.exchange, session.database(), secret)
    except access.AccessRefused as refused:
        limiter.count(address)
        return PlainTextResponse(str(refused), status_code=401)
    response = Response(status_code=204)
    keep_session(response, opened, request)
    return response


def address_of(request: Request) -> str:
    """The network address of the browser."""
    return request.client.host if request.client else ""


def keep_session(response: Response, opened: access.OpenedSession, request: Request) -> None:
    """The cookie that the browser shows from now on."""
    response.set_cookie(
        session.cookie_name(),
        opened.secret,
        max_age=int(opened.lifetime.total_seconds()),
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )


async def _short_body(request: Request) -> str | None:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_SECRET:
            return None
    return body.decode("ascii", "replace") or None
