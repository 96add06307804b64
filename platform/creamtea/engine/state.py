"""The state machine of steps, in SQL; every function here is one transaction.

    pending -> ready -> running -> succeeded | failed | cancelled
                  ^---------|  interrupted, or an infrastructure failure with attempts left

A claim raises the step's fence; whoever finishes, fails or renews it names the fence of its claim. If that is
no longer the step's, nothing happens, and the return value says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, exists, false, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from creamtea.contract.resources import Resources
from creamtea.engine.executors.base import Capacity
from creamtea.engine.lease import LEASE, Lease, lock_steps
from creamtea.engine.task import StepOutcome, StepTask
from creamtea.errors import InfrastructureError
from creamtea.store.artefacts import ArtefactStore, StoredFile
from creamtea.store.database import Database
from creamtea.store.ingest import ingest
from creamtea.store.tables import Controller, Event, StepFile, StepInput, StepRow, StudyRow, StudyStep

LIVE = ("queued", "running")
UNFINISHED = ("pending", "ready", "running")
BACK_OFF = timedelta(seconds=2)  # before the second attempt; four times longer each time
MAX_BACK_OFF = timedelta(minutes=2)


# ---------------------------------------------------------------- claiming


def claim(database: Database, lease: Lease, capacity: Capacity, artefacts: str) -> StepTask | None:
    """Take the first ready step that fits, by priority of its study and its place in it.

    One statement finds and takes the step, so two claimers never get the same. None: nothing is ready,
    nothing fits, or this controller has been replaced.
    """
    with database.transaction() as session:
        now = database.now(session)
        chosen = _first_ready(lease, capacity, now).scalar_subquery()
        taken = session.scalar(
            update(StepRow)
            .where(StepRow.key == chosen)
            .values(
                state="running",
                fence=StepRow.fence + 1,
                attempts=StepRow.attempts + 1,
                owner=lease.owner,
                lease_until=now + LEASE,
                not_before=None,
                started_at=now,
                finished_at=None,
            )
            .returning(StepRow)
            .execution_options(synchronize_session=False)
        )
        if taken is None:
            return None
        studies = select(StudyStep.study_id).where(StudyStep.step_key == taken.key)
        session.execute(
            update(StudyRow)
            .where(StudyRow.state == "queued", StudyRow.id.in_(studies))
            .values(state="running")
            .execution_options(synchronize_session=False)
        )
        session.add(Event(step_key=taken.key, at=now, what="started", detail=f"attempt {taken.attempts}"))
        return _task(session, taken, lease, artefacts)


def has_ready_step(database: Database, lease: Lease) -> bool:
    """Whether there is a ready step for this controller, whatever resources it needs."""
    with database.session() as session:
        return session.scalar(_ready(lease, database.now(session)).limit(1)) is not None


def _ready(lease: Lease, now: datetime) -> Select[str]:
    """Keys of the ready steps that this controller may start now."""
    wanted = [
        StepRow.state == "ready",
        StudyRow.state.in_(LIVE),
        or_(StepRow.not_before.is_(None), StepRow.not_before <= now),
        exists().where(Controller.owner == lease.owner, Controller.fence == lease.fence),
    ]
    if lease.study_id is not None:
        wanted.append(StudyRow.id == lease.study_id)
    return (
        select(StepRow.key)
        .join(StudyStep, StudyStep.step_key == StepRow.key)
        .join(StudyRow, StudyRow.id == StudyStep.study_id)
        .where(*wanted)
    )


def _first_ready(lease: Lease, capacity: Capacity, now: datetime) -> Select[str]:
    exclusive = func.coalesce(StepRow.resources["exclusive"].as_boolean(), false())
    cpus = func.coalesce(StepRow.resources["cpus"].as_float(), 1.0)
    gpus = func.coalesce(StepRow.resources["gpus"].as_float(), 0.0)
    memory = func.coalesce(StepRow.resources["memory_gb"].as_float(), 0.0)
    free, largest = capacity.free, capacity.largest
    fits = and_(cpus <= free.cpus, gpus <= free.gpus, memory <= free.memory_gb)
    if not capacity.idle:
        fits = and_(fits, ~exclusive)
    # a step too large for any machine is taken as well, so that it fails instead of waiting forever
    too_large = or_(cpus > largest.cpus, gpus > largest.gpus, memory > largest.memory_gb)
    return (
        _ready(lease, now)
        .where(or_(fits, too_large))
        # exclusive steps last, or they would hold up those that could share the machine
        .order_by(StudyRow.priority.desc(), exclusive, StudyRow.id, StudyStep.position)
        .limit(1)
        .with_for_update(of=StepRow, skip_locked=True)
    )


def keys_of(study_id: int) -> Select[str]:
    """Of the study's steps."""
    return select(StudyStep.step_key).where(StudyStep.study_id == study_id)


def _task(session: Session, row: StepRow, lease: Lease, artefacts: str) -> StepTask:
    files: dict[str, list[StoredFile]] = defaultdict(list)
    inputs: dict[str, list[list[StoredFile]]] = defaultdict(list)
    edges = session.scalars(
        select(StepInput).where(StepInput.step_key == row.key).order_by(StepInput.role, StepInput.position)
    ).all()
    stored = select(StepFile).where(StepFile.step_key.in_([edge.input_key for edge in edges]))
    for file in session.scalars(stored.order_by(StepFile.name)):
        files[file.step_key].append(StoredFile(file.name, file.digest, file.size))
    for edge in edges:
        inputs[edge.role].append(files[edge.input_key])
    return StepTask(
        key=row.key,
        fence=row.fence,
        node=node_of(session, row.key, lease.study_id),
        kind=row.kind,
        version=row.version,
        params=row.params,
        inputs=dict(inputs),
        locations=row.locations,
        resources=Resources.model_validate(row.resources),
        artefacts=artefacts,
        attempt=row.attempts,
    )


def node_of(session: Session, key: str, study_id: int | None = None) -> str:
    """The step's name for people: its place in the given study, or in the newest one that has it."""
    places = select(StudyStep.node).where(StudyStep.step_key == key)
    if study_id is not None:
        places = places.where(StudyStep.study_id == study_id)
    return session.scalar(places.order_by(StudyStep.study_id.desc(), StudyStep.node).limit(1)) or key[:12]


# ---------------------------------------------------------------- running steps


def renew(database: Database, tasks: Iterable[StepTask]) -> list[StepTask]:
    """Extend the leases of running steps; returns those that are no longer ours (cancelled or taken over)."""
    lost = []
    with database.transaction() as session:
        until = database.now(session) + LEASE
        for task in tasks:
            statement = update(StepRow).where(*_claimed(task)).values(lease_until=until)
            if session.execute(statement.returning(StepRow.key)).first() is None:
                lost.append(task)
    return lost


def finish(database: Database, store: ArtefactStore, task: StepTask, outcome: StepOutcome) -> bool:
    """Succeed, and store what the step produced, in one transaction; False: the result is discarded.

    StepError for a result that cannot be stored, InfrastructureError where its files cannot be read; the
    step is then still running.
    """
    with database.transaction() as session:
        now = database.now(session)
        if not _end(session, task, now, {"state": "succeeded", "error_kind": None, "error": None}):
            return False
        ingest(session, task.key, outcome.result, outcome.files, store)
        session.execute(  # after the ingest, which refuses facts that no database can hold
            update(StepRow).where(StepRow.key == task.key).values(facts=outcome.result.facts)
        )
        session.add(Event(step_key=task.key, at=now, what="succeeded"))
    with suppress(InfrastructureError):  # leftover checkpoints only cost disk space
        store.drop_checkpoints(task.key)
    return True


def fail(database: Database, task: StepTask, kind: str, error: str) -> str | None:
    """Record a failure. Infrastructure failures are retried after a pause while attempts are left.

    Returns the step's new state, "ready" (it is retried) or "failed"; None: the failure is discarded.
    """
    retried = kind == "infrastructure" and task.attempt < task.resources.max_attempts
    with database.transaction() as session:
        now = database.now(session)
        values: dict[str, Any] = {"error_kind": kind, "error": error, "state": "failed"}
        if retried:
            values["state"] = "ready"
            values["not_before"] = now + min(BACK_OFF * 4 ** (task.attempt - 1), MAX_BACK_OFF)
        if not _end(session, task, now, values):
            return None
        what = "retry" if retried else "failed"
        session.add(Event(step_key=task.key, at=now, what=what, detail=f"{kind}: {error}"))
    return str(values["state"])


def _claimed(task: StepTask) -> tuple[ColumnElement[bool], ...]:
    return StepRow.key == task.key, StepRow.fence == task.fence, StepRow.state == "running"


def _end(session: Session, task: StepTask, now: datetime, values: dict[str, Any]) -> bool:
    statement = (
        update(StepRow)
        .where(*_claimed(task))
        .values(owner=None, lease_until=None, finished_at=now, **values)
        .returning(StepRow.key)
        .execution_options(synchronize_session=False)
    )
    return session.execute(statement).first() is not None


# ---------------------------------------------------------------- what follows from the states


@dataclass(frozen=True)
class Blocked:
    """A step that cannot run because an earlier one failed."""

    key: str
    node: str
    kind: str  # "upstream" or "unavailable"
    error: str


def settle(database: Database) -> list[Blocked]:
    """Update what follows from the states: steps with all inputs become ready, those that depend on a failed
    step fail, and a study without unfinished steps ends. Returns the steps that another's failure blocks."""
    with database.transaction() as session:
        lock_steps(session)
        now = database.now(session)
        blocked = _fail_descendants(session, now)
        _mark_ready(session)
        for study in session.scalars(select(StudyRow).where(StudyRow.state.in_(LIVE))):
            state = derive(session, study.id)
            if state is not None:
                study.state, study.finished_at = state, now
        return blocked


def _mark_ready(session: Session) -> None:
    before = aliased(StepRow)
    waits = (
        exists()
        .where(StepInput.step_key == StepRow.key)
        .where(StepInput.input_key == before.key, before.state != "succeeded")
    )
    session.execute(
        update(StepRow)
        .where(StepRow.state == "pending", ~waits)
        .values(state="ready")
        .execution_options(synchronize_session=False)
    )


def _fail_descendants(session: Session, now: datetime) -> list[Blocked]:
    before = aliased(StepRow)
    doomed = (
        select(StepRow, before)
        .join(StepInput, StepInput.step_key == StepRow.key)
        .join(before, before.key == StepInput.input_key)
        .where(StepRow.state.in_(("pending", "ready")), before.state.in_(("failed", "cancelled")))
        .order_by(
            StepRow.key, before.error_kind == "unavailable", before.error_kind == "upstream", before.key
        )
    )
    blocked = []
    while rows := session.execute(doomed).all():
        for step, culprit in rows:
            if step.state == "failed":
                continue  # a second failed input of the same step
            if culprit.error_kind == "upstream":
                error = culprit.error or ""
            else:
                error = f"did not run, because {node_of(session, culprit.key)} {_how(culprit)}"
            # a step that lacks only an unavailable metric is unavailable itself, and does not fail the study
            kind = "unavailable" if culprit.error_kind == "unavailable" else "upstream"
            step.state, step.error_kind, step.error, step.finished_at = "failed", kind, error, now
            session.add(Event(step_key=step.key, at=now, what="failed", detail=f"{kind}: {error}"))
            blocked.append(Blocked(step.key, node_of(session, step.key), kind, error))
        session.flush()
    return blocked


def _how(culprit: StepRow) -> str:
    if culprit.state == "cancelled":
        return "was cancelled"
    return "is unavailable" if culprit.error_kind == "unavailable" else "failed"


def derive(session: Session, study_id: int) -> str | None:
    """How the study ended, or None while a step of it is unfinished.

    A study succeeds even if steps are unavailable (for lack of a metric's model, say).
    """
    counts = session.execute(
        select(StepRow.state, StepRow.error_kind, func.count())
        .where(StepRow.key.in_(keys_of(study_id)))
        .group_by(StepRow.state, StepRow.error_kind)
    ).all()
    states = {state for state, _, _ in counts}
    if states & set(UNFINISHED):
        return None
    if any(state == "failed" and kind != "unavailable" for state, kind, _ in counts):
        return "failed"
    return "cancelled" if "cancelled" in states else "succeeded"


def has_ended(database: Database, study_id: int) -> bool:
    with database.session() as session:
        return session.get_one(StudyRow, study_id).state not in LIVE


def all_ended(database: Database) -> bool:
    with database.session() as session:
        return session.scalar(select(StudyRow.id).where(StudyRow.state.in_(LIVE)).limit(1)) is None


# ---------------------------------------------------------------- cancelling


def cancel(database: Database, study_id: int) -> bool:
    """Cancel a study, and those of its unfinished steps that no other live study needs.

    A running step loses its claim: its controller notices that at the next renewal and stops it. False: the
    study had already ended.
    """
    with database.transaction() as session:
        lock_steps(session)
        return cancel_in(session, study_id, database.now(session))


def cancel_in(session: Session, study_id: int, now: datetime) -> bool:
    ended = session.execute(
        update(StudyRow)
        .where(StudyRow.id == study_id, StudyRow.state.in_(LIVE))
        .values(state="cancelled", finished_at=now)
        .returning(StudyRow.id)
        .execution_options(synchronize_session=False)
    ).first()
    if ended is None:
        return False
    shared = exists().where(
        StudyStep.step_key == StepRow.key,
        StudyStep.study_id == StudyRow.id,
        StudyRow.id != study_id,
        StudyRow.state.in_(LIVE),
    )
    keys = session.scalars(
        update(StepRow)
        .where(StepRow.key.in_(keys_of(study_id)), StepRow.state.in_(UNFINISHED), ~shared)
        .values(state="cancelled", fence=StepRow.fence + 1, owner=None, lease_until=None, finished_at=now)
        .returning(StepRow.key)
        .execution_options(synchronize_session=False)
    ).all()
    session.add_all(Event(step_key=key, at=now, what="cancelled") for key in keys)
    return True
