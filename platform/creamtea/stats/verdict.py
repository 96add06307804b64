"""One verdict for a pair of systems: better, worse, no difference > δ, or undecided.

"Not significant" alone says nothing: the two may be alike, or there may have been too few items to tell. Two
one-sided t-tests at 5 % (TOST, Schuirmann 1987: the 90 % interval lies inside ±δ) show that they are alike;
otherwise the verdict is "undecided", with the number of items that would decide it.

A paired test over items is about the raters who took part. The verdict must hold for other raters as well:
the test and the interval that also treat raters as a sample (stats/paired.py) must agree. With two or three
raters they seldom do, because so few raters say little about how raters differ; with one rater they never do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from creamtea.stats.incomplete import SystemEstimates
from creamtea.stats.paired import CrossedComparison, PairedComparison
from creamtea.stats.power import ALPHA, POWER, items_for_equivalence, items_needed


class Outcome(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    NO_LARGER_DIFFERENCE = "no difference > δ"
    UNDECIDED = "undecided"


def deciding_test(in_blocks: bool = False) -> str:
    """Name the test that decides a comparison, for its registration and its report."""
    if in_blocks:
        return (
            "simultaneous 95 % interval of the difference, family-wise over all pairs of systems, by least "
            "squares over pairs of scores within pages, over documents (segments, where they stand alone)"
        )
    return (
        "paired t-test over items, two-sided; where items share documents over documents, each weighing as "
        "much as its items"
    )


@dataclass(frozen=True)
class Verdict:
    """What a comparison says of the system against the baseline.

    `within_delta`: the equivalence test passed, for other raters too. The outcome may still be better or
    worse: the difference is real, but smaller than δ. `items_needed` is the total that would decide an
    undecided pair for these raters at power 0.8 if the observed difference were the true one (None: more than
    a million, nothing to plan with, or one rater). `reason` says why there is no interval. `for_these_raters`
    is the outcome by the items alone, if there are too few raters, or they differ too much, for a verdict
    about other raters; the outcome is then undecided.
    """

    outcome: Outcome
    within_delta: bool = False
    items_needed: int | None = None
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
    """Return the verdict on a comparison for a margin δ > 0 in points.

    `p_value`: the registered test's p-value, corrected by Holm if there are several comparisons; by default
    the paired t-test's. `comparisons`: the number of comparisons; items are planned at 5 % / comparisons,
    Holm's strictest step.

    `crossed`: the same comparison with raters as a second sample; `crossed_p`: its corrected p-value (by
    default its own). Better and worse then also need `crossed_p` below 5 %; "no larger difference" also needs
    its 90 % interval inside ±δ. If no rating of several raters deviates, `crossed` changes nothing; if it has
    no interval for another reason (one rater, say), there is no verdict about other raters. Without `crossed`
    the verdict is about these raters only.
    """
    if not delta > 0:
        raise ValueError(f"δ must be above 0 points, not {delta}")
    difference, reason = comparison.estimate.value, comparison.estimate.reason
    if difference is None:
        return Verdict(Outcome.UNDECIDED, reason=reason)
    differs, within = _for_these_raters(comparison, difference, delta, p_value)
    differs_for_others, within_for_others = _for_other_raters(crossed, crossed_p, delta)
    these = _outcome(differs, within, difference)
    within = within and within_for_others
    outcome = _outcome(differs and differs_for_others, within, difference)
    if outcome is not Outcome.UNDECIDED:
        return Verdict(outcome, within, reason=reason)
    if these is not outcome:
        return Verdict(outcome, reason=reason, for_these_raters=these)
    if crossed is not None and crossed.raters < 2:  # no number of items tells how others would judge
        return Verdict(outcome, reason=reason or crossed.difference.reason)
    return Verdict(outcome, items_needed=_needed(comparison, delta, comparisons), reason=reason)


def judge_in_blocks(
    estimates: SystemEstimates | None, baseline: int, system: int, delta: float, reason: str = ""
) -> Verdict:
    """Return the verdict on two systems if pages show only some of the systems.

    It depends on whether the difference's simultaneous interval excludes 0, or lies inside ±δ. Unless raters
    are a sample, the verdict is about these raters. `reason`: why there is no estimate.
    """
    if estimates is None or estimates.reason is not None:
        return Verdict(Outcome.UNDECIDED, reason=reason if estimates is None else estimates.reason)
    difference, half = float(estimates.difference[system, baseline]), float(estimates.half[system, baseline])
    within = abs(difference) + half < delta
    these = _outcome(abs(difference) > half, within, difference)
    if these is Outcome.UNDECIDED:
        return Verdict(these, reason="the simultaneous interval has 0 in it, and values beyond δ")
    if estimates.raters:
        return Verdict(these, within)
    return Verdict(Outcome.UNDECIDED, for_these_raters=these)


def _for_these_raters(
    comparison: PairedComparison, difference: float, delta: float, p_value: float | None
) -> tuple[bool, bool]:
    """Return whether the items alone show a difference, and whether they show none larger than δ.

    If all differences are the same value, there is no t, and signs decide: p is the sign-flip test's. The
    difference then lies within δ if its value does and there are at least five items (or documents): if the
    median were δ, all n would lie on one side of it with probability 0.5ⁿ ≤ 0.05.
    """
    interval = comparison.estimate.interval(0.90)
    if interval is not None:
        uncorrected = comparison.t_test.p_value
        within = -delta < interval[0] and interval[1] < delta
    else:
        uncorrected = comparison.sign_flip.p_value
        n = comparison.items if comparison.documents is None else comparison.documents
        within = comparison.all_equal and abs(difference) < delta and 0.5**n <= ALPHA
    p = uncorrected if p_value is None else p_value
    return p is not None and p < ALPHA and difference != 0.0, within


def _outcome(differs: bool, within: bool, difference: float) -> Outcome:
    if differs:
        return Outcome.BETTER if difference > 0 else Outcome.WORSE
    return Outcome.NO_LARGER_DIFFERENCE if within else Outcome.UNDECIDED


def _for_other_raters(
    crossed: CrossedComparison | None, p_value: float | None, delta: float
) -> tuple[bool, bool]:
    """Return the same two answers as `_for_these_raters`, with raters as a second sample."""
    if crossed is None:
        return True, True
    difference = crossed.difference
    if crossed.raters < 2:
        return False, False
    if difference.standard_error == 0.0:
        return True, True
    p = difference.p_value if p_value is None else p_value
    if p is None or difference.low_90 is None or difference.high_90 is None:
        return False, False
    return p < ALPHA, -delta < difference.low_90 and difference.high_90 < delta


def _needed(comparison: PairedComparison, delta: float, comparisons: int) -> int | None:
    """Return the number of items that would show the observed difference, or show that it is below δ.

    The smaller number counts. If the tests are over documents, documents of the present size are planned.
    """
    estimate = comparison.estimate
    if estimate.value is None or estimate.standard_error is None:
        return None
    units = comparison.items if comparison.documents is None else comparison.documents
    deviation = estimate.standard_error * math.sqrt(units)  # deviation of one unit, including its weight
    candidates = (
        items_needed(estimate.value, deviation, POWER, ALPHA / comparisons),
        items_for_equivalence(estimate.value, delta, deviation, POWER, ALPHA),
    )
    needed = min((count for count in candidates if count is not None), default=None)
    return None if needed is None else math.ceil(needed * comparison.items / units)
