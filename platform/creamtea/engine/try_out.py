"""Translates sentences by systems of studies, in a process of its own: `python -m` this module.

The web app has no torch, so that it starts this beside itself, and keeps it while people try sentences: a
system is loaded once. A line of standard input is a request, a JSON object: `study` (its number), `systems`,
`line`, `word` (of the target, or ""). Standard output has a line of JSON for each system, as soon as it is
there: `system`, and what `creamtea_workers.search.translator` returns, or `error`. The process ends with its
input, or after `IDLE_SECONDS` without a request, which frees all memory.
"""

from __future__ import annotations

import json
import select
import sys
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from creamtea.engine.runner import load_module
from creamtea.engine.task import StepTask
from creamtea.engine.trained_systems import opened, translating_step
from creamtea.errors import CreamteaError
from creamtea.settings import Settings
from creamtea.steps.systems import DecodeParams
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database

IDLE_SECONDS = 600.0
MAX_SYSTEMS = 8
MAX_BYTES = 2 << 30  # of the files of the systems that are kept


@dataclass(frozen=True)
class Loaded:
    system: Any  # creamtea_workers.search.translator.OpenSystem
    bytes: int


class LoadedSystems:
    """The systems used last, by the key of their step: what a key names never changes."""

    def __init__(
        self, store: ArtefactStore, max_systems: int = MAX_SYSTEMS, max_bytes: int = MAX_BYTES
    ) -> None:
        self.store, self._max_systems, self._max_bytes = store, max_systems, max_bytes
        self._kept: OrderedDict[str, Loaded] = OrderedDict()

    @property
    def keys(self) -> list[str]:
        """The least recently used first."""
        return list(self._kept)

    def of(self, task: StepTask) -> Any:
        """The system of a step, which stays loaded until others need its place; one that is too large to be
        kept stays until the next is asked for."""
        lines = load_module("creamtea_workers.search.translator", task.resources.cpus)
        if task.key not in self._kept:
            size = sum(file.size for steps in task.inputs.values() for files in steps for file in files)
            self._make_room(size)
            with opened(task, self.store) as context:
                self._kept[task.key] = Loaded(lines.OpenSystem.of_step(context), size)
        self._kept.move_to_end(task.key)
        return self._kept[task.key].system

    def _make_room(self, size: int) -> None:
        def full() -> bool:
            taken = sum(loaded.bytes for loaded in self._kept.values())
            return len(self._kept) >= self._max_systems or taken + size > self._max_bytes

        while self._kept and full():
            self._kept.popitem(last=False)


def main() -> None:
    settings = Settings.load()
    database = open_database(settings.database_url)
    loaded = LoadedSystems(ArtefactStore(settings.artefacts))
    try:
        # one request at a time: the buffer of standard input holds no second one that `select` would not see
        while select.select([sys.stdin], [], [], IDLE_SECONDS)[0] and (request := sys.stdin.readline()):
            for row in answers(database, loaded, json.loads(request)):
                print(json.dumps(row), flush=True)
    finally:
        database.close()


def answers(database: Database, loaded: LoadedSystems, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for system in request["systems"]:
        try:
            row = tried(database, loaded, system, **request)
        except CreamteaError as error:
            row = {"error": str(error)}
        yield {"system": system, **row}


def tried(
    database: Database, loaded: LoadedSystems, system: str, *, study: int, line: str, word: str, **_: Any
) -> dict[str, Any]:
    """Translate by the first model of the system's variant."""
    task = translating_step(database, loaded.store, study, system, None).task
    selects = DecodeParams.model_validate(task.params).selection.selects
    row: dict[str, Any]
    (row,) = loaded.of(task).translate([line], with_selection=selects, word=word if selects else "")
    return row


if __name__ == "__main__":
    main()
