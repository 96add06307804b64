"""Tests that hold at any moment, and adaptive sampling by what they have decided.

A fixed-sample test is right at one moment chosen before. Who looks after every rating and stops at p < 0.05
finds a difference between equal systems sooner or later. Here the 5 % are for all moments up to the planned
end together, by a group-sequential test: of N units (documents, or segments) that come in random order, what
has been seen is tested at n = N/20, 2N/20, …, N only, whenever anybody looks. The chance of a false alarm up
to the fraction t of the units is α·t³ (the power family of error spending: Lan and DeMets 1983, "Discrete
sequential boundaries for clinical trials", Biometrika 70; Kim and DeMets 1987, "Design and analysis of group
sequential tests based on the type I error spending rate function", Biometrika 74). Most of it is kept for
the end, where z is 2.13 in place of 1.96.

Boundaries come from recursive integration (Armitage, McPherson and Rowe 1969; Jennison and Turnbull 2000,
"Group Sequential Methods", chapter 19) for a normal score; a t of few units is turned into the z of the same
p-value (their section 3.8). Boundaries of a smaller α lie outside, so that the smallest α whose boundary was
crossed is a p-value at any moment (section 9.2 there), as Holm's correction needs it. Repeated confidence
intervals (Jennison and Turnbull 1989, "Interim analyses: the repeated confidence interval approach", J. R.
Stat. Soc. B 51) hold the true mean at all looks together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np
import scipy  # scipy.special is slow to import, and so is imported where it is first used
from numpy.typing import NDArray

from creamtea.stats.estimate import ROUNDING, Array
from creamtea.stats.paired import holm

ALPHA = 0.05
LOOKS = 20  # until the planned end
BURN_IN = 20  # units before the first look: t of fewer says little where values are not normal
_POWER = 3  # of the spending function
_NODES = 64  # of Gauss and Legendre's rule
_WIDEST = 9.0  # z beyond which nothing is integrated
_LEVELS = np.geomspace(0.99, 1e-8, 33)  # of α, between which p-values are interpolated


def spent(looks: int) -> tuple[float, ...]:
    """Return the share of α that is spent up to each of equally spaced looks: t³."""
    return tuple((look / looks) ** _POWER for look in range(1, looks + 1))


@lru_cache(maxsize=256)
def boundary(alpha: float, shares: tuple[float, ...]) -> Array:
    """Return the two-sided boundary z (looks,) that spends α·shares[k] up to equally spaced look k + 1.

    ValueError unless 0 < α < 1 and the shares rise from above 0 to at most 1.
    """
    steps = np.diff([0.0, *shares])
    if not 0.0 < alpha < 1.0 or not (steps > 0).all() or shares[-1] > 1.0:
        raise ValueError(f"no boundary spends {alpha:g} times {shares}")
    found: list[float] = []
    process = _Process()
    for wanted in alpha * steps:
        low, high = 0.0, 10.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if process.exit(middle) > wanted else (low, middle)
        found.append(high)
        process.go_on(high)
    z = np.array(found)
    z.flags.writeable = False
    return z


class _Process:
    """The density of |S_k| at nodes on the half-line.

    S_k is a sum of k standard normal values that has crossed no boundary before.
    """

    def __init__(self) -> None:
        self.k = 0
        self.x, self.mass = np.zeros(1), np.ones(1)  # nodes; density times the rule's weights

    def exit(self, z: float) -> float:
        """Return the chance to cross z (in deviations of S) at the next step."""
        bound = z * np.sqrt(self.k + 1)
        return float(self.mass @ (scipy.special.ndtr(self.x - bound) + scipy.special.ndtr(-self.x - bound)))

    def go_on(self, z: float) -> None:
        """Take the next step, within the boundary z."""
        self.k += 1
        nodes, weights = _gauss_legendre()
        half = min(z, _WIDEST) * np.sqrt(self.k) / 2
        y = half * (nodes + 1)
        kernel = np.exp(-((y[:, None] - self.x) ** 2) / 2) + np.exp(-((y[:, None] + self.x) ** 2) / 2)
        self.x, self.mass = y, half * weights * (kernel @ self.mass) / np.sqrt(2 * np.pi)


@lru_cache(maxsize=1)
def _gauss_legendre() -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights


@lru_cache(maxsize=32)
def _boundaries(looks: int) -> Array:
    """Return z (levels, looks) of the levels between which p is interpolated."""
    return np.array([boundary(float(alpha), spent(looks)) for alpha in _LEVELS])


def p_of(z: Array, looks: int) -> Array:
    """Return the smallest α whose boundary each z (looks so far,) reaches at its look; 1 above 0.99.

    Interpolated in log α over z², where it is nearly straight and lies above the true value.
    """
    table = _boundaries(looks)
    found = [
        np.exp(np.interp(one**2, column**2, np.log(_LEVELS), left=0.0))
        for one, column in zip(np.abs(z), table.T, strict=False)
    ]
    return np.array(found, dtype=np.float64)


@dataclass(frozen=True)
class Course:
    """How a comparison went: a value for each look so far, (looks,) each.

    `mean` is Σ sums / Σ sizes of the units seen, `error` its standard error with `df` degrees of freedom
    (`stats.estimate.variance_of_mean`); `z` the normal score of its t; `p_value` holds at any look and never
    rises. With fewer than BURN_IN units, or without spread (`error` 0), there is no interval and p = 1.
    """

    planned: int  # units
    seen: int  # units, looked at or not
    units: NDArray[np.int64]
    mean: Array
    error: Array
    df: Array
    z: Array
    p_value: Array

    def half_width(self, alpha: float = ALPHA) -> Array:
        """Return the half-width of the repeated 1 − α confidence interval at each look (∞ if none)."""
        bounds = boundary(alpha, spent(number_of_looks(self.planned)))[: len(self.mean)]
        t = -scipy.special.stdtrit(self.df, scipy.special.ndtr(-bounds))
        tested = (self.error > 0) & (self.units >= min(BURN_IN, self.planned))
        return np.where(tested, t * self.error, np.inf)


def number_of_looks(planned: int) -> int:
    return min(LOOKS, planned)


def looked_at(planned: int) -> NDArray[np.int64]:
    """Return the number of units after which each look comes."""
    looks = number_of_looks(planned)
    return np.round(planned * np.arange(1, looks + 1) / max(looks, 1)).astype(np.int64)


def course(sums: Array, sizes: Array, planned: int) -> Course:
    """Follow the mean Σ sums / Σ sizes of units (t,) of `planned`, in the order in which they came.

    ValueError for more units than planned, or sizes that are not positive.
    """
    s, w = np.asarray(sums, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    if s.shape != w.shape or len(s) > planned or not (w > 0).all():
        raise ValueError(f"{len(s)} units of sizes above 0 are not those of a campaign of {planned}")
    units = looked_at(planned)
    units = units[units <= len(s)]
    if not len(units):
        none = np.zeros(0)
        return Course(planned, len(s), units, none, none, none, none, none)
    centre = s.sum() / w.sum()  # taken off, which keeps the digits of squares
    s = s - centre * w

    def total(values: Array) -> Array:
        return np.cumsum(values)[units - 1]

    whole = total(w)
    m = total(s) / whole
    # powers of weights that sum to 1: s2 = Σw², …
    s2, s3, s4, s5 = (total(w**power) / whole**power for power in (2, 3, 4, 5))
    squares = (total(s**2) - 2 * m * total(w * s) + m**2 * total(w**2)) / whole**2
    trace = s2 - 2 * s3 + s2**2
    of_square = s4 + 4 * (s2 * s4 - s5) + 2 * s3**2 - 4 * s2**2 * s3 + s2**4
    some = (units > 1) & (trace > 0) & (of_square > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(some, np.sqrt(np.maximum(squares, 0.0) * s2 / trace), 0.0)
        df = np.where(some, trace**2 / of_square, 1.0)
        some &= error > ROUNDING * max(abs(centre), float(np.abs(s / w).max()))
        error = np.where(some, error, 0.0)
        t = np.where(some, (m + centre) / np.where(some, error, 1.0), 0.0)
    z = -scipy.special.ndtri(scipy.special.stdtr(df, -np.abs(t)))
    some &= units >= min(BURN_IN, planned)
    p = np.where(some, p_of(z, number_of_looks(planned)), 1.0)
    return Course(planned, len(s), units, m + centre, error, df, z, np.minimum.accumulate(p))


# How a comparison with the baseline stands while a campaign runs.
#
# A comparison is *settled* once its verdict holds whenever one looks; it is *hopeless* once more ratings are
# unlikely to decide it within the campaign; else it is open. The p-values are good at any moment, so Holm's
# correction of them is, too. "No difference larger than δ" is two one-sided tests of the same kind: the
# repeated confidence interval of level 90 % inside ±δ at some look.


GIVE_UP = 0.5
MIN_UNITS = 10  # units before a comparison is given up


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
    """One comparison at its last look, or nothing but the state before the first one.

    It has the mean difference (points) with its 95 % repeated confidence interval (None of too few units),
    the p-value after Holm's correction, and the state. `units` are those of that look.
    """

    state: State
    units: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None


def look(courses: Sequence[Course], delta: float) -> list[Look]:
    """Judge every comparison as it stands.

    Where all units differ by the same value, signs decide as they do at the end (`stats.verdict`): n of them
    on one side have p = 2·0.5ⁿ, and values within δ show that no difference is larger if 0.5ⁿ ≤ 5 %.

    Units that cannot be compared at all (an output is missing) are in no course.
    """
    if not delta > 0:
        raise ValueError(f"δ must be above 0 points, not {delta}")
    # one without a look yet counts among the comparisons, too
    corrected = holm([_p_value(one) for one in courses])
    differing = sum(p is not None and p < ALPHA for p in corrected)
    found = []
    for one, p in zip(courses, corrected, strict=True):
        same = _is_same(one)
        if not len(one.mean) or not (one.error[-1] > 0 or same):
            state = State.HOPELESS if one.seen >= one.planned else State.OPEN
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
        elif one.seen >= one.planned or _hopeless(one, delta, len(courses) - differing):
            state = State.HOPELESS
        else:
            state = State.OPEN
        found.append(Look(state, int(one.units[-1]), mean, low, high, p))
    return found


def _is_same(one: Course) -> bool:
    """Return whether there are enough units, and all of them differ by the same value."""
    return bool(len(one.mean) and one.error[-1] == 0 and one.units[-1] >= min(BURN_IN, one.planned))


def _is_within(one: Course, delta: float) -> bool:
    """Return whether some look has shown that no difference is larger than δ."""
    if _is_same(one):
        return bool(abs(one.mean[-1]) < delta and 0.5 ** int(one.units[-1]) <= ALPHA)
    return bool((np.abs(one.mean) + one.half_width(2 * ALPHA) < delta).any())


def _p_value(one: Course) -> float:
    """Return the p-value at the last look, before a correction; 1 before the first look."""
    if _is_same(one) and one.mean[-1]:
        return min(1.0, 2 * 0.5 ** int(one.units[-1]))
    return float(one.p_value[-1]) if len(one.p_value) else 1.0


def _hopeless(one: Course, delta: float, open_ones: int) -> bool:
    """Return whether a verdict at the planned end is unlikely if the other units are like those seen.

    Unlikely is a chance below GIVE_UP · (1 − t/N)² after t of N units.

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


def weights_at_the_end(probabilities: Array) -> Array:
    """Return √q_t, which divides the weights of units that were rated with probabilities q_t.

    Weights 1/q make means unbiased, and so noisy where q is small that their t intervals fail; weights 1
    are biased by the choice of when to stop. 1/√q keeps the variances of the terms alike, so that a
    martingale central limit theorem holds (Hadad, Hirshberg, Zhan, Wager and Athey 2021, "Confidence
    intervals for policy evaluation in adaptive experiments", PNAS 118), and a small part of the bias.
    bench/some_systems.py measures adaptive designs, which use them.
    """
    return np.sqrt(probabilities)
