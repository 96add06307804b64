"""Each protocol is complete, and says of itself what the rest of creamtea asks."""

from __future__ import annotations

import json
import re
from itertools import product

import pytest

from creamtea.human.protocols import OWN, Protocol, ScoredAnswer
from creamtea.human.protocols.base import MAX_SYSTEMS, MIN_SYSTEMS, SELECTIONS
from creamtea.store.tables import CONTROL_KINDS, SYSTEM_KINDS, ItemKind
from creamtea_webapp.board import HERE, SCRIPTS

PROTOCOLS = list(OWN.values())
LISTED = [protocol for protocol in PROTOCOLS if protocol.scale.steps < 10**6]  # not "scores", of any number
SCORED = [protocol for protocol in LISTED if type(protocol).read_answer is Protocol.read_answer]
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


@pytest.mark.parametrize("protocol", SCORED, ids=[protocol.name for protocol in SCORED])
def test_every_step_is_an_answer_and_nothing_else_is(protocol: Protocol) -> None:
    steps = protocol.scale.steps
    assert [protocol.read_answer(step, "x") for step in range(steps)] == [
        ScoredAnswer(s) for s in range(steps)
    ]
    for wrong in (-1, steps, True, 1.0, "1", None, [1], {"step": 1}):
        with pytest.raises(ValueError, match="whole number"):
            protocol.read_answer(wrong, "x")


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=list(OWN))
def test_what_is_shown_together_is_within_the_protocols_numbers(protocol: Protocol) -> None:
    groups = protocol.shown_together(FOUR, "all", 0)
    for group in groups:
        texts = {FOUR[system] for system in group}
        assert 1 <= len(texts) <= protocol.max_outputs
    assert {system for group in groups for system in group} == {0, 1, 2, 3}
    assert protocol.minutes(8) >= protocol.minutes(2) > 0


def test_pairs_with_the_baseline_leave_equal_texts_out() -> None:
    preference = OWN["preference"]
    assert preference.shown_together(FOUR, "all", 0) == [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert preference.shown_together(FOUR, "baseline", 0) == [(0, 1), (0, 3)]


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


def test_kinds_of_items_rate_systems_or_control_raters_or_teach() -> None:
    assert SYSTEM_KINDS == ("rated", "random")
    assert CONTROL_KINDS == ("repeat", "bad-reference")
    assert set(ItemKind) - {*SYSTEM_KINDS, *CONTROL_KINDS} == {"tutorial", "attention-check", "third-rating"}


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
