"""The web server: Streamlit's ASGI app behind the gate."""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from sqlalchemy.exc import SQLAlchemyError
from starlette.middleware import Middleware
from starlette.routing import BaseRoute
from streamlit.components.v2 import manifest_scanner
from streamlit.starlette import App
from streamlit.web.server.starlette import starlette_server

from creamtea.errors import InputError
from creamtea.monitoring import load_token
from creamtea.settings import Serving, SignIn
from creamtea_webapp import board, session
from creamtea_webapp.gate import connections
from creamtea_webapp.gate import routes as gate_routes
from creamtea_webapp.gate.middleware import Gate

LIGHT = {
    "primaryColor": "#9a3d1c",
    "backgroundColor": "#fffdf9",
    "secondaryBackgroundColor": "#f6f0e7",
    "textColor": "#2b2522",
    "linkColor": "#8a3517",
    "borderColor": "#e4d9cb",
}
DARK = {
    "primaryColor": "#b8552a",  # 4.8:1 under the white of its buttons, 3.2:1 on both backgrounds
    "backgroundColor": "#1d1917",
    "secondaryBackgroundColor": "#2a2421",
    "textColor": "#f0e9e2",
    "linkColor": "#eb9a72",
    "borderColor": "#453b35",
}

THEME: dict[str, Any] = {
    **{f"theme.light.{name}": value for name, value in LIGHT.items()},
    **{f"theme.dark.{name}": value for name, value in DARK.items()},
    "theme.baseRadius": "0.5rem",
    "theme.headingFontSizes": ["2rem", "1.3rem", "1.15rem", "1rem", "1rem", "1rem"],
    "theme.paddingTop": "1.25rem",
}


log = logging.getLogger(__name__)
SCRIPT = Path(__file__).parent / "script" / "entry.py"


def serve(
    host: str,
    port: int,
    ready: Callable[[int], None],
    sign_in: SignIn | None = None,
    url: str | None = None,
) -> None:
    """Serve until interrupted; `ready` is called with the port once it is bound (port 0: any free one).

    `sign_in`: the provider at which people may sign in. `url`: where they reach this server, if known. Raises
    InputError before anything starts if the address cannot be bound.
    """
    check_address(host, port)
    session.database()
    board.publish_all()

    @asynccontextmanager
    async def lifespan(app: App) -> AsyncIterator[None]:
        ready(int(st.get_option("server.port")))
        yield

    routes: list[BaseRoute] = [
        *gate_routes.entrance_routes(sign_in is not None),
        gate_routes.media_route(),
        *gate_routes.documentation_routes(),
    ]
    if sign_in is not None:
        # Authlib is slow to import, and only a server with a provider needs it
        from creamtea_webapp.gate.sign_in import routes as sign_in_routes

        routes += sign_in_routes(sign_in, url)
    token = load_token()
    if token is not None:
        routes.append(gate_routes.metrics_route(token))
    serving = Serving.load()
    # how uvicorn, which Streamlit starts, is told whose X-Forwarded headers to believe
    os.environ["FORWARDED_ALLOW_IPS"] = ",".join(serving.trusted_proxies)
    gate = Middleware(
        Gate,
        sign_in=sign_in is not None,
        metrics=token is not None,
        https=urlsplit(url or "").scheme == "https",
        max_connections=_max_pages(serving.max_connections),
        url=url,
    )
    # at its start, Streamlit reads the metadata of all installed packages, to find their components; none of
    # these is shown here
    manifest_scanner.scan_component_manifests = lambda max_workers=None: []
    app = App(
        SCRIPT,
        routes=routes,
        middleware=[gate],
        lifespan=lifespan,
        on_script_error=session.show_outage,
        exception_handlers={SQLAlchemyError: session.answer},
    )
    app.run(config=_config(host, port))


def _max_pages(wanted: int) -> int:
    """Return how many pages may be open at once: as many as wanted, if there are enough descriptors."""
    open_files = connections.raise_open_files()
    possible = connections.max_pages(open_files)
    if possible < wanted:
        log.warning(
            "at most %d pages can be open at once, not %d: this process may open %d files. Raise the limit "
            "(`ulimit -n`), or set CREAMTEA_MAX_CONNECTIONS",
            possible,
            wanted,
            open_files,
        )
    uvicorn_settings = starlette_server._get_uvicorn_config_kwargs

    def bounded_settings() -> dict[str, Any]:
        return uvicorn_settings() | {
            "http": connections.bounded(open_files - connections.RESERVED),
            "ws": connections.RefusingProtocol,
            "backlog": connections.BACKLOG,
            "ws_max_size": connections.MAX_MESSAGE,
        }

    # Streamlit, which starts uvicorn, has no settings for these
    starlette_server._get_uvicorn_config_kwargs = bounded_settings
    once = session.OnceAMinute()  # for lines that strangers can cause: "Invalid HTTP request"
    logging.getLogger("uvicorn.error").addFilter(
        lambda record: bool(record.exc_info or record.args) or once.filter(record)
    )
    return min(wanted, possible)


def _config(host: str, port: int) -> dict[str, Any]:
    return {
        "server.address": host,
        "server.port": port,
        "server.headless": True,
        "server.fileWatcherType": "none",
        "server.enableStaticServing": False,
        "server.enableAgentApi": False,
        "server.maxUploadSize": 100,  # MB, for imported ratings; the gate lets only organisers upload
        "browser.gatherUsageStats": False,
        "global.minCachedMessageSize": 1000.0,  # bytes; larger parts that do not change are sent once
        # no garbage collection after each run: Python collects when it needs to
        "runner.postScriptGC": False,
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",  # a traceback could tell a rater the names of systems
        "logger.hideWelcomeMessage": True,
        **THEME,
    }


def check_address(host: str, port: int) -> None:
    """Raise InputError, with the remedy, if a server cannot listen on this host and port."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, OverflowError):
        raise InputError(
            f"cannot listen on {host}:{port}: no such host or port; see --host and --port"
        ) from None
    with socket.socket(family, kind, protocol) as probe:
        if os.name != "nt":  # a port in TIME_WAIT is free
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
            probe.listen(1)
        except OSError as error:
            raise InputError(_why_not(host, port, error)) from None


def _why_not(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} on {host} is in use, perhaps by another `creamtea serve`: "
            f"stop that one or choose another port, e.g. --port {port + 1} (--port 0 takes any free one)"
        )
    if error.errno == errno.EACCES:
        return f"you do not have the right to use port {port}: choose one above 1023, e.g. --port 8501"
    return f"cannot listen on {host}:{port}: {error.strerror}; see --host and --port"
