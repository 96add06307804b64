"""Routes beside the pages: the documentation, files beside sources, and Prometheus' metrics.

The documentation is public to everybody who may come in, raters too. A file beside a source is for
those who may see its campaign. The metrics ask for a token instead of a session (CREAMTEA_METRICS_TOKEN).
"""

from __future__ import annotations

import logging
import mimetypes
import re
from collections.abc import Iterator
from contextlib import ExitStack
from os import PathLike, stat_result
from pathlib import Path

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from creamtea.access import rights, sessions
from creamtea.cli.docs import built_site
from creamtea.errors import InfrastructureError
from creamtea.human.media import KeptFile, find_media
from creamtea.monitoring import CONTENT_TYPE, PATH, exposition, is_allowed
from creamtea_webapp import session
from creamtea_webapp.gate.middleware import content_security_policy, cookie_of
from creamtea_webapp.gate.paths import DOCUMENTATION, address_of_media

mimetypes.add_type("text/plain", ".yaml")  # measured results are read in the browser, not saved as files


def documentation_routes() -> list[Mount]:
    """Serve the site of the documentation, if this installation has it (`creamtea docs` shows the same)."""
    folder = built_site()
    return [] if folder is None else [Mount(f"/{DOCUMENTATION}", Site(directory=folder))]


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


# Files beside sources (`creamtea.human.media`), for those who may see their campaign and nobody else.
#
# A file goes by its SHA-256 alone: its address tells neither its name nor the campaign. Players ask for parts
# of a file, so that one can seek in it (RFC 9110, 14.2); of several parts at once the whole is sent.


DIGEST = re.compile("[0-9a-f]{64}")
RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
CHUNK = 1 << 16  # bytes
log = logging.getLogger(__name__)


def media_route() -> Route:
    return Route(f"/{address_of_media('{digest}')}", _media, methods=["GET"])


async def _media(request: Request) -> Response:
    """Send a file beside a source, or the part that is asked for.

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
        log.error("a file beside a source: %s", error)
        return PlainTextResponse("The file cannot be read at the moment.", status_code=503)
    return StreamingResponse(chunks, status_code=status, headers=headers)


def _allowed(digest: str, secret: str | None) -> KeptFile | None:
    """Return the file if a campaign shows it that this session may see."""
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
    if first is None:  # the last so many
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
        left = len(part)
        with opened:
            while left and (chunk := file.read(min(CHUNK, left))):
                left -= len(chunk)
                yield chunk

    return read()


# `/metrics` for Prometheus, which shows a token instead of a session (CREAMTEA_METRICS_TOKEN).


def metrics_route(token: str) -> Route:
    async def metrics(request: Request) -> Response:
        if not is_allowed(request.headers.get("authorization"), token):
            return PlainTextResponse("", status_code=401, headers={"WWW-Authenticate": "Bearer"})
        return Response(await run_sync(exposition, session.database()), media_type=CONTENT_TYPE)

    return Route(PATH, metrics, methods=["GET"])
