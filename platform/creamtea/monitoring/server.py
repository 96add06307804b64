"""Serving the figures: the token that Prometheus shows, and the controller's own small server."""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from creamtea.errors import InputError
from creamtea.monitoring.figures import CONTENT_TYPE, exposition
from creamtea.store.database import Database

PATH = "/metrics"
MIN_TOKEN = 16  # characters


def load_token() -> str | None:
    """From CREAMTEA_METRICS_TOKEN, or the file that CREAMTEA_METRICS_TOKEN_FILE names; None: neither is set.

    InputError for a file that cannot be read and a token that is too short.
    """
    token, file = (os.environ.get(f"CREAMTEA_METRICS_TOKEN{end}", "").strip() for end in ("", "_FILE"))
    if file:
        try:
            token = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"CREAMTEA_METRICS_TOKEN_FILE: cannot read {file}: {error}") from None
    if (token or file) and len(token) < MIN_TOKEN:
        raise InputError(
            f"the token of the metrics has fewer than {MIN_TOKEN} characters; `openssl rand -hex 32` makes "
            "one"
        )
    return token or None


def is_allowed(authorization: str | None, token: str) -> bool:
    """Whether a request's header `Authorization` shows the token."""
    return hmac.compare_digest((authorization or "").encode(), f"Bearer {token}".encode())


@contextmanager
def served(database: Database, host: str, port: int) -> Iterator[int]:
    """Serve the figures at http://HOST:PORT/metrics meanwhile; yields the port, which is free for port 0.

    InputError without a token, or if the port cannot be used.
    """
    token = load_token()
    if token is None:
        raise InputError(
            "metrics need a token that Prometheus shows: set CREAMTEA_METRICS_TOKEN, or name a file in "
            "CREAMTEA_METRICS_TOKEN_FILE"
        )

    class Handler(_Handler):
        pass

    Handler.database, Handler.token = database, token
    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as error:
        raise InputError(f"cannot serve metrics on {host}:{port}: {error.strerror}") from None
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True, name="metrics")
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    database: Database
    token: str
    timeout = 10

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != PATH:
            self._answer(404, b"")
        elif not is_allowed(self.headers.get("Authorization"), self.token):
            self._answer(401, b"")
        else:
            try:
                self._answer(200, exposition(self.database))
            except SQLAlchemyError:
                self._answer(503, b"the database does not answer\n")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """A scrape every few seconds is nothing to report."""
