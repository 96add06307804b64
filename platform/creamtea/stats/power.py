"""How many items or documents a comparison needs, for planning a campaign.

Everything follows from the standard deviation of the items' differences between two systems, in points, best
taken from a pilot, otherwise from `default_deviation`. The default comes from the 95 % paired-t intervals in
Table 5 of Domhan et al. 2022 (200 to 350 items, two raters, four systems side by side on 1–6): their
half-widths are 1.7 to 2.6 % of the baseline's mean, so sd = half-width · √n / t is 15 to 19 % of that mean.
The table does not print the mean; if it were 4.5 points, the sd would be 0.7 to 0.9 points, 14 to 17 % of the
scale's range of 5 points.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # scipy.special is slow to import, and so is imported where it is first used
from numpy.typing import ArrayLike

from creamtea.stats.estimate import USUAL_INTRACLASS, Array

ALPHA = 0.05
POWER = 0.8
MAX_ITEMS = 1_000_000
_RANGE_SHARE = 0.16


def default_deviation(lowest: float, highest: float) -> float:
    """Return the sd of items' differences to plan with if there is no pilot: 16 % of a scale's range.

    In points: 0.8 on 1–6, 16 on 0–100.
    """
    return _RANGE_SHARE * (highest - lowest)


def power_of(items: int, difference: float, deviation: float, alpha: float = ALPHA) -> float:
    """Return the power of a two-sided paired t-test of n items, by the noncentral t distribution.

    0 for fewer than two items. ValueError for a deviation not above 0.
    """
    _check(deviation)
    if items < 2:
        return 0.0
    shift = abs(difference) * math.sqrt(items) / deviation
    critical = float(scipy.special.stdtrit(items - 1, 1 - alpha / 2))
    power = _chance_above(critical, items - 1, shift)
    if shift < 5:  # above, the wrong side has no probability (and scipy's tail is NaN)
        power += float(scipy.special.nctdtr(items - 1, shift, -critical))
    return min(1.0, power)


def items_needed(
    difference: float, deviation: float, power: float = POWER, alpha: float = ALPHA
) -> int | None:
    """Return the smallest number of items with this power to detect a difference; None above a million."""
    _check(deviation)
    if difference == 0.0:
        return None
    return _smallest_n(lambda n: power_of(n, difference, deviation, alpha), power)


def equivalence_power(
    items: int, difference: float, delta: float, deviation: float, alpha: float = ALPHA
) -> float:
    """Return the power of two one-sided t-tests of n items to show |difference| < δ.

    `difference` is the true difference. Source: Phillips 1990 ("Power of the two one-sided tests procedure in
    bioequivalence"), with two noncentral t distributions instead of Owen's Q, which is accurate for powers
    above about 0.3.
    """
    _check(deviation)
    if items < 2 or abs(difference) >= delta:
        return 0.0
    root = math.sqrt(items) / deviation
    critical = float(scipy.special.stdtrit(items - 1, 1 - alpha))
    upper = _chance_above(critical, items - 1, (delta - abs(difference)) * root)
    lower = _chance_above(critical, items - 1, (delta + abs(difference)) * root)
    return max(0.0, upper + lower - 1)


def items_for_equivalence(
    difference: float, delta: float, deviation: float, power: float = POWER, alpha: float = ALPHA
) -> int | None:
    """Return the smallest number of items with this power to show |difference| < δ; None above a million."""
    _check(deviation)
    if abs(difference) >= delta:
        return None
    return _smallest_n(lambda n: equivalence_power(n, difference, delta, deviation, alpha), power)


def _chance_above(critical: float, degrees: int, shift: float) -> float:
    """Return the upper tail of the noncentral t distribution.

    scipy.stats gives the same to 1e-15, also for the largest shifts, but is slower.
    """
    below = float(scipy.special.nctdtr(degrees, shift, critical))
    return float(scipy.stats.nct.sf(critical, degrees, shift)) if math.isnan(below) else 1.0 - below


def _smallest_n(power_with: Callable[[int], float], power: float) -> int | None:
    """Return the smallest n from 2 to a million with power_with(n) ≥ power, which rises with n."""
    if not 0.0 < power < 1.0:
        raise ValueError(f"a power must be between 0 and 1, not {power}")
    high = 2
    while power_with(high) < power:
        if high == MAX_ITEMS:
            return None
        high = min(2 * high, MAX_ITEMS)
    first = high // 2 + 1  # fewer are too few
    return first + bisect_left(range(first, high), True, key=lambda n: power_with(n) >= power)


def _check(deviation: float) -> None:
    if not (math.isfinite(deviation) and deviation > 0):
        raise ValueError(f"the deviation of differences must be above 0, not {deviation}")


# The correlation of segments within a document, and its cost: for planning campaigns.
#
# Segments of one document say less than as many segments of different documents. With an intraclass
# correlation ρ of the differences between two systems, the variance of a mean with weights w is
#
#     σ² · ((1 − ρ) Σ_i w_i² + ρ Σ_g W_g²) / (Σ w)²,    W_g = Σ_{i in g} w_i
#
# For documents of m segments each, the design effect is 1 + (m − 1)ρ (Kish 1965, "Survey Sampling").


@dataclass(frozen=True)
class Sample:
    """The effective size of a sample of weighted units.

    `units`: as if each unit were a document of its own (Kish's (Σw)²/Σw²). `effective`: units, given the
    documents as they are. `documents`: documents of equal weight.
    """

    units: float
    effective: float
    documents: float

    @property
    def design_effect(self) -> float:
        return self.units / self.effective if self.effective else 1.0


def worth(weights: ArrayLike, documents: ArrayLike, intraclass: float = USUAL_INTRACLASS) -> Sample:
    """Return the effective size of units with positive weights (n,) in documents by number (n,).

    ValueError without units.
    """
    w = np.asarray(weights, dtype=np.float64)
    if not len(w):
        raise ValueError("a sample needs a unit")
    total, squares = float(w.sum()) ** 2, float((w**2).sum())
    _, number = np.unique(documents, return_inverse=True)
    of_documents = float((np.bincount(number, w) ** 2).sum())
    together = (1 - intraclass) * squares + intraclass * of_documents
    return Sample(total / squares, total / together, total / of_documents)


def intraclass_correlation(columns: Sequence[Array], documents: ArrayLike) -> float | None:
    """Estimate one ρ ≥ 0 from several variables (n,), NaN where missing.

    Variances between and within documents come from the analysis of variance (Searle, Casella and McCulloch
    1992, ch. 3) and are summed over the variables. None if no document has two units, or there is only one
    document.
    """
    labels = np.asarray(documents)
    between = within = 0.0
    counted = False
    for column in columns:
        known = ~np.isnan(column)
        x = column[known]
        _, number = np.unique(labels[known], return_inverse=True)
        sizes = np.bincount(number)
        groups, n = len(sizes), len(x)
        if groups < 2 or n == groups:
            continue
        means = np.bincount(number, x) / sizes
        of_within = float(((x - means[number]) ** 2).sum()) / (n - groups)
        of_between = float((sizes * (means - x.mean()) ** 2).sum()) / (groups - 1)
        size = (n - float((sizes**2).sum()) / n) / (groups - 1)
        between, within = between + (of_between - of_within) / size, within + of_within
        counted = True
    if not counted or between + within <= 0:
        return None
    return max(0.0, between / (between + within))
