"""Protocols: each is complete and says what the rest asks of it; scales, post-edits and marked errors."""

import json
import re
import time
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.human.protocols import OWN, Protocol, ScoredAnswer, find_protocol
from creamtea.human.protocols.base import MAX_SYSTEMS, MIN_SYSTEMS, SELECTIONS
from creamtea.human.protocols.spans import Esa, Mqm, Span, spans_of
from creamtea.words import split_words
from creamtea_webapp.board import HERE, SCRIPTS

PROTOCOLS = list(OWN.values())
LISTED = [protocol for protocol in PROTOCOLS if protocol.scale.steps < 10**6]  # not "scores", of any number
FOUR = ["same", "other", "same", "third"]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=list(OWN))
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


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=list(OWN))
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
            OWN["preference"].check_accepted([first, second])
        else:
            with pytest.raises(ValueError, match="decides"):
                OWN["preference"].check_accepted([first, second])


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
    assert {name: OWN[name].in_words(given) for name, (given, _) in answers.items()} == {
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


@pytest.mark.parametrize(
    "answer",
    [None, 3, "text", {}, {"text": None}, {"text": "a", "more": 1}, {"text": "a" * 10_001}, {"text": " "}],
)
def test_other_answers_are_refused(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"post-edit is an object|characters|is empty"):
        POST_EDIT.read_answer(answer, "x")
    if answer == {"text": " "}:
        POST_EDIT.check_draft(answer, "x")


def test_words_of_scripts_without_spaces_are_characters() -> None:
    assert split_words("猫 cat犬") == ["猫", "cat", "犬"]
    assert split_words("ที่นี่ tea ខ្ញុំ") == ["ที่", "นี่", "tea", "ខ្ញុំ"]  # with their marks


# ---------------------------------------------------------------- marked errors

ESA, MQM = Esa(), Mqm()
MINOR = {"start": 0, "end": 3, "severity": "minor"}


def test_an_answer_is_a_score_and_its_errors() -> None:
    answer = {"score": 67, "spans": [{**MINOR, "category": []}]}
    scored = ESA.read_answer(answer, "four")
    assert scored == ScoredAnswer(67, {"score": 67, "spans": [MINOR]})
    assert ESA.read_answer(scored.answer, "four") == scored, "in one way of writing"
    assert [span.severity for span in spans_of(scored.payload)] == ["minor"]
    assert spans_of(None) == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (50, "an object with spans"),
        ({"score": 50}, "spans"),
        ({"spans": []}, "a score from 0 to 100"),
        ({"score": 101, "spans": []}, "at most 100"),
        ({"score": 50, "spans": [{"severity": "awful"}]}, "one of undecided, neutral, minor, major"),
        ({"score": 50, "spans": [{**MINOR, "end": 4}]}, "character 4 of an output of 4"),
        ({"score": 50, "spans": [{**MINOR, "start": 4}]}, "ends before it begins"),
        ({"score": 50, "spans": [{"start": 1, "severity": "minor"}]}, "start without an end"),
        ({"score": 50, "spans": [{**MINOR, "colour": "red"}]}, "unknown key"),
    ],
)
def test_what_nobody_can_have_marked(answer: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ESA.read_answer(answer, "four")


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
