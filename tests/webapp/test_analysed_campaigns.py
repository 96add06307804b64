"""Campaigns of a study whose analyses decode by themselves: those steps belong to no test set."""

from pathlib import Path

import pytest
from filled_study import ANALYSED, HOSTILE, fill_study, lines
from ready_campaigns import launched_campaign

from creamtea.errors import InputError
from creamtea.human.formats.exchange import export_campaign
from creamtea.human.making import campaigns
from creamtea.store.database import Database
from creamtea.store.queries import study_nodes

SYSTEMS = ["tapir-greedy", "dugong-greedy"]


def test_it_is_created_and_exported_with_its_test_set(database: Database, tmp_path: Path) -> None:
    study = fill_study(database, HOSTILE + lines(36), ANALYSED)
    with database.session() as session:
        labels = [node.labels for node in study_nodes(session, study, "decode")]
    assert any("test_set" not in one for one in labels)
    with pytest.raises(InputError, match=r"has no test set 'okapi'; it has narwhal$"):
        launched_campaign(database, "serow", study="quokka", test_set="okapi", systems=SYSTEMS)
    assert campaigns.summaries(database) == []
    launched_campaign(database, "serow", study="quokka", test_set="narwhal", systems=SYSTEMS, limit=6)
    folder = tmp_path / "exported"
    export_campaign(database, "serow", "mt-metrics-eval", folder, "test")
    assert any(path.is_file() for path in folder.rglob("*bleu*"))
