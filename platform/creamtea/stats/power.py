"""How many items a comparison needs: the power of the paired t-test, for planning a campaign.

Everything follows from the standard deviation of the items' differences between two systems, in points, best
taken from a pilot; else `default_deviation`: the 95 % paired-t intervals in Table 5 of Domhan et al. 2022
(200 to 350 items, two raters, four systems side by side on 1–6) have half-widths of 1.7 to 2.6 % of the
baseline's mean, and sd = half-width · √n / t is 15 to 19 % of it. The table does not print that mean; were it
4.5 points, the sd would be 0.7 to 0.9 points, 14 to 17 % of the scale's range of 5 points.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import scipy  # scipy.special is slow to import, and so is imported where it is first used

ALPHA = 0.05
POWER = 0.8
MAX_ITEMS = 1_000_000
_RANGE_SHARE = 0.16


def default_deviation(lowest: float, highest: float) -> float:
    """The sd of items' differences to plan with if there is no pilot: 16 % of the range of a rating
    scale, in points (0.8 on 1–6, 16 on 0–100). Not for preferences: `preference_deviation`."""
    return _RANGE_SHARE * (highest - lowest)


def preference_deviation() -> float:
    """The sd of the differences −2, 0 and 2 of single preferences, in points, where neither side wins and
    half of the items are judged the same: 2·√(1 − 0.5) = 1.41."""
    return math.sqrt(2)


def power_of(items: int, difference: float, deviation: float, alpha: float = ALPHA) -> float:
    """The chance that a two-sided paired t-test of n items finds a true difference, by the noncentral t
    distribution. 0 for fewer than two items. ValueError for a deviation not above 0."""
    _check(deviation)
    if items < 2:
        return 0.0
    shift = abs(difference) * math.sqrt(items) / deviation
    critical = float(scipy.special.stdtrit(items - 1, 1 - alpha / 2))
    power = _chance_above(critical, items - 1, shift)
    if shift < 5:  # above, the wrong side is out of reach (and scipy's tail is NaN)
        power += float(scipy.special.nctdtr(items - 1, shift, -critical))
    return min(1.0, power)


def items_needed(
    difference: float, deviation: float, power: float = POWER, alpha: float = ALPHA
) -> int | None:
    """The fewest items with which a true difference is found at this power; None above a million."""
    _check(deviation)
    if difference == 0.0:
        return None
    return _smallest_n(lambda n: power_of(n, difference, deviation, alpha), power)


def equivalence_power(
    items: int, difference: float, delta: float, deviation: float, alpha: float = ALPHA
) -> float:
    """The chance that two one-sided t-tests of n items show |difference| < δ where the true one is
    `difference`.

    Phillips 1990 ("Power of the two one-sided tests procedure in bioequivalence"), with two noncentral t
    distributions in place of Owen's Q: exact enough from about 0.3 up.
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
    """The fewest items with which |difference| < δ is shown at this power; None above a million."""
    _check(deviation)
    if abs(difference) >= delta:
        return None
    return _smallest_n(lambda n: equivalence_power(n, difference, delta, deviation, alpha), power)


def _chance_above(critical: float, degrees: int, shift: float) -> float:
    """Of the noncentral t distribution. scipy.stats has the same to 1e-15 and takes sixty times as long, but
    knows a value for the largest shifts, too."""
    below = float(scipy.special.nctdtr(degrees, shift, critical))
    return float(scipy.stats.nct.sf(critical, degrees, shift)) if math.isnan(below) else 1.0 - below


def _smallest_n(power_with: Callable[[int], float], power: float) -> int | None:
    """The smallest n in 2 … a million with power_with(n) ≥ power, which rises with n."""
    if not 0.0 < power < 1.0:
        raise ValueError(f"a power must be between 0 and 1, not {power}")
    high = 2
    while power_with(high) < power:
        if high == MAX_ITEMS:
            return None
        high = min(2 * high, MAX_ITEMS)
    low = high // 2  # too few, or 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_with(middle) >= power else (middle, high)
    return high


def _check(deviation: float) -> None:
    if not (math.isfinite(deviation) and deviation > 0):
        raise ValueError(f"the deviation of differences must be above 0, not {deviation}")
