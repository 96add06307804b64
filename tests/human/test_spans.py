"""Marked errors: what an answer may be, and what MQM makes of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ready_campaigns import draft_campaign

from creamtea.errors import InputError
from creamtea.human.making.campaigns import CampaignRequest
from creamtea.human.protocols import ScoredAnswer
from creamtea.human.protocols.spans import Esa, Mqm, Span, spans_of
from creamtea.store.database import Database

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


def test_nobody_makes_a_campaign_that_has_no_page(database: Database) -> None:
    request = CampaignRequest(study="s", test_set="t", systems=["a", "b"], protocol="scores")
    with pytest.raises(InputError, match="no page to rate by it; use contrastive-da"):
        draft_campaign(database, "new", request)
