"""Made-up words: what is replaced, that lemma and form stay alike, and that draws are the seed's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.errors import StepError
from creamtea.methods.texts import WordLine
from creamtea.words import normalise
from creamtea_workers.corpora.inflection import hallucinate, stems

PAST, THIRD = ("V", "PST"), ("V", "3")
WORDS = [
    WordLine("walk", "walked", PAST),
    WordLine("go", "went", PAST),
    WordLine("put up", "puts up", THIRD),
]


@pytest.mark.parametrize(
    ("lemma", "form", "found"),
    [
        ("walk", "walked", [(0, 0, 4)]),
        ("hamba", "bahamba", [(0, 2, 5)]),
        ("konditor", "konditoren", [(1, 1, 6)]),  # of more than five the first and last stay
        ("go", "went", []),
        ("sing", "sang", []),
        ("put up", "puts up", [(0, 0, 3)]),
        ("abc def", "abc def", [(0, 0, 3), (4, 4, 3)]),
    ],
)
def test_stems_by_hand(lemma: str, form: str, found: list[tuple[int, int, int]]) -> None:
    assert list(stems(lemma, form)) == found


@given(st.text(alphabet="abc ", max_size=9), st.text(alphabet="abc ", max_size=9))
def test_stems_are_shared_and_hold_no_blank(lemma: str, form: str) -> None:
    for first, other, length in stems(lemma, form):
        stem = lemma[first : first + length]
        assert stem == form[other : other + length]
        assert " " not in stem
        assert length >= 3


def test_made_up_words_have_no_character_that_a_mark_and_a_letter_make() -> None:
    """Yoruba has marks that join some letters and not others: "n" beside one would become another letter."""
    words = [WordLine("kẹ́kọ", "ńkẹ́kọ"), WordLine("gbàgbẹ̀", "ńgbàgbẹ̀"), WordLine("pẹ̀lúnlẹ̀", "ńpẹ̀lúnlẹ̀")]
    known = {character for word in words for character in word[0] + word[1]}
    made = hallucinate(words, 500, 1, "yoruba")
    assert all(set(normalise(text)) <= known for word in made for text in word[:2])
    assert len(set(made)) > 400


def test_only_the_stem_changes_and_alike_in_both() -> None:
    made = hallucinate(WORDS, 200, 1, "english")
    assert len(made) == 200
    alphabet = set("walkedgontpusp")
    verbs = [(lemma, form) for lemma, form, tags in made if tags == PAST]
    assert all(form == f"{lemma}ed" and len(lemma) == 4 for lemma, form in verbs)
    others = [(lemma, form) for lemma, form, tags in made if tags == THIRD]
    assert len(verbs) == len(others) == 100
    assert all(form == f"{lemma[:3]}s up" and lemma[3:] == " up" for lemma, form in others)
    assert len(set(verbs)) > 50
    assert {character for lemma, _ in verbs for character in lemma} <= alphabet
    changed = sum(a != b for lemma, _ in verbs for a, b in zip(lemma, "walk", strict=True))
    assert changed / 400 == pytest.approx(0.5 * 12 / 13, abs=0.1)  # half, less those drawn again


def test_the_seed_and_the_language_are_all_that_draws_follow_from() -> None:
    assert hallucinate(WORDS, 20, 1, "english") == hallucinate(WORDS, 20, 1, "english")
    assert hallucinate(WORDS, 20, 1, "english") != hallucinate(WORDS, 20, 2, "english")
    assert hallucinate(WORDS, 5, 1, "english") == hallucinate(WORDS, 20, 1, "english")[:5]


def test_words_without_a_stem() -> None:
    with pytest.raises(StepError, match="no word of english shares 3 characters"):
        hallucinate([WordLine("go", "went", PAST)], 5, 1, "english")
