"""Metrics for Prometheus, from the database alone; controller and web app serve the same metrics.

Each metric is one query at every scrape, so that both servers give the same values.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, aliased

from creamtea.errors import InputError
from creamtea.orders.rows import LIVE
from creamtea.store.database import Database
from creamtea.store.tables import Controller, Event, StepInput, StepRow, StudyRow, StudyStep
from creamtea.store.tables import Metric as StoredMetric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
TRAININGS = 20  # number of newest trainings whose speed is shown


def exposition(database: Database) -> bytes:
    """Return all metrics in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(database))
    return generate_latest(registry)


class _Figures(Collector):
    def __init__(self, database: Database) -> None:
        self._database = database

    def describe(self) -> list[Metric]:
        return []  # otherwise the registry would query the database for the names

    def collect(self) -> Iterator[Metric]:
        with self._database.session() as session:
            now = self._database.now(session)
            yield from _counts(session)
            yield _queue(session, now)
            yield _retries(session)
            yield _speeds(session)
            yield from _leases(session, now)


def _counts(session: Session) -> Iterator[Metric]:
    steps = GaugeMetricFamily("creamtea_steps", "Steps by state and kind.", labels=["state", "kind"])
    by_state = select(StepRow.state, StepRow.kind, func.count()).group_by(StepRow.state, StepRow.kind)
    for state, kind, count in session.execute(by_state):
        steps.add_metric([state, kind], count)
    yield steps
    studies = GaugeMetricFamily("creamtea_studies", "Submissions of studies by state.", labels=["state"])
    for state, count in session.execute(select(StudyRow.state, func.count()).group_by(StudyRow.state)):
        studies.add_metric([state], count)
    yield studies


def _queue(session: Session, now: datetime) -> Metric:
    """Return the longest time, by kind, that a ready step has been waiting.

    A step waits from the latest of these moments: its last input finished, its study was submitted, and its
    last event (an earlier attempt, or a cancelled study that was queued again).
    """
    before = aliased(StepRow)
    touched = select(func.max(Event.at)).where(Event.step_key == StepRow.key).scalar_subquery()
    since = (
        select(StepRow.kind, func.max(before.finished_at), func.min(StudyRow.created_at), touched)
        .join(StudyStep, StudyStep.step_key == StepRow.key)
        .join(StudyRow, StudyRow.id == StudyStep.study_id)
        .outerjoin(StepInput, StepInput.step_key == StepRow.key)
        .outerjoin(before, before.key == StepInput.input_key)
        .where(StepRow.state == "ready", StudyRow.state.in_(LIVE))
        .group_by(StepRow.key, StepRow.kind)
    )
    longest: dict[str, float] = {}
    for kind, *moments in session.execute(since):
        ready = max(moment for moment in moments if moment is not None)
        longest[kind] = max(longest.get(kind, 0.0), (now - ready).total_seconds())
    waits = GaugeMetricFamily(
        "creamtea_queue_seconds", "How long the step that waits longest could have run.", labels=["kind"]
    )
    for kind, seconds in longest.items():
        waits.add_metric([kind], seconds)
    return waits


def _retries(session: Session) -> Metric:
    retries = CounterMetricFamily(
        "creamtea_step_retries", "Attempts that failed and were tried again.", labels=["kind"]
    )
    by_kind = (
        select(StepRow.kind, func.count())
        .join(Event, Event.step_key == StepRow.key)
        .where(Event.what == "retry")
        .group_by(StepRow.kind)
    )
    for kind, count in session.execute(by_kind):
        retries.add_metric([kind], count)
    return retries


def _speeds(session: Session) -> Metric:
    speeds = GaugeMetricFamily(
        "creamtea_training_tokens_per_second",
        f"Target tokens per second of the {TRAININGS} trainings that finished last.",
        labels=["study", "step"],
    )
    newest = (
        select(StepRow.key, StoredMetric.value)
        .join(StoredMetric, StoredMetric.step_key == StepRow.key)
        .where(StoredMetric.name == "tokens_per_second", StoredMetric.subject == "")
        .where(StepRow.state == "succeeded")  # a step that runs again has old rows and no end
        .order_by(StepRow.finished_at.desc(), StepRow.key)
        .limit(TRAININGS)
    )
    for key, value in session.execute(newest).all():
        place = session.execute(
            select(StudyRow.name, StudyStep.node)
            .join(StudyStep, StudyStep.study_id == StudyRow.id)
            .where(StudyStep.step_key == key)
            .order_by(StudyRow.id.desc(), StudyStep.node)
            .limit(1)
        ).first()
        if place is not None and value is not None:
            speeds.add_metric(list(place), value)
    return speeds


def _leases(session: Session, now: datetime) -> Iterator[Metric]:
    lease = GaugeMetricFamily(
        "creamtea_controller_lease_seconds", "Time left of the controller's lease; below 0: there is none."
    )
    until = session.scalar(select(Controller.lease_until))
    lease.add_metric([], -1.0 if until is None else (until - now).total_seconds())
    yield lease
    steps = GaugeMetricFamily("creamtea_step_leases", "Running steps by their lease.", labels=["lease"])
    running = select(func.count()).where(StepRow.state == "running")
    for name, condition in (("valid", StepRow.lease_until > now), ("expired", StepRow.lease_until <= now)):
        steps.add_metric([name], session.scalar(running.where(condition)) or 0)
    yield steps


# ---------------------------------------------------------------- serving the figures

PATH = "/metrics"
MIN_TOKEN = 16  # characters


def load_token() -> str | None:
    """Read CREAMTEA_METRICS_TOKEN or CREAMTEA_METRICS_TOKEN_FILE; return None if neither is set.

    Raises InputError for an unreadable file, and for a token that is too short.
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
    """Return True if a request's header `Authorization` has the token."""
    return hmac.compare_digest((authorization or "").encode(), f"Bearer {token}".encode())


@contextmanager
def served(database: Database, host: str, port: int) -> Iterator[int]:
    """Serve the metrics at HOST:PORT/metrics; yield the port (a free port if `port` is 0).

    Raises InputError without a token, or if the port cannot be used.
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
        """Log nothing: scrapes come every few seconds."""
