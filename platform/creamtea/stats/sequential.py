"""Tests that hold at any moment of a campaign, and the states of comparisons while it runs.

A fixed-sample test is valid at one moment chosen before. Somebody who looks after every rating and stops at
p < 0.05 finds a difference between equal systems sooner or later. Here the 5 % hold for all moments up to the
planned end together, by a group-sequential test: N units (documents, or segments) come in random order and
are tested only after n = N/20, 2N/20, …, N of them, whenever anybody looks. The chance of a false alarm up to
the fraction t of the units is α·t³ (the power family of error spending: Lan and DeMets 1983, "Discrete
sequential boundaries for clinical trials", Biometrika 70; Kim and DeMets 1987, "Design and analysis of group
sequential tests based on the type I error spending rate function", Biometrika 74). Most of it is kept for
the end, where z is 2.13 instead of 1.96.

Boundaries come from recursive integration (Armitage, McPherson and Rowe 1969; Jennison and Turnbull 2000,
"Group Sequential Methods", chapter 19) for a normal score; the t of few units is converted to the z with the
same p-value (their section 3.8). Boundaries of a smaller α lie further out, so the smallest α whose boundary
was crossed is a p-value at any moment (their section 9.2), as Holm's correction needs it. Repeated confidence
intervals (Jennison and Turnbull 1989, "Interim analyses: the repeated confidence interval approach", J. R.
Stat. Soc. B 51) contain the true mean at all looks together.
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
BURN_IN = 20  # units before the first test: with fewer, t is unreliable if values are not normal
_POWER = 3  # of the spending function
_NODES = 64  # of the Gauss-Legendre rule
_WIDEST = 9.0  # z at which integration ends
_LEVELS = np.geomspace(0.99, 1e-8, 33)  # values of α; p-values are interpolated between them


def spent(looks: int) -> tuple[float, ...]:
    """Return the share of α spent up to each of `looks` equally spaced looks: t³."""
    return tuple((look / looks) ** _POWER for look in range(1, looks + 1))


@lru_cache(maxsize=256)
def boundary(alpha: float, shares: tuple[float, ...]) -> Array:
    """Return the two-sided boundary z (looks,) that spends α·shares[k] up to equally spaced look k + 1.

    ValueError unless 0 < α < 1 and the shares rise from above 0 to at most 1.
    """
    steps = np.diff([0.0, *shares])
    if not 0.0 < alpha < 1.0 or not (steps > 0).all() or shares[-1] > 1.0:
        raise ValueError(f"no boundary spends {alpha:g} times {shares}")
    bounds: list[float] = []
    process = _Process()
    for wanted in alpha * steps:
        low, high = 0.0, 10.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if process.exit(middle) > wanted else (low, middle)
        bounds.append(high)
        process.advance(high)
    z = np.array(bounds)
    z.flags.writeable = False
    return z


class _Process:
    """The density of |S_k| at nodes x ≥ 0, for a sum S_k of k standard normal values.

    Only sums that have crossed no boundary before are in it.
    """

    def __init__(self) -> None:
        self.k = 0
        self.x, self.mass = np.zeros(1), np.ones(1)  # nodes; density times the rule's weights

    def exit(self, z: float) -> float:
        """Return the chance to cross z (in standard deviations of S) at the next step."""
        bound = z * np.sqrt(self.k + 1)
        return float(self.mass @ (scipy.special.ndtr(self.x - bound) + scipy.special.ndtr(-self.x - bound)))

    def advance(self, z: float) -> None:
        """Take the next step; drop sums beyond the boundary z."""
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
    """Return the boundaries z (levels, looks) of all `_LEVELS`."""
    return np.array([boundary(float(alpha), spent(looks)) for alpha in _LEVELS])


def p_of(z: Array, looks: int) -> Array:
    """Return the smallest α whose boundary each z (looks so far,) reaches at its look; 1 above 0.99."""
    table = _boundaries(looks)
    p_values = [  # log α is nearly linear in z², and interpolation is never below the true value
        np.exp(np.interp(score**2, column**2, np.log(_LEVELS), left=0.0))
        for score, column in zip(np.abs(z), table.T, strict=False)
    ]
    return np.array(p_values, dtype=np.float64)


@dataclass(frozen=True)
class Course:
    """The course of a comparison: a value for each look so far, (looks,) each.

    `mean` is Σ sums / Σ sizes of the units seen, `error` its standard error with `df` degrees of freedom
    (`stats.estimate.variance_of_mean`), and `z` the normal score of its t. `p_value` is valid at any look and
    never rises. With fewer than BURN_IN units, or without spread (`error` 0), there is no interval, and p is
    1.
    """

    planned: int  # units
    seen: int  # units, including those after the last look
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
    """Return the number of units seen at each look."""
    looks = number_of_looks(planned)
    return np.round(planned * np.arange(1, looks + 1) / max(looks, 1)).astype(np.int64)


def course(sums: Array, sizes: Array, planned: int) -> Course:
    """Follow the mean Σ sums / Σ sizes over units (t,), in the order in which they came.

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
    centre = s.sum() / w.sum()  # subtracted to keep the digits of squares
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


# The state of a comparison with the baseline while a campaign runs.
#
# A comparison is *settled* once it has a verdict, which is valid at any look. It is *hopeless* if more
# ratings are unlikely to decide it within the campaign. Else it is open. The p-values are valid at any
# moment, and so is Holm's correction of them. "No difference larger than δ" needs two one-sided tests of the
# same kind: the repeated 90 % confidence interval lies inside ±δ at some look.


GIVE_UP = 0.5  # times (1 − t/N)²: a comparison with a smaller chance of a verdict is given up
MIN_UNITS = 10  # units before a comparison may be given up


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
    """One comparison at its last look; before the first look it has only a state.

    `low` and `high` are the 95 % repeated confidence interval of the mean difference, None for too few units.
    """

    state: State
    units: int  # at that look
    mean: float | None = None  # points
    low: float | None = None
    high: float | None = None
    p_value: float | None = None  # after Holm's correction


def look(courses: Sequence[Course], delta: float) -> list[Look]:
    """Return the present state of every comparison.

    If all units differ by the same value, signs decide as they do at the end (`stats.verdict`): n units on
    one side have p = 2·0.5ⁿ, and if the value is within δ and 0.5ⁿ ≤ 5 %, no difference is larger than δ.

    Units that cannot be compared (an output is missing) are in no course.
    """
    if not delta > 0:
        raise ValueError(f"δ must be above 0 points, not {delta}")
    # a comparison without a look counts in the correction, too
    corrected = holm([_p_value(comparison) for comparison in courses])
    differing = sum(p is not None and p < ALPHA for p in corrected)
    looks = []
    for comparison, p in zip(courses, corrected, strict=True):
        same = _is_constant(comparison)
        units = int(comparison.units[-1]) if len(comparison.units) else 0
        at_end = comparison.seen >= comparison.planned
        if not len(comparison.mean) or not (comparison.error[-1] > 0 or same):
            looks.append(Look(State.HOPELESS if at_end else State.OPEN, units))
            continue
        mean, half = float(comparison.mean[-1]), float(comparison.half_width()[-1])
        low, high = (None, None) if math.isinf(half) else (mean - half, mean + half)
        if p is not None and p < ALPHA:
            # the sign at the first look that had the smallest p
            decisive = mean if same else float(comparison.mean[int(np.argmin(comparison.p_value))])
            state = State.BETTER if decisive > 0 else State.WORSE
        elif _is_within(comparison, delta):
            state = State.NO_LARGER_DIFFERENCE
        elif at_end or _is_hopeless(comparison, delta, len(courses) - differing):
            state = State.HOPELESS
        else:
            state = State.OPEN
        looks.append(Look(state, units, mean, low, high, p))
    return looks


def _is_constant(comparison: Course) -> bool:
    """Return True if there are enough units, and all of them differ by the same value."""
    enough = len(comparison.mean) and comparison.units[-1] >= min(BURN_IN, comparison.planned)
    return bool(enough and comparison.error[-1] == 0)


def _is_within(comparison: Course, delta: float) -> bool:
    """Return True if some look has shown that no difference is larger than δ."""
    if _is_constant(comparison):
        return bool(abs(comparison.mean[-1]) < delta and 0.5 ** int(comparison.units[-1]) <= ALPHA)
    return bool((np.abs(comparison.mean) + comparison.half_width(2 * ALPHA) < delta).any())


def _p_value(comparison: Course) -> float:
    """Return the p-value at the last look, before Holm's correction; 1 before the first look."""
    if _is_constant(comparison) and comparison.mean[-1]:
        return min(1.0, 2 * 0.5 ** int(comparison.units[-1]))
    return float(comparison.p_value[-1]) if len(comparison.p_value) else 1.0


def _is_hopeless(comparison: Course, delta: float, undecided: int) -> bool:
    """Return True if a verdict at the planned end is unlikely, given the units seen so far.

    Unlikely is a chance below GIVE_UP · (1 − t/N)² after t of N units. Given t units, the mean at the end is
    normal about the present mean with variance σ²(1/t − 1/N) (predictive power: Spiegelhalter, Freedman and
    Blackburn 1986). Early, giving up saves many ratings; near the end it saves few, and a small chance is
    worth them.
    """
    t, planned = int(comparison.units[-1]), comparison.planned
    if t < MIN_UNITS:
        return False
    deviation, mean = float(comparison.error[-1]) * math.sqrt(t), float(comparison.mean[-1])
    error = deviation / math.sqrt(planned)
    apart = deviation * math.sqrt(max(0.0, 1 / t - 1 / planned))
    if apart == 0.0:
        return False  # all units are seen, or they all agree: nothing to predict
    shares = spent(number_of_looks(planned))
    needed = float(boundary(ALPHA / undecided, shares)[-1]) * error
    inside = delta - float(boundary(2 * ALPHA, shares)[-1]) * error
    chance = scipy.special.ndtr((mean - needed) / apart) + scipy.special.ndtr((-needed - mean) / apart)
    if inside > 0:
        chance += scipy.special.ndtr((inside - mean) / apart) - scipy.special.ndtr((-inside - mean) / apart)
    return float(chance) < GIVE_UP * (1 - t / planned) ** 2
