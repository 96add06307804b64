"""Compare two systems' outputs with a test that their study does not have: `python -m` this module.

The web app has no metrics, so it starts this process. Each line of standard input is a request: a list of
JSON objects with the `params` and `inputs` (keys by role) of a step of kind `compare`. For each object the
process writes a line of JSON to standard output: the step's row (`value`, `low`, `high`, `detail`), or
`error`. It stores nothing, and ends when its input ends.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import select

import creamtea
from creamtea.contract.step import Resources, step_key
from creamtea.engine.executors.base import StepTask
from creamtea.engine.runner import load_step
from creamtea.engine.try_out import opened
from creamtea.errors import CreamteaError
from creamtea.settings import Settings
from creamtea.steps.systems import COMPARE
from creamtea.store.artefacts import ArtefactStore, StoredFile
from creamtea.store.database import Database, open_database
from creamtea.store.tables import StepFile


def main() -> None:
    creamtea.collect_rarely()
    settings = Settings.load()
    store, database = ArtefactStore(settings.artefacts), open_database(settings.database_url)
    try:
        for line in sys.stdin:
            for comparison in json.loads(line):
                try:
                    row = compared(database, store, **comparison)
                except CreamteaError as error:
                    row = {"error": str(error)}
                print(json.dumps(row), flush=True)
    finally:
        database.close()


def compared(
    database: Database,
    store: ArtefactStore,
    params: Mapping[str, Any],
    inputs: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """Return the row that a `compare` step with these parameters and inputs would make."""
    task = StepTask(
        key=step_key(COMPARE.name, COMPARE.version, params, inputs),
        fence=0,
        name=COMPARE.name,
        kind=COMPARE.name,
        version=COMPARE.version,
        params=dict(params),
        inputs={role: [_files(database, key) for key in keys] for role, keys in inputs.items()},
        locations={},
        resources=Resources(),
        artefacts=store.root,
    )
    with opened(task, store) as context:
        result = load_step(COMPARE, context.cpus)(context)
        return asdict(result.metrics[0])


def _files(database: Database, key: str) -> list[StoredFile]:
    with database.session() as session:
        rows = session.execute(
            select(StepFile.name, StepFile.digest, StepFile.size).where(StepFile.step_key == key)
        )
        return [StoredFile(*row) for row in rows]


if __name__ == "__main__":
    main()
