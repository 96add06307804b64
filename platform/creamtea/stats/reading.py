"""Do a rater's scores depend on the texts? A permutation test against the rater's own scores.

Whoever does not read gives scores that could as well stand at other items. So the rater's own answers, as
they are (all scores near 100, say, or only tens), are given to the items anew many times, and it is counted
how often that looks as much like reading as the real order does. Coarse habits and good systems change both
sides alike: a rater whose answers are all the same has p = 1, one with few scores below the top only needs
those in the right places.

Three things look like reading: a spoilt text gets less than its original, a repeat gets the same again, and
scores go with what others say. Each is a sum over the rater's scores, divided by its own deviation over the
permutations; they are added up. The p-value is (count + 1)/(permutations + 1) (Phipson and Smyth 2010).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy  # scipy.stats is slow to import, and so is imported where it is first used
from numpy.typing import NDArray

from creamtea.stats.bootstrap import SEED
from creamtea.stats.estimate import Array

Integers = NDArray[np.int64]
PERMUTATIONS = 1999
_CELLS = 2_000_000  # scores held at once
_TIE = 1e-9  # of a sum of ranks


@dataclass(frozen=True)
class RatersScores:
    """One rater's scores: `value` (n,) in the order of answers, `answer` (n,) which answer each belongs to
    (0, 1, …; contiguous), `bad` and `repeats` (pairs, 2) positions of original and control, `shared`
    positions of scores with an `expected` (shared,) score by others."""

    value: Array
    answer: Integers
    bad: Integers
    repeats: Integers
    shared: Integers
    expected: Array


@dataclass(frozen=True)
class Reading:
    """One-sided p-values: that the scores depend on the texts as a reader's do; that they do so the other way
    round (bad references above originals, others' bad outputs above their good ones). `strength`: how far
    they do, in deviations above what chance gives. None where nothing could tell."""

    reads: float | None = None
    reversed: float | None = None
    strength: float | None = None


def reading(scores: RatersScores, permutations: int = PERMUTATIONS, in_runs: bool = False) -> Reading:
    """The permutation test of one rater. Answers with as many outputs as each other change places whole, so
    that what outputs shown together have in common is kept. Scores are taken as ranks.

    `in_runs`: the answers come in runs longer than chance makes them, so that neighbours look consistent
    whoever gives them. Then only the starting point is drawn: each order is the rater's own, moved on.
    """
    n = len(scores.value)
    if n == 0 or len(scores.bad) + len(scores.repeats) + len(scores.shared) == 0:
        return Reading()
    if np.ptp(scores.value) == 0:
        return Reading(1.0, 1.0, 0.0)
    ranks = scipy.stats.rankdata(scores.value) / n
    expected = scipy.stats.rankdata(scores.expected) if len(scores.expected) else scores.expected
    centred = expected - expected.mean() if len(expected) else expected
    rng = np.random.default_rng(SEED)
    order = _permuted(scores.answer, rng, in_runs)
    parts = [_parts(ranks[None], scores, centred)]
    rows = max(1, _CELLS // n)
    for start in range(0, permutations, rows):
        parts.append(_parts(ranks[order(min(rows, permutations - start))], scores, centred))
    table = np.concatenate(parts)  # (1 + permutations, 3)
    deviation = table[1:].std(axis=0)
    known = deviation > _TIE
    if not known.any():
        return Reading(1.0, 1.0, 0.0)
    z = np.where(known, (table - table[1:].mean(axis=0)) / np.where(known, deviation, 1.0), 0.0)
    signed = z[:, 0] + z[:, 2]  # a reversed scale repeats itself as well as another
    together = z.sum(axis=1)
    return Reading(
        _share(together),
        _share(-signed) if len(scores.bad) + len(scores.shared) else None,
        float(together[0] / together[1:].std()),
    )


def _share(statistic: Array) -> float:
    """Of the permutations, and the observed order itself, with at least the observed (first) value."""
    return float(np.mean(statistic >= statistic[0] - _TIE))


def _parts(ranks: Array, scores: RatersScores, expected: Array) -> Array:
    """(orders, n) ranks -> (orders, 3): originals above bad references, nearness of repeats, agreement."""
    bad, repeats = scores.bad, scores.repeats
    return np.stack(
        [
            np.sign(ranks[:, bad[:, 0]] - ranks[:, bad[:, 1]]).sum(axis=1)
            + (ranks[:, bad[:, 0]] - ranks[:, bad[:, 1]]).sum(axis=1),
            -np.abs(ranks[:, repeats[:, 0]] - ranks[:, repeats[:, 1]]).sum(axis=1),
            ranks[:, scores.shared] @ expected,
        ],
        axis=1,
    )


def _permuted(answer: Integers, rng: np.random.Generator, in_runs: bool) -> Callable[[int], Integers]:
    """A function that draws so many orders of the scores (orders, n) in which whole answers have changed
    places."""
    starts = np.flatnonzero(np.diff(answer, prepend=-1))
    sizes = np.diff([*starts, len(answer)])
    classes = [starts[sizes == size][:, None] + np.arange(size) for size in np.unique(sizes)]

    def draw(orders: int) -> Integers:
        drawn = np.empty((orders, len(answer)), dtype=np.int64)
        moved = rng.random((orders, 1))
        for places in classes:  # (answers, outputs)
            many = len(places)
            turn = np.tile(np.arange(many), (orders, 1))
            turn = (turn + (moved * many).astype(np.int64)) % many if in_runs else rng.permuted(turn, axis=1)
            drawn[:, places.ravel()] = places[turn].reshape(orders, -1)
        return drawn

    return draw


def longest_runs(answers: Integers, permutations: int = PERMUTATIONS, seed: int = SEED) -> tuple[int, float]:
    """The longest run of equal numbers (n,), and the share of random orders of the same numbers (and the
    observed one) that have one as long."""
    observed = int(_longest(answers[None])[0])
    rng = np.random.default_rng(seed)
    rows = max(1, _CELLS // max(1, len(answers)))
    count = 0
    for start in range(0, permutations, rows):
        drawn = rng.permuted(np.tile(answers, (min(rows, permutations - start), 1)), axis=1)
        count += int((_longest(drawn) >= observed).sum())
    return observed, (count + 1) / (permutations + 1)


def _longest(orders: Integers) -> Integers:
    """(orders, n) -> the longest run in each."""
    same = orders[:, 1:] == orders[:, :-1]
    at = np.arange(1, orders.shape[1])
    last_change = np.maximum.accumulate(np.where(same, 0, at), axis=1)
    longest: Integers = 1 + (at - last_change).max(axis=1, initial=0)
    return longest
