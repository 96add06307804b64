"""`creamtea docs`: the documentation, as a site on this machine."""

from __future__ import annotations

import contextlib
import functools
import http.server
import importlib.util
import os
import subprocess
import sys
import webbrowser
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

import typer

from creamtea.cli.printing import say
from creamtea.errors import InputError
from creamtea.settings import LOOPBACK

PORT = 8502
BUILT = Path("build", "site")  # below the root of a checkout
PACKAGE = Path(__file__).resolve().parents[1]

DOCS_EXAMPLES = "Examples: `creamtea docs` · `creamtea docs --port 0 --no-browser`"


def docs(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes any free one.")
    ] = PORT,
    browser: Annotated[bool, typer.Option(help="Open the first page in a browser.")] = True,
) -> None:
    """Show the documentation: tutorial, how-to pages, reference, explanations. Needs no network.

    It is served on this machine only, at the address that is printed. Stop with Ctrl-C.
    """
    handler = functools.partial(SiteHandler, directory=str(site_folder()))
    try:
        server = http.server.ThreadingHTTPServer((LOOPBACK[0], port), handler)
    except OSError as error:
        raise InputError(
            f"cannot listen on port {port} ({error.strerror}): choose another with --port, "
            "or any free one with --port 0"
        ) from None
    with server, contextlib.suppress(KeyboardInterrupt):
        address = f"http://{LOOPBACK[0]}:{server.server_port}/"
        say(f"the documentation is at {address} (stop with Ctrl-C)")
        sys.stdout.flush()
        if browser and sys.stdout.isatty():
            webbrowser.open(address)
        server.serve_forever()
    say("stopped")


def built_site(package: Path = PACKAGE) -> Path | None:
    """Return the folder of the documentation's site; None if it has not been built."""
    folders = (package / "site", package.parents[1] / BUILT)
    return next((folder for folder in folders if (folder / "index.html").is_file()), None)


def site_folder(package: Path = PACKAGE) -> Path:
    """Return the folder of the site, and build it in a checkout that has none.

    It is `creamtea/site` in an installed wheel, `build/site` at the root of a checkout. InputError if it
    cannot be built.
    """
    if (built := built_site(package)) is not None:
        return built
    root = package.parents[1]
    if not (root / "mkdocs.yml").is_file():
        raise InputError(f"the documentation is missing from {package}: reinstall creamtea")
    if importlib.util.find_spec("mkdocs") is None:
        raise InputError(
            f"the documentation has not been built in this checkout, and mkdocs is not installed here: run "
            f"`make docs-site` in {root}"
        )
    say("building the documentation, once for this checkout …", err=True)
    build(root)
    return root / BUILT


def build(root: Path) -> None:
    """Build the site of a checkout. InputError with what mkdocs says if it cannot."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"the documentation cannot be built: {done.stderr.strip()[-500:]}")


class SiteHandler(http.server.SimpleHTTPRequestHandler):
    """Serves the site's files, and its own page for a missing one; logs no requests."""

    # browsers would save the measured results (docs/results/data) as files
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
        ".yaml": "text/plain; charset=utf-8"
    }

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        page = Path(self.directory) / "404.html"
        if code != HTTPStatus.NOT_FOUND or not page.is_file():
            super().send_error(code, message, explain)
            return
        content = page.read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass
