"""IBM model 2 with a diagonal prior over subword ids (Dyer et al. 2013, "A Simple, Fast, and Effective
Reparameterization of IBM Model 2"), trained by EM: the aligner of fast_align, vectorised.

A target of m subwords given a source of n, i and j counted from 1 (Dyer et al., Figure 1):

    p(e_i, a_i = j | f, m, n) = δ(a_i = j | i, m, n) · t(e_i | f_j)
    δ(NULL | i, m, n) = p₀
    δ(j | i, m, n)    = (1 - p₀) · exp(λ h(i, j, m, n)) / Z_λ(i, m, n),    h(i, j, m, n) = -|i/m - j/n|

As in fast_align: p₀ = 0.08 is fixed, λ starts at 4 and is optimised after every E-step, t starts uniform.
Unlike there, λ is the exact maximum of the expected log-likelihood (which is concave in λ) instead
of eight fixed gradient steps, so the log-likelihood never decreases; and t is the plain maximum-likelihood
estimate, without the Dirichlet prior.

Pairs of the same shape (m, n) are handled together, as dense arrays (pairs, m, n) with one prior (m, n). The
corpus is read again in each iteration, shard by shard; what stays in memory is the table of the subwords that
occur together (`together`: 24 bytes for each such pair, 32 while posteriors are added).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from creamtea_workers.corpora.tokens import Shard
from creamtea_workers.selection.together import Ids, Together, same_shape

Reals = NDArray[np.float64]
Item = TypeVar("Item")
Result = TypeVar("Result")

NULL_PROBABILITY = 0.08  # p₀
FIRST_TENSION = 4.0  # λ
TENSIONS = (0.0, 50.0)  # the range of λ; 0: no preference for the diagonal
_UNIT = 1 << 23  # cells whose posteriors are in memory before they are counted


@dataclass(frozen=True)
class TranslationTable:
    """t(target | source): parallel arrays, sorted by source, then target; only pairs that occur together.

    The source id `vocabulary_size` is NULL.
    """

    source: NDArray[Any]  # integers
    target: NDArray[Any]
    probability: Reals
    vocabulary_size: int

    @property
    def keys(self) -> Ids:
        """Of each entry: ascending numbers for its pair of ids."""
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
    """EM over the pairs, which are read several times; pairs with an empty side are skipped.

    `progress(iteration, log_likelihood)` is called after each iteration, which count from 1. The number of
    threads changes nothing. ValueError when no pair is left.
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
    """The counts, each divided by the total of its row, in place."""
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

    counts: Reals  # of each entry of the table
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


class _Statistics(NamedTuple):
    """A group's part in the E-step, its counts aside."""

    shape: tuple[int, int]  # (m, n)
    tokens: int
    log_likelihood: float
    feature: float
    weights: Reals


class _Posteriors(NamedTuple):
    numbers: Ids  # (cells,) of the entry of each
    values: Reals  # (cells,)
    groups: list[_Statistics]


def diagonal_feature(m: int, n: int) -> Reals:
    """h(i, j, m, n) = -|i/m - j/n|, (m, n)."""
    i = np.arange(1, m + 1)[:, None] / m
    j = np.arange(1, n + 1)[None, :] / n
    return -np.abs(i - j)


def diagonal_prior(m: int, n: int, tension: float) -> Reals:
    """exp(λ h) / Z over the source positions, (m, n)."""
    scores = np.exp(tension * diagonal_feature(m, n))
    return scores / scores.sum(axis=1, keepdims=True)


def _expect(
    shards: Iterable[Shard], index: Together, probability: Reals, tension: float, threads: int
) -> _Expected:
    expected = _Expected(np.zeros(len(index)), 0.0, 0.0, {}, 0)
    work = partial(_posteriors, index, probability, tension)
    for posteriors in in_order(work, _units(shards), threads):
        expected.counts += np.bincount(posteriors.numbers, weights=posteriors.values, minlength=len(index))
        for group in posteriors.groups:
            expected.log_likelihood += group.log_likelihood
            expected.feature += group.feature
            before = expected.weights.get(group.shape, np.zeros(group.shape[0]))
            expected.weights[group.shape] = before + group.weights
            expected.target_tokens += group.tokens
    return expected


def _units(shards: Iterable[Shard]) -> Iterator[list[_Group]]:
    """Groups of together at most `_UNIT` cells, unless one has more."""
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


def _posteriors(index: Together, probability: Reals, tension: float, unit: list[_Group]) -> _Posteriors:
    """Of every target word its source words and NULL; a group's cells are (pairs, m, n), then (pairs, m)."""
    size = sum(group.cells for group in unit)
    numbers, values = np.empty(size, dtype=np.int64), np.empty(size)
    statistics, start = [], 0
    for group in unit:
        (pairs, m), n = group.target.shape, group.source.shape[1]
        middle = start + pairs * m * n
        place, null_place = slice(start, middle), slice(middle, start + group.cells)
        numbers[place] = index.numbers(group.source, group.target).ravel()
        numbers[null_place] = index.null_numbers(group.target).ravel()
        start += group.cells
        values[place], values[null_place] = probability[numbers[place]], probability[numbers[null_place]]
        aligned, null = values[place].reshape(pairs, m, n), values[null_place].reshape(pairs, m)
        aligned *= (1 - NULL_PROBABILITY) * diagonal_prior(m, n, tension)
        null *= NULL_PROBABILITY
        total = aligned.sum(axis=2) + null
        aligned /= total[:, :, None]
        null /= total
        mass = aligned.sum(axis=0)  # (m, n)
        statistics.append(
            _Statistics(
                (m, n),
                pairs * m,
                float(np.log(total).sum()),
                float((mass * diagonal_feature(m, n)).sum()),
                mass.sum(axis=1),
            )
        )
    return _Posteriors(numbers, values, statistics)


def in_order(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """map(work, items), by several threads that are at most one item each ahead."""
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
    """The λ in TENSIONS that maximises Σ posterior · log δ: Newton's method on the gradient

        Σ posterior · h  -  Σ_i weight_i · E_δ[h | i]

    (Dyer et al., Section 2.2), which falls in λ; bisection where a step would leave the bracket.
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
