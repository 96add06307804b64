"""Languages without blanks between words: one list in Python, one on the rating page, which agree."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import creamtea_webapp
from creamtea.words import UNSPACED_LANGUAGES, characters, count_words, is_unspaced

BOARD = Path(creamtea_webapp.__file__).parent / "board" / "texts.js"


def test_the_page_has_the_same_languages() -> None:
    listed = re.search(r"const BY_CHARACTER = new Set\((\[.*?\])\)", BOARD.read_text(encoding="utf-8"))
    assert listed is not None
    assert json.loads(listed[1]) == list(UNSPACED_LANGUAGES)


@pytest.mark.parametrize(
    "code, unspaced",
    [
        ("th", True),
        ("zh-TW", True),
        ("zh_CN", True),
        ("JPN", True),
        ("mya", True),
        ("de", False),
        ("", False),
    ],
)
def test_codes_of_languages(code: str, unspaced: bool) -> None:
    assert is_unspaced(code) is unspaced


@given(st.text())
def test_the_characters_of_a_text_are_the_text(text: str) -> None:
    found = characters(text)
    assert "".join(found) == text
    assert "" not in found


def test_marks_stay_with_their_letters() -> None:
    assert characters("ที่นี่") == ["ที่", "นี่"]
    assert characters("ខ្ញុំ") == ["ខ្ញុំ"]
    assert characters("猫 e\u0301") == ["猫", " ", "e\u0301"]


@pytest.mark.parametrize(
    "text, words",
    [
        ("", 0),
        ("one two three", 3),
        ("私たちは七時に駅の前で会います", 9),  # 15 characters
        ("ที่นี่", 2),  # 6 letters and marks
        ("私 たち は Python です", 5),  # 7 characters, and a word
    ],
)
def test_words_by_characters(text: str, words: int) -> None:
    assert count_words(text, unspaced=True) == words
    assert count_words(text, unspaced=False) == len(text.split())


@given(st.text(st.characters(max_codepoint=0x2FF)))
def test_scripts_with_blanks_are_counted_by_these(text: str) -> None:
    assert count_words(text, unspaced=True) == len(text.split())
