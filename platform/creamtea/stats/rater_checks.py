"""Test whether a rater's scores depend on the texts: predict them from others' ratings, and permute them.

In many campaigns each output has one rater, so raters share no outputs. But others rated the same system on
other segments, and other systems on the same segment. The expected score is a shrunken mean: the others' mean
for the system, plus the excess of their scores on the segment over the systems' means, in which ratings of
the output itself weigh more. The prediction need not be right: permutations show how much agreement chance
gives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # scipy.stats is slow to import, and so is imported where it is first used
from numpy.typing import ArrayLike, NDArray

from creamtea.stats.estimate import ROUNDING, Array, rows_of, sums_of
from creamtea.stats.resampling import SEED

OWN_OUTPUT = 3.0  # weight of a rating of the same output, in ratings of the segment's other outputs
SHRINKAGE = 2.0  # prior ratings at the systems' means, per segment
DECIMALS = 9  # of predictions: equal ones stay equal in any order of summation
Integers = NDArray[np.int64]


def expected_scores(
    rater: ArrayLike,
    segment: ArrayLike,
    system: ArrayLike,
    score: ArrayLike,
    raters: Sequence[int],
    counting: Collection[int],
) -> dict[int, Array]:
    """Predict the scores of each of `raters` from the ratings of others.

    Columns of ratings (n,): rater, segment and system by number, and points. Only raters in `counting`
    predict, and none of them their own scores. Predictions are standard scores in the order of the rater's
    ratings; NaN if no other rater rated the system. The time grows with the number of ratings and of systems
    rated per segment.
    """
    rater_of, segment_of, system_of = (
        np.asarray(column, dtype=np.int64) for column in (rater, segment, system)
    )
    z = _standardised(rater_of, np.asarray(score, dtype=np.float64))
    counts = np.isin(rater_of, list(counting))
    systems = int(system_of.max(initial=-1)) + 1
    # a cell is an output: a system's translation of a segment
    cells, cell = np.unique(segment_of * systems + system_of, return_inverse=True)
    cell_segment, cell_system = np.divmod(cells, max(systems, 1))
    # number and sum of the ratings that predict
    cell_counts = np.bincount(cell[counts], minlength=len(cells))
    cell_sums = sums_of(cell[counts], z[counts], len(cells))
    system_counts = np.bincount(system_of[counts], minlength=systems)
    system_sums = sums_of(system_of[counts], z[counts], systems)
    predictions = {}
    for number, rows in rows_of(rater_of, raters):
        counted = rows[counts[rows]]  # subtracted from the sums, which leaves the other raters' ratings
        ratings_of_system = system_counts - np.bincount(system_of[counted], minlength=systems)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = (system_sums - sums_of(system_of[counted], z[counted], systems)) / ratings_of_system
            mean[ratings_of_system == 0] = np.nan
        near, segment = _cells_of(cell_segment, segment_of[rows])
        counted_cell = np.searchsorted(near, cell[counted])
        ratings = cell_counts[near] - np.bincount(counted_cell, minlength=len(near))
        total = cell_sums[near] - sums_of(counted_cell, z[counted], len(near))
        above = np.where(ratings > 0, total - ratings * mean[cell_system[near]], 0.0)
        predicted = np.searchsorted(near, cell[rows])  # the cells of the rater's ratings
        segment_above = sums_of(segment, above, len(near))[segment[predicted]]
        segment_ratings = sums_of(segment, ratings, len(near))[segment[predicted]]
        extra = OWN_OUTPUT - 1
        expected = mean[system_of[rows]] + (segment_above + extra * above[predicted]) / (
            SHRINKAGE + segment_ratings + extra * ratings[predicted]
        )
        predictions[number] = expected.round(DECIMALS)
    return predictions


def _cells_of(of_segment: Integers, segments: Integers) -> tuple[Integers, Integers]:
    """Return the positions of all cells of these segments, and each cell's segment, renumbered from 0.

    `of_segment`: the segment of every cell, ascending.
    """
    wanted = np.unique(segments)
    first = np.searchsorted(of_segment, wanted)
    lengths = np.searchsorted(of_segment, wanted, "right") - first
    number = np.repeat(np.arange(len(wanted)), lengths)
    return np.arange(len(number)) + (first - (np.cumsum(lengths) - lengths))[number], number


def _standardised(who: ArrayLike, score: Array) -> Array:
    """Standardise each rater's scores. A rater whose scores are all equal has only zeros."""
    _, number = np.unique(who, return_inverse=True)
    many = np.bincount(number)
    centred = score - (np.bincount(number, score) / many)[number]
    deviation = np.sqrt(np.bincount(number, centred**2) / np.maximum(many - 1, 1))
    scale = float(np.abs(score).max(initial=0.0))
    z: Array = centred / np.where(deviation > ROUNDING * scale, deviation, np.inf)[number]
    return z


# The permutation test
#
# The scores of a rater who does not read fit other items equally well. So the test reassigns the rater's
# answers to the items many times, and counts how often the new order looks as much like reading as the real
# one. Habits (all scores near 100, say, or only tens) and good systems affect both alike: a rater whose
# answers are all the same has p = 1; a rater with few scores below the top only needs these few in the right
# places.
#
# Three signs show reading: a spoilt text scores below its original, a repeat gets the same score again, and
# scores agree with other raters'. Each is a sum over the rater's scores, divided by its deviation over the
# permutations, and the three are added up. The p-value is (count + 1)/(permutations + 1) (Phipson and Smyth
# 2010).


PERMUTATIONS = 1999
_CELLS = 2_000_000  # scores in memory at once
_TIE = 1e-9  # statistics that differ by less are equal but for rounding


@dataclass(frozen=True)
class RatersScores:
    """One rater's scores.

    `value` (n,): scores in the order of answers. `answer` (n,): the number of each score's answer, ascending.
    `bad` and `repeats` (pairs, 2): positions of original and control. `shared`: positions of the scores that
    other raters' ratings predict; `expected` (shared,): the predictions.
    """

    value: Array
    answer: Integers
    bad: Integers
    repeats: Integers
    shared: Integers
    expected: Array


@dataclass(frozen=True)
class Reading:
    """How much a rater's scores depend on the texts; None if there is nothing to test.

    `reads`: one-sided p-value of a test for scores that follow the texts. `reversed`: the same for scores
    that follow them the wrong way round (bad references above originals, bad outputs above good ones).
    `strength`: standard deviations above chance.
    """

    reads: float | None = None
    reversed: float | None = None
    strength: float | None = None


def reading(scores: RatersScores, permutations: int = PERMUTATIONS, in_runs: bool = False) -> Reading:
    """Test by permutation whether one rater reads the texts.

    Whole answers with equally many outputs change places, so that scores given together stay together.
    Scores are used as ranks.

    `in_runs`: the rater's equal answers come in longer runs than chance gives, which looks consistent without
    any reading. Each permutation then shifts the rater's own order by a random number of answers.
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
    signed = z[:, 0] + z[:, 2]  # without repeats, which a reversed scale does not affect
    together = z.sum(axis=1)
    spread = together[1:].std()
    return Reading(
        _share(together),
        _share(-signed) if len(scores.bad) + len(scores.shared) else None,
        float(together[0] / spread) if spread > _TIE else 0.0,  # 0 if two of the three always cancel
    )


def _share(statistic: Array) -> float:
    """Return the share of statistics that are at least the observed (first) one, which counts too."""
    return float(np.mean(statistic >= statistic[0] - _TIE))


def _parts(ranks: Array, scores: RatersScores, expected: Array) -> Array:
    """Compute the three signs of reading for each order: (orders, n) -> (orders, 3).

    They are originals above bad references, closeness of repeats, and agreement with the other raters.
    """
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
    """Return a function that draws random orders of the scores, (orders, n), moving whole answers."""
    starts = np.flatnonzero(np.diff(answer, prepend=-1))
    sizes = np.diff([*starts, len(answer)])
    classes = [starts[sizes == size][:, None] + np.arange(size) for size in np.unique(sizes)]

    def draw(orders: int) -> Integers:
        drawn = np.empty((orders, len(answer)), dtype=np.int64)
        shift = rng.random((orders, 1))
        for places in classes:  # (answers, outputs)
            count = len(places)
            order = np.tile(np.arange(count), (orders, 1))
            order = (
                (order + (shift * count).astype(np.int64)) % count if in_runs else rng.permuted(order, axis=1)
            )
            drawn[:, places.ravel()] = places[order].reshape(orders, -1)
        return drawn

    return draw


def longest_runs(answers: Integers, permutations: int = PERMUTATIONS, seed: int = SEED) -> tuple[int, float]:
    """Return the length of the longest run of equal numbers (n,), and its p-value.

    The p-value is the share of orders with a run at least as long, among the observed order and random orders
    of the same numbers.
    """
    observed = int(_longest(answers[None])[0])
    rng = np.random.default_rng(seed)
    rows = max(1, _CELLS // max(1, len(answers)))
    count = 0
    for start in range(0, permutations, rows):
        drawn = rng.permuted(np.tile(answers, (min(rows, permutations - start), 1)), axis=1)
        count += int((_longest(drawn) >= observed).sum())
    return observed, (count + 1) / (permutations + 1)


def _longest(orders: Integers) -> Integers:
    """Return the longest run in each order (orders, n)."""
    same = orders[:, 1:] == orders[:, :-1]
    position = np.arange(1, orders.shape[1])
    last_change = np.maximum.accumulate(np.where(same, 0, position), axis=1)
    longest: Integers = 1 + (position - last_change).max(axis=1, initial=0)
    return longest
