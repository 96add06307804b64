"""A metric of a study whose scorer has found errors, as if its score steps had run."""

import json
from pathlib import Path
from typing import Any

from table_rows import step_row

from creamtea.contract.step import StepResult
from creamtea.error_spans import SPANS_FILE
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.ingest import ingest, read_texts
from creamtea.store.queries import find_study
from creamtea.store.tables import StudyStep

MINOR = {"start": 0, "end": 1, "severity": "minor"}


def add_scores(
    database: Database,
    store: ArtefactStore,
    folder: Path,
    system: str,
    spans: list[list[dict[str, Any]]],
    *,
    found_errors: bool = True,
    version: str = "1.0",
    study: str = "jam",
    test_set: str = "test",
) -> None:
    """A score step of the metric `finder`, with the errors of each segment; `found_errors` False: its scorer
    gave scores alone."""
    made = folder / system
    made.mkdir(parents=True)
    values = [{"index": index, "value": 1.0} for index in range(len(spans))]
    found = [{"index": index, "spans": of} for index, of in enumerate(spans)]
    for name, rows in (("segment_scores.jsonl", values), (SPANS_FILE, found if found_errors else [])):
        if rows:
            (made / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    key = f"score/{system}"
    with database.transaction() as session:
        metric = {"kind": "command", "scorer": "finder"}
        params = {"metric": metric, "scorer": {"version": version, "digest": "d1"}}
        session.add(step_row(key, "score", params=params))
        session.flush()
        labels = {"system": system, "test_set": test_set, "metric": "finder"}
        study_id = find_study(session, study).id
        session.add(StudyStep(study_id=study_id, node=key, step_key=key, position=9000, labels=labels))
        files = store.put_folder(made)
        ingest(session, key, StepResult(), files, read_texts(store, files))
