"""Characteristic n-grams: counts and p-values against enumeration, nothing found where nothing differs."""

import random
from itertools import permutations

import pytest
from scipy.stats import binomtest

from creamtea.stats.paired import characteristic_ngrams, ngrams_of


def test_ngrams_are_counted_once_a_segment() -> None:
    assert ngrams_of(["a", "b", "a"], 2) == {("a",), ("b",), ("a", "b"), ("b", "a")}


def test_what_one_system_has_more_often_is_found_with_its_exact_p() -> None:
    ours = [["the", "cup"]] * 20 + [["the", "jam"]] * 30
    theirs = [["the", "mug"]] * 18 + [["the", "cup"]] * 2 + [["the", "jam"]] * 30
    found = {one.ngram: one for one in characteristic_ngrams(ours, theirs)}
    # "cup" and "mug" lie inside of the phrases with "the", which are as significant
    assert found.keys() == {("the", "cup"), ("the", "mug")}
    cup = found["the", "cup"]
    assert (cup.ours, cup.theirs, cup.more) == (20, 2, True)
    # cup, mug, and both with "the": four n-grams could be significant, all with the same p
    assert cup.p_corrected == pytest.approx(4 * binomtest(18, 18).pvalue)
    assert not found["the", "mug"].more


def test_no_listed_ngram_holds_another() -> None:
    draw = random.Random(5)
    ours, theirs = ([draw.choices(words, k=8) for _ in range(80)] for words in ("abcab", "abcdd"))
    listed = [one.ngram for one in characteristic_ngrams(ours, theirs)]
    assert len(listed) > 3
    assert not any(part in ngrams_of(whole) for part, whole in permutations(listed, 2))


def test_what_occurs_in_too_few_segments_is_no_comparison() -> None:
    common = [["x", str(number)] for number in range(200)]
    ours = [[*words, f"own{number}"] for number, words in enumerate(common)]
    theirs = [[*words, f"other{number}"] for number, words in enumerate(common)]
    for one in range(12):
        ours[one] = ["jam"]
    (jam,) = [one for one in characteristic_ngrams(ours, theirs) if one.ngram == ("jam",)]
    # two n-grams could be significant: hundreds that occur once could not, and do not count
    assert jam.p_corrected == pytest.approx(2 * binomtest(12, 12).pvalue)


def test_systems_that_do_not_differ_have_none() -> None:
    draw = random.Random(7)
    words = [f"w{number}" for number in range(30)]
    false = 0
    for _ in range(40):
        ours, theirs = ([draw.choices(words, k=6) for _ in range(60)] for _ in range(2))
        false += bool(characteristic_ngrams(ours, theirs))
    assert false <= 6  # 5 % of 40, and chance (p < 0.02 for 7 of them)
