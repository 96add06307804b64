"""Taxonomies of errors: what a file may say, what raters may then mark, and what that costs."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from small_campaigns import add_rater, make_campaign, results_of, work_for

from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.making.settings import CampaignSettings, settings_of
from creamtea.human.protocols import find_protocol
from creamtea.human.protocols.spans import Mqm, Span
from creamtea.human.protocols.taxonomy import ESA, GOOGLE, Taxonomy, read_taxonomy
from creamtea.human.rating import RatingRefused
from creamtea.store.database import Database

OWN = """
severities:
  - {name: minor, weight: 1}
  - {name: critical, weight: 10}
categories:
  - {name: Meaning, kinds: [Lost, Changed]}
  - {name: Other}
exceptions:
  - {category: [Other], severity: minor, weight: 0.1}
  - {category: [Meaning, Lost], weight: 7.5}
at_most: 3
"""


@pytest.fixture
def own(tmp_path: Path) -> Taxonomy:
    path = tmp_path / "own.yaml"
    path.write_text(OWN)
    return read_taxonomy(path)


def bound(protocol: str, taxonomy: Taxonomy) -> Any:
    """As a campaign's settings have it after they were stored."""
    return find_protocol(protocol, {"taxonomy": taxonomy.model_dump(mode="json")})


def test_a_file_decides_what_an_error_costs_and_may_be(own: Taxonomy) -> None:
    mqm = bound("mqm", own)
    spans = [
        {"start": 0, "end": 1, "severity": "minor", "category": ["Other"]},
        {"start": 1, "end": 2, "severity": "critical", "category": ["Meaning", "Changed"]},
        {"severity": "minor", "category": ["Meaning", "Lost"]},
    ]
    scored = mqm.read_answer({"spans": spans}, "four")
    assert float(mqm.scale.value(scored.step)) == pytest.approx(-0.1 - 10 - 7.5)
    assert mqm.read_answer(scored.answer, "four") == scored
    for wrong, said in (
        ([*spans, spans[2]], "at most 3 errors"),
        ([{"severity": "major", "category": ["Other"]}], "an error is minor or critical, not major"),
        ([{"severity": "undecided", "category": ["Other"]}], "not undecided"),
        ([{"severity": "minor", "category": ["Meaning"]}], "Meaning/Lost, Meaning/Changed, Other, not Mean"),
        ([{"severity": "minor"}], "not nothing"),
    ):
        with pytest.raises(ValueError, match=said):
            mqm.read_answer({"spans": wrong}, "four")
        mqm.check_draft({"spans": wrong}, "four")
    assert mqm.page_data()["marking"]["at_most"] == 3
    assert find_protocol("mqm").read_answer({"spans": [{"severity": "major"}]}, ""), "made elsewhere"


def test_names_are_compared_without_case_blanks_and_marks(own: Taxonomy) -> None:
    """Google's files write one name in several ways ("subtle variations", says the README of Marot)."""
    mqm = bound("mqm", own)
    spans = [
        {"severity": "Minor", "category": ["meaning!", "LOST "]},
        {"severity": "minor", "category": ["oth-er"]},
    ]
    scored = mqm.read_answer({"spans": spans}, "")
    assert float(mqm.scale.value(scored.step)) == pytest.approx(-7.5 - 0.1)
    assert [span["category"] for span in scored.payload["spans"]] == [["meaning!", "LOST "], ["oth-er"]]


def test_a_rater_says_that_there_are_no_errors() -> None:
    for protocol, score in ((bound("esa", ESA), {"score": 100}), (bound("mqm", GOOGLE), {})):
        begun = {"spans": [], "begun": True, **score}
        protocol.check_draft(begun, "four")
        with pytest.raises(ValueError, match="say that there are no errors"):
            protocol.read_answer(begun, "four")
        assert protocol.read_answer({"spans": [], **score}, "four").payload == {"spans": [], **score}


def test_errors_overlap_in_mqm_alone() -> None:
    first, second = {"start": 0, "end": 3}, {"start": 3, "end": 5}
    omission = {"severity": "minor"}
    spans = [one | {"severity": "minor"} for one in (second, first)] + [omission, omission]
    esa = bound("esa", ESA)
    with pytest.raises(ValueError, match="two errors share character 3"):
        esa.read_answer({"score": 1, "spans": spans}, "six or")
    assert esa.read_answer({"score": 1, "spans": spans[1:]}, "six or")
    assert find_protocol("esa").read_answer({"score": 1, "spans": spans}, "six or"), "made elsewhere"
    named = [span | {"category": ["Other"]} for span in spans]
    assert bound("mqm", GOOGLE).read_answer({"spans": named}, "six or")


def test_googles_taxonomy_scores_as_their_files_are_scored() -> None:
    """By two codes: the taxonomy's weights, and the rule for ratings made elsewhere."""
    mqm, named = bound("mqm", GOOGLE), Mqm()
    for category, level in product(GOOGLE.categories, GOOGLE.severities):
        for path in category.paths:
            GOOGLE.check(level.name, path)
            span = Span(severity=level.name, category=path)
            neutral = level.name == "neutral" and path != ["Non-translation"]
            assert mqm.penalty(span) == (0 if neutral else named.penalty(span)), (path, level.name)


def test_settings_keep_a_taxonomy_and_a_campaign_has_one() -> None:
    systems = ["a", "b"]
    for protocol, usual in (("esa", ESA), ("cesa", ESA), ("mqm", GOOGLE), ("da", None)):
        complete = CampaignSettings().complete(find_protocol(protocol), systems, None)
        assert complete.taxonomy == usual
        assert settings_of(complete.model_dump(mode="json")) == complete
    with pytest.raises(InputError, match=r"protocol.taxonomy: da has no marked errors"):
        CampaignSettings(taxonomy=ESA).complete(find_protocol("da"), systems, None)
    with pytest.raises(InputError, match="the taxonomy of the campaign: severities"):
        find_protocol("esa", {"taxonomy": {"severities": []}})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("weight: 10", "weight: 0.25", r"own.yaml:4.*whole number of tenths"),
        ("weight: 10", "weight: 101", r"own.yaml:4"),
        ("name: critical", "name: awful", r"own.yaml:4.*severities\[1\].name"),
        ("name: critical", "name: minor", "the severity 'minor' twice"),
        ("Changed", "Lost", "the kind of Meaning 'Lost' twice"),
        ("name: Other", "name: Meaning", "the category 'Meaning' twice"),
        ("[Other]", "[Others]", "an exception for Others, an unknown category"),
        ("severity: minor, weight: 0.1", "severity: major, weight: 1", "an exception for major errors,"),
        ("at_most: 3", "most: 3", "own.yaml:11.*unknown key"),
        ("at_most: 3", "special_marks: [fault, Fault]", "the special mark 'fault' twice"),
        ("at_most: 3", "special_marks: [Missing]", r"\[missing\], which is there anyway"),
    ],
)
def test_a_wrong_file_is_named_with_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in OWN
    path = tmp_path / "own.yaml"
    path.write_text(OWN.replace(old, new))
    with pytest.raises(InputError, match=message):
        read_taxonomy(path)


FEW = Taxonomy.model_validate(
    {
        "severities": [{"name": "minor", "weight": 2.0}],
        "categories": [{"name": "Meaning"}],
        "special_marks": ["fault"],
        "at_most": 2,
    }
)
TEXT = "👍🏽 ein Haus"
HOUSE = {"start": 7, "end": 10, "severity": "minor"}  # code points: the thumb has two
NAMED = HOUSE | {"category": ["Meaning"]}
BEHIND = {"severity": "minor", "category": ["Meaning"], "special_mark": "fault"}


def test_the_campaigns_taxonomy_decides_what_is_shown_stored_and_scored(database: Database) -> None:
    items = [{"outputs": [TEXT], "systems": [0]}]
    make_campaign(database, items, protocol="mqm", taxonomy=FEW.model_dump(mode="json"))
    anna = add_rater(database)
    work = work_for(database, anna)
    shown = work.protocol.page_data()["marking"]
    assert (shown["severities"], shown["at_most"]) == (["minor"], 2)
    assert ([one["name"] for one in shown["categories"]], shown["special_marks"]) == (["Meaning"], ["fault"])
    for wrong, said in (
        ([HOUSE], "Meaning, not nothing"),
        ([NAMED | {"severity": "major"}], "minor, not major"),
        ([NAMED] * 3, "at most 2"),
        ([NAMED | {"end": 11}], "ends at character 11 of an output of 11"),
        ([NAMED | {"special_mark": "fault"}], "special mark 'fault', which has no place"),
        ([BEHIND | {"special_mark": "odd"}], "no special mark odd, only fault"),
    ):
        with pytest.raises(RatingRefused, match=said):
            assignment.submit(database, anna, work.assignment_id, [{"spans": wrong}])
    assignment.save_draft(database, anna, work.assignment_id, [{"spans": [HOUSE]}])
    assert work_for(database, anna).draft == [{"spans": [HOUSE]}]
    assignment.submit(database, anna, work.assignment_id, [{"spans": [NAMED, BEHIND]}])
    assert results_of(database).value.tolist() == [-4.0], "twice the taxonomy's 2 points"
    assert assignment.reopen(database, anna, work.assignment_id).draft == [{"spans": [NAMED, BEHIND]}]
