"""A protocol of a plug-in, from the draft to the report and out of the database and back.

The package stands in tests/plugins/rating_protocol as pip would install it: a module, a script for the board
and a dist-info folder with an entry point. Nothing in creamtea names it.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from lab_package import RATING_PROTOCOL
from ready_campaigns import draft_campaign, launched_campaign
from small_campaigns import add_rater, changes_of, rate_all, work_for
from sqlalchemy import select
from table_rows import all_of

from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.formats.rating_rows import rows_of
from creamtea.human.formats.storing import collect
from creamtea.human.making import launching
from creamtea.human.making.preview import preview
from creamtea.human.making.settings import CampaignSettings
from creamtea.human.protocols import (
    BUILT_IN,
    PROTOCOLS,
    find_protocol,
    protocol_names,
    protocol_title,
    usable_protocols,
)
from creamtea.human.rating import RatingRefused, raters
from creamtea.report.human.build import build_human
from creamtea.store.database import Database
from creamtea.store.tables import Rating

NAME = "error-spans"
OPTIONS: dict[str, Any] = {"systems": ["plain", "beam"], "protocol": NAME}
MAJOR = {"spans": [[0, 2, "major"], [1, 2, "minor"]], "fluency": 80}  # 80 − 5 − 1 points
FLUENT = {"spans": [], "fluency": 100}


@pytest.fixture
def rated(study_database: Database, plug_in: None) -> Database:
    """Two raters have answered everything, by whether an output has four characters or more."""
    settings = CampaignSettings(bad_references=0, repeats=1)
    launched_campaign(study_database, "spans", settings=settings, **OPTIONS)
    for pseudonym in ("anna", "ben"):
        rater = add_rater(study_database, pseudonym, "spans")
        rate_all(study_database, rater, lambda work: [MAJOR if len(o) >= 4 else FLUENT for o in work.outputs])
    return study_database


def test_a_protocol_is_there_with_its_plug_in_alone_and_its_origin_is_registered(
    study_database: Database, request: pytest.FixtureRequest
) -> None:
    assert NAME not in protocol_names()
    with pytest.raises(InputError, match=r"protocol 'error-spans': it is one of .*creamtea\.protocols"):
        draft_campaign(study_database, "spans", **OPTIONS)
    request.getfixturevalue("plug_in")
    assert protocol_names()[-1] == NAME
    assert find_protocol(NAME).title == "error spans with fluency"
    assert draft_campaign(study_database, "spans", **OPTIONS).protocol == NAME
    assert preview(study_database, "spans").delta == 2.0
    registered = launching.launch(study_database, "spans")
    assert registered["protocol_from"] == {"distribution": "creamtea-error-spans", "version": "1.2"}
    assert changes_of(study_database, "spans") == []


def test_answers_are_stored_with_their_score_and_can_be_revised(rated: Database) -> None:
    with rated.session() as session:
        rows = session.execute(select(Rating.step, Rating.payload)).all()
    assert dict(rows) == {740: MAJOR, 1000: FLUENT}
    anna = 1
    first = assignment.earlier(rated, anna)[0]
    again = assignment.reopen(rated, anna, first.assignment_id)
    assert again.draft in ([MAJOR], [FLUENT])
    assignment.save_draft(rated, anna, first.assignment_id, [{"spans": []}], revision=2)
    assert assignment.reopen(rated, anna, first.assignment_id).draft == [{"spans": []}]
    saved = assignment.submit(rated, anna, first.assignment_id, [{"spans": [], "fluency": 30}], revision=2)
    assert set(saved.steps.values()) == {300}


def test_what_the_protocol_does_not_have_is_refused(study_database: Database, plug_in: None) -> None:
    launched_campaign(study_database, "spans", **OPTIONS)
    anna = add_rater(study_database, campaign="spans")
    work = work_for(study_database, anna)
    for answer, reason in (
        (None, "no score yet"),
        (50, "spans and fluency"),
        ({"spans": [[0, 1, "x" * 200_000]], "fluency": 1}, "at most 100,000"),
        ({"spans": [[0, 1, "\0"]], "fluency": 1}, "NUL"),
        ({"spans": [], "fluency": float("nan")}, "not finite"),
    ):
        with pytest.raises(RatingRefused, match=reason):
            assignment.submit(study_database, anna, work.assignment_id, [answer])
    assert all_of(study_database, select(Rating)) == []


def test_a_rater_is_told_when_the_plug_in_is_missing(
    study_database: Database, plug_in: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched_campaign(study_database, "spans", **OPTIONS)
    anna = add_rater(study_database, campaign="spans")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(RATING_PROTOCOL)])
    importlib.invalidate_caches()
    for page in (assignment.next_item, raters.welcome):
        with pytest.raises(RatingRefused, match="tell the organiser"):
            page(study_database, anna)


def test_the_report_counts_scores_derived_from_the_payloads(rated: Database) -> None:
    report = build_human(rated, "spans")
    table = report.table("means")
    # five segments, of which one is short in plain's outputs and two are in beam's
    assert [row.cells["ratings"].value for row in table.rows] == [5, 5]
    assert [row.cells["mean"].value for row in table.rows] == pytest.approx(
        [(3 * 74 + 200) / 5, (4 * 74 + 100) / 5]  # the better one first
    )
    about = report.section("human/spans").facts[0]
    assert about == "error spans with fluency, 0.0 to 100.0 in steps of 0.1"


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_out_of_a_database_and_back(rated: Database, tmp_path: Path, kind: str) -> None:
    export_campaign(rated, "spans", kind, tmp_path / "out", "test")
    import_campaign(rated, tmp_path / "out", kind, ImportFacts("copy"), "test")
    facts = ImportFacts("plain", None, "test", "en", "de")
    import_campaign(rated, tmp_path / "out" / f"ratings.{kind}", kind, facts, "test")

    def answers(name: str) -> list[tuple[int | None, str]]:
        rows = rows_of(collect(rated, name))
        return sorted((row.step, json.dumps(row.payload, sort_keys=True)) for row in rows)

    assert answers("copy") == answers("plain") == answers("spans") != []


def test_files_of_others_have_the_protocols_name_and_a_changed_payload_is_refused(
    rated: Database, tmp_path: Path
) -> None:
    export_campaign(rated, "spans", "mt-metrics-eval", tmp_path / "folder", "test")
    assert (tmp_path / "folder" / "human-scores" / f"en-de.{NAME}.sys.score").is_file()
    export_campaign(rated, "spans", "jsonl", tmp_path / "out", "test")
    path = tmp_path / "out" / "ratings.jsonl"
    path.write_text(path.read_text().replace('"fluency": 80', '"fluency": 81'))
    facts = ImportFacts("plain", None, "test", "en", "de")
    with pytest.raises(InputError, match=r"column step: found 740; allowed: 750"):
        import_campaign(rated, path, "jsonl", facts, "test")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("nowhere_at_all:Spans", r"of other 3 cannot be used \(ModuleNotFoundError"),
        ("creamtea.human.protocols.scores:Da", "is not a Protocol whose name is 'error-spans'"),
        ("creamtea.human.protocols.base:Scale", "cannot be used"),
    ],
)
def test_a_broken_plug_in_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, reason: str
) -> None:
    """Two of one name, and one of creamtea's names: tests/plugins."""
    info = tmp_path / "other-3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 3\n")
    (info / "entry_points.txt").write_text(f"[creamtea.protocols]\n{NAME} = {value}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    with pytest.raises(InputError, match=reason):
        find_protocol(NAME)
    assert [protocol.name for protocol in usable_protocols()] == list(BUILT_IN)  # the others are not touched
    assert protocol_title(NAME) == NAME
    (broken,) = PROTOCOLS.added().broken
    assert (broken.kind, broken.plugin.distribution) == (NAME, "other")


def test_a_protocol_whose_script_was_not_packaged_is_broken(
    tmp_path: Path, plug_in: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "lost.js"
    monkeypatch.setattr(type(find_protocol(NAME)), "scripts", (script,))
    (broken,) = PROTOCOLS.added().broken
    assert (broken.kind, str(script) in broken.reason) == (NAME, True)
    assert [protocol.name for protocol in usable_protocols()] == list(BUILT_IN)
    with pytest.raises(InputError, match=r"lost\.js"):
        find_protocol(NAME)
    script.touch()
    assert find_protocol(NAME).scripts == (script,)
