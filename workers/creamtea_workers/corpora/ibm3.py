"""IBM model 3 as a generator of target sentences (Stahlberg and Kumar 2022, Appendix B; Brown et al. 1993).

Choices that the generative story leaves open:

- *Temperature.* Every table is tempered, p^(1/γ) renormalised (Eq. 10): n, t, d as in the paper, and also the
  choice of NULL words, so that γ = 0 (the arg max, the first of equals) is fully deterministic.
- *Fertility* has the support of its table: the largest φ listed is the cap.
- *NULL words.* φ₀ is the number of successes in Σφ trials with probability p₁ (Brown et al., Eq. 31).
- *Collisions.* Words are placed in the order of i and k, each by d restricted to the slots that are still
  vacant and renormalised. So no probability is lost to impossible arrangements, and every draw is a sentence.
- *m = 0.* The fertilities are drawn again: samples follow the model given that the target is not empty.

The tables are written by hand (`corpora.synthetic`) or counted in an alignment (`count`).
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from creamtea.contract.step import StepContext
from creamtea.errors import StepError
from creamtea.methods.corpora import Ibm3Corpus
from creamtea.methods.test_sets import Ibm3TestSet
from creamtea.steps.texts import CorpusParams, TestSetParams
from creamtea.wording import counted
from creamtea_workers.corpora.files import Files, FilteredCorpus, Pair
from creamtea_workers.corpora.segments import Prepared, Segment
from creamtea_workers.corpora.subwords import BOS, EOS, PAD, UNK, SubwordModel
from creamtea_workers.corpora.text import iterate_lines, normalise

T = TypeVar("T", bound=Hashable)
_DRAWS = 1000  # draws of fertilities before a source counts as untranslatable
_COLD = 1e-3  # a temperature below which nearly all draws are the same


class Distribution(Generic[T]):
    """A tempered categorical distribution over `weights` (> 0, any scale)."""

    def __init__(self, weights: Mapping[T, float], gamma: float) -> None:
        self.outcomes = tuple(weights)
        self.probabilities = temper(tuple(weights.values()), gamma)
        self._cumulative = list(accumulate(self.probabilities))

    def shares(self) -> Iterator[tuple[T, float]]:
        return zip(self.outcomes, self.probabilities, strict=True)

    def draw(self, rng: random.Random) -> T:
        place = bisect_right(self._cumulative, rng.random() * self._cumulative[-1])
        return self.outcomes[min(place, len(self.outcomes) - 1)]


def temper(weights: Sequence[float], gamma: float) -> tuple[float, ...]:
    """Return w^(1/γ), renormalised; γ = 0 gives 1.0 to the first of the largest.

    Weights are ≥ 0, at least one of them > 0.
    """
    top = max(weights)
    if gamma == 0:
        first = weights.index(top)
        return tuple(float(place == first) for place in range(len(weights)))
    powers = [(weight / top) ** (1 / gamma) for weight in weights]  # the largest is 1: no overflow
    total = sum(powers)
    return tuple(power / total for power in powers)


# d(π|i, l, m): weights (> 0, on any scale) of the target positions π = 1 … m for the source position i of l,
# from 1
Distortion = Callable[[int, int, int], Sequence[float]]


@dataclass(frozen=True)
class Diagonal:
    """d(π|i, l, m) ∝ exp(-|π - c| / spread) around the diagonal, c = (i - 1/2) m/l + 1/2."""

    spread: float

    def __call__(self, i: int, length: int, m: int) -> list[float]:
        centre = (i - 0.5) * m / length + 0.5
        return [exp(-abs(position - centre) / self.spread) for position in range(1, m + 1)]


@dataclass(frozen=True)
class Tables(Generic[T]):
    """The parameters of IBM-3, untempered, for words of type T. Weights are > 0, on any scale."""

    fertility: Mapping[T, Mapping[int, float]]  # n(φ|x)
    lexical: Mapping[T, Mapping[T, float]]  # t(τ|x); no row for an x whose φ is always 0
    null_words: Mapping[T, float]  # t(τ|NULL); empty only if p1 is 0
    p1: float  # probability of a NULL word after each other word
    distortion: Distortion


class Target(NamedTuple, Generic[T]):
    """A target word and its source position, from 1; 0 is NULL."""

    word: T
    origin: int


class Ibm3(Generic[T]):
    """`tables` at temperature `gamma`, ready for sampling."""

    def __init__(self, tables: Tables[T], gamma: float) -> None:
        self.tables, self.gamma = tables, gamma
        self._n = {x: Distribution(row, gamma) for x, row in tables.fertility.items()}
        # words that vanish in every draw. Only looked for at low temperatures: at others the draws belong to
        # the random stream from which stored corpora were sampled
        cold = self._n if gamma < _COLD else {}
        self._vanish = {x for x, n in cold.items() if dict(n.shares()).get(0) == 1.0}
        self._t = {x: Distribution(row, gamma) for x, row in tables.lexical.items()}
        self._null = Distribution(tables.null_words, gamma) if tables.null_words else None
        self._p1 = temper((1 - tables.p1, tables.p1), gamma)[1]

    def sample(self, source: Sequence[T], rng: random.Random) -> list[Target[T]]:
        """Sample a target sentence of `source`. ValueError if every draw of the fertilities was zero."""
        fertilities = self._fertilities(source, rng)  # step 1
        spurious = sum(rng.random() < self._p1 for _ in range(sum(fertilities)))  # step 2
        m = sum(fertilities) + spurious  # step 3
        slots: list[Target[T] | None] = [None] * m
        for i, (word, fertility) in enumerate(zip(source, fertilities, strict=True), start=1):
            for _ in range(fertility):  # steps 4 and 5
                target = Target(self._t[word].draw(rng), i)
                slots[self._place(slots, i, len(source), rng)] = target
        for _ in range(spurious):  # steps 4 and 6: uniform over the vacant slots
            assert self._null is not None  # p1 > 0
            vacant = [slot for slot, target in enumerate(slots) if target is None]
            slots[vacant[int(rng.random() * len(vacant))]] = Target(self._null.draw(rng), 0)
        return [target for target in slots if target is not None]  # step 7

    def _fertilities(self, source: Sequence[T], rng: random.Random) -> list[int]:
        for _ in range(1 if self._vanish.issuperset(source) else _DRAWS):
            fertilities = [self._n[word].draw(rng) for word in source]
            if any(fertilities):
                return fertilities
        raise ValueError(f"no word of {list(source)} gets a translation at temperature {self.gamma}")

    def _place(self, slots: Sequence[Target[T] | None], i: int, length: int, rng: random.Random) -> int:
        weights = self.tables.distortion(i, length, len(slots))
        vacant = {slot: weights[slot] for slot, target in enumerate(slots) if target is None}
        return Distribution(vacant, self.gamma).draw(rng)


# IBM-3's tables, counted in word alignments of real pairs (in SCONES, Appendix B, MGIZA estimates them).
#
# In an alignment every target subword comes from one source subword or from NULL. The counts are
#
#     n(φ|x)        how often x has φ target subwords; more than `max_fertility` count as `max_fertility`
#     t(τ|x)        how often τ comes from x; t(τ|NULL) likewise
#     p1            target subwords of NULL for each other one, Σφ₀ / Σ(m - φ₀) (Brown et al. 1993, Sec. 4.4)
#     d(π|i, l, m)  the jump from the diagonal, π - c(i, l, m), in classes of m
#
# The paper's d(π|i, |x|, m) has a parameter for each combination of its four indices, but most combinations
# occur in no corpus. Here d depends on i and l through the position on the diagonal,
# c = ⌊(2i - 1) m / 2l⌋ + 1, and on m through its class ⌊log₂ m⌋:
#
#     d(π|i, l, m) = J(class of m, π - c) / Σ_π' J(class of m, π' - c)
#
# with J the counts plus `SMOOTHING`, so that every position can be reached when others are taken. A target
# longer than every counted one belongs to the last class; its additional jumps have no counts.
#
# The unknown subword carries no information: it is removed from both sides before they are aligned, and from
# the sources to translate. A known subword that no counted source held is copied: n(1|x) = t(x|x) = 1 (the
# vocabulary is joint, so x is also a target subword; mostly it is part of a name).


Ids = NDArray[np.int64]
SMOOTHING = 0.1  # added to the count of each jump
_TRIES = 5  # draws of a target before a text counts as untranslatable


def diagonal(i: int, length: int, m: int) -> int:
    """Return c(i, l, m): the target position on the diagonal beside the source position i, both from 1."""
    return (2 * i - 1) * m // (2 * length) + 1


# ---------------------------------------------------------------- counting


@dataclass(frozen=True)
class Ibm3Counts:
    """Counts of aligned pairs. Sparse tables are parallel arrays, sorted by source, then target."""

    vocabulary_size: int
    fertility: Ids  # (vocabulary_size, max_fertility + 1); a row of zeros for an x that did not occur
    sources: Ids  # x of each entry of t(τ|x)
    targets: Ids  # τ of each entry
    links: Ids  # count of each entry
    null: Ids  # (vocabulary_size,) how often NULL gave each subword
    jumps: Ids  # (classes, 2 · widest + 1): jumps -widest … widest in class k (2^k ≤ m < 2^(k+1))

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
        """Mean number of target subwords per source subword, without the target subwords of NULL."""
        return float(self.links.sum() / self.fertility.sum())

    @property
    def entropy(self) -> float:
        """Mean entropy of t(·|x) over the links, in bits: the uncertainty about a target subword."""
        totals = np.bincount(self.sources, weights=self.links, minlength=self.vocabulary_size)
        return float(-(self.links * np.log2(self.links / totals[self.sources])).sum() / self.links.sum())


def count(aligned: Iterable[Sequence[Sequence[int]]], vocabulary_size: int, max_fertility: int) -> Ibm3Counts:
    """Count pairs (source, target, alignment). Raise ValueError if no subword is aligned.

    alignment[k] is the source position of target subword k, from 0; -1 is NULL. Pairs with an empty side are
    skipped.
    """
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
    classes = max(kind for kind, _ in jumps) + 1
    widest = 2**classes - 2  # the longest target of the last class has 2^classes - 1 positions
    table = np.zeros((classes, 2 * widest + 1), dtype=np.int64)
    for (kind, jump), times in jumps.items():
        table[kind, widest + jump] = times
    return Ibm3Counts(
        vocabulary_size,
        fertility,
        keys // vocabulary_size,
        keys % vocabulary_size,
        np.array([links[key] for key in keys.tolist()], dtype=np.int64),
        null,
        table,
    )


# ---------------------------------------------------------------- tables to sample from


class Jumps:
    """The distortion table from counted jumps."""

    def __init__(self, counts: Ids) -> None:
        self._widest = counts.shape[1] // 2
        self._rows: list[list[float]] = (counts + SMOOTHING).tolist()

    def __call__(self, i: int, length: int, m: int) -> list[float]:
        first = self._widest + 1 - diagonal(i, length, m)  # index of position 1 in the row
        row = self._rows[min(m.bit_length(), len(self._rows)) - 1]
        inside = row[max(first, 0) : max(first + m, 0)]
        if len(inside) == m:
            return inside
        before = min(max(-first, 0), m)  # the target is longer than every counted one
        return [SMOOTHING] * before + inside + [SMOOTHING] * (m - before - len(inside))


def tables_of(counts: Ibm3Counts) -> Tables[int]:
    """Return IBM-3's parameters; a subword that occurs in no counted source is copied."""
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
    """Samples translations of text, with the subwords of the counted tables."""

    def __init__(self, counts: Ibm3Counts, subwords: SubwordModel, gamma: float) -> None:
        self._model, self._subwords = Ibm3(tables_of(counts), gamma), subwords

    def translate(self, text: str, rng: random.Random) -> str | None:
        """Sample one normalised translation; return None if only empty text results.

        Text is empty if the source has only unknown subwords and blanks, if none of its subwords has a
        fertility above 0, or if several samples consist of blanks.
        """
        source = known(self._subwords.encode(text))
        if not self._text(source):
            return None
        for _ in range(_TRIES):
            try:
                target = self._model.sample(source, rng)
            except ValueError:  # all fertilities were 0 in every draw
                return None
            if sampled := self._text([word for word, _ in target]):
                return sampled
        return None

    def _text(self, ids: Sequence[int]) -> str:
        return normalise(self._subwords.decode(ids))

    def translate_all(self, texts: Iterable[str], stream: str) -> Iterator[tuple[str, str | None]]:
        """Yield each text with one sample, from the random stream named `stream`."""
        rng = random.Random(f"ibm3 {stream}")
        return ((text, self.translate(text, rng)) for text in texts)


def known(ids: Sequence[int]) -> list[int]:
    return [x for x in ids if x != UNK]


# Text with targets sampled from an IBM-3 model, which was counted in a corpus (SCONES, Appendix B).


def prepare_corpus(spec: Ibm3Corpus, context: StepContext[CorpusParams]) -> FilteredCorpus:
    """Sample targets for the sources of the (already filtered) base corpus.

    Pairs without a translation are omitted, in the development set too.
    """
    translator = load_translator(context, spec.gamma)
    corpus = FilteredCorpus((), (), 0, 0, {"no_translation": 0})

    def sampled(split: Literal["train", "dev"]) -> Iterator[Pair]:
        path = context.input("corpus") / f"{split}.src"
        read = kept = 0
        for source, target in translator.translate_all(iterate_lines(path), f"{spec.seed} {split}"):
            if read % 500 == 0:
                context.progress(0, 1, f"sampling: {counted(read, 'sentence')} of {split}")
            read += 1
            if target is not None:
                kept += 1
                yield Pair(source, target)
        if not kept:
            raise StepError(
                f"no {split} sentence of corpus {spec.corpus} gets a translation at temperature {spec.gamma}"
            )
        if split == "train":
            corpus.train_read, corpus.dropped["no_translation"] = read, read - kept
        else:
            corpus.dev_read = read

    corpus.train, corpus.dev = sampled("train"), sampled("dev")
    return corpus


def prepare_test_set(spec: Ibm3TestSet, context: StepContext[TestSetParams]) -> Prepared:
    """Sample the references; leave out sentences without a sample, since a segment needs a reference."""
    corpus = context.params.corpus
    assert isinstance(corpus, Ibm3Corpus)  # the study's check ensures it
    lines = list(Files.of(context).text(spec.source, "source", spec.tokenized))
    sources = [normalise(line) for line in lines[: spec.limit]]
    translator = load_translator(context, corpus.gamma)
    segments = []
    for done, (source, reference) in enumerate(translator.translate_all(sources, f"{spec.seed} test")):
        if done % 500 == 0:
            context.progress(done, len(sources), "sampling")
        if reference is not None:
            segments.append(Segment(source, reference, []))
    if not segments:
        raise StepError(f"no line of {spec.source} gets a translation at temperature {corpus.gamma}")
    return Prepared(segments, {"no_translation": len(sources) - len(segments)})


def load_translator(context: StepContext[Any], gamma: float) -> Ibm3Translator:
    counts = Ibm3Counts.load(context.input("ibm3") / "ibm3.npz")
    return Ibm3Translator(counts, SubwordModel.of_step(context), gamma)
