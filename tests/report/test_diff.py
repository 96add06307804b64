"""Differences between hypotheses."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.words import Piece, differences


def marked(text: str, other: str) -> str:
    return "".join(f"<{piece.text}>" if piece.marked else piece.text for piece in differences(text, other))


@pytest.mark.parametrize(
    ("text", "other", "shown"),
    [
        ("Ein Hund läuft.", "Ein Hund läuft.", "Ein Hund läuft."),
        ("Ein Hund läuft.", "Eine Katze läuft.", "<Ein Hund> läuft."),
        ("Ein Hund läuft!", "Ein Hund läuft.", "Ein Hund läuft<!>"),
        ("a b c d", "a c d", "a <b> c d"),
        ("a  b", "a b", "a  b"),  # white space alone is no difference
        ("ein Hund", "", "<ein Hund>"),
        ("", "ein Hund", ""),
        ("Hund", "hund", "<Hund>"),
        ("我喝茶", "我喝咖啡", "我喝<茶>"),  # no spaces: character by character
        ("ที่นี่", "ที่นั่น", "ที่<นี่>"),  # and a Thai letter keeps its vowel signs and tone marks
        ("か\u3099く", "か\u309aく", "<か\u3099>く"),
        ("ខ្មែរ", "ខ្មោច", "<ខ្មែរ>"),  # Khmer: the letter below and the vowel belong to the first letter
        ("<b>bold</b> & *x*", "bold", "<<b>>bold<</b> & *x*>"),  # markup is text like any other
        (" a b ", "b", " <a> b "),
        ("हिन्दी में", "हिन्दू में", "<हिन्दी> में"),  # vowel signs are of the word
        ("می\u200cخواهم", "می\u200cخواهد", "<می\u200cخواهم>"),
        ("❤️a", "❤️b", "❤️<a>"),  # a mark of no letter begins no word
    ],
)
def test_differing_words_are_marked(text: str, other: str, shown: str) -> None:
    assert marked(text, other) == shown


texts = st.text(alphabet="ab,. \u3000我ß\u0301ก\u0e35", max_size=20)


@given(texts, texts)
def test_pieces_put_together_are_the_text(text: str, other: str) -> None:
    pieces = differences(text, other)
    assert "".join(piece.text for piece in pieces) == text
    assert all(one.marked != two.marked for one, two in pairwise(pieces))


@given(texts)
def test_equal_texts_have_no_marks(text: str) -> None:
    assert differences(text, text) == ([Piece(text, False)] if text else [])


@given(texts, texts)
def test_a_marked_piece_has_a_word_that_differs(text: str, other: str) -> None:
    assert all(piece.text.strip() == piece.text for piece in differences(text, other) if piece.marked)
