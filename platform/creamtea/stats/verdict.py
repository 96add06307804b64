"""One verdict for a pair of systems: better, worse, no difference larger than δ, or undecided.

"Not significant" alone says nothing: it may be that the two are alike, or that there were too few items to
tell. Two one-sided t-tests at 5 % (TOST, Schuirmann 1987: the 90 % interval lies inside ±δ) show the first;
otherwise the verdict is "undecided", with the number of items that would decide it.

A paired test over items speaks of the raters who took part. The verdict has to hold for other raters as well:
the test and the interval that take raters as drawn, too (stats/crossed.py), must say the same. Two or three
raters seldom get that far, for they say little about how raters differ, and one rater never does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from creamtea.stats.crossed import CrossedComparison
from creamtea.stats.paired import PairedComparison
from creamtea.stats.power import ALPHA, POWER, items_for_equivalence, items_needed


class Outcome(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    NO_LARGER_DIFFERENCE = "no difference larger than δ"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Verdict:
    """What a comparison says of the system against the baseline, in points of the scale.

    `within_delta`: the equivalence test passed, for other raters too. It may go with better or worse: a
    difference that is real, and smaller than δ. `items_needed` is the total that would decide an undecided
    pair at power 0.8, were the observed difference the true one (None: more than a million, or nothing to
    plan with), `reason` why there is no interval. `for_these_raters` is what the items alone decide where
    raters are too few, or differ too much, to say it of others: the outcome is then undecided, and raters are
    what it lacks.
    """

    outcome: Outcome
    difference: float | None
    low: float | None  # 90 %, to be compared with ±δ
    high: float | None
    p_value: float | None  # the one that decided: as handed in, or the comparison's own
    delta: float
    within_delta: bool
    items: int
    items_needed: int | None
    reason: str | None = None
    for_these_raters: Outcome | None = None


def judge(
    comparison: PairedComparison,
    delta: float,
    p_value: float | None = None,
    comparisons: int = 1,
    crossed: CrossedComparison | None = None,
    crossed_p: float | None = None,
) -> Verdict:
    """The verdict on a comparison for a margin δ > 0 in points.

    `p_value` is what the test that was registered gave, corrected by Holm where there are several
    comparisons; left out, the paired t-test's own. `comparisons` (their number) plans at 5 % / comparisons,
    Holm's hardest step.

    `crossed` is the same comparison with raters drawn too, `crossed_p` its corrected p-value (left out, its
    own). Better and worse need that to be below 5 % as well, no larger difference its 90 % interval inside
    ±δ. Where no rating of several raters deviates it decides nothing; where it has no interval for another
    reason (one rater, say), nothing can be said of other raters. Left out, the verdict is of these raters.

    Where all differences are the same value there is no t. Then the signs decide: p is the sign-flip test's,
    and the difference lies within δ where it does and n items on one side of δ have a chance of at most 5 %
    under a median of δ: 0.5ⁿ ≤ 0.05, five items.
    """
    if not (math.isfinite(delta) and delta > 0):
        raise ValueError(f"δ must be above 0 points, not {delta}")
    for p in (p_value, crossed_p):
        if p is not None and not 0.0 <= p <= 1.0:
            raise ValueError(f"{p!r} is no p-value")
    if comparisons < 1:
        raise ValueError(f"{comparisons} comparisons")
    estimate, n = comparison.estimate, comparison.items
    if estimate.mean is None:
        return Verdict(Outcome.UNDECIDED, None, None, None, None, delta, False, 0, None, estimate.reason)
    difference = estimate.mean
    interval = estimate.interval(0.90)
    if interval is not None:
        own = comparison.t_test.p_value
        within = -delta < interval[0] and interval[1] < delta
    else:
        own = comparison.sign_flip.p_value
        within = comparison.deviation == 0.0 and abs(difference) < delta and 0.5**n <= ALPHA
    p = own if p_value is None else p_value

    differs = p is not None and p < ALPHA and difference != 0.0
    these = _outcome(differs, within, difference)
    differs_elsewhere, within_elsewhere = _for_other_raters(crossed, crossed_p, delta)
    within = within and within_elsewhere
    outcome = _outcome(differs and differs_elsewhere, within, difference)
    held_back = outcome is Outcome.UNDECIDED and these is not outcome
    needed = None
    if outcome is Outcome.UNDECIDED and not held_back:
        needed = _needed(comparison, delta, comparisons)
    low, high = interval if interval is not None else (None, None)
    return Verdict(
        outcome,
        difference,
        low,
        high,
        p,
        delta,
        within,
        n,
        needed,
        estimate.reason,
        these if held_back else None,
    )


def _outcome(differs: bool, within: bool, difference: float) -> Outcome:
    if differs:
        return Outcome.BETTER if difference > 0 else Outcome.WORSE
    return Outcome.NO_LARGER_DIFFERENCE if within else Outcome.UNDECIDED


def _for_other_raters(
    crossed: CrossedComparison | None, p_value: float | None, delta: float
) -> tuple[bool, bool]:
    """Whether, with raters drawn too, there is a difference, and none larger than δ."""
    if crossed is None:
        return True, True
    found = crossed.difference
    if crossed.raters < 2:
        return False, False
    if found.standard_error == 0.0:
        return True, True
    p = found.p_value if p_value is None else p_value
    if p is None or found.low_90 is None or found.high_90 is None:
        return False, False
    return p < ALPHA, -delta < found.low_90 and found.high_90 < delta


def _needed(comparison: PairedComparison, delta: float, comparisons: int) -> int | None:
    """The fewer of the items that show the observed difference and those that show it is below δ."""
    estimate = comparison.estimate
    if estimate.mean is None or estimate.standard_error is None:
        return None
    deviation = estimate.standard_error * math.sqrt(comparison.items)  # of an item, its weight taken in
    candidates = (
        items_needed(estimate.mean, deviation, POWER, ALPHA / comparisons),
        items_for_equivalence(estimate.mean, delta, deviation, POWER, ALPHA),
    )
    return min((count for count in candidates if count is not None), default=None)
