"""Protocols: complete, with all that the rest asks; scales, post-edits, errors, taxonomies, more scales."""

import dataclasses
import json
import re
import time
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rated_campaigns import drawn_steps, rated_campaign, side_by_side
from small_campaigns import add_rater, make_campaign, results_of, work_for
from sqlalchemy import select

from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.formats.base import FOREIGN, ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.formats.losses import not_held
from creamtea.human.formats.storing import collect
from creamtea.human.making.settings import CampaignSettings, settings_of
from creamtea.human.protocols import BUILT_IN, Protocol, ScoredAnswer, find_protocol
from creamtea.human.protocols.base import MAX_SYSTEMS, MIN_SYSTEMS, SELECTIONS
from creamtea.human.protocols.spans import Esa, Mqm, Span, spans_of
from creamtea.human.protocols.taxonomy import ESA, GOOGLE, Taxonomy, read_taxonomy
from creamtea.human.rating import RatingRefused
from creamtea.report.human.build import build_human
from creamtea.store.database import Database
from creamtea.store.tables import Rating
from creamtea.words import split_words
from creamtea_webapp.board import HERE, SCRIPTS

PROTOCOLS = list(BUILT_IN.values())
LISTED = [protocol for protocol in PROTOCOLS if protocol.scale.steps < 10**6]  # not "scores", of any number
FOUR = ["same", "other", "same", "third"]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=list(BUILT_IN))
def test_a_protocol_leaves_nothing_out(protocol: Protocol) -> None:
    for name in Protocol.__annotations__:
        value = getattr(protocol, name)
        assert value != "", name
    assert re.fullmatch(r"[a-z][a-z0-9-]*", protocol.name)
    assert set(protocol.selections) <= set(SELECTIONS)
    assert protocol.usual_selection in protocol.selections
    assert MIN_SYSTEMS <= protocol.min_systems <= protocol.max_systems <= MAX_SYSTEMS
    assert 1 <= protocol.min_outputs <= protocol.max_outputs
    assert protocol.usual_deviation() > protocol.usual_delta > 0
    assert all(0 <= step < protocol.scale.steps for step, _ in protocol.labelled_points)


@pytest.mark.parametrize("protocol", LISTED, ids=[protocol.name for protocol in LISTED])
def test_page_data_is_json_and_its_widget_is_registered(protocol: Protocol) -> None:
    data = protocol.page_data()
    assert json.loads(json.dumps(data)) == data
    scripts = "".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS)
    assert f"WIDGETS.{data['widget']} = class" in scripts
    if data["scale"] is None:
        assert protocol.marks_errors, "of what a rater sets no value, the score must follow from something"
    else:
        assert len(data["scale"]["labels"]) == protocol.scale.steps


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=list(BUILT_IN))
def test_what_is_shown_together_is_within_the_protocols_numbers(protocol: Protocol) -> None:
    groups = protocol.shown_together(FOUR, "all", 0)
    for group in groups:
        texts = {FOUR[system] for system in group}
        assert 1 <= len(texts) <= protocol.max_outputs
    assert {system for group in groups for system in group} == {0, 1, 2, 3}
    assert protocol.minutes(8) >= protocol.minutes(2) > 0


def test_a_preference_accepts_what_goes_together() -> None:
    """A range of one output fixes the other's: by enumeration of all pairs of answers."""
    ranges = [(low, high) for low, high in product(range(3), repeat=2) if low <= high]
    for first, second in product(ranges, repeat=2):
        pairs = {(a, 2 - a) for a in range(first[0], first[1] + 1)}
        consistent = {b for _, b in pairs} == set(range(second[0], second[1] + 1))
        if consistent:
            BUILT_IN["preference"].check_accepted([first, second])
        else:
            with pytest.raises(ValueError, match="decides"):
                BUILT_IN["preference"].check_accepted([first, second])


def test_answers_are_said_in_words() -> None:
    error = {"start": 0, "end": 2, "severity": "minor"}
    edited = "unchanged · corrected"
    answers = {
        "contrastive-da": ([ScoredAnswer(12), ScoredAnswer(25)], "3.4 · 6.0"),
        "da": ([ScoredAnswer(72)], "72"),
        "preference": ([ScoredAnswer(2), ScoredAnswer(0)], "A is better"),
        "esa": ([ScoredAnswer(72, {"score": 72, "spans": [error]})], "72, 1 error"),
        "mqm": ([ScoredAnswer(9990, {"spans": [error, error]})], "2 errors"),
        "post-edit": ([ScoredAnswer(1000, {"text": "a"}), ScoredAnswer(0, {"text": ""})], edited),
    }
    assert {name: BUILT_IN[name].in_words(given) for name, (given, _) in answers.items()} == {
        name: words for name, (_, words) in answers.items()
    }


# ---------------------------------------------------------------- scales

WHOLE = range(1, 6)
CONTRASTIVE = find_protocol("contrastive-da").scale
LABELS = [f"{whole}.{tenth}" for whole in WHOLE for tenth in (0, 2, 4, 6, 8)] + ["6.0"]


def test_the_26_labels_are_exact() -> None:
    assert [CONTRASTIVE.label(step) for step in range(CONTRASTIVE.steps)] == LABELS
    assert [CONTRASTIVE.value(step) for step in range(CONTRASTIVE.steps)] == list(map(Fraction, LABELS))
    assert CONTRASTIVE.highest == 6


@pytest.mark.parametrize("protocol", LISTED, ids=[protocol.name for protocol in LISTED])
def test_every_step_survives_its_label(protocol: Protocol) -> None:
    scale = protocol.scale
    assert [scale.step_of(scale.label(step)) for step in range(scale.steps)] == list(range(scale.steps))


def test_what_is_no_step_or_value_is_refused() -> None:
    for wrong in (-1, 26, 3.0, True, "3", None):
        with pytest.raises(ValueError, match="0 to 25"):
            CONTRASTIVE.check(wrong)
    for text in ("0.8", "6.2", "3.3", "3,4", "", "nan", "1/0", "1e999999999"):
        with pytest.raises(ValueError):
            CONTRASTIVE.step_of(text)


# ---------------------------------------------------------------- post-edits

POST_EDIT = find_protocol("post-edit")
WORDS = st.lists(st.sampled_from("abcde"), max_size=12)


def least_edits(before: list[str], after: list[str]) -> int:
    """By the table of Levenshtein (1966), cell by cell."""
    row = list(range(len(after) + 1))
    for number, old in enumerate(before, start=1):
        diagonal, row[0] = row[0], number
        for place, new in enumerate(after, start=1):
            diagonal, row[place] = (
                row[place],
                min(row[place] + 1, row[place - 1] + 1, diagonal + (old != new)),
            )
    return row[-1]


@given(WORDS, WORDS.filter(bool))
def test_the_score_counts_the_fewest_edits(before: list[str], after: list[str]) -> None:
    scored = POST_EDIT.read_answer({"text": " ".join(after)}, " ".join(before))
    assert scored.step == 1000 - min(1000, round(1000 * least_edits(before, after) / len(after)))


def test_a_long_text_without_blanks_is_scored_at_once() -> None:
    before, after = ("".join(chr(0x4E00 + factor * at % 500) for at in range(10_000)) for factor in (7, 11))
    began = time.process_time()
    POST_EDIT.read_answer({"text": after}, before)
    assert time.process_time() - began < 10  # other raters wait; cell by cell it took half a minute


@pytest.mark.parametrize(
    ("output", "corrected", "points"),
    [
        ("Er gab auf.", "Er gab auf.", "100.0"),
        ("Er gab es auf.", "Er gab auf.", "66.7"),  # 1 edit, 3 words
        ("Er", "Sie gab auf.", "0.0"),
        ("a b c d e f", "x", "0.0"),  # 6 edits, 1 word
        ("", "Er gab auf.", "0.0"),
        ("", "", "100.0"),
        ("彼は行った", "彼は来た", "50.0"),  # characters: 2 edits, 4 of them
        ("er gab auf", "Er gab auf", "66.7"),
    ],
)
def test_the_score_is_what_could_stay(output: str, corrected: str, points: str) -> None:
    scored = POST_EDIT.read_answer({"text": corrected}, output)
    assert POST_EDIT.scale.label(scored.step) == points
    assert scored.answer == {"text": corrected}


def test_words_of_scripts_without_spaces_are_characters() -> None:
    assert split_words("猫 cat犬") == ["猫", "cat", "犬"]
    assert split_words("ที่นี่ tea ខ្ញុំ") == ["ที่", "นี่", "tea", "ខ្ញុំ"]  # with their marks


# ---------------------------------------------------------------- marked errors

ESA_PROTOCOL, MQM = Esa(), Mqm()
MINOR = {"start": 0, "end": 3, "severity": "minor"}


def marked(**span: Any) -> dict[str, Any]:
    return {"score": 50, "spans": [span]}


def test_an_answer_is_a_score_and_its_errors() -> None:
    answer = {"score": 67, "spans": [{**MINOR, "category": []}]}
    scored = ESA_PROTOCOL.read_answer(answer, "four")
    assert scored == ScoredAnswer(67, {"score": 67, "spans": [MINOR]})
    assert ESA_PROTOCOL.read_answer(scored.answer, "four") == scored, "in one way of writing"
    assert [span.severity for span in spans_of(scored.payload)] == ["minor"]
    assert spans_of(None) == []


@pytest.mark.parametrize(
    ("severity", "category", "points"),
    [
        ("major", ["Accuracy", "Mistranslation"], 5.0),
        ("critical", [], 5.0),
        ("minor", ["Style/Awkward"], 1.0),
        ("minor", ["Fluency/Punctuation"], 0.1),
        ("major", ["Fluency/Punctuation"], 5.0),
        ("major", ["Linguistic conventions", "Punctuation"], 0.1),
        ("major", ["Non-translation!"], 25.0),
        ("major", ["Non_translation!"], 25.0),
        ("Major", ["non translation"], 25.0),
        ("MINOR ", ["fluency", "PUNCTUATION."], 0.1),
        ("major", ["linguistic_conventions", "punctuation"], 0.1),
        ("minor", ["Accuracy", "Creative Reinterpretation"], 0.0),
        ("major", ["source issue"], 0.0),
        ("major", ["Source error", "-"], 5.0),
        ("neutral", ["Accuracy"], 0.0),
        ("undecided", [], 0.0),
    ],
)
def test_what_an_error_costs(severity: Any, category: list[str], points: float) -> None:
    assert MQM.penalty(Span(severity=severity, category=category)) == pytest.approx(points)


@given(st.lists(st.sampled_from(["neutral", "minor", "major"]), max_size=30))
def test_the_score_of_mqm_is_what_the_errors_cost(severities: list[str]) -> None:
    scored = MQM.read_answer({"spans": [{"severity": severity} for severity in severities]}, "")
    wanted = -severities.count("minor") - 5 * severities.count("major")
    assert float(MQM.scale.value(scored.step)) == wanted
    with pytest.raises(ValueError, match="follows from the errors"):
        MQM.read_answer({"score": 3, "spans": []}, "")


# ---------------------------------------------------------------- taxonomies of errors


OWN_FILE = """
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
    path.write_text(OWN_FILE)
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
        ("at_most: 3", "special_marks: [Missing]", r"\[missing\], which every taxonomy has"),
    ],
)
def test_a_wrong_file_is_named_with_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in OWN_FILE
    path = tmp_path / "own.yaml"
    path.write_text(OWN_FILE.replace(old, new))
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


# ---------------------------------------------------------------- further scales beside the score


SCALES = ["Fluency", "Style"]
DA = find_protocol("da", {"scales": SCALES})


def test_an_answer_has_a_value_on_every_scale() -> None:
    answer = {"scales": {"Style": 60, "Fluency": 80}, "score": 75}
    (scored,) = DA.read([answer], ["text"])
    assert (scored.step, scored.payload, scored.answer) == (75, answer, answer)
    assert DA.in_words([scored]) == "75 (Fluency 80, Style 60)"
    assert DA.page_data()["scales"] == SCALES
    complete = CampaignSettings(scales=SCALES).complete(find_protocol("da"), ["a", "b"], None)
    assert complete.minutes_per_item == pytest.approx(find_protocol("da").minutes(2) + 0.2)


ON_ALL = {"Fluency": 80, "Style": 60}
EDIT, OF_SCALES, OF_ERRORS = (
    "post-edit is an object",
    "an object with score and scales",
    "an object with spans",
)


@pytest.mark.parametrize(
    ("protocol", "answer", "said", "draft"),
    [
        *((POST_EDIT, wrong, EDIT, False) for wrong in (None, 3, "text", {}, {"text": None})),
        (POST_EDIT, {"text": "a", "more": 1}, EDIT, False),
        (POST_EDIT, {"text": "a" * 10_001}, "10,001 characters; allowed: 10,000", False),
        (POST_EDIT, {"text": " "}, "is empty", True),
        (ESA_PROTOCOL, 50, OF_ERRORS, False),
        (ESA_PROTOCOL, {"score": 50}, "spans", False),
        (ESA_PROTOCOL, {"spans": []}, "a score from 0 to 100", True),
        (ESA_PROTOCOL, {"score": 101, "spans": []}, "at most 100", False),
        (ESA_PROTOCOL, marked(severity="awful"), "one of undecided, neutral, minor, major", False),
        (ESA_PROTOCOL, marked(**MINOR | {"end": 4}), "character 4 of an output of 4", False),
        (ESA_PROTOCOL, marked(**MINOR | {"start": 4}), "ends before it begins", False),
        (ESA_PROTOCOL, marked(start=1, severity="minor"), "only one of start and end", False),
        (ESA_PROTOCOL, marked(**MINOR, colour="red"), "unknown key", False),
        (DA, 75, OF_SCALES, False),
        (DA, {"score": 75, "scales": ON_ALL, "spans": []}, OF_SCALES, False),
        (DA, {"score": 75}, "a value is missing: Fluency, Style", True),
        (DA, {"scales": {"Style": 60}}, "a value is missing: Fluency", True),
        (DA, {"score": 75, "scales": {"Style": 60}}, "a value is missing: Fluency", True),
        (DA, {"score": 101, "scales": ON_ALL}, "from 0 to 100, not 101", False),
        (DA, {"score": 75, "scales": ON_ALL | {"Style": 60.0}}, "from 0 to 100, not 60.0", False),
        (DA, {"score": 75, "scales": ON_ALL | {"Tone": 1}}, "the scales are Fluency, Style, not", False),
        (DA, {"score": 75, "scales": [80, 60]}, "the scales are Fluency, Style, not", False),
    ],
)
def test_incomplete_and_foreign_answers_are_refused(
    protocol: Protocol, answer: Any, said: str, draft: bool
) -> None:
    with pytest.raises(ValueError, match=said):
        protocol.read_answer(answer, "four")
    if draft:
        protocol.check_draft(answer, "four")
    else:
        with pytest.raises(ValueError):
            protocol.check_draft(answer, "four")


def test_without_further_scales_an_answer_is_a_step() -> None:
    for protocol in (find_protocol("da"), find_protocol("contrastive-da", {"scales": []})):
        assert protocol is find_protocol(protocol.name)
        assert protocol.read_answer(7, "text").payload is None
        with pytest.raises(ValueError):
            protocol.read_answer({"score": 7, "scales": {}}, "text")


def test_protocols_of_another_kind_take_none() -> None:
    settings = CampaignSettings(scales=SCALES)
    for name in ("esa", "cesa", "mqm", "preference", "post-edit"):
        found = dict(settings.misfits(find_protocol(name)))
        assert found["protocol.scales"].startswith(f"{name} takes no further scales")
    with pytest.raises(ValueError, match="has a name twice"):
        CampaignSettings(scales=["Style", "Style"])


STEPS = {
    name: drawn_steps(12, [60, 50], 2, seed=seed, highest=100) for seed, name in enumerate(["", *SCALES])
}


@pytest.fixture
def scored_on_all(database: Database) -> Database:
    """Campaign `tasting`, and for each further scale one in which its values are the scores."""
    rated_campaign(database, side_by_side(STEPS[""]), protocol="da", settings={"scales": SCALES})
    with database.transaction() as session:
        values = {name: STEPS[name].transpose(0, 2, 1).ravel().tolist() for name in SCALES}
        for at, rating in enumerate(session.scalars(select(Rating).order_by(Rating.id))):
            further = {name: values[name][at] for name in SCALES}
            rating.payload = {"score": rating.step, "scales": further}
    for name in SCALES:
        rated_campaign(database, side_by_side(STEPS[name]), protocol="da", name=name)
    return database


def test_the_report_treats_them_as_it_does_scores(scored_on_all: Database) -> None:
    report = build_human(scored_on_all, "tasting")
    for number, name in enumerate(SCALES, 1):
        alone = build_human(scored_on_all, name)
        for own, key in ((f"scale_{number}_means", "means"), (f"scale_{number}", "comparisons")):
            rows = {row.name: row.cells for row in report.table(own).rows}
            assert rows == {row.name: row.cells for row in alone.table(key).rows}
    assert report.table("scale_2").title == "Style, against plain"
    # the scores are as they would be alone
    steps = STEPS[""].mean(axis=2)
    means = {row.name: row.cells["mean"].value for row in report.table("means").rows}
    assert [means["plain"], means["beam"]] == pytest.approx(steps.mean(axis=0).tolist())


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_export_brings_them_back(scored_on_all: Database, tmp_path: Path, kind: str) -> None:
    export_campaign(scored_on_all, "tasting", kind, tmp_path / "out", "test")
    import_campaign(scored_on_all, tmp_path / "out", kind, ImportFacts("again"), "test")
    tables = [build_human(scored_on_all, name).table("scale_1").rows for name in ("tasting", "again")]
    assert tables[0] == tables[1]


def test_other_formats_name_what_they_lose(scored_on_all: Database) -> None:
    content = collect(scored_on_all, "tasting")
    for kind in FOREIGN:
        lost = {part.what: part.count for part in not_held(content, kind)}
        assert lost["values on further scales"] == 12 * 2 * 2 * 2
    plain = dataclasses.replace(content, settings={}, answers=())
    assert "values on further scales" not in {part.what for part in not_held(plain, "pearmut")}
