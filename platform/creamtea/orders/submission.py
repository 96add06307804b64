"""Submit, cancel and retry studies: store a plan as rows, and read a spec back from them.

Succeeded steps are reused, failed ones are retried, and all others are pending.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import exists, insert, select, update
from sqlalchemy.orm import Session, object_session

import creamtea
from creamtea.document.mistakes import StudyWarning
from creamtea.errors import InputError
from creamtea.methods.plugins import not_here
from creamtea.orders.rows import (
    FRESH,
    LIVE,
    UNFINISHED,
    add_events,
    keep_results,
    keys_of,
    lock_steps,
    make_wait,
)
from creamtea.steps.catalogue import is_of_this_version
from creamtea.steps.systems import OUTPUTS
from creamtea.steps.texts import CORPUS, TEST_SET
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.queries import batches
from creamtea.store.tables import Base, StepFile, StepInput, StepRow, StudyRow, StudyStep
from creamtea.study.data_files import digest_if_readable
from creamtea.study.loader import LoadedStudy, load_study
from creamtea.study.plan import Plan, PlannedStep, plan
from creamtea.study.spec import Study
from creamtea.study.warnings import warnings_of


class UnreadableStudy(InputError):
    """A study planned by another version, or with methods of a plug-in that is not installed."""


def spec_of(row: StudyRow) -> Study:
    """Return the spec from which a stored study was planned.

    Raises UnreadableStudy if this version or its installed plug-ins cannot read the spec.
    """
    try:
        return Study.model_validate(row.spec)
    except ValidationError as error:
        study = f"study {row.name!r} (number {row.id})"
        session = object_session(row)
        steps = select(StepRow.resources).join(StudyStep).where(StudyStep.study_id == row.id)
        plugins: dict[str, str] = {}
        for resources in () if session is None else session.scalars(steps):
            plugins |= resources.get("plugins", {})
        if lacking := not_here(plugins):
            raise UnreadableStudy(f"{study} was {lacking}: install the same plug-ins here") from None
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UnreadableStudy(
            f"{study} was planned by creamtea {row.code_version}, whose spec this version cannot read "
            f"({place}: {first['msg']}); run it again"
        ) from None


def cancel(database: Database, study_id: int) -> bool:
    """Cancel a study, and its unfinished steps unless another live study needs them.

    A running step loses its claim: its controller notices that at the next renewal and stops it. Returns
    False if the study had already ended.
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
        .values(
            **{"state": "cancelled", "fence": StepRow.fence + 1, "owner": None, "lease_until": None},
            **{"finished_at": now, "error_kind": None, "error": None},
        )
        .returning(StepRow.key)
        .execution_options(synchronize_session=False)
    ).all()
    add_events(session, keys, now, "cancelled")
    keep_results(session, keys)
    return True


@dataclass(frozen=True)
class Submission:
    study_id: int
    name: str
    keys: frozenset[str]  # all its steps
    reused_keys: frozenset[str]  # steps that had already succeeded
    lost: int = 0  # finished steps with a file that the store has lost
    warnings: tuple[StudyWarning, ...] = ()  # about the study and its files, before it ran

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
    """Queue the study.

    The newest submission of this name continues if it has the same steps and was cancelled or has not ended.
    All other unfinished submissions of this name are cancelled.
    """
    keys = [step.key for step in plan.steps]
    incomplete = _without_files(database, store, keys)
    with database.transaction() as session:
        lock_steps(session)
        now = database.now(session)
        study = _unfinished(session, plan, config_hash)
        if study is None:
            study = StudyRow(name=plan.study, config_hash=config_hash, created_at=now)
        study.spec, study.priority, study.code_version = spec, priority, creamtea.__version__
        study.state, study.finished_at = "queued", None
        is_new = study.id is None
        session.add(study)
        session.flush()
        _store_steps(session, plan.steps, now)
        if is_new:
            places = [
                {
                    "study_id": study.id,
                    "node": node.node,
                    "step_key": node.key,
                    "position": position,
                    "labels": node.labels,
                }
                for position, node in enumerate(plan.nodes)
            ]
            _insert(session, StudyStep, places)
        older = select(StudyRow.id).where(
            StudyRow.name == plan.study, StudyRow.id != study.id, StudyRow.state.in_(LIVE)
        )
        for study_id in session.scalars(older).all():
            cancel_in(session, study_id, now)
        inputs = {step.key: set(chain.from_iterable(step.inputs.values())) for step in plan.steps}
        reused = _refresh(session, study.id, inputs, incomplete, now)
        return Submission(study.id, plan.study, frozenset(keys), reused, len(incomplete))


def would_cancel(database: Database, plan: Plan, config_hash: str) -> bool:
    """Return True if `submit` would cancel an unfinished study of this name."""
    with database.session() as session:
        goes_on = _unfinished(session, plan, config_hash)
        live = session.scalars(
            select(StudyRow.id).where(StudyRow.name == plan.study, StudyRow.state.in_(LIVE))
        ).all()
        return any(goes_on is None or study_id != goes_on.id for study_id in live)


def _unfinished(session: Session, plan: Plan, config_hash: str) -> StudyRow | None:
    """Return the submission that continues, if there is one."""
    # a second row for the same steps would cancel the first, which then shows all steps as done
    newest = session.scalar(
        select(StudyRow).where(StudyRow.name == plan.study).order_by(StudyRow.id.desc()).limit(1)
    )
    if newest is None or newest.config_hash != config_hash or newest.state not in (*LIVE, "cancelled"):
        return None
    places = select(StudyStep.node, StudyStep.step_key).where(StudyStep.study_id == newest.id)
    same = dict(session.execute(places).all()) == {node.node: node.key for node in plan.nodes}
    return newest if same else None


READ_TEXT = (CORPUS.name, TEST_SET.name, OUTPUTS.name)  # kinds of steps that read text files of the user


def requeue(
    database: Database, store: ArtefactStore, study_id: int, *, make_anew: bool = False, here: bool = False
) -> Submission:
    """Queue an ended study again.

    Failed and cancelled steps are retried, and so are steps whose files the artefact store has lost. If it
    has lost the files of all steps, `make_anew` is required. Raises InputError, and changes nothing, if the
    study has not ended, if all steps have succeeded, or if this version or the user's files could not make a
    lost result again. `here`: this machine runs the steps, so it must have the user's files.
    """
    with database.session() as session:
        keys = session.scalars(keys_of(study_id).distinct()).all()  # two places may share a step
    incomplete = _without_files(database, store, keys, all_may_be_gone=make_anew)
    _check_user_files(database, incomplete, here)
    with database.transaction() as session:
        lock_steps(session)
        study = session.get_one(StudyRow, study_id)
        if study.state in LIVE:
            raise InputError(f"study {study.name} is {study.state}: there is nothing to retry yet")
        earlier_state, study.state, study.finished_at = study.state, "queued", None
        inputs: dict[str, set[str]] = {key: set() for key in keys}
        edges = select(StepInput.step_key, StepInput.input_key)
        for key, other in session.execute(edges.where(StepInput.step_key.in_(keys_of(study_id)))):
            inputs[key].add(other)
        ordered = {key: inputs[key] for key in TopologicalSorter(inputs).static_order()}
        reused = _refresh(session, study_id, ordered, incomplete, database.now(session))
        if len(reused) == len(keys) and earlier_state == "succeeded":
            raise InputError(
                f"all {len(keys)} steps of {study.name} have succeeded: there is nothing to retry; "
                f"`creamtea report {study.name}` shows their results"
            )
        _check_versions(session, study_id, [key for key in keys if key not in reused])
        return Submission(study_id, study.name, frozenset(keys), reused, len(incomplete))


def _check_versions(session: Session, study_id: int, keys: Sequence[str]) -> None:
    """Raise InputError for a step of another version: it would fail, and lose its earlier results."""
    for batch in batches(keys):
        planned = (
            select(StudyStep.node, StepRow.kind, StepRow.version)
            .join(StepRow, StepRow.key == StudyStep.step_key)
            .where(StudyStep.study_id == study_id, StepRow.key.in_(batch))
            .order_by(StudyStep.position)
        )
        for node, kind, version in session.execute(planned):
            if not is_of_this_version(kind, version):
                raise InputError(
                    f"{node} was planned by another version of creamtea, whose {kind} steps this one cannot "
                    "run. The study stays as it is: run its file again, which makes a new submission "
                    "(`creamtea run`)"
                )


def _check_user_files(database: Database, keys: Collection[str], here: bool) -> None:
    """Raise InputError if one of these steps would fail, because a text that it read has changed or is gone.

    Unless this machine runs the steps (`here`), the workers may have folders that this machine lacks.
    """
    read_text = select(StepRow.params, StepRow.locations).where(StepRow.kind.in_(READ_TEXT))
    with database.session() as session:
        steps = [
            row
            for batch in batches(sorted(keys))
            for row in session.execute(read_text.where(StepRow.key.in_(batch)))
        ]
    for params, locations in steps:
        digests = params.get("digests") or {}
        for path, place in ((path, Path(locations[path])) for path in digests):
            is_there = place.parent.is_dir()
            if (is_there or here) and digest_if_readable(place) != digests[path]:
                why = "has changed since the study was planned"
                if not is_there:
                    why = f"is not here: there is no folder {place.parent}"
                raise InputError(
                    f"{path} {why}, and the store has lost the study's copy of it. The study's results "
                    "stay as they are: put the file back as it was, or run the study's file again, which "
                    "makes a new submission (`creamtea run`)"
                )


def _without_files(
    database: Database, store: ArtefactStore, keys: Sequence[str], *, all_may_be_gone: bool = False
) -> set[str]:
    """Return the succeeded steps with a file that the artefact store has lost.

    Raises InputError if the store has none of the files, unless `all_may_be_gone`: all work would be done
    again because of a wrong setting.
    """
    files: list[tuple[str, str]] = []
    with database.session() as session:
        for batch in batches(keys):
            stored = select(StepFile.step_key, StepFile.digest).join(StepRow)
            files += session.execute(stored.where(StepRow.key.in_(batch), StepRow.state == "succeeded"))
    present = {digest: store.exists(digest) for digest in {digest for _, digest in files}}
    if present and not any(present.values()) and not all_may_be_gone:
        # `creamtea gc` takes it so, too: either the store or the database is the wrong one
        with database.session() as session:
            places = select(StudyRow.name).join(StudyStep, StudyStep.study_id == StudyRow.id)
            newest = places.where(StudyStep.step_key == files[0][0]).order_by(StudyRow.id.desc()).limit(1)
            name = shlex.quote(session.scalars(newest).one())
        raise InputError(
            f"{store.root} has none of the {len(present):,} files that finished steps of this study made: "
            "check CREAMTEA_ARTEFACTS (is the share mounted?) and CREAMTEA_DATABASE_URL. If they are gone "
            f"for good, `creamtea retry {name} --make-anew` makes them again"
        )
    return {key for key, digest in files if not present[digest]}


def _insert(session: Session, table: type[Base], rows: list[dict[str, Any]]) -> None:
    if rows:
        session.execute(insert(table), rows)


def _store_steps(session: Session, steps: Sequence[PlannedStep], now: datetime) -> None:
    """Store new steps; update the resources and file locations of known ones."""
    stored: dict[str, tuple[Any, Any]] = {}
    for batch in batches(step.key for step in steps):
        rows = select(StepRow.key, StepRow.resources, StepRow.locations).where(StepRow.key.in_(batch))
        stored |= {key: (resources, places) for key, resources, places in session.execute(rows)}
    new, changed, inputs = [], [], []
    for step in steps:
        resources = step.resources.model_dump(mode="json")
        if step.key in stored:
            if stored[step.key] != (resources, step.locations):
                changed.append({"key": step.key, "resources": resources, "locations": step.locations})
            continue
        new.append(
            {
                "key": step.key,
                "kind": step.kind,
                "version": step.version,
                "params": step.params,
                "state": "pending",
                "resources": resources,
                "locations": step.locations,
                "created_at": now,
            }
        )
        inputs += [
            {"step_key": step.key, "role": role, "position": position, "input_key": key}
            for role, keys in step.inputs.items()
            for position, key in enumerate(keys)
        ]
    _insert(session, StepRow, new)
    _insert(session, StepInput, inputs)
    if changed:
        session.execute(update(StepRow), changed)


def _refresh(
    session: Session, study_id: int, inputs: Mapping[str, set[str]], incomplete: set[str], now: datetime
) -> frozenset[str]:
    """Reset every step that must run; return the keys of the reused steps.

    `inputs`: each step of the study with its inputs, which come before it.
    """
    rows = select(StepRow.key, StepRow.state, StepRow.error_kind).where(StepRow.key.in_(keys_of(study_id)))
    stored = {row.key: row for row in session.execute(rows)}
    rerun: set[str] = set()  # steps that had succeeded and run again
    reset: dict[str, str] = {}  # key -> reason
    reused = []
    for key, step_inputs in inputs.items():
        match stored[key].state:
            case "succeeded" if key in incomplete:
                reset[key] = "its files are gone"
                rerun.add(key)
            case "succeeded" if step_inputs & rerun:
                reset[key] = "an earlier step runs again"
                rerun.add(key)
            case "succeeded":
                reused.append(key)
            case "failed":
                reset[key] = "it had failed"
            case "cancelled":
                reset[key] = "it was cancelled"
    add_events(session, reused, now, "reused")
    # their last rerun failed, but all files of the earlier result are here
    sound = [key for key in reused if stored[key].error_kind is not None]
    if sound:
        session.execute(update(StepRow), [{"key": key, "error_kind": None, "error": None} for key in sound])
    add_events(session, list(reset), now, "reset", list(reset.values()))
    if reset:
        session.execute(update(StepRow), [{"key": key, **FRESH} for key in reset])
    make_wait(session, reset)
    return frozenset(reused)


# A study written in a browser is checked as `creamtea validate` checks it. On the command line a study may
# read every file that the user's account may read. On the page every path, after following symbolic links,
# must lie in the folder that the server's owner has set aside (CREAMTEA_DATA).

MAX_CHARACTERS = 200_000
NAME = "study"  # stands for a file name in messages: "study:12"


@dataclass(frozen=True)
class WrittenStudy:
    """A study from the page, without mistakes."""

    loaded: LoadedStudy
    planned: Plan
    warnings: tuple[StudyWarning, ...]

    @property
    def name(self) -> str:
        return self.planned.study


def check_written(text: str, folder: Path) -> WrittenStudy:
    """Check a study's text; raise StudyErrors with all mistakes and their lines, or InputError."""
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"the study has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read")
    if not folder.is_dir():
        raise InputError(f"CREAMTEA_DATA={folder}: no such folder on the server")
    with tempfile.TemporaryDirectory() as aside:
        path = Path(aside) / "study.yaml"
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        loaded = load_study(path, name=NAME)
    planned = plan(loaded.study, folder, loaded.errors, confined=True)
    warnings = tuple(dict.fromkeys(warnings_of(loaded.study, planned, folder, loaded.place_of)))
    return WrittenStudy(loaded, planned, warnings)


def submit_written(database: Database, store: ArtefactStore, written: WrittenStudy) -> Submission:
    """Queue a study from the page; an unfinished study of the same name is cancelled."""
    store.check_writable()
    return submit(database, store, written.planned, written.loaded.spec, written.loaded.config_hash)
