"""The ASGI middleware in front of Streamlit: files that browsers keep, and a session for everything else.

Streamlit sends its files as they are, 2.9 MB for the rating page, and a component's script and styles again
with every run of a page. Here each file is compressed when it is first asked for and then stays in memory,
and a component's module has an address with a hash of its text, so that a browser asks for it once.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import streamlit
from anyio.to_thread import run_sync
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from creamtea.access import sessions
from creamtea.monitoring import PATH as METRICS
from creamtea.settings import Serving
from creamtea_webapp import session
from creamtea_webapp.gate.connections import Connections
from creamtea_webapp.gate.paths import ENTRANCE, SIGN_IN_PATHS, kept_query, login_address
from creamtea_webapp.markup import render
from creamtea_webapp.session import page_of_gate

STREAMLIT = Path(streamlit.__file__).parent / "static"
OWN = "/assets/"
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}
_published: dict[str, str] = {}  # address of a module -> its text

# A component's styles come with its module: hidden until then, it is never seen without them.
UNTIL_STYLED = ".board, .earlier { visibility: hidden }"
MODULE = """{script}
const sheet = new CSSStyleSheet();
sheet.replaceSync({styles});
export function draw(given) {{
  const root = given.parentElement.getRootNode();
  if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets.push(sheet);
  return render(given);
}}
"""
# A component's script is a module at a blob: address, from which only whole addresses can be imported.
LOADER = """const {{ draw }} = await import(new URL({address}, document.baseURI).href);
export default draw;
"""
# Streamlit fetches its font of icons, 0.4 MB, before it shows anything. With this script, browsers fetch it
# when they show an icon.
ICONS_LATER = """const load = document.fonts.load.bind(document.fonts);
document.fonts.load = (font, ...text) =>
  font.includes("Material Symbols") ? Promise.resolve([]) : load(font, ...text);
"""


def publish(name: str, script: str, styles: str) -> str:
    """Keep the module of a component, and return the short script that a page sends instead.

    The component's script has a function `render`; its styles are added.
    """
    shown = f"{styles}\n.board, .earlier {{ visibility: visible }}"
    address = _keep(name, MODULE.format(script=script, styles=json.dumps(shown)))
    return LOADER.format(address=json.dumps(f".{address}"))


def _keep(name: str, text: str) -> str:
    address = f"{OWN}{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.js"
    _published[address] = text
    return address


FIRST = f'<script src=".{_keep("icons", ICONS_LATER)}"></script>'


@cache
def _streamlit_files() -> dict[str, Path]:
    """Return Streamlit's files that are worth compressing, by their path on the server."""
    compressible = (path for path in STREAMLIT.rglob("*") if path.suffix in TYPES and path.is_file())
    files = {f"/{path.relative_to(STREAMLIT).as_posix()}": path for path in compressible}
    return files | {"/": STREAMLIT / "index.html"}


@cache
def _compressed(path: str) -> tuple[bytes, str]:
    """Return the file at this path, compressed, and its type. KeyError if there is none."""
    if path in _published:
        return _gzip(_published[path].encode()), TYPES[".js"]
    file = _streamlit_files()[path]
    if path == "/":
        page = file.read_text(encoding="utf-8").replace("<head>", f"<head>{FIRST}", 1)
        return _gzip(page.replace("</head>", f"{_preloads(page)}</head>", 1).encode()), TYPES[".html"]
    return _gzip(file.read_bytes()), TYPES[file.suffix]


def _preloads(page: str) -> str:
    """Return links that let a browser fetch the modules of the first blocks while Streamlit starts.

    Streamlit's page does not name these modules: it asks for them once the blocks have come.
    """
    folder = STREAMLIT / "static" / "js"
    modules = [path.name for name in ("Html", "BidiComponent") for path in folder.glob(f"{name}.*.js")]
    for module in modules:  # the list grows by the modules' imports
        imported = re.findall(r'"\./([^"]+\.js)"', (folder / module).read_text(encoding="utf-8"))
        modules += [name for name in dict.fromkeys(imported) if name not in modules and name not in page]
    return "".join(f'<link rel="modulepreload" crossorigin href="./static/js/{name}">' for name in modules)


def _gzip(content: bytes) -> bytes:
    """Compress while the first visitor waits: level 9 takes longer for little less."""
    return gzip.compress(content, compresslevel=6, mtime=0)


async def asset(scope: Scope) -> Response | None:
    """Answer a request for a file that the gate keeps; return None for any other request."""
    path = scope["path"]
    if scope["type"] != "http" or scope["method"] != "GET":
        return None
    if path not in _published and path not in _streamlit_files():
        return None
    headers = Headers(scope=scope)
    content, kind = await run_sync(_compressed, path)
    answer = {"Vary": "Accept-Encoding"}
    if "gzip" not in headers.get("accept-encoding", "") or "range" in headers:
        if path not in _published:
            return None  # Streamlit sends it as it is
        content = gzip.decompress(content)
    else:
        answer["Content-Encoding"] = "gzip"
    return Response(content, media_type=kind, headers=answer)


# ---------------------------------------------------------------- a session for every route
#
# A request without a valid session cookie gets a plain 401. The gate also sets the security headers of every
# answer. Each page decides again what a session may see (`creamtea_webapp.session`): the gate only tells
# people with a session from people without.


HERE = Path(__file__).parent
ASKED, KEPT_SECONDS = "-asked", 600  # suffix and lifetime of the cookie with the page that was asked for
# The entrance, and the health check of load balancers and containers, which says only "ok".
OPEN_PATHS = frozenset({ENTRANCE, "/enter.js", "/gate.css", "/_stcore/health"})
# Streamlit serves these to every session, but only organisers' pages upload files, and its own metrics do not
# concern raters and readers.
FOR_ORGANISERS = ("/_stcore/upload_file", "/_stcore/metrics")


def inline_scripts(page: str) -> list[str]:
    """Return the hashes of a page's inline scripts as CSP sources, so that no other inline script runs."""
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]


def content_security_policy(page: str) -> str:
    """Return the policy for a page with these inline scripts and no others.

    Streamlit styles by inline rules, and mounts components by modules from blob: addresses.
    """
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self' blob: {' '.join(inline_scripts(page))}",
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


INDEX = (STREAMLIT / "index.html").read_text(encoding="utf-8")
CONTENT_SECURITY_POLICY = content_security_policy(INDEX)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


# a year; without subdomains, which may belong to others
TRANSPORT_SECURITY = f"max-age={365 * 24 * 3600}"


class Gate:
    def __init__(
        self,
        app: ASGIApp,
        sign_in: bool = False,
        metrics: bool = False,
        https: bool = False,
        max_connections: int = Serving.max_connections,
        url: str | None = None,
    ) -> None:
        """Put the gate in front of an app.

        `sign_in`: the routes of gate/sign_in.py exist, and are open to everybody. `metrics`: the route of
        Prometheus exists; it asks for a token of its own. `https`: people reach this server by HTTPS,
        whatever a proxy says. `max_connections`: WebSockets in all. `url`: where people reach this server,
        whatever `Host` and path a proxy sends.
        """
        self.app = app
        self.sign_in = sign_in
        self.https = https
        self.own_host = urlsplit(url or "").netloc
        self.below = urlsplit(url or "").path.rstrip("/")  # the path that the app is served below
        self.connections = Connections(max_connections)
        self.open_paths = (
            OPEN_PATHS | (SIGN_IN_PATHS if sign_in else set()) | ({METRICS} if metrics else set())
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)  # the lifespan
            return
        if self.https:
            scope["scheme"] = "https" if scope["type"] == "http" else "wss"
        if self.below and scope["path"] == self.below:
            await RedirectResponse(f"{self.below}/")(scope, receive, send)
            return
        # some proxies keep this path, some remove it
        if self.below and scope["path"].startswith(f"{self.below}/"):
            scope["path"] = scope["path"].removeprefix(self.below)
            scope["raw_path"] = quote(scope["path"]).encode()
        scope["below"], scope["own_host"] = self.below, self.own_host
        send = _with_headers(scope, send, self.https)
        if scope["path"] in self.open_paths:
            await self.app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            if is_foreign(scope):  # browsers send cookies from any page
                page = HTMLResponse("Open this page on its own site.", status_code=403)
                await _refuse(scope, receive, send, page)
                return
            # Streamlit would accept any port of this host; for another host it asks an outside address, and
            # answers nobody else meanwhile
            scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"origin"]
        try:
            session_id = await run_sync(_session_of, scope)
        except SQLAlchemyError as error:
            await _refuse(scope, receive, send, page_of_gate(error))
            return
        if session_id is None:
            query = kept_query(scope["query_string"].decode("latin-1"))
            address = login_address(query) if self.sign_in else ""
            page = HTMLResponse(render("gate/no_session.html", sign_in=address), status_code=401)
            if query and scope["path"] == "/":
                keep_asked(page, query, self.below)
            await _refuse(scope, receive, send, page)
        elif scope["type"] == "websocket" or scope["path"] == "/":
            await self._page(session_id, scope, receive, send)
        else:
            await (await asset(scope) or self.app)(scope, receive, send)

    async def _page(self, session_id: int, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a page or open its WebSocket, unless too many are open."""
        if (why := self.connections.refusal(session_id)) is not None:
            page = render("gate/message.html", message=why, sign_in="")
            await _refuse(scope, receive, send, HTMLResponse(page, status_code=503))
        elif scope["type"] == "websocket":
            with self.connections.counted(session_id):
                await self.app(scope, receive, send)
        else:
            await (await asset(scope) or self.app)(scope, receive, send)


def is_foreign(scope: Scope) -> bool:
    """Return whether a page of another site sends this request. Only browsers say which page sends it."""
    headers = Headers(scope=scope)
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc not in (
        headers.get("host"),
        scope["own_host"] or None,
    )


def cookie_of(scope: Scope, suffix: str = "") -> str | None:
    """Return a request's session secret; with `suffix`, the value of another cookie of the gate."""
    name = session.cookie_name() + suffix
    for header in Headers(scope=scope).getlist("cookie"):
        # not SimpleCookie, which gives up at cookies that other applications of this host may set
        cookies = cookie_parser(header)
        if name in cookies:
            return cookies[name]
    return None


def keep_asked(response: Response, query: str, below: str = "") -> None:
    """Keep the page that was asked for without a session in a cookie: the next opened link leads there."""
    response.set_cookie(
        session.cookie_name() + ASKED,
        quote(query),
        max_age=KEPT_SECONDS,
        path=below + ENTRANCE,
        httponly=True,
        samesite="lax",
    )


def asked_before(scope: Scope) -> str:
    """Return the query of the page that this browser asked for before it had a session."""
    return kept_query(unquote(cookie_of(scope, ASKED) or ""))


def _session_of(scope: Scope) -> int | None:
    """Return the id of the session that may ask for this path."""
    who = sessions.identify(session.database(), cookie_of(scope))
    if who is None or (who.role != "organiser" and any(path in scope["path"] for path in FOR_ORGANISERS)):
        return None
    return who.session_id


async def _refuse(scope: Scope, receive: Receive, send: Send, page: HTMLResponse) -> None:
    """Send a page that says why; a WebSocket gets its status as the answer to the handshake."""
    if scope["type"] == "http":
        await page(scope, receive, send)
    elif "websocket.http.response" in scope.get("extensions", {}):
        await send({"type": "websocket.http.response.start", "status": page.status_code, "headers": []})
        await send({"type": "websocket.http.response.body", "body": b""})
    else:
        await send({"type": "websocket.close", "code": 1008})


def _with_headers(scope: Scope, send: Send, https: bool) -> Send:
    # files with a hash in their name, which hold nothing of a study
    lasting = scope["path"].startswith(("/static/", OWN))

    async def send_with_headers(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            headers = MutableHeaders(scope=message)
            own_policy = headers.get("Content-Security-Policy")  # a page of the documentation has one
            headers.update(
                HEADERS if own_policy is None else HEADERS | {"Content-Security-Policy": own_policy}
            )
            if https:
                headers["Strict-Transport-Security"] = TRANSPORT_SECURITY
            if scope["scheme"] in ("https", "wss"):
                cookies = headers.getlist("set-cookie")
                del headers["set-cookie"]
                for cookie in cookies:  # Streamlit's cookies, unlike the gate's, are not marked as secure
                    secure = "; secure" in cookie.lower()
                    headers.append("set-cookie", cookie if secure else f"{cookie}; Secure")
            lasts = lasting and message["status"] == 200
            headers["Cache-Control"] = "private, max-age=31536000, immutable" if lasts else "no-store"
        await send(message)

    return send_with_headers
