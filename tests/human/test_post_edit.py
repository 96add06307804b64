"""Post-editing: what an answer is, and the score that follows from it."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.human.protocols import find_protocol
from creamtea.human.words import words

PROTOCOL = find_protocol("post-edit")
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
    scored = PROTOCOL.read_answer({"text": " ".join(after)}, " ".join(before))
    assert scored.step == 1000 - min(1000, round(1000 * least_edits(before, after) / len(after)))


def test_a_long_text_without_blanks_is_scored_at_once() -> None:
    before, after = ("".join(chr(0x4E00 + factor * at % 500) for at in range(10_000)) for factor in (7, 11))
    began = time.process_time()
    PROTOCOL.read_answer({"text": after}, before)
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
