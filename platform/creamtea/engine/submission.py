"""From a plan to rows: steps that have succeeded are reused, failed ones are retried, the rest is pending."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from graphlib import TopologicalSorter
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

import creamtea
from creamtea.engine.lease import lock_steps
from creamtea.engine.state import LIVE, cancel_in, keys_of
from creamtea.errors import InputError
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import Event, StepFile, StepInput, StepRow, StudyRow, StudyStep
from creamtea.study.plan import Plan, PlannedStep


@dataclass(frozen=True)
class Submission:
    study_id: int
    name: str
    keys: frozenset[str]  # of all its steps
    reused_keys: frozenset[str]  # steps that had already succeeded

    @property
    def reused(self) -> int:
        return len(self.reused_keys)


def submit(
    database: Database,
    store: ArtefactStore,
    plan: Plan,
    spec: dict[str, Any],
    config_hash: str,
    priority: int = 0,
) -> Submission:
    """Queue the study. An unfinished earlier submission with the same name is cancelled."""
    keys = [step.key for step in plan.steps]
    incomplete = _without_files(database, store, keys)
    with database.transaction() as session:
        lock_steps(session)
        now = database.now(session)
        study = StudyRow(
            name=plan.study,
            config_hash=config_hash,
            spec=spec,
            state="queued",
            priority=priority,
            code_version=creamtea.__version__,
            created_at=now,
        )
        session.add(study)
        session.flush()
        rows = [_upsert(session, step, now) for step in plan.steps]
        session.flush()
        for position, node in enumerate(plan.nodes):
            session.add(
                StudyStep(
                    study_id=study.id,
                    node=node.node,
                    step_key=node.key,
                    position=position,
                    labels=node.labels,
                )
            )
        session.flush()
        older = select(StudyRow.id).where(
            StudyRow.name == plan.study, StudyRow.id != study.id, StudyRow.state.in_(LIVE)
        )
        for study_id in session.scalars(older).all():
            cancel_in(session, study_id, now)
        reused = _refresh(session, rows, incomplete, now)
        return Submission(study.id, plan.study, frozenset(keys), reused)


def requeue(database: Database, store: ArtefactStore, study_id: int) -> Submission:
    """Queue a study that has ended again: its failed and cancelled steps are retried.

    InputError for a study that has not ended.
    """
    with database.session() as session:
        keys = session.scalars(keys_of(study_id)).all()
    incomplete = _without_files(database, store, keys)
    with database.transaction() as session:
        lock_steps(session)
        study = session.get_one(StudyRow, study_id)
        if study.state in LIVE:
            raise InputError(f"study {study.name} is {study.state}: there is nothing to retry yet")
        study.state, study.finished_at = "queued", None
        inputs = _inputs(session, keys)
        order = TopologicalSorter({key: inputs.get(key, set()) for key in keys}).static_order()
        rows = [session.get_one(StepRow, key) for key in order]
        reused = _refresh(session, rows, incomplete, database.now(session))
        return Submission(study_id, study.name, frozenset(keys), reused)


def _without_files(database: Database, store: ArtefactStore, keys: Sequence[str]) -> set[str]:
    """The succeeded steps with a file that the artefact store no longer has."""
    with database.session() as session:
        files = session.execute(
            select(StepFile.step_key, StepFile.digest)
            .join(StepRow, StepRow.key == StepFile.step_key)
            .where(StepRow.key.in_(keys), StepRow.state == "succeeded")
        ).all()
    present = {digest: store.exists(digest) for digest in {digest for _, digest in files}}
    return {key for key, digest in files if not present[digest]}


def _upsert(session: Session, step: PlannedStep, now: datetime) -> StepRow:
    resources = step.resources.model_dump(mode="json")
    row = session.get(StepRow, step.key)
    if row is None:
        row = StepRow(
            key=step.key,
            kind=step.kind,
            version=step.version,
            params=step.params,
            state="pending",
            resources=resources,
            locations=step.locations,
            created_at=now,
        )
        session.add(row)
        session.flush()
        for role, inputs in step.inputs.items():
            for position, key in enumerate(inputs):
                session.add(StepInput(step_key=step.key, role=role, position=position, input_key=key))
    row.resources, row.locations = resources, step.locations
    return row


def _inputs(session: Session, keys: Iterable[str]) -> dict[str, set[str]]:
    inputs: dict[str, set[str]] = {}
    edges = select(StepInput.step_key, StepInput.input_key).where(StepInput.step_key.in_(list(keys)))
    for key, before in session.execute(edges):
        inputs.setdefault(key, set()).add(before)
    return inputs


def _refresh(
    session: Session, rows: Sequence[StepRow], incomplete: set[str], now: datetime
) -> frozenset[str]:
    """Decide for every step, inputs first, whether it must run; returns the keys of those that are reused."""
    inputs = _inputs(session, [row.key for row in rows])
    rerun: set[str] = set()  # steps that had succeeded and run again
    reused = set()
    for row in rows:
        input_reruns = bool(inputs.get(row.key, set()) & rerun)
        if row.state == "succeeded" and row.key not in incomplete and not input_reruns:
            session.add(Event(step_key=row.key, at=now, what="reused"))
            reused.add(row.key)
        elif row.state == "succeeded":
            why = "its files are gone" if row.key in incomplete else "an earlier step runs again"
            _reset(session, row, now, why)
            rerun.add(row.key)
        elif row.state in ("failed", "cancelled"):
            _reset(session, row, now, f"it had {row.state}" if row.state == "failed" else "it was cancelled")
        elif row.state == "ready":
            row.state = "pending"  # an input of it may have gone back to pending
    return frozenset(reused)


def _reset(session: Session, row: StepRow, now: datetime, why: str) -> None:
    row.state, row.attempts = "pending", 0
    row.error_kind = row.error = row.facts = None
    row.not_before = row.started_at = row.finished_at = None
    session.add(Event(step_key=row.key, at=now, what="reset", detail=why))
