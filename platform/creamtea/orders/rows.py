"""States, locks and events of steps in SQL, shared by submitting, cancelling and the engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, String, cast, insert, select, text, update
from sqlalchemy.orm import Session

from creamtea.store.queries import batches
from creamtea.store.tables import Event, StepInput, StepRow, StudyStep

LIVE = ("queued", "running")
UNFINISHED = ("pending", "ready", "running")
# the values of a step that will run (again). Its facts stay, for `keep_results`
FRESH: dict[str, Any] = {
    **{"state": "pending", "attempts": 0, "error_kind": None, "error": None},
    **{"not_before": None, "started_at": None, "finished_at": None},
}
MAX_BACK_OFF = timedelta(minutes=2)  # the longest pause after an infrastructure failure


def pause_left(not_before: datetime | None, now: datetime) -> float:
    """Return the seconds until a step may start again.

    0 also if the moment is further away than the longest pause: the database's clock was set back.
    """
    left = timedelta(0) if not_before is None else not_before - now
    return left.total_seconds() if timedelta(0) < left <= MAX_BACK_OFF else 0.0


def lock_steps(session: Session) -> None:
    """Lock the table of steps until the transaction ends: transactions that change many would deadlock.

    SQLite needs no lock, as it has one writer at a time.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("LOCK TABLE step IN SHARE ROW EXCLUSIVE MODE"))


def make_wait(session: Session, inputs: Iterable[str]) -> None:
    """Set ready steps of all studies to pending if one of these inputs will be made again."""
    for batch in batches(inputs):
        dependents = select(StepInput.step_key).where(StepInput.input_key.in_(batch))
        waits = update(StepRow).where(StepRow.key.in_(dependents), StepRow.state == "ready")
        session.execute(waits.values(state="pending").execution_options(synchronize_session=False))


def has_result() -> ColumnElement[bool]:
    """Select steps that have succeeded once, and still have the result of that attempt."""
    return cast(StepRow.facts, String) != "null"  # never true for a row with NULL or with JSON's null


def keep_results(session: Session, keys: Iterable[str]) -> None:
    """Let steps that failed or were cancelled in a rerun keep their earlier results, as succeeded.

    The row keeps the error of the last attempt, and with an error the study counts as failed.
    """
    for batch in batches(keys):
        ended = StepRow.key.in_(batch), StepRow.state.in_(("failed", "cancelled"))
        kept = update(StepRow).where(*ended, has_result()).values(state="succeeded")
        session.execute(kept.execution_options(synchronize_session=False))


def keys_of(study_id: int) -> Select[str]:
    return select(StudyStep.step_key).where(StudyStep.study_id == study_id)


ADD_EVENTS = insert(Event.__table__)  # type: ignore[arg-type]


def add_events(
    session: Session, keys: Sequence[str], now: datetime, what: str, details: Sequence[str] | None = None
) -> None:
    """Add one event for each step."""
    written = details if details is not None else [""] * len(keys)
    rows = [
        {"step_key": key, "at": now, "what": what, "detail": detail}
        for key, detail in zip(keys, written, strict=True)
    ]
    if rows:
        session.connection().execute(ADD_EVENTS, rows)
