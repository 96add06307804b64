"""The ASGI middleware in front of Streamlit: a valid session cookie or a plain 401, on every route.

It also sets the security headers of every answer. What a session may see is decided again by each page
(`creamtea_webapp.session`): the gate only tells people with a session from people without.
"""

from __future__ import annotations

import base64
import hashlib
import re
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

import streamlit
from anyio.to_thread import run_sync
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from creamtea.human import access
from creamtea.monitoring.server import PATH as METRICS
from creamtea_webapp import session
from creamtea_webapp.gate.paths import SIGN_IN_PATHS, campaign_asked_for, login_address
from creamtea_webapp.markup import render

HERE = Path(__file__).parent
# The entrance, and the health check of load balancers and containers, which says only "ok".
OPEN_PATHS = frozenset({"/enter", "/enter.js", "/gate.css", "/_stcore/health"})
# Streamlit gives these to every session: files come only from organisers' pages, and its own metrics are
# nothing for raters and readers.
OF_ORGANISERS = ("/_stcore/upload_file", "/_stcore/metrics")


def inline_scripts(page: str) -> list[str]:
    """The CSP sources of a page's inline scripts: their hashes, so that no other inline script runs."""
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]


INDEX = (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
# Streamlit styles by inline rules, and mounts components by modules from blob: addresses.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        f"script-src 'self' blob: {' '.join(inline_scripts(INDEX))}",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Gate:
    def __init__(self, app: ASGIApp, sign_in: bool = False, metrics: bool = False) -> None:
        """`sign_in`: the routes of gate/sign_in.py exist, and are open to everybody.

        `metrics`: so does that of gate/metrics.py, which asks for a token of its own.
        """
        self.app = app
        self.sign_in = sign_in
        self.open_paths = (
            OPEN_PATHS | (SIGN_IN_PATHS if sign_in else set()) | ({METRICS} if metrics else set())
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)  # the lifespan
            return
        send = _with_headers(scope, send)
        if scope["path"] in self.open_paths or await run_sync(_may_pass, scope):
            await self.app(scope, receive, send)
        else:
            await _refuse(scope, receive, send, self.sign_in)


def cookie_of(scope: Scope) -> str | None:
    """The session secret of a request, from its cookies."""
    for header in Headers(scope=scope).getlist("cookie"):
        try:
            cookies = SimpleCookie(header)
        except CookieError:
            continue
        if session.cookie_name() in cookies:
            return cookies[session.cookie_name()].value
    return None


def _may_pass(scope: Scope) -> bool:
    who = access.identify(session.database(), cookie_of(scope))
    if any(path in scope["path"] for path in OF_ORGANISERS):
        return who is not None and who.role == "organiser"
    return who is not None


async def _refuse(scope: Scope, receive: Receive, send: Send, sign_in: bool) -> None:
    """A 401 page; for a WebSocket the same as the answer to its handshake."""
    if scope["type"] == "http":
        address = login_address(campaign_asked_for(Request(scope).query_params)) if sign_in else ""
        page = render("gate/no_session.html", sign_in=address)
        await HTMLResponse(page, status_code=401)(scope, receive, send)
    elif "websocket.http.response" in scope.get("extensions", {}):
        await send({"type": "websocket.http.response.start", "status": 401, "headers": []})
        await send({"type": "websocket.http.response.body", "body": b""})
    else:
        await send({"type": "websocket.close", "code": 1008})


def _with_headers(scope: Scope, send: Send) -> Send:
    # Streamlit's own assets have a hash in their name and hold nothing of a study.
    asset = scope["path"].startswith("/static/")

    async def send_with_headers(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            good_asset = asset and message["status"] == 200
            headers["Cache-Control"] = "private, max-age=31536000, immutable" if good_asset else "no-store"
        await send(message)

    return send_with_headers
