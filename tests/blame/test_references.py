"""Where the references of a campaign's segments come from."""

from __future__ import annotations

import json
from pathlib import Path

from rated_campaigns import rated_campaign
from sqlalchemy import select

from creamtea.blame.gathering import references_of
from creamtea.contract.step import StepResult
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.ingest import ingest, read_texts
from creamtea.store.tables import Campaign, Item, StepRow


def test_of_the_test_set_and_those_that_raters_saw(database: Database, tmp_path: Path) -> None:
    items = [{"systems": [0], "outputs": ["x"], "steps": {"anna": [50]}} for _ in range(3)]
    number = rated_campaign(database, items, name="rated", protocol="esa", systems=("plain",))
    rows = [
        {"source": "s", "reference": "eins", "idioms": [], "more_references": ["uno", "eins"]},
        {"source": "s", "reference": "zwei", "idioms": [], "more_references": ["", "due"]},
        {"source": "s", "reference": "", "idioms": [], "more_references": ["", ""]},
    ]
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "segments.jsonl").write_text(
        "".join(json.dumps({"index": index, **row}) + "\n" for index, row in enumerate(rows))
    )
    store = ArtefactStore(tmp_path / "artefacts")
    with database.transaction() as session:
        session.add(
            StepRow(
                key="texts",
                kind="test_set",
                version=1,
                params={},
                state="succeeded",
                resources={},
                locations={},
                created_at=session.get_one(Campaign, number).created_at,
            )
        )
        session.flush()
        files = store.put_folder(folder)
        ingest(session, "texts", StepResult(), files, read_texts(store, files))
        for item in session.scalars(select(Item).where(Item.segment_index == 1)):
            item.references = ["dos", "zwei"]
    with database.session() as session:
        found = references_of(session, store, "texts", number)
    assert found == {0: ["eins", "uno"], 1: ["zwei", "due", "dos"], 2: []}
