"""Post-editing: what an answer is, and the score that follows from it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from creamtea.human.protocols import find_protocol
from creamtea.human.words import edits, words

PROTOCOL = find_protocol("post-edit")
WORDS = st.lists(st.sampled_from("abcde"), max_size=12)


@given(WORDS, WORDS)
def test_edits_are_those_of_rapidfuzz(before: list[str], after: list[str]) -> None:
    assert edits(before, after) == Levenshtein.distance(before, after)


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
    scored = PROTOCOL.read_answer({"text": corrected}, output)
    assert PROTOCOL.scale.label(scored.step) == points
    assert scored.answer == {"text": corrected}


@pytest.mark.parametrize(
    "answer", [None, 3, "text", {}, {"text": None}, {"text": "a", "more": 1}, {"text": "a" * 10_001}]
)
def test_other_answers_are_refused(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"post-edit is an object|characters"):
        PROTOCOL.read_answer(answer, "x")


def test_nothing_is_no_correction_but_may_be_a_draft() -> None:
    with pytest.raises(ValueError, match="is empty"):
        PROTOCOL.read_answer({"text": " "}, "x")
    PROTOCOL.check_draft({"text": " "}, "x")


def test_words_of_scripts_without_spaces_are_characters() -> None:
    assert words("猫 cat犬") == ["猫", "cat", "犬"]
    assert words("ที่นี่ tea ខ្ញុំ") == ["ที่", "นี่", "tea", "ខ្ញុំ"]  # with their marks
