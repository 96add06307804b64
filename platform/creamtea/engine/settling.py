"""What follows from the states of steps, in SQL: which are ready, which cannot run, which studies have ended.

`load` does all of it at once and returns the queue; the rest looks only at what an event touches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, bindparam, exists, select, update
from sqlalchemy.orm import Session, aliased

from creamtea.contract.resources import Resources
from creamtea.engine.lease import Lease, release_running
from creamtea.engine.queue import Queue, QueuedStep
from creamtea.orders.rows import LIVE, UNFINISHED, add_events, keys_of, lock_steps, pause_left
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.store.database import Database
from creamtea.store.queries import batches
from creamtea.store.tables import StepInput, StepRow, StudyRow, StudyStep


@dataclass(frozen=True)
class Blocked:
    """A step that cannot run because an earlier one failed."""

    key: str
    node: str
    kind: str  # "upstream" or "unavailable"
    error: str


def settle(session: Session) -> list[Blocked]:
    """Make all states agree: steps with all inputs become ready, those that depend on a failed step fail, and
    a study without unfinished steps ends. Returns the steps that another's failure blocks."""
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
    """The unfinished steps of the lease's studies, once their states agree.

    `running`: the keys of this controller's attempts. A step of its that is not among them is ready again:
    the answer to its claim was lost. `clock`: the queue's.
    """
    with database.transaction() as session:
        lock_steps(session)
        ours = select(StepRow.key).where(StepRow.state == "running", StepRow.owner == lease.owner)
        if lost := set(session.scalars(ours)) - set(running):
            release_running(session, "its start was not confirmed", lost)
        blocked = settle(session)
        studies = live_studies(session, lease)
        steps = _steps(session, studies, database.now(session))
        now = clock()  # after the database's: a pause must not end before the step can be claimed
        edges = [(key, before) for key, before in session.execute(_edges()) if key in steps]
        return Queue(studies, steps, [edge for edge in edges if edge[1] in steps], now), blocked


def live_studies_of(database: Database, lease: Lease) -> list[int]:
    with database.session() as session:
        return live_studies(session, lease)


def live_studies(session: Session, lease: Lease) -> list[int]:
    """The unfinished studies that the controller works on."""
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
            steps[key] = QueuedStep.of(state, Resources.model_validate(resources), pause)
        steps[key].add_place(study, priority, position)
    return steps


def _edges() -> Select[str, str]:
    """Unfinished steps with their unfinished inputs."""
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
# one key at a time: for a list of keys SQLite would go through all pending steps
MARK_ONE_READY = MARK_READY.where(StepRow.key == bindparam("step")).returning(StepRow.key)


def mark_ready(session: Session, keys: Iterable[str]) -> list[str]:
    """Those of these steps that are pending and have all inputs become ready; returns their keys."""
    connection = session.connection()
    return [key for key in keys if connection.execute(MARK_ONE_READY, {"step": key}).first() is not None]


# ---------------------------------------------------------------- failures


def fail_descendants(session: Session, failed: Collection[str]) -> list[Blocked]:
    """Fail the pending and ready steps that depend on these, at any distance."""
    now = Database.now(session)
    blocked: list[Blocked] = []
    while failed:
        culprits = _culprits(session, failed)
        names = names_of(session, [*culprits, *(row.key for row in culprits.values())])
        new = [_blocked(key, row, names) for key, row in culprits.items()]
        _store(session, new, now)
        blocked += new
        failed = list(culprits)
    return blocked


def _culprits(session: Session, failed: Iterable[str]) -> dict[str, Any]:
    """Steps that can run no more, each with the input that its message blames."""
    step, before = aliased(StepRow), aliased(StepRow)
    rows: list[Any] = []
    for batch in batches(failed):
        rows += session.execute(
            select(StepInput.step_key, before.key, before.state, before.error_kind, before.error)
            .join(step, step.key == StepInput.step_key)
            .join(before, before.key == StepInput.input_key)
            .where(before.key.in_(batch), step.state.in_(("pending", "ready")))
            .where(before.state.in_(("failed", "cancelled")))
        )
    rows.sort(key=lambda row: (row.error_kind == "unavailable", row.error_kind == "upstream", row.key))
    culprits: dict[str, Any] = {}
    for row in rows:
        culprits.setdefault(row.step_key, row)
    return culprits


def _blocked(key: str, culprit: Any, names: dict[str, str]) -> Blocked:
    if culprit.error_kind == "upstream":
        error = culprit.error or ""
    else:
        error = f"did not run, because {names[culprit.key]} {_how(culprit)}"
    # a step that lacks only what is unavailable is unavailable itself: the next run tries both again
    kind = "unavailable" if culprit.error_kind == "unavailable" else "upstream"
    return Blocked(key, names[key], kind, error)


def _how(culprit: Any) -> str:
    if culprit.state == "cancelled":
        return "was cancelled"
    return "is unavailable" if culprit.error_kind == "unavailable" else "failed"


def _store(session: Session, blocked: Sequence[Blocked], now: datetime) -> None:
    if not blocked:
        return
    rows = [
        {"key": step.key, "state": "failed", "error_kind": step.kind, "error": step.error, "finished_at": now}
        for step in blocked
    ]
    session.execute(update(StepRow), rows)
    details = [f"{step.kind}: {step.error}" for step in blocked]
    add_events(session, [step.key for step in blocked], now, "failed", details)


PLACES = select(StudyStep.study_id, StudyStep.node, StudyStep.step_key).where(
    StudyStep.step_key.in_(bindparam("keys", expanding=True))
)


def names_of(session: Session, keys: Collection[str], study_id: int | None = None) -> dict[str, str]:
    """The steps' names for people: their places in the given study, or in the newest one that has them."""
    names = {key: key[:12] for key in keys}
    # chosen here: a database may read all of a study for a step's place in it
    places: list[tuple[bool, int, str, str]] = []
    for batch in batches(keys):
        rows = session.connection().execute(PLACES, {"keys": batch})
        places += [(study == study_id, study, node, key) for study, node, key in rows]
    places.sort(key=lambda place: place[2], reverse=True)  # the first place of a study last
    places.sort(key=lambda place: place[:2])
    names.update((key, node) for _, _, node, key in places)
    return names


# ---------------------------------------------------------------- studies


def end(database: Database, studies: Iterable[int]) -> None:
    with database.transaction() as session:
        lock_steps(session)  # against a submission that makes one of them live again
        end_studies(session, studies)


def end_studies(session: Session, studies: Iterable[int]) -> None:
    """End those of the live studies that have no unfinished step."""
    now = Database.now(session)
    for study_id in studies:
        study = session.get(StudyRow, study_id)
        if study is None:  # cancelled and removed since the controller last looked
            continue
        state = derive(session, study_id) if study.state in LIVE else None
        if state is not None:
            study.state, study.finished_at = state, now


def derive(session: Session, study_id: int) -> str | None:
    """How the study ended, or None while a step of it is unfinished.

    A study succeeds even if optional steps are unavailable (scores for lack of a metric's model, say).
    """
    found = session.execute(
        select(StepRow.state, StepRow.kind, StepRow.error_kind)
        .where(StepRow.key.in_(keys_of(study_id)))
        .distinct()
    ).all()
    states = {step.state for step in found}
    if states & set(UNFINISHED):
        return None
    optional = {name for name, kind in STEP_KINDS.items() if kind.optional}
    failed = [step for step in found if step.state == "failed"]
    if any(step.error_kind != "unavailable" or step.kind not in optional for step in failed):
        return "failed"
    return "cancelled" if "cancelled" in states else "succeeded"
