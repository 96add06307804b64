"""Files that browsers keep: Streamlit's, compressed once, and modules of our own components.

Streamlit sends its files as they are, 2.9 MB for the rating page, and a component's script and styles again
with every run of a page. Here each file is compressed when it is first asked for and then stays in memory,
and a component's module has an address with a hash of its text, so that a browser asks for it once.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from functools import cache
from pathlib import Path

import streamlit
from anyio.to_thread import run_sync
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

STREAMLIT = Path(streamlit.__file__).parent / "static"
OWN = "/assets/"
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}
_published: dict[str, str] = {}  # addresses of modules: their text

# The styles come with the module: until then nothing is shown, so that it is not seen without them.
UNTIL_THEN = ".board, .earlier { visibility: hidden }"
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
# Streamlit fetches its font of icons, 0.4 MB, before anything is shown; browsers fetch it when an icon is.
ICONS_LATER = """const load = document.fonts.load.bind(document.fonts);
document.fonts.load = (font, ...text) =>
  font.includes("Material Symbols") ? Promise.resolve([]) : load(font, ...text);
"""


def publish(name: str, script: str, styles: str) -> str:
    """Keep the module of a component, whose script has a function `render`, with its styles; the short script
    that a page sends instead."""
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
    """Files worth compressing, by their path on the server: what is not in here is not looked for."""
    found = (path for path in STREAMLIT.rglob("*") if path.suffix in TYPES and path.is_file())
    files = {f"/{path.relative_to(STREAMLIT).as_posix()}": path for path in found}
    return files | {"/": STREAMLIT / "index.html"}


@cache
def _compressed(path: str) -> tuple[bytes, str]:
    """The file at this path, compressed, and its type. KeyError where there is none."""
    if path in _published:
        return _gzip(_published[path].encode()), TYPES[".js"]
    file = _streamlit_files()[path]
    if path == "/":
        page = file.read_text(encoding="utf-8").replace("<head>", f"<head>{FIRST}", 1)
        return _gzip(page.encode()), TYPES[".html"]
    return _gzip(file.read_bytes()), TYPES[file.suffix]


def _gzip(content: bytes) -> bytes:
    """While the first visitor waits: level 9 takes 40 % longer for 0.3 % less."""
    return gzip.compress(content, compresslevel=6, mtime=0)


async def asset(scope: Scope) -> Response | None:
    """The answer to a request for one of these files; None for any other request."""
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
