"""Translate sentences with systems of studies, outside of any step: `python -m` this module.

The web app has no torch, so it starts this process and keeps it while people try sentences: a system is
loaded once. Each line of standard input is a request, a JSON object: `study` (its number), `systems`, `line`,
`word` (a target word, or ""). For each system the process writes a line of JSON to standard output as soon as
it is ready: `system`, and the result of `creamtea_workers.search.translator`, or `error`. The process ends
when its input ends, or after `IDLE_SECONDS` without a request, which frees all memory.
"""

from __future__ import annotations

import json
import sys
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from select import select as wait_for_input
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

import creamtea
from creamtea.engine.executors.base import StepTask
from creamtea.engine.runner import Context, load_module
from creamtea.engine.state import task_of
from creamtea.errors import CreamteaError, InputError
from creamtea.files import clear_abandoned, scratch_folder
from creamtea.methods.plugins import require
from creamtea.settings import Settings
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.steps.systems import DECODE, DecodeParams
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database
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
    """Return the study's first step that translates with the system's model of this seed.

    Seed None: the first seed. Raises InputError if there is no such step, or its inputs have not been made;
    StepError if other plug-ins are installed here than the step needs.
    """
    with database.session() as session:
        study_id = find_study(session, study).id
        node = _choose(session, study_nodes(session, study_id, DECODE.name), study, system, seed)
        inputs = {given.input_key for given in _inputs(session, node)}
        needed = (other for other in study_nodes(session, study_id) if other.key in inputs)
        if unmade := next((other for other in needed if other.state != "succeeded"), None):
            how = f"{unmade.outcome}; run the study first"
            if unmade.state == "failed":
                error = (unmade.error or "").partition("\n")[0]
                how = f"{unmade.outcome}, {error}; see `creamtea status {study}`"
            raise InputError(f"system {system} cannot translate: {unmade.name} is {how}")
        task = task_of(session, session.get_one(StepRow, node.key), study_id, store.root)
        require(task.resources.plugins)
        return TranslatingStep(node, task)


def _inputs(session: Session, node: Node) -> Sequence[StepInput]:
    return session.scalars(select(StepInput).where(StepInput.step_key == node.key)).all()


def _choose(session: Session, nodes: list[Node], study: str | int, system: str, seed: int | None) -> Node:
    nodes = [node for node in nodes if "system" in node.labels]  # the others belong to analyses
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
    """Open the context that the step would have, but without reporting progress."""
    clear_abandoned()
    with scratch_folder("step") as folder:
        params = STEP_KINDS[task.kind].params.model_validate(task.params)
        yield Context(task, params, store, Path(folder), cancelled=lambda: False, reports=False)


IDLE_SECONDS = 600.0
MAX_SYSTEMS = 8
MAX_BYTES = 2 << 30  # of the loaded systems' files


class LoadedSystems:
    """The systems used last, by step key: the content of a key never changes."""

    def __init__(
        self, store: ArtefactStore, max_systems: int = MAX_SYSTEMS, max_bytes: int = MAX_BYTES
    ) -> None:
        self.store, self._max_systems, self._max_bytes = store, max_systems, max_bytes
        # step key -> creamtea_workers.search.translator.OpenSystem, bytes of its files
        self._kept: OrderedDict[str, tuple[Any, int]] = OrderedDict()

    @property
    def keys(self) -> list[str]:
        """The keys, the least recently used first."""
        return list(self._kept)

    def of(self, task: StepTask) -> Any:
        """Return the system of a step; it stays loaded until other systems need its place.

        A system larger than the limit stays until another is requested.
        """
        lines = load_module("creamtea_workers.search.translator", task.resources.cpus)
        if task.key not in self._kept:
            size = sum(file.size for steps in task.inputs.values() for files in steps for file in files)
            while self._kept and (
                len(self._kept) >= self._max_systems
                or sum(loaded for _, loaded in self._kept.values()) + size > self._max_bytes
            ):
                self._kept.popitem(last=False)
            with opened(task, self.store) as context:
                self._kept[task.key] = lines.OpenSystem.of_step(context), size
        self._kept.move_to_end(task.key)
        return self._kept[task.key][0]


def main() -> None:
    creamtea.collect_rarely()
    settings = Settings.load()
    database = open_database(settings.database_url)
    loaded = LoadedSystems(ArtefactStore(settings.artefacts))
    try:
        # requests come one at a time, so `select` misses none in the buffer of standard input
        while wait_for_input([sys.stdin], [], [], IDLE_SECONDS)[0] and (request := sys.stdin.readline()):
            for row in answers(database, loaded, **json.loads(request)):
                print(json.dumps(row), flush=True)
    finally:
        database.close()


def answers(
    database: Database, loaded: LoadedSystems, study: int, systems: list[str], line: str, word: str
) -> Iterator[dict[str, Any]]:
    """Translate a line by each system, with the first model of its variant."""
    for system in systems:
        try:
            task = translating_step(database, loaded.store, study, system, None).task
            selects = DecodeParams.model_validate(task.params).selection.selects
            asked = word if selects else ""
            (row,) = loaded.of(task).translate([line], with_selection=selects, word=asked)
        except CreamteaError as error:
            row = {"error": str(error)}
        yield {"system": system, **row}


if __name__ == "__main__":
    main()
