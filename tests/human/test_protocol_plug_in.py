"""A protocol of a plug-in, from the draft to the report and out of the database and back.

The package stands in tests/plugins/rating_protocol as pip would install it: a module, a script for the board
and a dist-info folder with an entry point. Nothing in creamtea names it.
"""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ready_campaigns import add_rater, draft_campaign, launched_campaign
from sqlalchemy import select
from table_rows import all_of

from creamtea.access import audit
from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.making import launching
from creamtea.human.making.preview import preview
from creamtea.human.making.settings import CampaignSettings
from creamtea.human.protocols import (
    OWN,
    PROTOCOLS,
    find_protocol,
    origin_of,
    protocol_names,
    protocol_title,
    usable_protocols,
)
from creamtea.human.rating import RatingRefused, raters
from creamtea.report.human.build import build_human
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Campaign, Rating

PLUG_IN = Path(__file__).parents[1] / "plugins" / "rating_protocol"
NAME = "error-spans"
OPTIONS: dict[str, Any] = {"systems": ["plain", "beam"], "protocol": NAME}
MAJOR = {"spans": [[0, 2, "major"], [1, 2, "minor"]], "fluency": 80}  # 80 − 5 − 1 points
FLUENT = {"spans": [], "fluency": 100}


@pytest.fixture
def plug_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(PLUG_IN))
    importlib.invalidate_caches()
    yield
    sys.modules.pop("error_spans", None)


def rate_everything(database: Database, rater_id: int, answers: dict[bool, Any]) -> None:
    """By whether an output's text has four characters or more."""
    while (work := assignment.next_item(database, rater_id)) is not None:
        given = [answers[len(output) >= 4] for output in work.outputs]
        assignment.submit(database, rater_id, work.assignment_id, given)


@pytest.fixture
def rated(study_database: Database, plug_in: None) -> Database:
    launched_campaign(
        study_database, "spans", settings=CampaignSettings(bad_references=0, repeats=1), **OPTIONS
    )
    for pseudonym in ("anna", "ben"):
        rater_id = add_rater(study_database, "spans", pseudonym)
        raters.consent(study_database, rater_id)
        rate_everything(study_database, rater_id, {True: MAJOR, False: FLUENT})
    return study_database


def test_a_protocol_is_there_with_its_plug_in_and_gone_without(plug_in: None) -> None:
    assert protocol_names()[-1] == NAME
    assert find_protocol(NAME).title == "error spans with fluency"
    origin = origin_of(NAME)
    assert (origin.distribution, origin.version) == ("creamtea-error-spans", "1.2")


def test_without_the_plug_in_the_way_to_get_it_is_said(study_database: Database) -> None:
    assert NAME not in protocol_names()
    with pytest.raises(InputError, match=r"protocol 'error-spans': it is one of .*creamtea\.protocols"):
        draft_campaign(study_database, "spans", **OPTIONS)


def test_a_draft_a_preview_and_a_registered_origin(study_database: Database, plug_in: None) -> None:
    made = draft_campaign(study_database, "spans", **OPTIONS)
    assert made.protocol == NAME
    assert preview(study_database, "spans").delta == 2.0
    registered = launching.launch(study_database, "spans")
    assert registered["protocol_from"] == {"distribution": "creamtea-error-spans", "version": "1.2"}
    with study_database.session() as session:
        campaign = find_campaign(session, "spans")
        assert launching.changes(session, campaign) == []


def test_answers_are_stored_with_their_score_and_can_be_revised(rated: Database) -> None:
    with rated.session() as session:
        rows = session.execute(select(Rating.step, Rating.payload)).all()
    assert dict(rows) == {740: MAJOR, 1000: FLUENT}
    anna = add_rater(rated, "spans", "anna")
    first = assignment.earlier(rated, anna)[0]
    again = assignment.reopen(rated, anna, first.assignment_id)
    assert again.draft in ([MAJOR], [FLUENT])
    assignment.save_draft(rated, anna, first.assignment_id, [{"spans": []}], revision=2)
    assert assignment.reopen(rated, anna, first.assignment_id).draft == [{"spans": []}]
    saved = assignment.submit(rated, anna, first.assignment_id, [{"spans": [], "fluency": 30}], revision=2)
    assert set(saved.steps.values()) == {300}


def test_what_the_protocol_does_not_have_is_refused(study_database: Database, plug_in: None) -> None:
    launched_campaign(study_database, "spans", **OPTIONS)
    anna = add_rater(study_database, "spans", "anna")
    raters.consent(study_database, anna)
    work = assignment.next_item(study_database, anna)
    assert work is not None
    wrong: list[tuple[Any, str]] = [
        (None, "no score yet"),
        (50, "spans and fluency"),
        ({"spans": []}, "spans and fluency"),
        ({"spans": [], "fluency": 101}, "from 0 to 100"),
        ({"spans": [[0, 10**6, "major"]], "fluency": 1}, "characters of the output"),
        ({"spans": [[0, 1, "deadly"]], "fluency": 1}, "minor or major"),
        ({"spans": [[0, 1, "x" * 200_000]], "fluency": 1}, "at most 100,000"),
        ({"spans": [[0, 1, "\0"]], "fluency": 1}, "NUL"),
        ({"spans": [], "fluency": float("nan")}, "not finite"),
    ]
    for answer, reason in wrong:
        with pytest.raises(RatingRefused, match=reason):
            assignment.submit(study_database, anna, work.assignment_id, [answer])
    assert all_of(study_database, select(Rating)) == []


def test_a_rater_is_told_when_the_plug_in_is_missing(
    study_database: Database, plug_in: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched_campaign(study_database, "spans", **OPTIONS)
    anna = add_rater(study_database, "spans", "anna")
    raters.consent(study_database, anna)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(PLUG_IN)])
    importlib.invalidate_caches()
    for page in (
        lambda: assignment.next_item(study_database, anna),
        lambda: raters.welcome(study_database, anna),
    ):
        with pytest.raises(RatingRefused, match="tell the organiser"):
            page()


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
    export_campaign(rated, "spans", kind, tmp_path / "out", audit.COMMAND_LINE)
    import_campaign(rated, tmp_path / "out", kind, ImportFacts("copy"), audit.COMMAND_LINE)
    facts = ImportFacts("plain", None, "test", "en", "de")
    import_campaign(rated, tmp_path / "out" / f"ratings.{kind}", kind, facts, audit.COMMAND_LINE)

    def answers(name: str) -> list[tuple[int, str]]:
        with rated.session() as session:
            rows = session.execute(
                select(Rating.step, Rating.payload)
                .join(Rating.__table__.metadata.tables["assignment"])
                .join(Rating.__table__.metadata.tables["item"])
                .join(Campaign)
                .where(Campaign.name == name)
            ).all()
        return sorted((step, json.dumps(payload)) for step, payload in rows)

    assert answers("copy") == answers("plain") == answers("spans") != []


def test_a_payload_that_was_changed_is_refused(rated: Database, tmp_path: Path) -> None:
    export_campaign(rated, "spans", "jsonl", tmp_path / "out", audit.COMMAND_LINE)
    path = tmp_path / "out" / "ratings.jsonl"
    path.write_text(path.read_text().replace('"fluency": 80', '"fluency": 81'))
    facts = ImportFacts("plain", None, "test", "en", "de")
    with pytest.raises(InputError, match=r"column step: found 740; allowed: 750"):
        import_campaign(rated, path, "jsonl", facts, audit.COMMAND_LINE)


def test_scores_for_mt_metrics_eval_have_the_protocols_name(rated: Database, tmp_path: Path) -> None:
    export_campaign(rated, "spans", "mt-metrics-eval", tmp_path / "out", audit.COMMAND_LINE)
    assert (tmp_path / "out" / "human-scores" / f"en-de.{NAME}.sys.score").is_file()


# ---------------------------------------------------------------- plug-ins that do not work


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installs a distribution `other`, whose plug-in is at this address."""
    return partial(add_distribution, tmp_path, monkeypatch)


def add_distribution(folder: Path, monkeypatch: pytest.MonkeyPatch, value: str, name: str = NAME) -> None:
    info = folder / "other-3.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 3\n")
    (info / "entry_points.txt").write_text(f"[creamtea.protocols]\n{name} = {value}\n")
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("nowhere_at_all:Spans", r"of other 3 cannot be used \(ModuleNotFoundError"),
        ("creamtea.human.protocols.scores:Da", "is not a Protocol whose name is 'error-spans'"),
        ("creamtea.human.protocols.base:Scale", "cannot be used"),
    ],
)
def test_a_broken_plug_in_is_named(other: Callable[..., None], value: str, reason: str) -> None:
    other(value)
    with pytest.raises(InputError, match=reason):
        find_protocol(NAME)
    assert [protocol.name for protocol in usable_protocols()] == list(OWN)  # the others are not touched
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
    assert [protocol.name for protocol in usable_protocols()] == list(OWN)
    with pytest.raises(InputError, match=r"lost\.js"):
        find_protocol(NAME)
    script.touch()
    assert find_protocol(NAME).scripts == (script,)


def test_a_plug_in_cannot_replace_a_protocol_of_creamtea(other: Callable[..., None]) -> None:
    other("anything:At", name="da")
    assert protocol_names().count("da") == 1
    assert origin_of("da").distribution == "creamtea"
    assert "creamtea itself has this kind" in PROTOCOLS.added().broken[0].reason


def test_two_plug_ins_with_one_name_are_both_named(plug_in: None, other: Callable[..., None]) -> None:
    other("creamtea.human.protocols.scores:Da")
    with pytest.raises(InputError, match=r"comes from .*: uninstall all but one") as refused:
        find_protocol(NAME)
    assert "other" in str(refused.value)
    assert "creamtea-error-spans" in str(refused.value)
