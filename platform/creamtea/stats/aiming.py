"""What a campaign that aims knows of each comparison with the baseline while it runs, and what it does next.

A comparison is *settled* once its verdict holds whenever one looks; it is *hopeless* once more ratings are
unlikely to decide it within the campaign; else it is open, and its system is rated on every unit that
comes. The verdict is that of the units up to there, all of them rated (`creamtea.stats.sequential`): what is
rated with a small probability afterwards is for means, and decides nothing. The p-values are good at any
moment, so Holm's correction of them is, too. "No difference larger than δ" is two one-sided tests of the same
kind: the repeated confidence interval of level 90 % inside ±δ at some look. Giving up on hopeless ones
cannot make false alarms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import scipy  # scipy.special is slow to import, and so is imported where it is first used

from creamtea.stats.bootstrap import SEED
from creamtea.stats.correction import holm
from creamtea.stats.estimate import Array
from creamtea.stats.sequential import (
    ALPHA,
    BURN_IN,
    Course,
    boundary,
    course,
    looked_at,
    number_of_looks,
    spent,
)

GIVE_UP = 0.5
MIN_UNITS = 10  # units before a comparison is given up
SETTLED_SHARE = 0.05  # of the units on which a system whose verdict is stated is still rated


class State(StrEnum):
    OPEN = "open"
    BETTER = "better"
    WORSE = "worse"
    NO_LARGER_DIFFERENCE = "no difference > δ"
    HOPELESS = "unlikely to be decided"

    @property
    def settled(self) -> bool:
        return self in (State.BETTER, State.WORSE, State.NO_LARGER_DIFFERENCE)


@dataclass(frozen=True)
class Look:
    """One comparison at its last look: the mean difference (points) with its 95 % repeated confidence
    interval (None of too few units), the p-value after Holm's correction, and the state. `units` are those of
    that look; before the first one there is nothing else."""

    state: State
    units: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None


def look(courses: Sequence[Course], delta: float, given_up: Sequence[bool] = ()) -> list[Look]:
    """Every comparison as it stands.

    Where all units differ by the same value, signs decide as they do at the end (`stats.verdict`): n of them
    on one side have p = 2·0.5ⁿ, and values within δ show that no difference is larger if 0.5ⁿ ≤ 5 %.

    Units that cannot be compared at all (an output is missing) are in no course. `given_up`: whether a
    comparison is no longer rated on every unit (by default none): unless it is settled, it is hopeless.
    """
    if not delta > 0:
        raise ValueError(f"δ must be above 0 points, not {delta}")
    # one without a look yet counts among the comparisons, too
    corrected = holm([_p_value(one) for one in courses])
    differing = sum(p is not None and p < ALPHA for p in corrected)
    found = []
    for one, p, stopped in zip(courses, corrected, given_up or [False] * len(courses), strict=True):
        same = _is_same(one)
        if not len(one.mean) or not (one.error[-1] > 0 or same):
            state = State.HOPELESS if stopped or one.seen >= one.planned else State.OPEN
            found.append(Look(state, int(one.units[-1]) if len(one.units) else 0))
            continue
        mean, half = float(one.mean[-1]), float(one.half_width()[-1])
        low, high = (None, None) if math.isinf(half) else (mean - half, mean + half)
        if p is not None and p < ALPHA:
            # at the first look of those with the smallest p
            crossed = mean if same else float(one.mean[int(np.argmin(one.p_value))])
            state = State.BETTER if crossed > 0 else State.WORSE
        elif _is_within(one, delta):
            state = State.NO_LARGER_DIFFERENCE
        elif stopped or one.seen >= one.planned or _hopeless(one, delta, len(courses) - differing):
            state = State.HOPELESS
        else:
            state = State.OPEN
        found.append(Look(state, int(one.units[-1]), mean, low, high, p))
    return found


def _is_same(one: Course) -> bool:
    """Whether there are units enough, and all of them differ by the same value."""
    return bool(len(one.mean) and one.error[-1] == 0 and one.units[-1] >= min(BURN_IN, one.planned))


def _is_within(one: Course, delta: float) -> bool:
    """Whether some look has shown that no difference is larger than δ."""
    if _is_same(one):
        return bool(abs(one.mean[-1]) < delta and 0.5 ** int(one.units[-1]) <= ALPHA)
    return bool((np.abs(one.mean) + one.half_width(2 * ALPHA) < delta).any())


def _p_value(one: Course) -> float:
    """At the last look, before a correction; 1 before the first."""
    if _is_same(one) and one.mean[-1]:
        return min(1.0, 2 * 0.5 ** int(one.units[-1]))
    return float(one.p_value[-1]) if len(one.p_value) else 1.0


def _hopeless(one: Course, delta: float, open_ones: int) -> bool:
    """Whether a verdict at the planned end has a chance below GIVE_UP · (1 − t/N)² after t of N units, were
    the rest like what has been seen.

    Given t units the mean at the end is normal about the present one with variance σ²(1/t − 1/N)
    (predictive power: Spiegelhalter, Freedman and Blackburn 1986). At first much is left to be saved, near
    the end little, and a small chance is worth it.
    """
    t, planned = int(one.units[-1]), one.planned
    if t < MIN_UNITS:
        return False
    deviation, mean = float(one.error[-1]) * math.sqrt(t), float(one.mean[-1])
    error = deviation / math.sqrt(planned)
    apart = deviation * math.sqrt(max(0.0, 1 / t - 1 / planned))
    if apart == 0.0:
        return False  # the end is judged, not predicted
    shares = spent(number_of_looks(planned))
    needed = float(boundary(ALPHA / open_ones, shares)[-1]) * error
    inside = delta - float(boundary(2 * ALPHA, shares)[-1]) * error
    chance = scipy.special.ndtr((mean - needed) / apart) + scipy.special.ndtr((-needed - mean) / apart)
    if inside > 0:
        chance += scipy.special.ndtr((inside - mean) / apart) - scipy.special.ndtr((-inside - mean) / apart)
    return float(chance) < GIVE_UP * (1 - t / planned) ** 2


def probability(state: State) -> float:
    """With what probability a system is rated on the next unit: never 0, and 1 while its verdict is open."""
    return 1.0 if state is State.OPEN else SETTLED_SHARE


def weights_at_the_end(probabilities: Array) -> Array:
    """What divides the weights of units that were rated with probabilities q_t: √q_t.

    Weights 1/q make means unbiased, and so noisy where q is small that their t intervals fail; weights 1
    are biased by the choice of when to stop. 1/√q keeps the variances of the terms alike, so that a
    martingale central limit theorem holds (Hadad, Hirshberg, Zhan, Wager and Athey 2021, "Confidence
    intervals for policy evaluation in adaptive experiments", PNAS 118), and a small part of the bias:
    bench/false_alarms.py measures both.
    """
    return np.sqrt(probabilities)


def unbiased_mean(sums: Array, sizes: Array, probabilities: Array, rated: Array) -> float:
    """Σ s·B/q over Σ w of all planned units (n,) by inverse probabilities (Horvitz and Thompson 1952): its
    expectation is Σ s / Σ w, however the campaign aimed, as q depends on the past alone.

    `sums` s count where a unit was `rated` (B) only; `sizes` w are known of all. q must be above 0.
    """
    there = np.asarray(rated, dtype=bool)
    return float((np.asarray(sums)[there] / np.asarray(probabilities)[there]).sum() / np.sum(sizes))


def expected_share(
    planned: int,
    comparisons: int,
    difference: float,
    deviation: float,
    delta: float,
    campaigns: int = 10,
    *,
    baseline: bool = True,
) -> float:
    """The share of its ratings that a campaign needs on average if it aims, simulated: each system lies
    `difference` from the baseline, differences of units are normal with this deviation. `baseline`: whether
    its outputs have ratings of their own, beside the others'. Seeded."""
    rng = np.random.default_rng(SEED)
    ends = looked_at(planned)
    used = 0.0
    for _ in range(campaigns):
        # half of a difference's variance is the baseline's, which all comparisons share
        noise = rng.normal(0.0, deviation / math.sqrt(2), (comparisons + 1, planned))
        whole = [course(y, np.ones(planned), planned) for y in difference + noise[1:] - noise[0]]
        stopped: list[int | None] = [None] * comparisons
        for end in ends[:-1].tolist():
            if None not in stopped:
                break
            seen = [one.until(end if at is None else at) for one, at in zip(whole, stopped, strict=True)]
            found = look(seen, delta, [at is not None for at in stopped])
            stopped = [
                end if at is None and one.state is not State.OPEN else at
                for at, one in zip(stopped, found, strict=True)
            ]
        each = np.array([planned if at is None else at for at in stopped])
        rated = each + SETTLED_SHARE * (planned - each)
        used += float(rated.sum() + (rated.max() if baseline else 0.0))
    return used / (campaigns * planned * (comparisons + baseline))
