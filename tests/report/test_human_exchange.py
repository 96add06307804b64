"""An export alone is enough for the same human report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from human_rows import add_campaign, add_segment_scores
from rated_campaigns import rated_campaign
from teatime_study import fill_study

from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.report.export import to_values
from creamtea.report.human.build import build_human
from creamtea.report.model import Document, Notes, Table, Texts
from creamtea.store.database import Database, open_database

OF_THE_STUDY = ("people_and_metrics", "metrics", "disagreements")  # made from the study's segment scores


@pytest.fixture
def elsewhere(sqlite_template: Path, tmp_path: Path) -> Any:
    path = tmp_path / "elsewhere.db"
    path.write_bytes(sqlite_template.read_bytes())
    database = open_database(f"sqlite:///{path}")
    yield database
    database.close()


def values(report: Document) -> dict[str, Any]:
    """The tables and texts by path, but for those of the study."""
    kept = {
        path: to_values(block)
        for path, block in report.walk()
        if isinstance(block, Table | Texts | Notes) and block.key not in OF_THE_STUDY
    }
    assert len(kept) > 5
    return kept


def test_an_export_gives_the_same_report_elsewhere(
    database: Database, elsewhere: Database, tmp_path: Path
) -> None:
    study = fill_study(database)
    settings = {"baseline": "softmax-nvs", "delta": 0.2, "select": "all"}
    add_campaign(database, study, items=25, settings=settings, state="closed")
    add_segment_scores(database, study, items=25)
    export_campaign(database, "tasting", "jsonl", tmp_path / "export", "test")
    import_campaign(elsewhere, tmp_path / "export", "jsonl", ImportFacts("tasting"), "test")
    assert values(build_human(elsewhere, "tasting")) == values(build_human(database, "tasting"))


def test_excluded_raters_revisions_controls_and_skips_survive(
    database: Database, elsewhere: Database, tmp_path: Path
) -> None:
    items: list[dict[str, Any]] = [
        {"steps": {"anna": [[3, 9], [4, 9]], "eve": [1, 1], "ben": [7, 7]}, "outputs": ["x", "y"]},
        {"steps": {"anna": [5, 5], "ben": [6, 6]}, "outputs": ["same", "same"], "kind": "random"},
        {"steps": {"anna": [2, 20], "ben": [3, 19]}, "outputs": ["", "<b>"], "weight": 2.5},
        {"steps": {"anna": []}},
    ]
    rated_campaign(
        database,
        items,
        raters=["anna", "ben", "eve"],
        excluded=["eve"],
        ratings_per_item=2,
        state="closed",  # as imported campaigns are
    )
    export_campaign(database, "tasting", "csv", tmp_path / "export", "test")
    import_campaign(elsewhere, tmp_path / "export", "csv", ImportFacts("tasting"), "test")
    assert values(build_human(elsewhere, "tasting")) == values(build_human(database, "tasting"))
