"""Word alignment of subwords, and the lexicon for vocabulary selection made from it.

A target of m subwords given a source of n, i and j counted from 1 (Dyer et al., Figure 1):

    p(e_i, a_i = j | f, m, n) = δ(a_i = j | i, m, n) · t(e_i | f_j)
    δ(NULL | i, m, n) = p₀
    δ(j | i, m, n)    = (1 - p₀) · exp(λ h(i, j, m, n)) / Z_λ(i, m, n),    h(i, j, m, n) = -|i/m - j/n|

As in fast_align: p₀ = 0.08 is fixed, λ starts at 4 and is optimised after every E-step, t starts uniform.
Unlike fast_align, this module computes the exact maximum of the expected log-likelihood (concave in λ)
instead of eight fixed gradient steps, so the log-likelihood never decreases; and t is the plain
maximum-likelihood estimate, without the Dirichlet prior.

Pairs of the same shape (m, n) are handled together, as dense arrays (pairs, m, n) with one prior (m, n). The
corpus is read again in each iteration, shard by shard. Only the table of subwords that occur together stays
in memory (`Together`: 24 bytes for each such pair of subwords, 32 while posteriors are added).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from creamtea_workers.corpora.subwords import EOS
from creamtea_workers.corpora.tokens import Shard

Ids = NDArray[np.int64]
Reals = NDArray[np.float64]
Item = TypeVar("Item")
Result = TypeVar("Result")

NULL_PROBABILITY = 0.08  # p₀
FIRST_TENSION = 4.0  # λ
TENSIONS = (0.0, 50.0)  # the range of λ; 0: no preference for the diagonal
_UNIT = 1 << 23  # cells whose posteriors are in memory at a time


@dataclass(frozen=True)
class TranslationTable:
    """t(target | source): parallel arrays, sorted by source, then target; only pairs that occur together.

    `vocabulary_size`: of the larger side, if the sides have separate vocabularies. It is NULL's source id.
    """

    source: NDArray[Any]  # integers
    target: NDArray[Any]
    probability: Reals
    vocabulary_size: int

    @property
    def keys(self) -> Ids:
        """One number for the pair of ids of each entry, ascending."""
        return self.source.astype(np.int64) * self.vocabulary_size + self.target


@dataclass(frozen=True)
class Aligner:
    table: TranslationTable
    tension: float  # λ
    log_likelihoods: list[float]  # before each M-step: mean over the target subwords, in nats
    left_out: int = 0  # pairs that were too long


def train_aligner(
    shards: Iterable[Shard],
    vocabulary_size: int,
    iterations: int,
    progress: Callable[[int, float], None] | None = None,
    threads: int = 1,
) -> Aligner:
    """Train by EM over the pairs, which are read several times; pairs with an empty side are skipped.

    Calls `progress(iteration, log_likelihood)` after each iteration, from 1. The number of threads does not
    change the result. Raises ValueError if no pair is left.
    """
    index = Together.of(shards, vocabulary_size)
    probability = np.full(len(index), 1.0 / vocabulary_size)
    tension, history = FIRST_TENSION, []
    for iteration in range(1, iterations + 1):
        expected = _expect(shards, index, probability, tension, threads)
        probability = _normalised(expected.counts, index)
        tension = _best_tension(expected, tension)
        history.append(expected.log_likelihood / expected.target_tokens)
        if progress is not None:
            progress(iteration, history[-1])
    table = TranslationTable(*index.pairs(), probability, vocabulary_size)
    return Aligner(table, tension, history, index.left_out)


def _normalised(counts: Reals, index: Together) -> Reals:
    """Divide each count by the total of its row, in place."""
    for first, last in index.blocks():
        starts = index.starts[first : last + 1]
        part = counts[starts[0] : starts[-1]]
        rows = np.repeat(np.arange(last - first), np.diff(starts))
        totals = np.bincount(rows, weights=part, minlength=last - first)
        part /= np.maximum(totals[rows], np.finfo(float).tiny)
    return counts


# ---------------------------------------------------------------- the two steps


@dataclass
class _Expected:
    """The result of the E-step."""

    counts: Reals  # expected count of each entry of the table
    log_likelihood: float
    feature: float  # Σ posterior · h over all cells
    weights: dict[tuple[int, int], Reals]  # (m, n) -> (m,) posterior mass that is not on NULL
    target_tokens: int


class _Group(NamedTuple):
    """Pairs of one shape."""

    source: Ids  # (pairs, n)
    target: Ids  # (pairs, m)

    @property
    def cells(self) -> int:
        return self.target.size * (self.source.shape[1] + 1)


# a group's contribution to the E-step: shape (m, n), target words, log-likelihood, feature and weights
Part = tuple[tuple[int, int], int, float, float, Reals]


def diagonal_feature(m: int, n: int) -> Reals:
    """Return h(i, j, m, n) = -|i/m - j/n|, (m, n)."""
    i = np.arange(1, m + 1)[:, None] / m
    j = np.arange(1, n + 1)[None, :] / n
    return -np.abs(i - j)


def diagonal_prior(m: int, n: int, tension: float) -> Reals:
    """Return exp(λ h) / Z over the source positions, (m, n)."""
    scores = np.exp(tension * diagonal_feature(m, n))
    return scores / scores.sum(axis=1, keepdims=True)


def _expect(
    shards: Iterable[Shard], index: Together, probability: Reals, tension: float, threads: int
) -> _Expected:
    expected = _Expected(np.zeros(len(index)), 0.0, 0.0, {}, 0)
    work = partial(_posteriors, index, probability, tension)
    for numbers, values, groups in in_order(work, _units(shards), threads):
        expected.counts += np.bincount(numbers, weights=values, minlength=len(index))
        for shape, tokens, log_likelihood, feature, weights in groups:
            expected.log_likelihood += log_likelihood
            expected.feature += feature
            expected.weights[shape] = expected.weights.get(shape, np.zeros(shape[0])) + weights
            expected.target_tokens += tokens
    return expected


def _units(shards: Iterable[Shard]) -> Iterator[list[_Group]]:
    """Yield lists of groups with at most `_UNIT` cells in total (more if a single group has more)."""
    unit: list[_Group] = []
    cells = 0
    for shard in shards:
        for _, source, target in same_shape(shard):
            group = _Group(source, target)
            if unit and cells + group.cells > _UNIT:
                yield unit
                unit, cells = [], 0
            unit.append(group)
            cells += group.cells
    yield unit


def _posteriors(
    index: Together, probability: Reals, tension: float, unit: list[_Group]
) -> tuple[Ids, Reals, list[Part]]:
    """Compute, for every target word, the posteriors of its source words and of NULL.

    Returns each cell's entry in the table (cells,), its posterior (cells,), and the groups' contributions. A
    group's cells are (pairs, m, n) for source words, then (pairs, m) for NULL.
    """
    size = sum(group.cells for group in unit)
    numbers, values = np.empty(size, dtype=np.int64), np.empty(size)
    parts: list[Part] = []
    start = 0
    for group in unit:
        (pairs, m), n = group.target.shape, group.source.shape[1]
        middle = start + pairs * m * n
        place, null_place = slice(start, middle), slice(middle, start + group.cells)
        numbers[place] = index.numbers(group.source, group.target).ravel()
        numbers[null_place] = (
            index.starts[-2] + index.columns[group.target]
        ).ravel()  # NULL's row is the last
        start += group.cells
        values[place], values[null_place] = probability[numbers[place]], probability[numbers[null_place]]
        aligned, null = values[place].reshape(pairs, m, n), values[null_place].reshape(pairs, m)
        aligned *= (1 - NULL_PROBABILITY) * diagonal_prior(m, n, tension)
        null *= NULL_PROBABILITY
        total = aligned.sum(axis=2) + null
        aligned /= total[:, :, None]
        null /= total
        mass = aligned.sum(axis=0)  # (m, n)
        feature = float((mass * diagonal_feature(m, n)).sum())
        parts.append(((m, n), pairs * m, float(np.log(total).sum()), feature, mass.sum(axis=1)))
    return numbers, values, parts


def in_order(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """Yield map(work, items), computed by threads that run at most one item per thread ahead."""
    if threads == 1:
        yield from map(work, items)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _best_tension(expected: _Expected, tension: float) -> float:
    """Return the λ in TENSIONS that maximises Σ posterior · log δ.

    Newton's method on the gradient (Dyer et al., Section 2.2), which decreases in λ, with bisection if a step
    would leave the bracket:

        Σ posterior · h  -  Σ_i weight_i · E_δ[h | i]
    """
    low, high = TENSIONS
    for _ in range(50):
        gradient, curvature = expected.feature, 0.0
        for (m, n), weights in expected.weights.items():
            feature, prior = diagonal_feature(m, n), diagonal_prior(m, n, tension)
            mean = (prior * feature).sum(axis=1)
            gradient -= float(weights @ mean)
            curvature -= float(weights @ ((prior * feature**2).sum(axis=1) - mean**2))
        low, high = (tension, high) if gradient > 0 else (low, tension)
        if curvature >= 0:
            break  # every source has one subword: λ has no effect
        step = tension - gradient / curvature
        before, tension = tension, step if low <= step <= high else (low + high) / 2
        if abs(tension - before) < 1e-6:
            break
    return tension


# An index that numbers the pairs of source and target subwords that occur together.
#
# It is a bitmap, with the number of set bits before each of its words. Finding a pair's number takes two
# reads. The index takes a quarter of a byte for each possible pair of subwords (30 MB for 11,000 source and
# 11,000 target subwords), however large the corpus is.


CELLS = 1 << 20  # maximum of pairs × m × n in a group of more than one pair
MAX_CELLS = 1 << 24  # m × n of a sentence pair; longer pairs are omitted
_BLOCK = 1 << 29  # possible pairs to mark in one pass over the corpus, one byte each
_ENTRIES = 1 << 22  # entries of a table to handle at a time


def same_shape(shard: Shard) -> Iterator[tuple[Ids, Ids, Ids]]:
    """Yield groups of pairs of the same shape: their places, sources (pairs, n) and targets (pairs, m).

    Shapes come in order, at most `CELLS` cells at a time. Pairs with an empty side or more than `MAX_CELLS`
    cells are omitted.
    """
    n, m = shard.sources.lengths, shard.targets.lengths
    places = np.flatnonzero((n > 0) & (m > 0) & (m * n <= MAX_CELLS))
    order = places[np.lexsort((n[places], m[places]))]
    changes = np.flatnonzero(np.diff(m[order]) | np.diff(n[order])) + 1
    for group in np.split(order, changes) if len(order) else []:
        shape = int(n[group[0]]), int(m[group[0]])
        size = max(1, CELLS // (shape[0] * shape[1]))
        for first in range(0, len(group), size):
            part = group[first : first + size]
            source, target = (
                side.tokens[side.offsets[part][:, None] + np.arange(length)].astype(np.int64)
                for side, length in zip(shard, shape, strict=True)
            )
            yield part, source, target


@dataclass(frozen=True)
class Together:
    """The index of pairs. The source id `vocabulary_size` is NULL; its row, the last, has all targets."""

    sources: Ids  # (R,) the ids that occur, ascending
    targets: Ids  # (T,)
    rows: Ids  # (vocabulary_size + 1,) the row of each source id
    columns: Ids  # (vocabulary_size,) the column of each target id
    bits: NDArray[np.uint64]  # (R, words of a row)
    before: Ids  # (R × words + 1,) set bits before each word
    left_out: int  # sentence pairs with more than MAX_CELLS cells

    @classmethod
    def of(cls, shards: Iterable[Shard], vocabulary_size: int) -> Together:
        """Index the words that occur together. Raise ValueError if every sentence pair has an empty side."""
        seen_source = np.zeros(vocabulary_size + 1, dtype=np.bool_)
        seen_target = np.zeros(vocabulary_size, dtype=np.bool_)
        left_out = 0
        for shard in shards:
            left_out += int((shard.sources.lengths * shard.targets.lengths > MAX_CELLS).sum())
            for _, source, target in same_shape(shard):
                seen_source[source] = True
                seen_target[target] = True
        if not seen_target.any():
            raise ValueError("no pair to align: every one has an empty side")
        seen_source[vocabulary_size] = True
        rows, columns = np.cumsum(seen_source) - 1, np.cumsum(seen_target) - 1
        bits = _bitmap(shards, rows, columns)
        before = np.concatenate([[0], np.cumsum(np.bitwise_count(bits), dtype=np.int64)])
        ids = np.flatnonzero(seen_source), np.flatnonzero(seen_target)
        return cls(*ids, rows, columns, bits, before, left_out)

    def __len__(self) -> int:
        return int(self.before[-1])

    @property
    def starts(self) -> Ids:
        """(R + 1,): row r has the pairs numbered from starts[r] to starts[r + 1] - 1."""
        return self.before[:: self.bits.shape[1]]

    def numbers(self, source: Ids, target: Ids) -> Ids:
        """Return the number of each pair of words: sources (pairs, n), targets (pairs, m) → (pairs, m, n)."""
        column = self.columns[target]
        words = self.rows[source][:, None, :] * self.bits.shape[1] + (column >> 6)[:, :, None]
        lower = (np.uint64(1) << (column & 63).astype(np.uint64)) - np.uint64(1)
        set_before = np.bitwise_count(self.bits.ravel()[words] & lower[:, :, None])
        numbers: Ids = self.before[words]
        numbers += set_before
        return numbers

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield blocks of rows [first, last) with about `_ENTRIES` pairs each."""
        first = 0
        while first < len(self.sources):
            last = int(np.searchsorted(self.starts, self.starts[first] + _ENTRIES, side="right")) - 1
            last = min(max(last, first + 1), len(self.sources))
            yield first, last
            first = last

    def pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the source and target id of each pair, by number."""
        source, target = (np.empty(len(self), dtype=np.int32) for _ in range(2))
        for first, last in self.blocks():
            unpacked = np.unpackbits(self.bits[first:last].view(np.uint8), axis=1, bitorder="little")
            rows, columns = np.nonzero(unpacked)
            place = slice(self.starts[first], self.starts[last])
            source[place], target[place] = self.sources[first + rows], self.targets[columns]
        return source, target


def _bitmap(shards: Iterable[Shard], rows: Ids, columns: Ids) -> NDArray[np.uint64]:
    """Return a bitmap (R, words of a row): bit c of row r is set if r and c occur together.

    One pass over the corpus marks `_BLOCK` possible pairs; mostly one pass is enough.
    """
    count, width = int(rows[-1]) + 1, int(columns[-1]) + 1
    bits = np.zeros((count, -(-width // 64)), dtype="<u8")
    size = max(1, _BLOCK // width)
    for first in range(0, count, size):
        last = min(first + size, count)
        marks = np.zeros((last - first) * width, dtype=np.bool_)
        for shard in shards:
            for _, source, target in same_shape(shard):
                flat = rows[source][:, None, :] * width + columns[target][:, :, None]
                if last - first < count:
                    flat = flat[(flat >= first * width) & (flat < last * width)] - first * width
                marks[flat] = True
        if last == count:
            marks[-width:] = True  # NULL
        packed = np.packbits(marks.reshape(-1, width), axis=1, bitorder="little")
        bits[first:last].view(np.uint8)[:, : packed.shape[1]] = packed
    return bits


NULL = -1


def viterbi(aligner: Aligner, shard: Shard) -> list[Ids]:
    """Return an array (m,) for each pair: the source position (from 0) of every target word, or NULL.

    Among equally probable positions the first wins, NULL last. In model 2 each target word is aligned
    independently:

        argmax_j δ(j | i, m, n) · t(e_i | f_j)

    Words that never occurred together in training have t = 0. A target word with t = 0 for all sources, and
    every word of a pair with an empty source, is aligned to NULL.
    """
    table, keys = aligner.table, aligner.table.keys
    alignments: list[Ids] = [np.full(len(target), NULL) for target in shard.targets]
    size = table.vocabulary_size  # also NULL's id

    def lookup(source: Ids | int, target: Ids) -> Reals:
        """Look up t(target | source), 0 if the two never occur together; the shapes broadcast."""
        pairs = source * size + target
        wanted, numbers = np.unique(pairs, return_inverse=True)  # sorted look-ups are faster
        nearest = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        values = np.where(keys[nearest] == wanted, table.probability[nearest], 0.0)
        return values[numbers].reshape(pairs.shape)

    for places, source, target in same_shape(shard):  # (pairs, n), (pairs, m)
        scores = lookup(source[:, None, :], target[:, :, None])  # (pairs, m, n)
        scores *= (1 - NULL_PROBABILITY) * diagonal_prior(target.shape[1], source.shape[1], aligner.tension)
        null = NULL_PROBABILITY * lookup(size, target)  # (pairs, m)
        best = scores.argmax(axis=2)
        value = np.take_along_axis(scores, best[:, :, None], axis=2)[:, :, 0]
        rows = np.where((value > 0) & (value >= null), best, NULL)
        for place, row in zip(places, rows, strict=True):
            alignments[place] = row
    return alignments


# The alignment lexicon: the most probable target subwords of each source subword (Domhan et al. 2022, § 2).
#
# It selects word by word, without context: the method that neural vocabulary selection is compared with.


_PART = 1 << 22  # entries of a table to sort at a time (more if one source has more)
MIN_PROBABILITY = 1e-9  # smaller entries carry no mass and are not stored


@dataclass(frozen=True)
class Lexicon:
    """The concatenated rows of target subwords, one per source subword, most probable first, then by id."""

    starts: NDArray[np.int64]  # (V + 1,): the row of source id s is [starts[s], starts[s + 1])
    targets: NDArray[np.int32]
    probabilities: NDArray[np.float32]
    # subwords of the training targets, the most frequent first; only from a shortlist step
    frequent: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))

    @classmethod
    def build(cls, table: TranslationTable, max_k: int) -> Lexicon:
        """Keep the `max_k` most probable targets of every source subword; NULL has no row."""
        sizes = np.zeros(table.vocabulary_size, dtype=np.int64)
        targets, probabilities = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.float32)]
        ends = np.searchsorted(table.source, np.arange(table.vocabulary_size), side="right")
        first = 0
        while first < table.vocabulary_size:  # a part of the sources at a time
            start = int(ends[first - 1]) if first else 0
            last = max(int(np.searchsorted(ends, start + _PART, side="right")), first + 1)
            part = slice(start, int(ends[last - 1]))
            source, target, probability = table.source[part], table.target[part], table.probability[part]
            stored = probability >= MIN_PROBABILITY
            source, target, probability = source[stored], target[stored], probability[stored]
            order = np.lexsort((target, -probability, source))
            before = np.searchsorted(source[order], source[order])  # the first entry of each one's source
            order = order[np.arange(len(order)) - before < max_k]
            sizes += np.bincount(source[order], minlength=table.vocabulary_size)
            targets.append(target[order].astype(np.int32))
            probabilities.append(probability[order].astype(np.float32))
            first = last
        return cls(
            starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            targets=np.concatenate(targets),
            probabilities=np.concatenate(probabilities),
        )

    @classmethod
    def load(cls, path: Path) -> Lexicon:
        with np.load(path, allow_pickle=False) as arrays:
            return cls(**arrays)

    def save(self, path: Path) -> None:
        np.savez_compressed(path, **vars(self))

    @property
    def entries(self) -> int:
        return len(self.targets)

    def select(self, source_ids: Iterable[int], k: int, frequent: int = 0) -> NDArray[np.int64]:
        """Return the allowed target ids of a sentence, sorted and unique.

        These are the first `k` of each source subword's row, the first `frequent` of `self.frequent`, and
        EOS, without which no translation could end.

        A row with fewer than k entries contributes all of them (so a k above the lexicon's `max_k` acts like
        `max_k`). Special ids and source subwords that training never saw contribute nothing. Pad and bos are
        never included, unk only if the training text had it. Raises ValueError if k < 1.
        """
        if k < 1:
            raise ValueError(f"k must be 1 or more, not {k}")
        rows = [self.targets[self.starts[id_] : self.starts[id_ + 1]][:k] for id_ in set(source_ids)]
        always = [np.array([EOS], dtype=np.int64), self.frequent[:frequent]]
        return np.unique(np.concatenate([*always, *rows]))

    def rank(self, source_ids: Iterable[int], target: int) -> int | None:
        """Return the smallest k with which `select` allows the target id; None if no row has it."""
        rows = [self.targets[self.starts[id_] : self.starts[id_ + 1]] for id_ in set(source_ids)]
        places = [int(place) + 1 for row in rows for place in np.flatnonzero(row == target)]
        return min(places, default=None)
