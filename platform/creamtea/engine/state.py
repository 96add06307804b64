"""The state machine of steps, in SQL.

`load` makes all states consistent and returns the queue; the other functions read only the rows that an event
concerns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Integer, Row, Select, bindparam, exists, or_, select, tuple_, update
from sqlalchemy.orm import Session, aliased

from creamtea.contract.step import Resources
from creamtea.engine.executors.base import Need, StepOutcome, StepTask
from creamtea.engine.lease import LEASE, Lease, release_running
from creamtea.engine.queue import Queue, QueuedStep
from creamtea.errors import InfrastructureError
from creamtea.orders.rows import (
    FRESH,
    LIVE,
    MAX_BACK_OFF,
    UNFINISHED,
    add_events,
    has_result,
    keep_results,
    keys_of,
    lock_steps,
    make_wait,
    pause_left,
)
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.store.artefacts import ArtefactStore, StoredFile
from creamtea.store.database import Database
from creamtea.store.ingest import ingest, read_texts
from creamtea.store.queries import batches
from creamtea.store.tables import Controller, StepFile, StepInput, StepRow, StudyRow, StudyStep


@dataclass(frozen=True)
class Blocked:
    """A step that cannot run because an earlier one failed."""

    key: str
    name: str
    kind: str  # "upstream" or "unavailable"
    error: str


def settle(session: Session) -> list[Blocked]:
    """Make all states consistent; return the newly blocked steps.

    Steps with all inputs become ready, steps that depend on a failed step fail, and studies without
    unfinished steps end.
    """
    lock_steps(session)
    step, before = aliased(StepRow), aliased(StepRow)
    failed = (
        select(before.key)
        .join(StepInput, StepInput.input_key == before.key)
        .join(step, step.key == StepInput.step_key)
        .where(step.state.in_(("pending", "ready")), before.state.in_(("failed", "cancelled")))
    )
    blocked = fail_descendants(session, session.scalars(failed).all())
    session.execute(MARK_READY)
    live = session.scalars(select(StudyRow.id).where(StudyRow.state.in_(LIVE))).all()
    end_studies(session, live)
    return blocked


def load(
    database: Database,
    lease: Lease,
    running: Collection[str] = (),
    clock: Callable[[], float] = lambda: 0.0,
) -> tuple[Queue, list[Blocked]]:
    """Make all states consistent; return the queue of the lease's studies, and newly blocked steps.

    `running`: the keys of this controller's attempts. If the database says that this controller runs another
    step, the answer to its claim was lost, and the step becomes ready again. `clock`: the queue's clock.
    """
    with database.transaction() as session:
        lock_steps(session)
        ours = select(StepRow.key).where(StepRow.state == "running", StepRow.owner == lease.owner)
        if lost := set(session.scalars(ours)) - set(running):
            release_running(session, "its start was not confirmed", lost)
        blocked = settle(session)
        studies = live_studies(session, lease)
        steps = _steps(session, studies, database.now(session))
        now = clock()  # read after the database's clock: a pause must not end before the step can be claimed
        edges = [(key, before) for key, before in session.execute(_edges()) if key in steps]
        return Queue(studies, steps, [edge for edge in edges if edge[1] in steps], now), blocked


def live_studies_of(database: Database, lease: Lease) -> list[int]:
    with database.session() as session:
        return live_studies(session, lease)


def live_studies(session: Session, lease: Lease) -> list[int]:
    """Return the unfinished studies that the lease's controller works on."""
    query = select(StudyRow.id).where(StudyRow.state.in_(LIVE))
    if lease.study_id is not None:
        query = query.where(StudyRow.id == lease.study_id)
    return list(session.scalars(query))


def _steps(session: Session, studies: Sequence[int], now: datetime) -> dict[str, QueuedStep]:
    columns = (StepRow.key, StepRow.state, StepRow.resources, StepRow.not_before)
    rows = session.execute(
        select(*columns, StudyRow.id, StudyRow.priority, StudyStep.position)
        .join(StudyStep, StudyStep.step_key == StepRow.key)
        .join(StudyRow, StudyRow.id == StudyStep.study_id)
        .where(StudyRow.id.in_(studies), StepRow.state.in_(UNFINISHED))
    )
    steps: dict[str, QueuedStep] = {}
    for key, state, resources, not_before, study, priority, position in rows:
        if key not in steps:
            pause = pause_left(not_before, now)
            steps[key] = QueuedStep(state, Need.of(Resources.model_validate(resources)), pause=pause)
        steps[key].add_place(study, priority, position)
    return steps


def _edges() -> Select[str, str]:
    """Select unfinished steps with their unfinished inputs."""
    step, before = aliased(StepRow), aliased(StepRow)
    return (
        select(StepInput.step_key, StepInput.input_key)
        .join(step, step.key == StepInput.step_key)
        .join(before, before.key == StepInput.input_key)
        .where(step.state.in_(UNFINISHED), before.state.in_(UNFINISHED))
        .distinct()
    )


_before = aliased(StepRow)
MARK_READY = (
    update(StepRow.__table__)  # type: ignore[arg-type]  # a FromClause to mypy
    .where(
        StepRow.state == "pending",
        ~exists().where(
            StepInput.step_key == StepRow.key,
            StepInput.input_key == _before.key,
            _before.state != "succeeded",
        ),
    )
    .values(state="ready")
)
# one key at a time: for a list of keys SQLite would scan all pending steps
MARK_ONE_READY = MARK_READY.where(StepRow.key == bindparam("step")).returning(StepRow.key)


def mark_ready(session: Session, keys: Iterable[str]) -> list[str]:
    """Make pending steps among `keys` ready if they have all inputs; return the ready steps' keys."""
    connection = session.connection()
    return [key for key in keys if connection.execute(MARK_ONE_READY, {"step": key}).first() is not None]


# ---------------------------------------------------------------- failures


def fail_descendants(session: Session, failed: Collection[str]) -> list[Blocked]:
    """Fail the pending and ready steps that depend on `failed`, directly or indirectly."""
    now = Database.now(session)
    blocked: list[Blocked] = []
    keys = list(failed)
    while failed:
        culprits = _culprits(session, failed)
        names = names_of(session, [*culprits, *(row.key for row in culprits.values())])
        new = []
        for key, culprit in culprits.items():
            if culprit.error_kind == "upstream":
                error = culprit.error or ""
            else:
                how = "is unavailable" if culprit.error_kind == "unavailable" else "failed"
                how = "was cancelled" if culprit.state == "cancelled" else how
                error = f"did not run, because {names[culprit.key]} {how}"
            # a step with only unavailable inputs missing is unavailable itself: the next run tries both again
            kind = "unavailable" if culprit.error_kind == "unavailable" else "upstream"
            new.append(Blocked(key, names[key], kind, error))
        if new:
            ended = {"state": "failed", "finished_at": now}
            rows = [{"key": step.key, "error_kind": step.kind, "error": step.error, **ended} for step in new]
            session.execute(update(StepRow), rows)
        add_events(session, list(culprits), now, "failed", [f"{step.kind}: {step.error}" for step in new])
        blocked += new
        failed = list(culprits)
        keys += failed
    keep_results(session, keys)
    return blocked


def _culprits(
    session: Session, failed: Iterable[str]
) -> dict[str, Row[str, str, str, str | None, str | None]]:
    """Return the steps that can no longer run, each with the failed input for its message."""
    step, before = aliased(StepRow), aliased(StepRow)
    rows: list[Row[str, str, str, str | None, str | None]] = []
    for batch in batches(failed):
        rows += session.execute(
            select(StepInput.step_key, before.key, before.state, before.error_kind, before.error)
            .join(step, step.key == StepInput.step_key)
            .join(before, before.key == StepInput.input_key)
            .where(before.key.in_(batch), step.state.in_(("pending", "ready")))
            .where(before.state.in_(("failed", "cancelled")))
        )
    rows.sort(key=lambda row: (row.error_kind == "unavailable", row.error_kind == "upstream", row.key))
    culprits: dict[str, Row[str, str, str, str | None, str | None]] = {}
    for row in rows:
        culprits.setdefault(row.step_key, row)
    return culprits


PLACES = select(StudyStep.study_id, StudyStep.node, StudyStep.step_key).where(
    StudyStep.step_key.in_(bindparam("keys", expanding=True))
)


def names_of(session: Session, keys: Collection[str], study_id: int | None = None) -> dict[str, str]:
    """Return names of steps for people: their places in the given study, or else in the newest study."""
    names = {key: key[:12] for key in keys}
    # the place is chosen here: in SQL a database may read the whole study for each step
    places: list[tuple[bool, int, str, str]] = []
    for batch in batches(keys):
        rows = session.connection().execute(PLACES, {"keys": batch})
        places += [(study == study_id, study, node, key) for study, node, key in rows]
    places.sort(key=lambda place: place[2], reverse=True)  # of a study's places, the first by name wins
    places.sort(key=lambda place: place[:2])
    names.update((key, node) for _, _, node, key in places)
    return names


# ---------------------------------------------------------------- studies


def end(database: Database, studies: Iterable[int]) -> None:
    with database.transaction() as session:
        lock_steps(session)  # a submission may be making one of them live again
        end_studies(session, studies)


def end_studies(session: Session, studies: Iterable[int]) -> None:
    """End these studies, unless they have ended or still have unfinished steps."""
    now = Database.now(session)
    for study_id in studies:
        study = session.get(StudyRow, study_id)
        if study is None:  # cancelled and removed since the controller last looked
            continue
        state = derive(session, study_id) if study.state in LIVE else None
        if state is not None:
            study.state, study.finished_at = state, now


def derive(session: Session, study_id: int) -> str | None:
    """Return how the study ended, or None while a step is unfinished.

    A study succeeds even if optional steps are unavailable, such as scores without the metric's model.
    """
    outcomes = select(StepRow.state, StepRow.kind, StepRow.error_kind).distinct()
    steps = session.execute(outcomes.where(StepRow.key.in_(keys_of(study_id)))).all()
    states = {step.state for step in steps}
    if states & set(UNFINISHED):
        return None
    optional = {name for name, kind in STEP_KINDS.items() if kind.optional}
    # by error kind: a succeeded step may have failed in a rerun
    failed = [step for step in steps if step.state != "cancelled" and step.error_kind is not None]
    if any(step.error_kind != "unavailable" or step.kind not in optional for step in failed):
        return "failed"
    return "cancelled" if "cancelled" in states else "succeeded"


# ---------------------------------------------------------------- the state machine
#
# Every function below is one transaction.
#
#     pending -> ready -> running -> succeeded | failed | cancelled
#                   ^---------|  interrupted, given way, or an infrastructure failure with attempts left
#
# A claim raises the step's fence; a call that finishes, fails or renews the step passes the fence of its
# claim. If the step now has another fence, nothing happens, and the return value says so.


BACK_OFF = timedelta(seconds=2)  # before the second attempt; each later pause is four times as long
MAX_LONGER = 8  # the pause grows at most so many times, so that it cannot overflow; MAX_BACK_OFF comes sooner


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
            StepRow.not_before > bindparam("latest"),  # the clock was set back: `pause_left`
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
    """Claim these steps, in one transaction, because each commit waits for the disk.

    A single statement checks and takes a step, so two controllers never get the same one. Steps that are not
    ready or that no live study needs are left out; if this controller has been replaced, all are.
    """
    tasks: dict[str, StepTask] = {}
    with database.transaction() as session:
        now = database.now(session)
        values = {"owner": lease.owner, "fence": lease.fence, "study": lease.study_id}
        for key in sorted(keys):  # always in the same order, so that two controllers cannot deadlock
            of_step = {"step": key, "now": now, "until": now + LEASE, "latest": now + MAX_BACK_OFF}
            taken = session.connection().execute(CLAIM, values | of_step).first()
            if taken is not None:
                add_events(session, [key], now, "started", [f"attempt {taken.attempts}"])
                tasks[key] = task_of(session, taken, lease.study_id, artefacts)
        # after all steps, and in order: transactions that lock steps and studies in turn could deadlock
        studies: set[int] = set()
        for batch in batches(tasks):
            studies.update(session.scalars(select(StudyStep.study_id).where(StudyStep.step_key.in_(batch))))
        for study in sorted(studies):
            queued = update(StudyRow).where(StudyRow.id == study, StudyRow.state == "queued")
            session.execute(queued.values(state="running"))
    return tasks


def task_of(session: Session, row: Row[Any] | StepRow, study_id: int | None, artefacts: str) -> StepTask:
    """Return a row's step in the form that a worker receives.

    Its name is its place in the study `study_id`, or for None in the newest study that has it.
    """
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
        name=names_of(session, [row.key], study_id)[row.key],
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
    """Extend the leases of running steps; return the steps that were cancelled or claimed again."""
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
    """Let the step succeed, and store its result, in one transaction.

    `behind`: steps that may have waited for this one. Returns those of them that are now ready, or None if
    the result is discarded. Raises StepError if the result cannot be stored, and InfrastructureError if its
    files cannot be read; then the step is still running.
    """
    texts = read_texts(store, outcome.files)
    with database.transaction() as session:
        now = database.now(session)
        if not _end(session, task, now, SUCCEED):
            # the call may repeat one whose commit was not confirmed: then the result is stored already
            row = session.get(StepRow, task.key)
            ours = row is not None and (row.fence, row.state) == (task.fence, "succeeded")
            return mark_ready(session, behind) if ours else None
        before = {tuple(row) for row in session.execute(FILES_BEFORE, {"step": task.key})}
        ingest(session, task.key, outcome.result, outcome.files, texts)
        if before and before != {(file.name, file.digest) for file in outcome.files}:
            _run_what_follows(session, task.key, now)
        # after `ingest`, which refuses facts that a database cannot hold
        session.connection().execute(STORE_FACTS, {"step": task.key, "found": outcome.result.facts})
        add_events(session, [task.key], now, "succeeded")
        ready = mark_ready(session, behind)
    with suppress(InfrastructureError):  # leftover checkpoints only cost disk space
        store.drop_checkpoints(task.key)
    return ready


def remake(database: Database, task: StepTask, damaged: Collection[str], why: str) -> dict[str, str] | None:
    """Rerun the steps that made these damaged inputs, and let this step wait for them.

    Returns the makers' names by key, or None if the step is no longer this attempt's. The attempt counts.
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
        _reset(session, makers, now, "one of its files was damaged", FRESH)
        add_events(session, [task.key], now, "interrupted", [why])
        settle(session)
        return names_of(session, makers)


def _reset(session: Session, keys: Collection[str], now: datetime, why: str, values: dict[str, Any]) -> None:
    """Let succeeded steps run again, and set these values in their rows."""
    if keys:
        session.execute(update(StepRow), [{"key": key, **values} for key in keys])
    make_wait(session, keys)
    add_events(session, list(keys), now, "reset", [why] * len(keys))


def _run_what_follows(session: Session, key: str, now: datetime) -> None:
    """Rerun all steps that used files of this step, directly or indirectly, because the files have changed.

    Only steps of live studies: ended studies keep the numbers that they reported. The earlier results of
    these steps are dropped, even of steps that wait to run again: they were made from other files.
    """
    live = exists().where(
        StudyStep.step_key == StepRow.key, StudyStep.study_id == StudyRow.id, StudyRow.state.in_(LIVE)
    )
    followers = select(StepRow.key).join(StepInput, StepInput.step_key == StepRow.key)
    changed: Collection[str] = [key]
    while changed:
        following: set[str] = set()
        for batch in batches(changed):
            behind = followers.where(StepInput.input_key.in_(batch), has_result(), live)
            following.update(session.scalars(behind))
        changed = sorted(following)
        _reset(session, changed, now, "files of an earlier step have changed", FRESH | {"facts": None})


def give_way(database: Database, task: StepTask, why: str) -> bool:
    """Make the step ready again, without counting the attempt; False if another attempt holds it."""
    with database.transaction() as session:
        now = database.now(session)
        if not _end(session, task, now, GIVE_WAY):
            return False
        add_events(session, [task.key], now, "interrupted", [why])
    return True


@dataclass(frozen=True)
class Failure:
    pause: float | None  # seconds until the next attempt; None: the step has failed
    blocked: list[Blocked]


def fail(database: Database, task: StepTask, kind: str, error: str) -> Failure | None:
    """Record a failure, and fail the steps that depend on the step; None if the failure is discarded.

    After an infrastructure failure the step is retried, with a pause, while attempts are left.
    """
    retried = kind == "infrastructure" and task.attempt < task.resources.max_attempts
    with database.transaction() as session:
        now = database.now(session)
        values: dict[str, Any] = {"error_kind": kind, "error": error, "state": "failed"}
        if not retried and session.scalar(select(StepRow.key).where(StepRow.key == task.key, has_result())):
            values["error"] = f"{error} (the result that it had before is kept)"
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
    values = {"step": task.key, "claim": task.fence, "now": now}
    return session.connection().execute(statement, values).first() is not None


def all_ended(database: Database) -> bool:
    with database.session() as session:
        return session.scalar(select(StudyRow.id).where(StudyRow.state.in_(LIVE)).limit(1)) is None
