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
# the values of a step that is to run. Its facts stay: `keep_results`
FRESH: dict[str, Any] = {
    **{"state": "pending", "attempts": 0, "error_kind": None, "error": None},
    **{"not_before": None, "started_at": None, "finished_at": None},
}
MAX_BACK_OFF = timedelta(minutes=2)  # the longest pause after an infrastructure failure


def pause_left(not_before: datetime | None, now: datetime) -> float:
    """Return the seconds until a step may start again.

    0 also if that moment is further away than any pause: then the database's clock was set back.
    """
    left = timedelta(0) if not_before is None else not_before - now
    return left.total_seconds() if timedelta(0) < left <= MAX_BACK_OFF else 0.0


def lock_steps(session: Session) -> None:
    """Lock the steps until the transaction ends, so that transactions that change many cannot deadlock.

    SQLite has one writer at a time anyway.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("LOCK TABLE step IN SHARE ROW EXCLUSIVE MODE"))


def make_wait(session: Session, inputs: Iterable[str]) -> None:
    """Make ready steps wait again, in all studies, if one of their inputs is to be made again."""
    for batch in batches(inputs):
        behind = select(StepInput.step_key).where(StepInput.input_key.in_(batch))
        waits = update(StepRow).where(StepRow.key.in_(behind), StepRow.state == "ready")
        session.execute(waits.values(state="pending").execution_options(synchronize_session=False))


def has_result() -> ColumnElement[bool]:
    """Select steps that have succeeded once, and whose rows are those of that attempt."""
    return cast(StepRow.facts, String) != "null"  # some rows have JSON's null, for which this is false, too


def keep_results(session: Session, keys: Iterable[str]) -> None:
    """Return steps that failed or were cancelled when they ran again to the result that they had before.

    Such a step has succeeded. The error of its last attempt stays with it, and so does that of its study.
    """
    for batch in batches(keys):
        ended = StepRow.key.in_(batch), StepRow.state.in_(("failed", "cancelled"))
        kept = update(StepRow).where(*ended, has_result()).values(state="succeeded")
        session.execute(kept.execution_options(synchronize_session=False))


def keys_of(study_id: int) -> Select[str]:
    """Return the keys of the study's steps."""
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
