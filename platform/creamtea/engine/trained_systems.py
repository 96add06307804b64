"""Open a system of a study outside of any step, to try out what has been trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.engine.runner import Context
from creamtea.engine.state import task_of
from creamtea.engine.task import StepTask
from creamtea.errors import InputError
from creamtea.files import clear_abandoned, scratch_folder
from creamtea.methods.plugins import require
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.steps.systems import DECODE
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.queries import Node, find_study, study_nodes
from creamtea.store.tables import StepInput, StepRow


@dataclass(frozen=True)
class TranslatingStep:
    """A step that translates, with its place in the study."""

    node: Node
    task: StepTask


def translating_step(
    database: Database, store: ArtefactStore, study: str | int, system: str, seed: int | None
) -> TranslatingStep:
    """The first step of the study that translates with the system, by the model of this seed (None: its
    first). InputError where there is none, or where what it needs has not been made; StepError where its
    plug-ins are not those that are installed here."""
    with database.session() as session:
        study_id = find_study(session, study).id
        node = _choose(session, study_nodes(session, study_id, DECODE.name), study, system, seed)
        inputs = {given.input_key for given in _inputs(session, node)}
        needed = (other for other in study_nodes(session, study_id) if other.key in inputs)
        if unmade := next((other for other in needed if other.state != "succeeded"), None):
            raise InputError(f"system {system} cannot translate: {_why(unmade, study)}")
        task = task_of(session, session.get_one(StepRow, node.key), study_id, store.root)
        require(task.resources.plugins)
        return TranslatingStep(node, task)


def _why(node: Node, study: str | int) -> str:
    """What is the matter with a step that has not succeeded, and what to do."""
    if node.state != "failed":
        return f"{node.name} is {node.outcome}; run the study first"
    reason = (node.error or "").partition("\n")[0]
    return f"{node.name} is {node.outcome}, {reason}; see `creamtea status {study}`"


def _inputs(session: Session, node: Node) -> Sequence[StepInput]:
    return session.scalars(select(StepInput).where(StepInput.step_key == node.key)).all()


def _choose(session: Session, nodes: list[Node], study: str | int, system: str, seed: int | None) -> Node:
    nodes = [node for node in nodes if "system" in node.labels]  # the others are of analyses
    of_system = [node for node in nodes if node.labels["system"] == system]
    if not of_system:
        systems = ", ".join(dict.fromkeys(node.labels["system"] for node in nodes))
        raise InputError(f"study {study} trains no system {system!r}; it trains {systems or 'none'}")
    models = sum(given.role == "train" for given in _inputs(session, of_system[0]))
    if seed is not None and models > 1:
        raise InputError(
            f"seed {seed}: system {system} is an ensemble of {models} models, one per seed; name no seed, or "
            "a system of one model"
        )
    of_seed = [node for node in of_system if seed is None or node.labels.get("seed") == seed]
    if not of_seed:
        seeds = ", ".join(dict.fromkeys(str(node.labels.get("seed", "all at once")) for node in of_system))
        raise InputError(f"system {system} has no model of seed {seed}; its seeds: {seeds}")
    return of_seed[0]


@contextmanager
def opened(task: StepTask, store: ArtefactStore) -> Iterator[Context]:
    """What the step would see, but for its progress."""
    clear_abandoned()
    with scratch_folder("step") as folder:
        params = STEP_KINDS[task.kind].params.model_validate(task.params)
        yield Context(task, params, store, Path(folder), cancelled=lambda: False, reports=False)
