"""Each check judges one measure of a rater against a bound, and says the bound and why it is there.

The bounds are conventions with a reason, tried on simulated raters (tests/human/test_quality.py). A check
without enough to judge by says so; it never passes for want of data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np

from creamtea.human.protocols import Protocol
from creamtea.human.quality.measures import Measures
from creamtea.stats.paired import sign_flip

State = Literal["ok", "flagged", "unknown"]

MIN_BAD = 5  # pairs: with 4 even a perfect rater has p = 1/16
MIN_REPEATS = 5  # outputs
MIN_ITEMS = 10  # for times, equal scores and runs
MIN_SHARED = 10  # outputs

LEVEL = 0.05
CHANCE_SHARE = 0.85
MAX_SPEED = 476.0  # words per minute
EQUAL_SHARE, ABOVE_OTHERS = 0.5, 0.25
RUN_BY_CHANCE = 0.001
NARROW = 1 / 3
MIN_AGREEMENT, OF_USUAL = 0.1, 0.5
SEVERE = 0.2  # of the scale's range


@dataclass(frozen=True)
class Check:
    """One judgement. `value` and `threshold` are in the unit that `shown` and `bound` write out."""

    name: str
    title: str
    state: State
    value: float | None
    threshold: float | None
    shown: str  # the value in words, or why there is none
    bound: str  # what is flagged
    reason: str  # why this bound


@dataclass(frozen=True)
class Comparison:
    """What a check knows beside the rater: the protocol and the other raters who count."""

    protocol: Protocol
    others: Sequence[Measures]

    def usual(self, of: Callable[[Measures], float | None]) -> float | None:
        """The median over the others; None where nobody has the measure."""
        known = [value for value in map(of, self.others) if value is not None]
        return median(known) if known else None

    @property
    def points_range(self) -> float:
        scale = self.protocol.scale
        return float(scale.highest - scale.lowest)


def judge(own: Measures, comparison: Comparison) -> list[Check]:
    """Every check that the protocol has, in the order in which a report shows them."""
    checks = [bad_references(own), repeats(own, comparison), speed(own)]
    if comparison.protocol.max_outputs > 1:
        checks.append(equal_scores(own, comparison))
    checks += [longest_run(own, comparison), spread(own, comparison), agreement(own, comparison)]
    if not comparison.protocol.relative:
        checks.append(severity(own, comparison))
    return checks


def bad_references(own: Measures) -> Check:
    """One-sided paired sign-flip test: are spoilt texts scored below their originals?"""
    title, bound = "bad references", f"p ≥ {LEVEL:g}, original above bad reference"
    reason = (
        "whoever reads sees that a text was spoilt; somebody who scores at random passes one time in twenty"
    )
    differences = own.bad_differences
    if (few := _few(len(differences), MIN_BAD, "pairs", "no controls")) is not None:
        return _unknown("bad-references", title, few, bound, reason, LEVEL)
    flips = sign_flip(differences)
    # the sign patterns are symmetric: half of the two-sided p lies on the observed side
    two_sided = 1.0 if flips.p_value is None else flips.p_value
    p = two_sided / 2 if (flips.statistic or 0.0) > 0 else 1 - two_sided / 2
    recognised = int((differences > 0).sum())
    shown = f"p = {p:.3f}; {recognised} of {len(differences)} recognised, {differences.mean():+.2f} points"
    return _judged("bad-references", title, p, LEVEL, p >= LEVEL, shown, bound, reason)


def repeats(own: Measures, comparison: Comparison) -> Check:
    """Mean absolute difference between an item and its repeat."""
    title = "repeat consistency"
    bound = (
        f"at least {_percent(CHANCE_SHARE)} of the difference of two of the rater's scores picked at random"
    )
    reason = "a rater who does not come back to an earlier judgement is at 100 %"
    differences, chance = own.repeat_differences, own.repeat_by_chance
    if (few := _few(len(differences), MIN_REPEATS, "repeated outputs", "no controls")) is not None:
        return _unknown("repeats", title, few, bound, reason)
    mean = float(differences.mean())
    usual = comparison.usual(
        lambda other: float(other.repeat_differences.mean()) if len(other.repeat_differences) else None
    )
    shown = f"{mean:.2f} points" + ("" if usual is None else f"; others {usual:.2f}")
    if not chance:
        why = f"{shown}; all scores are equal, so that repeats say nothing"
        return _unknown("repeats", title, why, bound, reason)
    threshold = CHANCE_SHARE * chance
    shown += f", by chance {chance:.2f}"
    return _judged("repeats", title, mean, threshold, mean >= threshold, shown, bound, reason)


def speed(own: Measures) -> Check:
    """Median reading speed over the items with a time."""
    title, bound = "time", f"median above {MAX_SPEED:.0f} words per minute"
    reason = "twice the mean speed of silent reading of English prose, 238 words per minute (Brysbaert 2019)"
    speeds = own.words_per_minute
    if (few := _few(len(speeds), MIN_ITEMS, "timed items", "no times")) is not None:
        return _unknown("speed", title, few, bound, reason, MAX_SPEED)
    value = float(np.median(speeds))
    above = int((speeds > MAX_SPEED).sum())
    shown = (
        f"{np.median(own.seconds):.1f} s per item, {value:.0f} words per minute; "
        f"{above} of {len(speeds)} items faster than the bound"
    )
    return _judged("speed", title, value, MAX_SPEED, value > MAX_SPEED, shown, bound, reason)


def equal_scores(own: Measures, comparison: Comparison) -> Check:
    """The share of items whose different outputs all got the same score."""
    usual = comparison.usual(lambda other: other.equal / other.several if other.several else None)
    threshold = max(EQUAL_SHARE, (usual or 0.0) + ABOVE_OTHERS)
    title, bound = "equal scores", f"more than {_percent(threshold)} of the items"
    reason = (
        f"half of the items, or {ABOVE_OTHERS * 100:.0f} percentage points above the others if that is more"
    )
    if (few := _few(own.several, MIN_ITEMS, "items with different outputs", "no such items")) is not None:
        return _unknown("equal-scores", title, few, bound, reason, threshold)
    share = own.equal / own.several
    shown = f"{_percent(share)} of {own.several} items" + (
        "" if usual is None else f"; others {_percent(usual)}"
    )
    return _judged("equal-scores", title, share, threshold, share > threshold, shown, bound, reason)


def longest_run(own: Measures, comparison: Comparison) -> Check:
    """The longest run of items with the same scores at the same places."""
    # what a rater of the campaign gives most often, so that many honest ties are no straight line
    commonest = min(max(comparison.usual(lambda other: other.commonest) or 0.0, 0.05), 0.95)
    by_chance = math.log(RUN_BY_CHANCE / max(own.answers, 1)) / math.log(commonest)
    threshold = max(5, math.ceil(by_chance))
    title, bound = "longest run", f"at least {threshold} items in a row with the same answer"
    reason = (
        f"less likely than {RUN_BY_CHANCE:g} by chance where the commonest answer has a share "
        f"of {_percent(commonest)} (at least 5 %), as usual among the others"
    )
    if (few := _few(own.answers, MIN_ITEMS, "items", "no items")) is not None:
        return _unknown("run", title, few, bound, reason, threshold)
    run = own.longest_run
    shown = f"{run} of {own.answers} items"
    return _judged("run", title, run, threshold, run >= threshold, shown, bound, reason)


def spread(own: Measures, comparison: Comparison) -> Check:
    """The standard deviation of the scores beside the others'."""
    usual = comparison.usual(lambda other: other.spread)
    # without others: a twentieth of the scale
    threshold = 0.05 * comparison.points_range if usual is None else NARROW * usual
    title, bound = "use of the scale", f"standard deviation below {threshold:.2f} points"
    reason = (
        "a third of what is usual among the others"
        if usual is not None
        else "a twentieth of the scale's range"
    )
    if (few := _few(len(own.values), MIN_ITEMS, "scores", "no scores")) is not None:
        return _unknown("spread", title, few, bound, reason, threshold)
    value = own.spread or 0.0
    shown = f"standard deviation {value:.2f} points" + ("" if usual is None else f"; others {usual:.2f}")
    return _judged("spread", title, value, threshold, value < threshold, shown, bound, reason)


def agreement(own: Measures, comparison: Comparison) -> Check:
    """Correlation with the mean of the others on the same outputs."""
    usual = comparison.usual(lambda other: other.agreement)
    threshold = max(MIN_AGREEMENT, OF_USUAL * (usual or 0.0))
    title, bound = "agreement", f"correlation with the others below {threshold:.2f}"
    reason = "half of what is usual in the campaign, and never less than 0.1"
    few = _few(own.shared, MIN_SHARED, "outputs that others rated too", "nobody else rated the same items")
    if few is not None or own.agreement is None:
        return _unknown("agreement", title, few or "the others always agree", bound, reason, threshold)
    value = own.agreement
    shown = f"r = {round(value, 2) + 0.0:+.2f} on {own.shared} outputs"  # + 0.0: no "-0.00"
    shown += "" if usual is None else f"; others {usual:+.2f}"
    return _judged("agreement", title, value, threshold, value < threshold, shown, bound, reason)


def severity(own: Measures, comparison: Comparison) -> Check:
    """How far the rater's mean lies from the others' on the same outputs."""
    threshold = SEVERE * comparison.points_range
    title, bound = "severity", f"more than {_points(threshold)} from the others"
    reason = (
        "a fifth of the scale; severity cancels where systems are compared side by side, "
        "but so much of it means that the scale was understood in another way"
    )
    few = _few(own.shared, MIN_SHARED, "outputs that others rated too", "nobody else rated the same items")
    if few is not None or own.severity is None:
        return _unknown("severity", title, few or "nothing shared", bound, reason, threshold)
    value = own.severity
    shown = f"{value:+.2f} points ({'milder' if value > 0 else 'stricter'} than the others)"
    return _judged("severity", title, value, threshold, abs(value) > threshold, shown, bound, reason)


def _points(number: float) -> str:
    return f"{number:g} point{'s' * (number != 1)}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _few(count: int, needed: int, of: str, none: str) -> str | None:
    """Why a check cannot judge; None where it can."""
    if count == 0:
        return none
    return f"only {count} {of}, {needed} are needed" if count < needed else None


def _unknown(
    name: str, title: str, why: str, bound: str, reason: str, threshold: float | None = None
) -> Check:
    return Check(name, title, "unknown", None, threshold, why, bound, reason)


def _judged(
    name: str, title: str, value: float, threshold: float, flagged: bool, shown: str, bound: str, reason: str
) -> Check:
    state: State = "flagged" if flagged else "ok"
    return Check(name, title, state, float(value), float(threshold), shown, bound, reason)
