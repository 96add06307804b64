"""Follows a study that another process runs, by reading the database."""

from __future__ import annotations

import time
from collections.abc import Iterator

from sqlalchemy import select

from creamtea.engine.events import (
    EngineEvent,
    StepFailed,
    StepProgressed,
    StepRetried,
    StepStarted,
    StepStopped,
    StepSucceeded,
)
from creamtea.engine.lease import live_controller
from creamtea.engine.state import has_ended
from creamtea.engine.submission import Submission
from creamtea.errors import CreamteaError
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import StepRow, StudyStep

POLL_SECONDS = 1.0
MISSING_SECONDS = 30.0  # without any controller, after which waiting is given up


def follow(
    database: Database, store: ArtefactStore, submission: Submission, log: str
) -> Iterator[EngineEvent]:
    """What happens to the study, as events, until it has ended.

    CreamteaError when no controller is left that could continue it; `log` is where to look then.
    """
    study_id = submission.study_id
    nodes = {key: node for node, key in reversed(submission.nodes.items())}
    # what finished between the submission and the first poll is reported as well
    seen = {key: "succeeded" if key in submission.reused_keys else "pending" for key in nodes}
    alive_at = time.monotonic()
    while True:
        over = has_ended(database, study_id)  # before the rows, so that the last change is reported
        for key, row in _rows(database, study_id).items():
            if row.state != seen[key]:
                event = _event(row, nodes[key], seen[key])
                seen[key] = row.state
                if event is not None:
                    yield event
            if row.state == "running":
                progress = store.read_progress(key)
                if progress is not None and progress.get("fence") == row.fence:
                    yield StepProgressed(key, progress["done"], progress["total"], progress["message"])
        if over:
            return
        if live_controller(database) is not None:
            alive_at = time.monotonic()
        elif time.monotonic() > alive_at + MISSING_SECONDS:
            raise CreamteaError(
                f"no controller is working on the study any more; {log} says why. "
                "`creamtea submit` starts a new one"
            )
        time.sleep(POLL_SECONDS)


def _rows(database: Database, study_id: int) -> dict[str, StepRow]:
    with database.session() as session:
        mine = select(StudyStep.step_key).where(StudyStep.study_id == study_id)
        return {row.key: row for row in session.scalars(select(StepRow).where(StepRow.key.in_(mine)))}


def _event(row: StepRow, node: str, before: str) -> EngineEvent | None:
    error = row.error or ""
    match row.state:
        case "running":
            return StepStarted(row.key, node, row.kind, row.attempts)
        case "succeeded":
            return StepSucceeded(row.key, node, float((row.facts or {}).get("seconds", 0.0)))
        case "failed":
            return StepFailed(row.key, node, row.error_kind or "", error)
        case "ready" if before == "running" and row.error_kind is not None:
            return StepRetried(row.key, node, row.attempts, error)
        case "ready" | "cancelled" if before == "running":
            return StepStopped(row.key, node)
    return None
