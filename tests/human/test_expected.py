"""Errors that practice items expect: what a file may say, what fits, and what the rater is told."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_campaigns import add_rater, make_campaign, work_for

from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.making.known_answers import tutorial_items
from creamtea.human.making.settings import TutorialItem
from creamtea.human.protocols import find_protocol
from creamtea.human.protocols.spans import ExpectedSpan, Span, which_are_marked
from creamtea.human.protocols.taxonomy import ESA
from creamtea.store.database import Database

TEXT = "Good mourning"
WORD = {"start": [5, 5], "end": [11, 12], "severity": "major"}


def guidance(protocol: str, **output: Any) -> dict[str, Any]:
    item = {"source": "s", "outputs": [{"text": TEXT, **output}], "explanation": "e"}
    made = tutorial_items([TutorialItem.model_validate(item)], find_protocol(protocol))[0]
    return dict(made.guidance)


def test_expected_errors_stand_beside_values_or_in_their_place() -> None:
    omission = {"category": ["Accuracy"]}
    assert guidance("esa", spans=[WORD], accepted=[0.0, 60.0]) == {
        "steps": {"0": [0, 60]},
        "spans": {"0": [WORD]},
        "explanation": "e",
    }
    assert guidance("mqm", spans=[WORD, omission])["spans"] == {"0": [WORD, omission]}
    assert guidance("esa", spans=[])["spans"] == {"0": []}
    assert "spans" not in guidance("esa", accepted=[0.0, 60.0])


@pytest.mark.parametrize(
    ("protocol", "output", "message"),
    [
        ("da", {"spans": [WORD]}, "tutorial item 1, output 1: spans: raters mark no errors in da"),
        ("da", {}, "accepted: required key is missing"),
        ("esa", {}, "any answer would be right: give `accepted`, `spans` or both"),
        ("mqm", {"accepted": [-1.0, 0.0]}, "raters give no value in mqm: say `spans`"),
        ("esa", {"spans": [WORD | {"end": [11, 13]}]}, r"end: \[11, 13\] is no range of characters 0 to 12"),
        ("esa", {"spans": [WORD | {"start": [6, 5]}]}, r"start: \[6, 5\] is no range"),
        ("esa", {"spans": [{"start": [9, 9], "end": [3, 4]}]}, "ends at 4, before it begins"),
        ("esa", {"spans": [{"start": [9, 9]}]}, "a start without an end"),
        ("esa", {"spans": [WORD | {"severity": "critical"}]}, "minor or major, not critical"),
        ("mqm", {"spans": [{"category": ["Taste"]}]}, "the campaign has no category Taste"),
    ],
)
def test_what_nobody_can_mark_is_refused(protocol: str, output: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        guidance(protocol, **output)


spans = st.builds(
    lambda start, length, severity: Span(start=start, end=start + length, severity=severity),
    st.integers(0, 3),
    st.integers(0, 2),
    st.sampled_from(["minor", "major"]),
) | st.builds(Span, severity=st.sampled_from(["minor", "major"]))
ranges = st.lists(st.integers(0, 5), min_size=2, max_size=2).map(sorted)
expectations = st.builds(
    ExpectedSpan, start=ranges, end=ranges, severity=st.sampled_from([None, "minor", "major"])
) | st.builds(ExpectedSpan, severity=st.sampled_from([None, "minor"]))


@given(st.lists(expectations, max_size=4), st.lists(spans, max_size=4))
def test_as_many_are_found_as_can_be_at_once(expected: list[ExpectedSpan], marked: list[Span]) -> None:
    """By enumeration of all ways to give each expected error a mark of its own."""
    slots = [*range(len(marked)), *[None] * len(expected)]
    most = max(
        sum(mark is not None and one.fits(marked[mark]) for one, mark in zip(expected, way, strict=False))
        for way in permutations(slots, len(expected))
    )
    assert sum(which_are_marked(expected, marked)) == most


def test_a_rater_is_told_what_was_expected_and_found(database: Database) -> None:
    outputs = {"outputs": [TEXT], "systems": [0]}
    teach = {"kind": "tutorial", "guidance": guidance("esa", spans=[WORD, {}], accepted=[0.0, 60.0])}
    none = {"kind": "tutorial", "guidance": guidance("esa", spans=[])}
    items = [{**outputs, **teach}, {**outputs, **none}, {**outputs, **none}]
    make_campaign(database, items, protocol="esa", taxonomy=ESA.model_dump(mode="json"))
    anna = add_rater(database)

    def told(*marked: dict[str, Any], score: int = 50) -> assignment.Guidance:
        answer = {"spans": list(marked), "score": score}
        stored = assignment.submit(database, anna, work_for(database, anna).assignment_id, [answer])
        assert stored.guidance is not None
        return stored.guidance

    mark = {"start": 5, "end": 12, "severity": "major"}
    first = told(mark, {"start": 0, "end": 3, "severity": "minor"})
    assert (first.right, first.found, first.marked) == ([True], [[True, False]], [False])
    assert first.spans == [[WORD, {}]]
    assert (told(mark).marked, told().marked) == ([False], [True])
