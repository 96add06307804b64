"""Translates one sentence by several systems of a study, in a process of its own: `python -m` this module.

The web app has no torch, so that it starts this beside itself. Standard input is a JSON object: `study` (its
number), `systems`, `line`, `word` (of the target, or ""). Standard output has a line of JSON for each system,
as soon as it is there: `system`, and what `creamtea_workers.search.lines` returns, or `error`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from creamtea.engine.reopened import opened, translating_step
from creamtea.engine.runner import load_module
from creamtea.errors import CreamteaError
from creamtea.settings import Settings
from creamtea.steps.systems import DecodeParams
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database


def main() -> None:
    request = json.load(sys.stdin)
    settings = Settings.load()
    store, database = ArtefactStore(settings.artefacts), open_database(settings.database_url)
    try:
        for system in request["systems"]:
            try:
                row = tried(database, store, request["study"], system, request["line"], request["word"])
            except CreamteaError as error:
                row = {"error": str(error)}
            print(json.dumps({"system": system, **row}), flush=True)
    finally:
        database.close()


def tried(
    database: Database, store: ArtefactStore, study: int, system: str, line: str, word: str
) -> dict[str, Any]:
    """By the first model of the system's variant."""
    task = translating_step(database, store, study, system, None).task
    selects = DecodeParams.model_validate(task.params).selection.selects
    with opened(task, store) as context:
        lines = load_module("creamtea_workers.search.lines", context.cpus)
        row: dict[str, Any]
        (row,) = lines.open_system(context, with_selection=selects, word=word if selects else "")([line])
        return row


if __name__ == "__main__":
    main()
