"""What a campaign that aims knows of each comparison with the baseline while it runs, and what it does next.

A comparison is *settled* once its verdict holds whenever one looks; it is *hopeless* once more ratings are
unlikely to decide it within the campaign; else it is open, and its system is rated on every unit that
comes. Two tests share the 5 %: one for all looks together (`creamtea.stats.sequential`) has a fifth of it,
the paired t-test at the planned end four fifths, so that a campaign that never settles early ends nearly as
sharp as one that does not aim:

    p = min(1, 5 · p_anytime, 1.25 · p_end)

is a p-value at any time (a weighted Bonferroni bound; p_end = 1 before the end), and Holm corrects it over
the comparisons as usual. "No difference larger than δ" likewise: the confidence sequence of level 98 % inside
±δ at any time, or at the end the 92 % t interval. Giving up on hopeless ones cannot make false alarms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import special, stats

from creamtea.stats.bootstrap import SEED
from creamtea.stats.correction import holm
from creamtea.stats.estimate import Array
from creamtea.stats.sequential import BURN_IN, sequence

ALPHA = 0.05
EARLY = 0.2  # share of α for all looks before the end
HOPELESS = 0.1  # chance of a verdict at the end below which a comparison is given up
SETTLED_SHARE = 0.1  # of the units on which a system whose verdict is stated is still rated


class State(StrEnum):
    OPEN = "open"
    BETTER = "better"
    WORSE = "worse"
    NO_LARGER_DIFFERENCE = "no difference larger than δ"
    HOPELESS = "not to be decided by what is planned"

    @property
    def settled(self) -> bool:
        return self in (State.BETTER, State.WORSE, State.NO_LARGER_DIFFERENCE)


@dataclass(frozen=True)
class Look:
    """One comparison at one moment: the mean difference by inverse probabilities (points) with its 95 %
    confidence sequence, the p-value after Holm's correction, and the state."""

    state: State
    units: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None


def look(values: Sequence[Array], planned: Sequence[int], delta: float) -> list[Look]:
    """Every comparison as it stands.

    `values` has for each comparison its y_t (t,) of `creamtea.stats.sequential` in the order of units, those
    that were not rated as 0; `planned` the number of units that it has in the whole campaign. Units that
    cannot be compared at all (an output is missing) are in neither.
    """
    if not delta > 0:
        raise ValueError(f"δ must be above 0 points, not {delta}")
    plans = list(zip(values, planned, strict=True))
    ways = [sequence(y, best_at=max(1, units // 2)) if len(y) else None for y, units in plans]
    ends = [_p_of_t(y) if len(y) >= units else None for y, units in plans]
    combined = [
        None if way is None else min(1.0, float(way.p_value[-1]) / EARLY, _at_end(end))
        for way, end in zip(ways, ends, strict=True)
    ]
    corrected = holm(combined)
    found = []
    for (y, units), way, p in zip(plans, ways, corrected, strict=True):
        if way is None:
            found.append(Look(State.OPEN, 0))
            continue
        mean, ended = float(way.mean[-1]), len(y) >= units
        if p is not None and p < ALPHA:
            state = State.BETTER if mean > 0 else State.WORSE
        elif _within(y, units, delta, ended):
            state = State.NO_LARGER_DIFFERENCE
        elif ended or _hopeless(y, units, delta, len(values)):
            state = State.HOPELESS
        else:
            state = State.OPEN
        low, high = float(way.low[-1]), float(way.high[-1])
        wide = math.isinf(high)
        found.append(Look(state, len(y), mean, None if wide else low, None if wide else high, p))
    return found


def _at_end(p: float | None) -> float:
    return 1.0 if p is None else p / (1 - EARLY)


def _p_of_t(y: Array) -> float | None:
    deviation = float(y.std(ddof=1)) if len(y) > 1 else 0.0
    if deviation == 0.0:
        return None
    return float(2 * special.stdtr(len(y) - 1, -abs(float(y.mean())) * math.sqrt(len(y)) / deviation))


def _within(y: Array, planned: int, delta: float, ended: bool) -> bool:
    """Whether no difference is larger than δ, at any time or at the end."""
    whole = sequence(y, best_at=max(1, planned // 2), alpha=2 * EARLY * ALPHA)
    if bool(((whole.low > -delta) & (whole.high < delta)).any()):
        return True
    if not ended or len(y) < 2:
        return False
    t = float(stats.t.ppf(1 - (1 - EARLY) * ALPHA, len(y) - 1))
    half = t * float(y.std(ddof=1)) / math.sqrt(len(y))
    return abs(float(y.mean())) + half < delta


def _hopeless(y: Array, planned: int, delta: float, comparisons: int) -> bool:
    """Whether a verdict at the planned end has a chance below 10 %, were the rest like what has been seen.

    Given t of N units the mean at the end is normal about the present one with variance σ²(1/t − 1/N)
    (predictive power: Spiegelhalter, Freedman and Blackburn 1986).
    """
    t = len(y)
    deviation = float(y.std(ddof=1)) if t > 1 else 0.0
    if t < max(BURN_IN, planned // 10) or deviation == 0.0:
        return False
    error = deviation / math.sqrt(planned)
    apart = deviation * math.sqrt(1 / t - 1 / planned)
    needed = -float(special.ndtri((1 - EARLY) * ALPHA / (2 * comparisons))) * error
    inside = delta + float(special.ndtri((1 - EARLY) * ALPHA)) * error
    mean = float(y.mean())
    chance = special.ndtr((mean - needed) / apart) + special.ndtr((-needed - mean) / apart)
    if inside > 0:
        chance += special.ndtr((inside - mean) / apart) - special.ndtr((-inside - mean) / apart)
    return float(chance) < HOPELESS


def probability(state: State) -> float:
    """With what probability a system is rated on the next unit: never 0, and 1 while its verdict is open."""
    return 1.0 if state is State.OPEN else SETTLED_SHARE


def weights_at_the_end(probabilities: Array) -> Array:
    """The weights √q_t with which the mean of the y_t (t,) has a t interval that holds at the end of a
    campaign that aimed (Hadad, Hirshberg, Zhan, Wager and Athey 2021, "Confidence intervals for policy
    evaluation in adaptive experiments", PNAS 118).

    They keep the variance of the terms alike, so that a martingale central limit theorem holds; with equal
    weights the variance goes along with what was seen, and so does the mean: 2.8 % false alarms in place
    of 5.
    """
    return np.sqrt(probabilities)


def expected_share(
    planned: int, comparisons: int, difference: float, deviation: float, delta: float, campaigns: int = 10
) -> float:
    """The share of its ratings that a campaign needs on average if it aims, simulated: each system lies
    `difference` from the baseline, differences of units are normal with this deviation. Seeded."""
    rng = np.random.default_rng(SEED)
    every = max(5, planned // 12)
    used = 0.0
    for _ in range(campaigns):
        values = rng.normal(difference, deviation, (comparisons, planned))
        is_open = np.ones(comparisons, dtype=bool)
        for start in range(0, planned, every):
            end = min(start + every, planned)
            shares = np.where(is_open, 1.0, SETTLED_SHARE)
            used += (end - start) * (shares.sum() + shares.max())
            found = look(list(values[:, :end]), [planned] * comparisons, delta)
            is_open = np.array([one.state is State.OPEN for one in found])
    return float(used / (campaigns * planned * (comparisons + 1)))
