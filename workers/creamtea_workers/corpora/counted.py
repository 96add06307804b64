"""IBM-3's tables counted in word alignments of real pairs (SCONES, Appendix B, where MGIZA estimates them).

In an alignment every target subword comes from one source subword or from NULL. Counted are

    n(φ|x)        how often x has φ target subwords; more than `max_fertility` count as `max_fertility`
    t(τ|x)        how often τ comes from x; t(τ|NULL) likewise
    p1            target subwords of NULL for each other one, Σφ₀ / Σ(m - φ₀) (Brown et al. 1993, Section 4.4)
    d(π|i, l, m)  the jump from the diagonal, π - c(i, l, m), in classes of m

The paper's d(π|i, |x|, m) has a parameter for each combination of its four indices, most of which a corpus
never shows. Here d depends on i and l through the position on the diagonal, c = ⌊(2i - 1) m / 2l⌋ + 1, and
on m through its class ⌊log₂ m⌋:

    d(π|i, l, m) = J(class of m, π - c) / Σ_π' J(class of m, π' - c)

with J the counts plus `SMOOTHING`, so that every position can be reached when others are taken. A target
longer than all that were counted is read as one of the last class; what it adds has no counts.

The unknown subword says nothing: it is left out of both sides before they are aligned, and of the sources
that are translated. A known subword that no counted source held is copied: n(1|x) = t(x|x) = 1 (the
vocabulary is joint, so x is a target subword, too; mostly it is part of a name).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from creamtea_workers.corpora.ibm3 import Ibm3, Tables
from creamtea_workers.corpora.subwords import BOS, EOS, PAD, UNK, SubwordModel
from creamtea_workers.corpora.text import normalise

Ids = NDArray[np.int64]
SMOOTHING = 0.1  # added to the count of each jump
_TRIES = 5  # draws of a target, before a text stays empty


def diagonal(i: int, length: int, m: int) -> int:
    """c(i, l, m): the target position, from 1, on the diagonal beside the source position i, from 1."""
    return (2 * i - 1) * m // (2 * length) + 1


# ---------------------------------------------------------------- counting


@dataclass(frozen=True)
class Ibm3Counts:
    """What was counted. Sparse tables are parallel arrays, sorted by source, then target."""

    vocabulary_size: int
    fertility: Ids  # (vocabulary_size, max_fertility + 1); a row of zeros for an x that did not occur
    sources: Ids  # of t(τ|x)
    targets: Ids
    links: Ids
    null: Ids  # (vocabulary_size,) how often NULL gave each subword
    jumps: Ids  # (classes, 2 · widest + 1): of class k (2^k ≤ m < 2^(k+1)) the jumps -widest … widest

    def save(self, path: Path) -> None:
        np.savez_compressed(path, **vars(self))

    @classmethod
    def load(cls, path: Path) -> Ibm3Counts:
        with np.load(path, allow_pickle=False) as arrays:
            return cls(**{**arrays, "vocabulary_size": int(arrays["vocabulary_size"])})

    @property
    def p1(self) -> float:
        return min(1.0, float(self.null.sum() / self.links.sum()))

    @property
    def mean_fertility(self) -> float:
        """Target subwords of a source subword, NULL's aside."""
        return float(self.links.sum() / self.fertility.sum())

    @property
    def entropy(self) -> float:
        """Of t(·|x) in bits, a mean over the links: how open the choice of a target subword is."""
        totals = np.bincount(self.sources, weights=self.links, minlength=self.vocabulary_size)
        return float(-(self.links * np.log2(self.links / totals[self.sources])).sum() / self.links.sum())


def count(aligned: Iterable[Sequence[Sequence[int]]], vocabulary_size: int, max_fertility: int) -> Ibm3Counts:
    """The counts of pairs (source, target, alignment) whose target subword k comes from the source position
    alignment[k], from 0, or from NULL, -1. Pairs with an empty side are skipped. ValueError where no subword
    is aligned."""
    fertility = np.zeros((vocabulary_size, max_fertility + 1), dtype=np.int64)
    links, null, jumps = Counter[int](), np.zeros(vocabulary_size, dtype=np.int64), Counter[tuple[int, int]]()
    for source, target, origins in aligned:
        if not source or not target:
            continue
        phi, m = Counter(origins), len(target)
        for place, x in enumerate(source):
            fertility[x, min(phi[place], max_fertility)] += 1
        for position, (word, origin) in enumerate(zip(target, origins, strict=True), start=1):
            if origin < 0:
                null[word] += 1
                continue
            links[source[origin] * vocabulary_size + word] += 1
            jumps[m.bit_length() - 1, position - diagonal(origin + 1, len(source), m)] += 1
    if not links:
        raise ValueError("no target subword is aligned to a source subword")
    keys = np.array(sorted(links), dtype=np.int64)
    return Ibm3Counts(
        vocabulary_size,
        fertility,
        keys // vocabulary_size,
        keys % vocabulary_size,
        np.array([links[key] for key in keys.tolist()], dtype=np.int64),
        null,
        _jump_table(jumps),
    )


def _jump_table(jumps: Counter[tuple[int, int]]) -> Ids:
    classes = max(kind for kind, _ in jumps) + 1
    widest = 2**classes - 2  # the longest target of the last class has 2^classes - 1 positions
    table = np.zeros((classes, 2 * widest + 1), dtype=np.int64)
    for (kind, jump), times in jumps.items():
        table[kind, widest + jump] = times
    return table


# ---------------------------------------------------------------- tables to sample from


class Jumps:
    """The distortion of counted jumps (`ibm3.Distortion`)."""

    def __init__(self, counts: Ids) -> None:
        self._widest = counts.shape[1] // 2
        self._rows: list[list[float]] = (counts + SMOOTHING).tolist()

    def weights(self, i: int, length: int, m: int) -> list[float]:
        first = self._widest + 1 - diagonal(i, length, m)  # in the row, of position 1
        row = self._rows[min(m.bit_length(), len(self._rows)) - 1]
        inside = row[max(first, 0) : max(first + m, 0)]
        if len(inside) == m:
            return inside
        before = min(max(-first, 0), m)  # the target is longer than any that was counted
        return [SMOOTHING] * before + inside + [SMOOTHING] * (m - before - len(inside))


def tables(counts: Ibm3Counts) -> Tables[int]:
    """IBM-3's parameters; a subword that no counted source held is copied."""
    fertility: dict[int, dict[int, float]] = {}
    lexical: dict[int, dict[int, float]] = {}
    for x, row in enumerate(counts.fertility.tolist()):
        if x not in (PAD, UNK, BOS, EOS):
            fertility[x] = {phi: times for phi, times in enumerate(row) if times} or {1: 1.0}
            if not any(row):
                lexical[x] = {x: 1.0}
    entries = zip(counts.sources.tolist(), counts.targets.tolist(), counts.links.tolist(), strict=True)
    for x, word, times in entries:
        lexical.setdefault(x, {})[word] = times
    null_words = {word: float(times) for word, times in enumerate(counts.null.tolist()) if times}
    return Tables(fertility, lexical, null_words, counts.p1, Jumps(counts.jumps))


# ---------------------------------------------------------------- text


class Ibm3Translator:
    """Samples translations of text in the subwords in which the tables were counted."""

    def __init__(self, counts: Ibm3Counts, subwords: SubwordModel, gamma: float) -> None:
        self._model, self._subwords = Ibm3(tables(counts), gamma), subwords

    def translate(self, text: str, rng: random.Random) -> str | None:
        """One sample, normalised; None if only empty text can be had: the source has nothing known but
        blanks, none of its subwords has a fertility above 0, or several samples were nothing but blanks."""
        source = known(self._subwords.encode(text))
        if not self._text(source):
            return None
        for _ in range(_TRIES):
            try:
                target = self._model.sample(source, rng)
            except ValueError:  # every fertility is 0, draw after draw
                return None
            if sampled := self._text([word for word, _ in target]):
                return sampled
        return None

    def _text(self, ids: Sequence[int]) -> str:
        return normalise(self._subwords.decode(ids))

    def translate_all(self, texts: Iterable[str], stream: str) -> Iterator[tuple[str, str | None]]:
        """Each text with one sample, from the random stream of that name."""
        rng = random.Random(f"ibm3 {stream}")
        return ((text, self.translate(text, rng)) for text in texts)


def known(ids: Sequence[int]) -> list[int]:
    return [x for x in ids if x != UNK]
