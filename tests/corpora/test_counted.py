"""IBM-3's tables: counting in alignments made by hand, and sampling from what was counted."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

from creamtea_workers.corpora.ibm3 import (
    SMOOTHING,
    Ibm3,
    Ibm3Counts,
    Ibm3Translator,
    Jumps,
    count,
    diagonal,
    known,
    tables_of,
    temper,
)
from creamtea_workers.corpora.subwords import UNK

A, B, C, X, Y, Z, O = range(4, 11)
BLANK, SIZE = 11, 12
PAIRS = [
    # source, target, origins
    ([A, B], [X, Y], [0, 1]),
    ([A, B], [Y, X, X], [1, 0, 0]),
    ([A], [Z, O], [0, -1]),
    ([B, C], [Y], [0]),
    ([A], [], []),
]


@pytest.fixture
def counts() -> Ibm3Counts:
    sources, targets, origins = zip(*PAIRS, strict=True)
    return count(zip(sources, targets, origins, strict=True), SIZE, max_fertility=3)


def test_fertilities_are_counted_with_the_zeros(counts: Ibm3Counts) -> None:
    assert counts.fertility[A].tolist() == [0, 2, 1, 0]
    assert counts.fertility[B].tolist() == [0, 3, 0, 0]
    assert counts.fertility[C].tolist() == [1, 0, 0, 0]
    assert counts.fertility.sum() == 7  # the pair without a target says nothing


def test_translations_are_counted_and_null_apart(counts: Ibm3Counts) -> None:
    entries = dict(zip(zip(counts.sources, counts.targets, strict=True), counts.links, strict=True))
    assert entries == {(A, X): 3, (A, Z): 1, (B, Y): 3}
    assert np.flatnonzero(counts.null).tolist() == [O]
    assert counts.p1 == pytest.approx(1 / 7)
    assert counts.mean_fertility == pytest.approx(1.0)
    entropy = -(0.75 * np.log2(0.75) + 0.25 * np.log2(0.25))
    assert counts.entropy == pytest.approx(4 / 7 * entropy)


def test_a_fertility_above_the_cap_counts_as_the_cap() -> None:
    capped = count([([A], [X] * 5, [0] * 5)], SIZE, max_fertility=2)
    assert capped.fertility[A].tolist() == [0, 0, 1]
    assert capped.links.tolist() == [5]


JUMPS = count([([A, B], [X, Y, Z, O], [1, 0, 0, -1])], SIZE, 3)


def test_jumps_are_counted_from_the_diagonal_in_classes_of_the_length() -> None:
    assert [diagonal(i, 2, 4) for i in (1, 2)] == [2, 4]
    assert [diagonal(i, 4, 4) for i in (1, 2, 3, 4)] == [1, 2, 3, 4]
    assert [diagonal(i, 5, 2) for i in (1, 2, 3, 4, 5)] == [1, 1, 2, 2, 2]
    classes, width = JUMPS.jumps.shape
    assert (classes, width) == (3, 13)
    middle = width // 2
    found = {(c, int(j) - middle): int(JUMPS.jumps[c, j]) for c, j in np.argwhere(JUMPS.jumps)}
    assert found == {(2, 1 - 4): 1, (2, 0): 1, (2, 1): 1}  # X from B; Y and Z from A
    # the distortion is the smoothed share of the jumps
    weights = Jumps(JUMPS.jumps)
    assert weights(1, 2, 4) == pytest.approx([SMOOTHING, 1 + SMOOTHING, 1 + SMOOTHING, SMOOTHING])
    assert weights(2, 2, 4) == pytest.approx([1 + SMOOTHING, SMOOTHING, SMOOTHING, 1 + SMOOTHING])
    assert weights(1, 2, 3) == pytest.approx([SMOOTHING] * 3)  # another class, where nothing was counted


@pytest.mark.parametrize("m", [9, 40])
def test_a_target_longer_than_any_counted_has_a_weight_at_every_position(m: int) -> None:
    for i in (1, 2, 3):
        expected = np.full(m, SMOOTHING)
        for jump in (-3, 0, 1):
            if 1 <= diagonal(i, 3, m) + jump <= m:
                expected[diagonal(i, 3, m) + jump - 1] += 1
        assert Jumps(JUMPS.jumps)(i, 3, m) == pytest.approx(expected.tolist())


def test_counts_are_stored_and_read(counts: Ibm3Counts, tmp_path: Path) -> None:
    counts.save(tmp_path / "ibm3.npz")
    again = Ibm3Counts.load(tmp_path / "ibm3.npz")
    assert again.vocabulary_size == SIZE
    for name in ("fertility", "sources", "targets", "links", "null", "jumps"):
        assert (getattr(again, name) == getattr(counts, name)).all()


def test_an_alignment_without_a_link_is_refused() -> None:
    with pytest.raises(ValueError, match="no target subword is aligned"):
        count([([A], [X], [-1])], SIZE, 3)


# ---------------------------------------------------------------- sampling


@pytest.mark.parametrize("gamma", [0.3, 1.0, 2.0])
def test_samples_follow_the_counted_tables(counts: Ibm3Counts, gamma: float) -> None:
    """Of the one-word source A: φ is never 0, and t of each of its words is independent."""
    model, rng = Ibm3(tables_of(counts), gamma), random.Random(7)
    samples = [model.sample([A], rng) for _ in range(6000)]
    words = Counter(word for sample in samples for word, origin in sample if origin == 1)
    fertilities = Counter(sum(origin == 1 for _, origin in sample) for sample in samples)
    spurious = sum(origin == 0 for sample in samples for _, origin in sample)
    t, n = temper([3, 1], gamma), temper([2, 1], gamma)
    total = words.total()
    assert chisquare([words[X], words[Z]], [p * total for p in t]).pvalue > 0.001
    assert chisquare([fertilities[1], fertilities[2]], [p * 6000 for p in n]).pvalue > 0.001
    p1 = temper([6 / 7, 1 / 7], gamma)[1]
    assert chisquare([spurious, total - spurious], [p1 * total, (1 - p1) * total]).pvalue > 0.001


def test_positions_follow_the_counted_jumps() -> None:
    sources, targets = [[A, B]] * 10, [[X, Y]] * 10
    counts = count(zip(sources, targets, [[0, 1]] * 8 + [[1, 0]] * 2, strict=True), SIZE, 3)
    model, rng = Ibm3(tables_of(counts), 1.0), random.Random(5)
    first = Counter(model.sample([A, B], rng)[0].origin for _ in range(5000))
    jumps = {0: 16 + SMOOTHING, 1: 2 + SMOOTHING}  # A stands on its place, or one after it
    p = jumps[0] / (jumps[0] + jumps[1])
    assert chisquare([first[1], first[2]], [5000 * p, 5000 * (1 - p)]).pvalue > 0.001


def test_a_subword_that_was_never_counted_is_copied(counts: Ibm3Counts) -> None:
    assert Ibm3(tables_of(counts), 0).sample([O, A], random.Random(1)) == [(O, 1), (X, 2)]


def test_the_unknown_subword_says_nothing() -> None:
    assert known([A, UNK, B]) == [A, B]


# ---------------------------------------------------------------- text


class Letters:
    """Subwords that are letters: 4 is a, 5 is b …; 11 is a blank."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) - ord("a") + 4 if "a" <= letter <= "z" else UNK for letter in text]

    def decode(self, ids: list[int]) -> str:
        return "".join(" " if i == BLANK else chr(i + ord("a") - 4) for i in ids).strip()


def translator(counts: Ibm3Counts, gamma: float) -> Ibm3Translator:
    return Ibm3Translator(counts, Letters(), gamma)  # type: ignore[arg-type]


def test_a_stream_gives_the_same_texts_and_another_one_others(counts: Ibm3Counts) -> None:
    def made(gamma: float, stream: str) -> list[tuple[str, str | None]]:
        return list(translator(counts, gamma).translate_all(["ab", "a", "abab"] * 10, stream))

    assert made(1.0, "1 train") == made(1.0, "1 train") != made(1.0, "2 train")
    assert made(0.0, "1 train") == made(0.0, "2 train"), "temperature zero needs no stream"


def test_what_has_no_translation_is_none(counts: Ibm3Counts) -> None:
    only_blanks = count([([A], [BLANK], [0])], SIZE, 3)
    assert translator(only_blanks, 1.0).translate("a", random.Random(1)) is None
    for text in ("c", "", "!?"):  # φ is always 0, and unknown subwords
        assert translator(counts, 1.0).translate(text, random.Random(1)) is None


def test_an_empty_text_is_drawn_again() -> None:
    """Half of all draws are a blank; five of them in a row are rare."""
    counts = count([([A], [BLANK], [0]), ([A], [X], [0])], SIZE, 3)
    texts = [text for _, text in translator(counts, 1.0).translate_all(["a"] * 400, "1")]
    assert texts.count(None) < 400 * 0.5**5 * 3
    assert set(texts) == {None, "d"} or set(texts) == {"d"}
