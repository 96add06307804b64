"""Follows a study that another process runs, by what the database says."""

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
from creamtea.engine.state import ended
from creamtea.engine.submission import Submission
from creamtea.errors import CreamteaError
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import StepRow, StudyStep

LOOK = 1.0  # seconds between looks
MISSING = 30.0  # seconds without any controller after which waiting is given up


def follow(
    database: Database, store: ArtefactStore, submission: Submission, log: str
) -> Iterator[EngineEvent]:
    """What happens to the study, as events, until it has ended.

    CreamteaError when no controller is left that could go on with it; `log` is where to look then.
    """
    study_id = submission.study_id
    nodes = {key: node for node, key in reversed(submission.nodes.items())}
    # what has ended between the submission and the first look is told as well
    seen = {key: "succeeded" if key in submission.reused_keys else "pending" for key in nodes}
    alive_at = time.monotonic()
    while True:
        over = ended(database, study_id)  # before the rows, so that the last change is told
        for key, row in _rows(database, study_id).items():
            if row.state != seen[key]:
                event = _event(row, nodes[key], seen[key])
                seen[key] = row.state
                if event is not None:
                    yield event
            if row.state == "running":
                told = store.read_progress(key)
                if told is not None and told.get("fence") == row.fence:
                    yield StepProgressed(key, told["done"], told["total"], told["message"])
        if over:
            return
        if live_controller(database) is not None:
            alive_at = time.monotonic()
        elif time.monotonic() > alive_at + MISSING:
            raise CreamteaError(
                f"no controller works on the study any more; {log} says why. `creamtea submit` starts one"
            )
        time.sleep(LOOK)


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
