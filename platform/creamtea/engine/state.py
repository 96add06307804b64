"""The state machine of steps, in SQL; every function here is one transaction.

    pending -> ready -> running -> succeeded | failed | cancelled
                  ^---------|  interrupted, given way, or an infrastructure failure with attempts left

A claim raises the step's fence; whoever finishes, fails or renews it names the fence of its claim. If that is
no longer the step's, nothing happens, and the return value says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Integer, Row, bindparam, exists, or_, select, tuple_, update
from sqlalchemy.orm import Session

from creamtea.contract.resources import Resources
from creamtea.engine.lease import LEASE, Lease
from creamtea.engine.settling import Blocked, fail_descendants, mark_ready, names_of, settle
from creamtea.engine.task import StepOutcome, StepTask
from creamtea.errors import InfrastructureError
from creamtea.orders.rows import FRESH, LIVE, MAX_BACK_OFF, add_events, lock_steps, make_wait
from creamtea.store.artefacts import ArtefactStore, StoredFile
from creamtea.store.database import Database
from creamtea.store.ingest import ingest, read_texts
from creamtea.store.queries import batches
from creamtea.store.tables import Controller, StepFile, StepInput, StepRow, StudyRow, StudyStep

BACK_OFF = timedelta(seconds=2)  # before the second attempt; four times longer each time
MAX_LONGER = 8  # times that it gets longer: far beyond the maximum, and nothing overflows


# ---------------------------------------------------------------- claiming

# built once: SQLAlchemy takes longer to build a statement than a database to run it
CLAIM = (
    update(StepRow.__table__)  # type: ignore[arg-type]  # a FromClause to mypy
    .where(
        StepRow.key == bindparam("step"),
        StepRow.state == "ready",
        or_(
            StepRow.not_before.is_(None),
            StepRow.not_before <= bindparam("now"),
            StepRow.not_before > bindparam("latest"),  # as `pause_left`
        ),
        exists().where(Controller.owner == bindparam("owner"), Controller.fence == bindparam("fence")),
        exists().where(
            StudyStep.step_key == StepRow.key,
            StudyStep.study_id == StudyRow.id,
            StudyRow.state.in_(LIVE),
            or_(bindparam("study", type_=Integer).is_(None), StudyRow.id == bindparam("study")),
        ),
    )
    .values(
        state="running",
        fence=StepRow.fence + 1,
        attempts=StepRow.attempts + 1,
        owner=bindparam("owner"),
        lease_until=bindparam("until"),
        not_before=None,
        started_at=bindparam("now"),
        finished_at=None,
    )
    .returning(StepRow.__table__)
)
INPUT_FILES = (
    select(StepInput.role, StepInput.position, StepFile.name, StepFile.digest, StepFile.size)
    .outerjoin(StepFile, StepFile.step_key == StepInput.input_key)
    .where(StepInput.step_key == bindparam("step"))
    .order_by(StepInput.role, StepInput.position, StepFile.name)
)


def claim(database: Database, lease: Lease, keys: Iterable[str], artefacts: str) -> dict[str, StepTask]:
    """Take these ready steps, in one transaction: a commit waits for the disk.

    One statement checks and takes a step, so two claimers never get the same. Left out are those that are not
    ready, that no live study needs any more, and all if this controller has been replaced.
    """
    tasks: dict[str, StepTask] = {}
    with database.transaction() as session:
        now = database.now(session)
        values = {"owner": lease.owner, "fence": lease.fence, "study": lease.study_id}
        for key in sorted(keys):  # in one order, so that two claimers never wait for each other
            given = {"step": key, "now": now, "until": now + LEASE, "latest": now + MAX_BACK_OFF}
            taken = session.connection().execute(CLAIM, values | given).first()
            if taken is not None:
                add_events(session, [key], now, "started", [f"attempt {taken.attempts}"])
                tasks[key] = task_of(session, taken, lease.study_id, artefacts)
        # after all steps: who holds a study and waits for a step may wait for one who waits for that study
        _begin_studies(session, tasks)
    return tasks


def _begin_studies(session: Session, keys: Iterable[str]) -> None:
    studies: set[int] = set()
    for batch in batches(keys):
        studies.update(session.scalars(select(StudyStep.study_id).where(StudyStep.step_key.in_(batch))))
    for study in sorted(studies):
        queued = update(StudyRow).where(StudyRow.id == study, StudyRow.state == "queued")
        session.execute(queued.values(state="running"))


def task_of(session: Session, row: Row[Any] | StepRow, study_id: int | None, artefacts: str) -> StepTask:
    """The step of this row as a worker receives it, with its name in the study (None: in the newest)."""
    inputs: dict[str, list[list[StoredFile]]] = {}
    for role, position, name, digest, size in session.connection().execute(INPUT_FILES, {"step": row.key}):
        of_role = inputs.setdefault(role, [])
        if len(of_role) <= position:
            of_role.append([])
        if name is not None:  # None: an input without files
            of_role[position].append(StoredFile(name, digest, size))
    return StepTask(
        key=row.key,
        fence=row.fence,
        node=names_of(session, [row.key], study_id)[row.key],
        kind=row.kind,
        version=row.version,
        params=row.params,
        inputs=inputs,
        locations=row.locations,
        resources=Resources.model_validate(row.resources),
        artefacts=artefacts,
        attempt=row.attempts,
    )


# ---------------------------------------------------------------- running steps


def renew(database: Database, tasks: Sequence[StepTask]) -> list[StepTask]:
    """Extend the leases of running steps; returns those that are no longer ours (cancelled or taken over)."""
    held: set[tuple[str, int]] = set()
    with database.transaction() as session:
        until = database.now(session) + LEASE
        for batch in batches((task.key, task.fence) for task in tasks):
            renewed = session.execute(
                update(StepRow)
                .where(tuple_(StepRow.key, StepRow.fence).in_(batch), StepRow.state == "running")
                .values(lease_until=until)
                .returning(StepRow.key, StepRow.fence)
                .execution_options(synchronize_session=False)
            )
            held.update(renewed)
    return [task for task in tasks if (task.key, task.fence) not in held]


def finish(
    database: Database,
    store: ArtefactStore,
    task: StepTask,
    outcome: StepOutcome,
    behind: Collection[str] = (),
) -> list[str] | None:
    """Succeed, and store what the step produced, in one transaction.

    Returns the steps that are ready now among `behind`, which may have waited for this one; None: the result
    is discarded. StepError for a result that cannot be stored, InfrastructureError where its files cannot be
    read; the step is then still running.
    """
    texts = read_texts(store, outcome.files)
    with database.transaction() as session:
        now = database.now(session)
        if not _end(session, task, now, SUCCEED):
            # a commit that was not confirmed is no reason to discard what it committed
            row = session.get(StepRow, task.key)
            ours = row is not None and (row.fence, row.state) == (task.fence, "succeeded")
            return mark_ready(session, behind) if ours else None
        before = {tuple(row) for row in session.execute(FILES_BEFORE, {"step": task.key})}
        ingest(session, task.key, outcome.result, outcome.files, texts)
        if before and before != {(file.name, file.digest) for file in outcome.files}:
            _run_what_follows(session, task.key, now)
        # after the ingest, which refuses facts that no database can hold
        session.connection().execute(STORE_FACTS, {"step": task.key, "found": outcome.result.facts})
        add_events(session, [task.key], now, "succeeded")
        ready = mark_ready(session, behind)
    with suppress(InfrastructureError):  # leftover checkpoints only cost disk space
        store.drop_checkpoints(task.key)
    return ready


def remake(database: Database, task: StepTask, damaged: Collection[str], why: str) -> dict[str, str] | None:
    """Let the steps run again that made these damaged inputs of a step, which waits for them.

    Returns their names by their keys; None if the step is no longer this attempt's. The attempt counts.
    """
    with database.transaction() as session:
        lock_steps(session)
        now = database.now(session)
        if not _end(session, task, now, WAIT_FOR_INPUTS):
            return None
        makers = session.scalars(
            select(StepRow.key)
            .join(StepInput, StepInput.input_key == StepRow.key)
            .join(StepFile, StepFile.step_key == StepRow.key)
            .where(StepInput.step_key == task.key, StepFile.digest.in_(damaged))
            .where(StepRow.state == "succeeded")
            .distinct()
        ).all()
        _reset(session, makers, now, "a file of it was damaged")
        add_events(session, [task.key], now, "interrupted", [why])
        settle(session)
        return names_of(session, makers)


def _reset(session: Session, keys: Collection[str], now: datetime, why: str) -> None:
    """These steps, which have succeeded, run again."""
    if keys:
        session.execute(update(StepRow), [{"key": key, **FRESH} for key in keys])
    make_wait(session, keys)
    add_events(session, list(keys), now, "reset", [why] * len(keys))


def _run_what_follows(session: Session, key: str, now: datetime) -> None:
    """Run again what was made, at any distance, from files of a step that are others now.

    Only in studies that are under way: the numbers of others stay as they were reported.
    """
    live = exists().where(
        StudyStep.step_key == StepRow.key, StudyStep.study_id == StudyRow.id, StudyRow.state.in_(LIVE)
    )
    changed: Collection[str] = [key]
    while changed:
        changed = session.scalars(
            select(StepRow.key)
            .join(StepInput, StepInput.step_key == StepRow.key)
            .where(StepInput.input_key.in_(changed), StepRow.state == "succeeded", live)
            .distinct()
        ).all()
        _reset(session, changed, now, "files of an earlier step have changed")


def give_way(database: Database, task: StepTask, why: str) -> bool:
    """Make the step ready again, which has used no attempt. False: it is no longer this attempt's."""
    with database.transaction() as session:
        now = database.now(session)
        if not _end(session, task, now, GIVE_WAY):
            return False
        add_events(session, [task.key], now, "interrupted", [why])
    return True


@dataclass(frozen=True)
class Failure:
    pause: float | None  # seconds until the step is tried again; None: it has failed
    blocked: list[Blocked]


def fail(database: Database, task: StepTask, kind: str, error: str) -> Failure | None:
    """Record a failure, and that of the steps which depend on it. Infrastructure failures are retried after a
    pause while attempts are left. None: the failure is discarded."""
    retried = kind == "infrastructure" and task.attempt < task.resources.max_attempts
    with database.transaction() as session:
        now = database.now(session)
        values: dict[str, Any] = {"error_kind": kind, "error": error, "state": "failed"}
        pause = min(BACK_OFF * 4 ** min(task.attempt - 1, MAX_LONGER), MAX_BACK_OFF)
        if retried:
            values |= {"state": "ready", "not_before": now + pause}
        if not _end(session, task, now, END.values(**values)):
            return None
        what = "retry" if retried else "failed"
        add_events(session, [task.key], now, what, [f"{kind}: {error}"])
        if retried:
            return Failure(pause.total_seconds(), [])
        return Failure(None, fail_descendants(session, [task.key]))


END = (
    update(StepRow.__table__)  # type: ignore[arg-type]
    .where(StepRow.key == bindparam("step"), StepRow.fence == bindparam("claim"), StepRow.state == "running")
    .values(owner=None, lease_until=None, finished_at=bindparam("now"))
    .returning(StepRow.key)
)


SUCCEED = END.values(state="succeeded", error_kind=None, error=None)
WAIT_FOR_INPUTS = END.values(state="pending", started_at=None, finished_at=None)
GIVE_WAY = END.values(state="ready", attempts=StepRow.attempts - 1, started_at=None, finished_at=None)
FILES_BEFORE = select(StepFile.name, StepFile.digest).where(StepFile.step_key == bindparam("step"))
STORE_FACTS = (
    update(StepRow.__table__)  # type: ignore[arg-type]
    .where(StepRow.key == bindparam("step"))
    .values(facts=bindparam("found"))
)


def _end(session: Session, task: StepTask, now: datetime, statement: Any) -> bool:
    given = {"step": task.key, "claim": task.fence, "now": now}
    return session.connection().execute(statement, given).first() is not None


def has_ended(database: Database, study_id: int) -> bool:
    with database.session() as session:
        return session.get_one(StudyRow, study_id).state not in LIVE


def all_ended(database: Database) -> bool:
    with database.session() as session:
        return session.scalar(select(StudyRow.id).where(StudyRow.state.in_(LIVE)).limit(1)) is None
