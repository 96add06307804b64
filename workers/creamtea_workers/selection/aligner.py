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

Pairs of the same shape (m, n) are handled together, as dense arrays (pairs, m, n) with one prior (m, n).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Reals = NDArray[np.float64]

NULL_PROBABILITY = 0.08  # p₀
FIRST_TENSION = 4.0  # λ
TENSIONS = (0.0, 50.0)  # the range of λ; 0: no preference for the diagonal
_CELLS = 1 << 20  # maximum of pairs × m × n in a group of more than one pair
_BUFFER = 1 << 23  # cells sorted at a time, or whose posteriors are kept before they are counted


@dataclass(frozen=True)
class TranslationTable:
    """t(target | source): parallel arrays, sorted by source, then target; only pairs that occur together.

    The source id `vocabulary_size` is NULL.
    """

    source: Ids
    target: Ids
    probability: Reals
    vocabulary_size: int

    @property
    def keys(self) -> Ids:
        """Of each entry: ascending numbers for its pair of ids."""
        return self.source * self.vocabulary_size + self.target


@dataclass(frozen=True)
class Aligner:
    table: TranslationTable
    tension: float  # λ
    log_likelihoods: list[float]  # before each M-step: mean over the target subwords, in nats


def train_aligner(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    vocabulary_size: int,
    iterations: int,
    progress: Callable[[int, float], None] | None = None,
) -> Aligner:
    """EM over the pairs; pairs with an empty side are skipped.

    `progress(iteration, log_likelihood)` is called after each iteration, which count from 1. ValueError
    when no pair is left.
    """
    cells = _Cells.build(sources, targets, vocabulary_size)
    probability = np.full(len(cells.keys), 1.0 / vocabulary_size)
    rows = cells.keys // vocabulary_size  # the source id of each entry
    tension, history = FIRST_TENSION, []
    for iteration in range(1, iterations + 1):
        expected = _expect(cells, probability, tension)
        totals = np.bincount(rows, weights=expected.counts, minlength=vocabulary_size + 1)
        probability = expected.counts / np.maximum(totals[rows], np.finfo(float).tiny)
        tension = _best_tension(expected, tension)
        history.append(expected.log_likelihood / cells.target_tokens)
        if progress is not None:
            progress(iteration, history[-1])
    table = TranslationTable(rows, cells.keys % vocabulary_size, probability, vocabulary_size)
    return Aligner(table, tension, history)


# ---------------------------------------------------------------- the data


@dataclass(frozen=True)
class _Group:
    """Pairs of one shape, in `cells.entries[start:end]`: first (pairs, m, n), then (pairs, m) for NULL."""

    pairs: int
    m: int
    n: int
    start: int

    @property
    def end(self) -> int:
        return self.start + self.pairs * self.m * (self.n + 1)

    def split(self, cells: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Views of a flat array of the group's cells: (pairs, m, n) and (pairs, m)."""
        null = self.pairs * self.m
        return cells[:-null].reshape(self.pairs, self.m, self.n), cells[-null:].reshape(self.pairs, self.m)


@dataclass(frozen=True)
class _Cells:
    """Every (target position, source position) of every pair, as a place in the translation table."""

    keys: Ids  # of the table's entries: source * vocabulary_size + target, sorted
    entries: NDArray[np.int32]  # of each cell
    groups: list[_Group]
    target_tokens: int

    @classmethod
    def build(
        cls, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], vocabulary_size: int
    ) -> _Cells:
        groups: list[_Group] = []
        index = _Index()
        start = 0
        for _, source, target in same_shape(sources, targets):  # (pairs, n), (pairs, m)
            group = _Group(len(source), target.shape[1], source.shape[1], start)
            aligned = source[:, None, :] * vocabulary_size + target[:, :, None]  # (pairs, m, n)
            null = vocabulary_size * vocabulary_size + target  # (pairs, m)
            index.add(np.concatenate([aligned.ravel(), null.ravel()]))
            groups.append(group)
            start = group.end
        if not groups:
            raise ValueError("no pair to align: every one has an empty side")
        keys, entries = index.finish()
        return cls(keys, entries, groups, sum(group.pairs * group.m for group in groups))


class _Index:
    """Numbers keys by their order among all keys. It sorts part by part: looking up tens of millions of
    unsorted keys among millions would take minutes, and sorting all at once gigabytes."""

    def __init__(self) -> None:
        self._waiting: list[Ids] = []
        self._size = 0  # of `_waiting`
        self._parts: list[tuple[Ids, NDArray[np.int32]]] = []  # sorted keys, the places of a part's keys

    def add(self, keys: Ids) -> None:
        self._waiting.append(keys)
        self._size += len(keys)
        if self._size >= _BUFFER:
            self._sort()

    def finish(self) -> tuple[Ids, NDArray[np.int32]]:
        """The distinct keys, sorted; and the number of every added key, in the order of addition."""
        self._sort()
        keys = np.sort(np.concatenate([part for part, _ in self._parts]))
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]  # np.unique hashes, ten times slower
        numbers = [np.searchsorted(keys, part).astype(np.int32)[places] for part, places in self._parts]
        return keys, np.concatenate(numbers)

    def _sort(self) -> None:
        if self._waiting:
            keys, places = np.unique(np.concatenate(self._waiting), return_inverse=True)
            self._parts.append((keys, places.astype(np.int32)))
            self._waiting, self._size = [], 0


def same_shape(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> Iterator[tuple[list[int], Ids, Ids]]:
    """The places of pairs of one shape, their sources (pairs, n) and targets (pairs, m), at most `_CELLS`
    cells at a time, shapes in order; pairs with an empty side are omitted."""
    shapes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if source and target:
            shapes[len(target), len(source)].append(place)
    for (m, n), places in sorted(shapes.items()):
        size = max(1, _CELLS // (m * n))
        for first in range(0, len(places), size):
            part = places[first : first + size]
            pairs = [np.array([side[place] for place in part], dtype=np.int64) for side in (sources, targets)]
            yield part, pairs[0], pairs[1]


# ---------------------------------------------------------------- the two steps


@dataclass
class _Expected:
    """The result of the E-step."""

    counts: Reals  # of each entry of the table
    log_likelihood: float
    feature: float  # Σ posterior · h over all cells
    weights: dict[tuple[int, int], Reals]  # (m, n) -> (m,) posterior mass that is not on NULL


def diagonal_feature(m: int, n: int) -> Reals:
    """h(i, j, m, n) = -|i/m - j/n|, (m, n)."""
    i = np.arange(1, m + 1)[:, None] / m
    j = np.arange(1, n + 1)[None, :] / n
    return -np.abs(i - j)


def diagonal_prior(m: int, n: int, tension: float) -> Reals:
    """exp(λ h) / Z over the source positions, (m, n)."""
    scores = np.exp(tension * diagonal_feature(m, n))
    return scores / scores.sum(axis=1, keepdims=True)


def _expect(cells: _Cells, probability: Reals, tension: float) -> _Expected:
    expected = _Expected(np.zeros(len(cells.keys)), 0.0, 0.0, {})
    buffered = 0  # where the cells begin whose posteriors wait in the buffer
    largest = max(group.end - group.start for group in cells.groups)
    buffer = np.empty(min(len(cells.entries), max(_BUFFER, largest)))

    def count(end: int) -> None:
        expected.counts += np.bincount(
            cells.entries[buffered:end], weights=buffer[: end - buffered], minlength=len(expected.counts)
        )

    for group in cells.groups:
        if group.end - buffered > len(buffer):
            count(group.start)
            buffered = group.start
        posterior = buffer[group.start - buffered : group.end - buffered]
        np.take(probability, cells.entries[group.start : group.end], out=posterior)
        _posteriors(group, posterior, tension, expected)
    count(len(cells.entries))
    return expected


def _posteriors(group: _Group, values: Reals, tension: float, expected: _Expected) -> None:
    """Turn the cells' t(e|f) into posteriors, in place, and add the group's statistics for λ."""
    m, n = group.m, group.n
    aligned, null = group.split(values)  # (pairs, m, n), (pairs, m)
    aligned *= (1 - NULL_PROBABILITY) * diagonal_prior(m, n, tension)
    null *= NULL_PROBABILITY
    total = aligned.sum(axis=2) + null
    aligned /= total[:, :, None]
    null /= total
    mass = aligned.sum(axis=0)  # (m, n)
    expected.log_likelihood += float(np.log(total).sum())
    expected.feature += float((mass * diagonal_feature(m, n)).sum())
    expected.weights[m, n] = expected.weights.get((m, n), np.zeros(m)) + mass.sum(axis=1)


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
