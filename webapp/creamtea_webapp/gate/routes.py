"""The gate's routes: the entrance, the documentation, media files, and Prometheus' metrics.

At the entrance a one-time link becomes a browser session, unless it fails too often. The documentation is for
everybody with a session, including raters. A media file is for people who may see its campaign. The metrics
need a token instead of a session (CREAMTEA_METRICS_TOKEN).
"""

from __future__ import annotations

import logging
import mimetypes
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from os import PathLike, stat_result
from pathlib import Path
from urllib.parse import quote

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from creamtea.access import rights, sessions
from creamtea.cli.docs import built_site
from creamtea.errors import InfrastructureError
from creamtea.human.media import KeptFile, find_media
from creamtea.human.rating import raters
from creamtea.monitoring import CONTENT_TYPE, PATH, exposition, is_allowed
from creamtea_webapp import session
from creamtea_webapp.gate.middleware import (
    ASKED,
    HERE,
    asked_before,
    content_security_policy,
    cookie_of,
    is_foreign,
)
from creamtea_webapp.gate.paths import (
    DOCUMENTATION,
    ENTRANCE,
    SIGN_OUT,
    address_of_media,
    kept_query,
    login_address,
    page_address,
)
from creamtea_webapp.markup import render

# ---------------------------------------------------------------- the entrance

MAX_COUNTED = 10_000  # limits the memory that a flood takes


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


# The link is `/enter#SECRET`. A browser never sends the part after the `#`, so the secret is in no log, no
# `Referer` and no proxy. Mail scanners and chat previews, which fetch the link, do not use it up: only the
# page's script posts the secret, on loopback at once, elsewhere at the press of a button.


MAX_SECRET = 200  # bytes


def entrance_routes(sign_in: bool = False) -> list[BaseRoute]:
    """Return the routes of links and of signing out. `sign_in`: people can sign in again without a link."""
    return [
        Route(ENTRANCE, _page, methods=["GET"]),
        Route(ENTRANCE, partial(_exchange, limiter=Limiter()), methods=["POST"]),
        Route(SIGN_OUT, _ask_to_sign_out, methods=["GET"]),
        Route(SIGN_OUT, partial(_sign_out, sign_in=sign_in), methods=["POST"]),
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
    # Counted by link, not by address alone: a wrong link must not block others behind the same proxy, and
    # nobody finds a secret of 256 bits by trying.
    tried = f"{address_of(request)} {sessions.digest(secret)}"
    if limiter.blocked(tried):
        return PlainTextResponse("This link was tried too often. Wait a minute.", status_code=429)
    try:
        joined = await run_sync(raters.join, session.database(), secret, request.query_params)
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


# ---------------------------------------------------------------- the documentation

mimetypes.add_type("text/plain", ".yaml")  # measured results are read in the browser, not saved as files


def documentation_routes() -> list[Mount]:
    """Serve the site of the documentation, if this installation has it (`creamtea docs` shows the same)."""
    folder = built_site()
    return [] if folder is None else [Mount(f"/{DOCUMENTATION}", Site(directory=folder, html=True))]


class Site(StaticFiles):
    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """Allow the inline scripts of a documentation page, and no others."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        if isinstance(response, FileResponse) and Path(full_path).suffix == ".html":
            page = Path(full_path).read_text(encoding="utf-8")
            response.headers["Content-Security-Policy"] = content_security_policy(page)
        return response


# ---------------------------------------------------------------- media files
#
# A file's address is its SHA-256, which tells neither its name nor the campaign. Players ask for parts of a
# file, so that people can seek in it (RFC 9110, 14.2). A request for several parts gets the whole file.


DIGEST = re.compile("[0-9a-f]{64}")
RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
CHUNK = 1 << 16  # bytes
log = logging.getLogger(__name__)


def media_route() -> Route:
    return Route(f"/{address_of_media('{digest}')}", _media, methods=["GET"])


async def _media(request: Request) -> Response:
    """Send a media file, or the part that is asked for.

    200 with the file, 206 with a part, 416 for a part beyond its end. 404 if the file does not exist or this
    session may not have it.
    """
    digest = request.path_params["digest"]
    file = await run_sync(_allowed, digest, cookie_of(request.scope))
    if file is None:
        return PlainTextResponse("There is no such file.", status_code=404)
    headers = {
        "Content-Type": file.type,
        "Content-Disposition": "inline",
        "Accept-Ranges": "bytes",
        "ETag": f'"{digest}"',
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    asked = _asked_part(request)
    part = range(file.size) if asked is None else _part_of(file.size, *asked)
    if not part and file.size:
        return Response(status_code=416, headers={**headers, "Content-Range": f"bytes */{file.size}"})
    headers["Content-Length"] = str(len(part))
    if asked is not None:
        headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{file.size}"
    status = 200 if asked is None else 206
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers)
    try:
        chunks = await run_sync(_chunks, digest, part, asked is None)
    except InfrastructureError as error:
        log.error("a media file: %s", error)
        return PlainTextResponse("The file cannot be read at the moment.", status_code=503)
    return StreamingResponse(chunks, status_code=status, headers=headers)


def _allowed(digest: str, secret: str | None) -> KeptFile | None:
    """Return the file if this session may see a campaign that shows it; else None."""
    if not DIGEST.fullmatch(digest):
        return None
    database = session.database()
    who = sessions.identify(database, secret)
    with database.session() as reading:
        file = find_media(reading, digest)
    if file is None or not any(rights.may(who, rights.SEE_MEDIA, campaign) for campaign in file.campaigns):
        return None
    return file


def _asked_part(request: Request) -> tuple[int | None, int | None] | None:
    """Return the first and last byte that are asked for, None for an open end; None for the whole file.

    The whole file is also sent if more than a single part is asked for, or if the tag is not the file's own:
    a file never changes, so any other tag is wrong.
    """
    tag = request.headers.get("if-range")
    asked = RANGE.fullmatch(request.headers.get("range", ""))
    if asked is None or tag not in (None, f'"{request.path_params["digest"]}"'):
        return None
    first, last = (int(number) if number else None for number in asked.groups())
    backwards = first is not None and last is not None and last < first
    return None if backwards or first is last is None else (first, last)


def _part_of(size: int, first: int | None, last: int | None) -> range:
    """Return the bytes of a file of this size; empty if all that is asked for lies beyond its end."""
    if first is None:  # the last `last` bytes
        return range(max(0, size - (last or 0)), size)
    return range(first, size if last is None else min(size, last + 1))


def _chunks(digest: str, part: range, whole: bool) -> Iterator[bytes]:
    """Yield the bytes in pieces.

    Raises InfrastructureError before the first piece if the file cannot be opened, or if it is damaged and
    asked for as a whole.
    """
    opened = ExitStack()
    file = opened.enter_context(session.artefacts().open(digest, verify=whole))
    file.seek(part.start)

    def read() -> Iterator[bytes]:
        remaining = len(part)
        with opened:
            while remaining and (chunk := file.read(min(CHUNK, remaining))):
                remaining -= len(chunk)
                yield chunk

    return read()


# ---------------------------------------------------------------- metrics


def metrics_route(token: str) -> Route:
    async def metrics(request: Request) -> Response:
        if not is_allowed(request.headers.get("authorization"), token):
            return PlainTextResponse("", status_code=401, headers={"WWW-Authenticate": "Bearer"})
        return Response(await run_sync(exposition, session.database()), media_type=CONTENT_TYPE)

    return Route(PATH, metrics, methods=["GET"])
