"""The entrance: a one-time link becomes a browser session, unless it fails too often."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from urllib.parse import quote

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from creamtea.access import sessions
from creamtea.human.rating import invitations
from creamtea_webapp import session
from creamtea_webapp.gate.middleware import ASKED, HERE, asked_before, cookie_of, is_foreign
from creamtea_webapp.gate.paths import ENTRANCE, SIGN_OUT, kept_query, login_address, page_address
from creamtea_webapp.markup import render

MAX_COUNTED = 10_000  # so that a flood takes little memory


class Limiter:
    """Blocks a key after `allowed` counts in `seconds`; older counts are forgotten. For one event loop."""

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


# The entrance: a one-time link becomes a browser session.
#
# The link is `/enter#SECRET`. A browser never sends the part after the `#`, so the secret is in no log, no
# `Referer` and no proxy, and fetching the link, as mail scanners and chat previews do, spends nothing: only
# the page's script posts the secret, on loopback at once, elsewhere at the press of a button.


MAX_SECRET = 200  # bytes


def routes(sign_in: bool = False) -> list[BaseRoute]:
    """Return the routes of links and of signing out. `sign_in`: people can sign in again without a link."""
    limiter = Limiter()

    async def post(request: Request) -> Response:
        return await _exchange(request, limiter)

    async def sign_out(request: Request) -> Response:
        return await _sign_out(request, sign_in)

    return [
        Route(ENTRANCE, _page, methods=["GET"]),
        Route(ENTRANCE, post, methods=["POST"]),
        Route(SIGN_OUT, _ask_to_sign_out, methods=["GET"]),
        Route(SIGN_OUT, sign_out, methods=["POST"]),
        Route("/enter.js", _script, methods=["GET"]),
        Route("/gate.css", _style, methods=["GET"]),
    ]


async def _page(request: Request) -> Response:
    return HTMLResponse(render("gate/enter.html"))


async def _script(request: Request) -> Response:
    return FileResponse(HERE / "enter.js", media_type="text/javascript")


async def _style(request: Request) -> Response:
    return FileResponse(HERE / "gate.css", media_type="text/css")


async def _ask_to_sign_out(request: Request) -> Response:
    return HTMLResponse(render("gate/sign_out.html"))


async def _sign_out(request: Request, sign_in: bool) -> Response:
    if is_foreign(request.scope):
        return PlainTextResponse("Sign out on the site itself.", status_code=403)
    mine = cookie_of(request.scope)
    if mine is not None:
        await run_sync(sessions.sign_out, session.database(), mine)
    page = render(
        "gate/message.html",
        message="You are signed out. Everything that you saved is kept.",
        sign_in=login_address("") if sign_in else "",
    )
    response = HTMLResponse(page)
    response.delete_cookie(session.cookie_name())
    return response


async def _exchange(request: Request, limiter: Limiter) -> Response:
    """Open a session with the secret in the body of a POST.

    204 with the cookie; 401 for a wrong secret; 403 for a page of another site; 429 after too many tries.
    """
    if is_foreign(request.scope):
        return PlainTextResponse("A link can only be opened on its own site.", status_code=403)
    secret = await _short_body(request)
    if secret is None:
        return PlainTextResponse("This link is not complete.", status_code=401)
    # By link, not by address alone: others behind the same proxy have nothing to do with a wrong link, and a
    # secret of 256 bits is not found by trying.
    tried = f"{address_of(request)} {sessions.digest(secret)}"
    if limiter.blocked(tried):
        return PlainTextResponse("This link was tried too often. Wait a minute.", status_code=429)
    try:
        joined = await run_sync(invitations.join, session.database(), secret, request.query_params)
    except sessions.AccessRefused as refused:
        return PlainTextResponse(str(refused), status_code=401)
    if joined is not None:
        response = Response(status_code=204, headers={"Content-Location": "/"})
        keep_session(response, joined, request)
        return response
    mine = cookie_of(request.scope)
    if mine is not None and await run_sync(sessions.opened_by, session.database(), mine, secret):
        return _entered(request)  # the same browser opens its link once more
    try:
        opened = await run_sync(sessions.exchange, session.database(), secret)
    except sessions.AccessRefused as refused:
        limiter.count(tried)
        return PlainTextResponse(str(refused), status_code=401)
    response = _entered(request)
    keep_session(response, opened, request)
    return response


def _entered(request: Request) -> Response:
    """Answer 204 with the address of the page that the link names, or that this browser asked for before."""
    response = Response(status_code=204)
    asked = asked_before(request.scope)
    if named := kept_query(request.url.query):
        response.headers["Content-Location"] = page_address(named)
        return response
    response.headers["Content-Location"] = page_address(quote(asked, safe="=&%+,"))
    if asked:
        response.delete_cookie(session.cookie_name() + ASKED, path=request.scope["below"] + ENTRANCE)
    return response


def address_of(request: Request) -> str:
    """Return the browser's network address; behind a trusted proxy, what the proxy says."""
    return request.client.host if request.client else ""


def keep_session(response: Response, opened: sessions.OpenedSession, request: Request) -> None:
    """Set the session's cookie."""
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
