"""Campaigns whose errors cost something else than usual: their scores come back, or a message says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from creamtea.errors import InputError
from creamtea.human.exchange.elsewhere import ImportFacts
from creamtea.human.exchange.exporting import export_campaign, import_campaign
from creamtea.human.exchange.losses import APPRAISE, FORMATS, MQM, MT_METRICS_EVAL, PEARMUT, NotKept
from creamtea.human.exchange.rows import rows_of
from creamtea.human.exchange.storing import collect
from creamtea.human.protocols.taxonomy import GOOGLE, Taxonomy
from creamtea.store.database import Database

OWN = Taxonomy.model_validate(
    {
        "severities": [{"name": "minor", "weight": 2}, {"name": "major", "weight": 7}],
        "categories": [{"name": "Accuracy", "kinds": ["Omission", "Addition"]}, {"name": "Other"}],
    }
)
ERRORS: list[dict[str, Any]] = [
    {"start": 0, "end": 1, "severity": "minor", "category": ["Accuracy", "Addition"]},
    {"start": 3, "end": 4, "severity": "major", "category": ["Other"]},
]
VALUES = {("A", 0): "-9.0", ("A", 1): "-2.0", ("B", 0): "0.0", ("B", 1): "-7.0"}
LOSS = NotKept(3, "scores by the campaign's own weights of errors")


@pytest.fixture
def own(database: Database, tmp_path: Path) -> Database:
    """With the campaign `own`."""
    path = tmp_path / "made.jsonl"
    errors = {("A", 0): ERRORS, ("A", 1): ERRORS[:1], ("B", 0): [], ("B", 1): ERRORS[1:]}
    rows = [
        {
            **{"rater": "ann", "segment": segment, "system": system, "document": "talk"},
            **{"source": f"Satz {segment}", "output": f"sentence {segment}", "payload": {"spans": spans}},
        }
        for (system, segment), spans in errors.items()
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    import_campaign(database, path, "jsonl", ImportFacts("own", "mqm", taxonomy=OWN), "test")
    assert values(database, "own") == VALUES
    return database


def values(database: Database, campaign: str) -> dict[tuple[str, int], str | None]:
    return {(row.system, row.segment): row.value for row in rows_of(collect(database, campaign))}


FILES = {APPRAISE: "scores.csv", MQM: "mqm.tsv", MT_METRICS_EVAL: ".", PEARMUT: "."}


@pytest.mark.parametrize("kind", FORMATS)
def test_other_formats_name_the_scores_and_a_taxonomy_brings_them_back(
    own: Database, tmp_path: Path, kind: str
) -> None:
    done = export_campaign(own, "own", kind, tmp_path / "out", "test")
    assert LOSS in done.not_kept
    path = tmp_path / "out" / FILES[kind]
    import_campaign(own, path, kind, ImportFacts("usual", "mqm"), "test")
    assert values(own, "usual") == {**{("A", 0): "-6.0", ("A", 1): "-1.0", ("B", 0): "0.0", ("B", 1): "-5.0"}}
    again = import_campaign(own, path, kind, ImportFacts("again", "mqm", taxonomy=OWN), "test")
    assert values(own, "again") == VALUES
    assert not [part for part in again.not_kept if "errors cost" in part.what or "mqm_" in part.what]
    assert Taxonomy.model_validate(collect(own, "again").settings["taxonomy"]) == OWN


def test_scores_by_the_usual_weights_are_kept(own: Database, tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl"
    path.write_text(path.read_text().replace('"Other"', '"Fluency", "Punctuation"'))
    import_campaign(own, path, "jsonl", ImportFacts("google", "mqm", taxonomy=GOOGLE), "test")
    done = export_campaign(own, "google", "mqm", tmp_path / "out", "test")
    assert LOSS.what not in {part.what for part in done.not_kept}


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_the_file_of_ratings_alone_needs_the_taxonomy(own: Database, tmp_path: Path, kind: str) -> None:
    export_campaign(own, "own", kind, tmp_path / "out", "test")
    path = tmp_path / "out" / f"ratings.{kind}"
    with pytest.raises(
        InputError, match="need the campaign's taxonomy: import the folder, or give --taxonomy"
    ):
        import_campaign(own, path, kind, ImportFacts("alone"), "test")
    import_campaign(own, path, kind, ImportFacts("alone", taxonomy=OWN), "test")
    assert values(own, "alone") == VALUES
    import_campaign(own, tmp_path / "out", kind, ImportFacts("folder"), "test")
    assert values(own, "folder") == VALUES
    with pytest.raises(InputError, match=r"--taxonomy: the folder's campaign\.json"):
        import_campaign(own, tmp_path / "out", kind, ImportFacts("told", taxonomy=OWN), "test")


def test_a_taxonomy_where_no_errors_are_marked(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("rater,segment,system,value\nann,1,A,50\n")
    with pytest.raises(InputError, match="--taxonomy is for marked errors, and da has none"):
        import_campaign(database, path, "csv", ImportFacts("old", "da", taxonomy=OWN), "test")


def test_errors_that_the_taxonomy_does_not_have(own: Database, tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl"
    path.write_text(path.read_text().replace("Other", "Style"))
    with pytest.raises(InputError, match="line 1, column payload: the category of an error is one of"):
        import_campaign(own, path, "jsonl", ImportFacts("new", "mqm", taxonomy=OWN), "test")
