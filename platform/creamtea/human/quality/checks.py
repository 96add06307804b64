"""Each check judges one measure of a rater against a bound, and says the bound and why it is there.

The bounds were set on simulated raters (tests/human/test_quality.py) and on the annotators of three published
campaigns (bench/rater_reports.py; FLAGGED has how many of them each check flags). A check without enough
to judge by says so; it never passes for want of data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from creamtea.human.protocols import Protocol
from creamtea.human.quality.measures import MIN_CLUES, MIN_ITEMS, RUN_BY_CHANCE, Measures
from creamtea.stats.estimate import Array
from creamtea.stats.paired import sign_flip
from creamtea.wording import counted

State = Literal["ok", "flagged", "unknown"]

MIN_BAD = 5  # pairs: with 4 even a perfect rater has p = 1/16
MIN_REPEATS = 5  # outputs
MIN_SHARED = 10  # outputs

LEVEL = 0.05
WEAK = 0.5  # of the others' signs of reading
NOT_LOWER = 0.5
MAX_SPEED = 476.0  # words per minute
EQUAL_SHARE, ABOVE_OTHERS = 0.5, 0.25
ONE_ANSWER, NEARLY_ALL = 0.9, 0.95
MIN_RUN = 10
NARROW = 1 / 3
OF_USUAL = 0.5
SEVERE = 0.3  # of the scale's range
AGAINST_OTHERS = ("reading", "agreement", "severity")  # checks that take the others for right
ONE_OTHER = "with one other rater nobody can tell which of the two it is"


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

    @property
    def measured(self) -> str:
        """How many accepted annotators of published campaigns it flags; "" where none was judged by it."""
        return flagged_in_words(self.name)


def judge(own: Measures, comparison: Comparison) -> list[Check]:
    """Every check that the protocol has, in the order in which a report shows them."""
    checks = [reading(own, comparison), bad_references(own), repeats(own, comparison), speed(own, comparison)]
    if comparison.protocol.max_outputs > 1:
        checks.append(equal_scores(own, comparison))
    checks += [one_answer(own, comparison), longest_run(own), spread(own, comparison)]
    checks += [agreement(own, comparison)]
    if not comparison.protocol.relative:
        checks.append(severity(own, comparison))
    if comparison.one_other:
        checks = [_undecided(check) if check.name in AGAINST_OTHERS else check for check in checks]
    return checks


def _undecided(check: Check) -> Check:
    """A check that would flag a rater for being unlike the only other one, of whom the same is true."""
    if check.state != "flagged":
        return check
    return replace(check, state="unknown", shown=f"{check.shown}; {ONE_OTHER}")


def reading(own: Measures, comparison: Comparison) -> Check:
    """The permutation test of stats/rater_checks.py: do the scores go with the texts?"""
    usual, weak = _strength_of_others(comparison)
    title = "signs of reading"
    bound = f"p ≥ {LEVEL:g}, or less than {weak:.1f} deviations above chance"
    reason = (
        "bad references, repeats and the others' scores together, against the rater's own answers shuffled: "
        "habits such as round numbers, or many top scores, change nothing. Of raters who do not read, one "
        f"in twenty reaches p < {LEVEL:g}. Also flagged: less than half the others' usual strength, if 19 of "
        "20 of them have more"
    )
    if (few := _few(own.clues, MIN_CLUES, "clues", "no controls, and nobody else's scores")) is not None:
        return _unknown("reading", title, few, bound, reason, weak)
    found = own.reading
    p, strength = found.reads or 1.0, found.strength or 0.0
    shown = f"p = {p:.3f} by {own.clues} clues, {strength:+.1f} deviations above chance"
    shown += "" if usual is None else f"; others {usual:+.1f}"
    flagged = p >= LEVEL or strength < weak
    return _judged("reading", title, strength, weak, flagged, shown, bound, reason)


def _strength_of_others(comparison: Comparison) -> tuple[float | None, float]:
    """The median of the others' signs of reading, and what is weak beside them: less than half of it, and
    below the 5 % of a normal distribution with their median and median deviation."""
    strengths = comparison.others("strength")
    if not len(strengths):
        return None, 0.0
    usual = float(np.median(strengths))
    deviation = 1.4826 * float(np.median(np.abs(strengths - usual)))
    return usual, max(0.0, min(WEAK * usual, usual - 1.645 * deviation))


def bad_references(own: Measures) -> Check:
    """One-sided paired sign-flip test: are spoilt texts scored below their originals?"""
    title, bound = "bad references", f"p ≥ {NOT_LOWER:g}, original above bad reference"
    reason = (
        f"raters who read notice a spoilt text. By scoring at random, one in twenty reaches p < {LEVEL:g}; "
        "with ten pairs many who read do not. Spoilt texts scored no lower overall are flagged"
    )
    differences = own.bad_differences
    if (few := _few(len(differences), MIN_BAD, "pairs", "no controls")) is not None:
        return _unknown("bad-references", title, few, bound, reason, NOT_LOWER)
    flips = sign_flip(differences)
    # the sign patterns are symmetric: half of the two-sided p lies on the observed side
    two_sided = 1.0 if flips.p_value is None else flips.p_value
    p = two_sided / 2 if (flips.statistic or 0.0) > 0 else 1 - two_sided / 2
    recognised = int((differences > 0).sum())
    shown = f"p = {p:.3f}; {recognised} of {len(differences)} recognised, {differences.mean():+.2f} points"
    if LEVEL <= p < NOT_LOWER:
        return _unknown("bad-references", title, f"{shown}: too few pairs to tell", bound, reason, NOT_LOWER)
    return _judged("bad-references", title, p, NOT_LOWER, p >= NOT_LOWER, shown, bound, reason)


def repeats(own: Measures, comparison: Comparison) -> Check:
    """Mean absolute difference between an item and its repeat."""
    title = "repeat consistency"
    bound = "at least the difference of two of the rater's scores picked at random"
    reason = "a rater who reads scores a repeated text more consistently than that"
    mean, chance = own.repeat_difference, own.repeat_by_chance
    few = _few(len(own.repeat_differences), MIN_REPEATS, "repeated outputs", "no controls")
    if few is not None or mean is None:
        return _unknown("repeats", title, few or "", bound, reason)
    usual = comparison.usual("repeat_difference")
    shown = f"{mean:.2f} points" + ("" if usual is None else f"; others {usual:.2f}")
    if not chance:
        why = f"{shown}; all scores are equal, so that repeats say nothing"
        return _unknown("repeats", title, why, bound, reason)
    shown += f", by chance {chance:.2f}"
    return _judged("repeats", title, mean, chance, mean >= chance, shown, bound, reason)


def speed(own: Measures, comparison: Comparison) -> Check:
    """Median reading speed over the items with a time. Where the others are usually faster than anybody
    reads, the times are of something else (Appraise's begin with the first click), and judge nobody."""
    title, bound = "time", f"median above {MAX_SPEED:.0f} words per minute"
    reason = "twice the mean speed of silent reading of English prose, 238 words per minute (Brysbaert 2019)"
    speeds, value = own.words_per_minute, own.speed
    if value is None:
        few = _few(len(speeds), MIN_ITEMS, "timed items", "no times") or ""
        return _unknown("speed", title, few, bound, reason, MAX_SPEED)
    usual = comparison.usual("speed")
    if usual is not None and usual > MAX_SPEED:
        short = f"the others' times are too short for reading ({usual:.0f} words per minute)"
        why = f"{short}, so times are not judged"
        return _unknown("speed", title, why, bound, reason, MAX_SPEED)
    above = int((speeds > MAX_SPEED).sum())
    shown = (
        f"{np.median(own.seconds):.1f} s per item, {value:.0f} words per minute; {above} of "
        f"{counted(len(speeds), 'item')} faster than the bound"
    )
    return _judged("speed", title, value, MAX_SPEED, value > MAX_SPEED, shown, bound, reason)


def equal_scores(own: Measures, comparison: Comparison) -> Check:
    """The share of items whose different outputs all got the same score."""
    usual = comparison.usual("share_equal")
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


def one_answer(own: Measures, comparison: Comparison) -> Check:
    """The share of the commonest answer."""
    usual = comparison.usual("commonest")
    threshold = max(ONE_ANSWER, min((usual or 0.0) + ABOVE_OTHERS, NEARLY_ALL))
    title, bound = "one answer", f"at least {_percent(threshold)} of the items"
    reason = (
        f"nine of ten, or {ABOVE_OTHERS * 100:.0f} percentage points above the others if that is more: "
        "where most outputs are good, raters who read score three of four alike"
    )
    if (few := _few(own.answers, MIN_ITEMS, "items", "no items")) is not None:
        return _unknown("one-answer", title, few, bound, reason, threshold)
    share = own.commonest
    shown = f"{_percent(share)} of {own.answers} items" + (
        "" if usual is None else f"; others {_percent(usual)}"
    )
    return _judged("one-answer", title, share, threshold, share >= threshold, shown, bound, reason)


def longest_run(own: Measures) -> Check:
    """The longest run of items with the same scores at the same places."""
    title = "longest run"
    bound = f"at least {MIN_RUN} items in a row, by chance less often than {RUN_BY_CHANCE:g}"
    reason = "by chance: among random orders of the rater's own answers, so giving many alike raises no flag"
    if (few := _few(own.answers, MIN_ITEMS, "items", "no items")) is not None:
        return _unknown("run", title, few, bound, reason, RUN_BY_CHANCE)
    run, p = own.longest_run, own.run_by_chance
    chance = f"{100 * p:.0f}" if p >= 0.1 else f"{100 * p:.2g}"
    shown = f"{run} of {own.answers} items; by chance in {chance} %"
    flagged = run >= MIN_RUN and p < RUN_BY_CHANCE
    return _judged("run", title, p, RUN_BY_CHANCE, flagged, shown, bound, reason)


def spread(own: Measures, comparison: Comparison) -> Check:
    """The standard deviation of the scores beside the others'."""
    # without others, or beside one who may use too much of it: a twentieth of the scale
    usual = None if comparison.one_other else comparison.usual("spread")
    threshold = 0.05 * comparison.points_range if usual is None else NARROW * usual
    title, bound = "use of the scale", f"standard deviation below {threshold:.2f} points"
    reason = (
        "a third of what is usual among the others"
        if usual is not None
        else "a twentieth of the scale's range"
    )
    if (few := _few(own.rated, MIN_ITEMS, "scores", "no scores")) is not None:
        return _unknown("spread", title, few, bound, reason, threshold)
    value = own.spread or 0.0
    shown = f"standard deviation {value:.2f} points" + ("" if usual is None else f"; others {usual:.2f}")
    return _judged("spread", title, value, threshold, value < threshold, shown, bound, reason)


def agreement(own: Measures, comparison: Comparison) -> Check:
    """Correlation with the mean of the others on the same outputs."""
    usual = comparison.usual("correlation")
    threshold = OF_USUAL * max(usual or 0.0, 0.0)
    title, bound = "agreement", f"95 % interval of the correlation with the others below {threshold:.2f}"
    reason = "half of what is usual in the campaign; few shared outputs prove nothing"
    few = _few_shared(own, comparison)
    value, high = own.agreement.value, own.agreement.high
    if few is not None or value is None:
        return _unknown("agreement", title, few or "the others always agree", bound, reason, threshold)
    if high is None:
        return _unknown("agreement", title, own.agreement.reason or "no interval", bound, reason, threshold)
    interval = "" if own.agreement.low == high else f" [{own.agreement.low:+.2f}, {high:+.2f}]"
    r = round(value, 2) + 0.0  # no "-0.00"
    shown = f"r = {r:+.2f}{interval} on {own.shared} {comparison.protocol.judged}"
    shown += "" if usual is None else f"; others {usual:+.2f}"
    return _judged("agreement", title, value, threshold, high < threshold, shown, bound, reason)


def severity(own: Measures, comparison: Comparison) -> Check:
    """How far the rater's mean lies from the others' on the same outputs."""
    threshold = SEVERE * comparison.points_range
    title, bound = "severity", f"more than {counted(threshold, 'point')} from the others"
    reason = (
        "three tenths of the scale; severity cancels out when systems are compared side by side, but this "
        "much suggests that the scale was misunderstood"
    )
    few = _few_shared(own, comparison)
    if few is not None or own.severity is None:
        return _unknown("severity", title, few or "nothing shared", bound, reason, threshold)
    value = own.severity
    shown = f"{value:+.2f} points ({'milder' if value > 0 else 'stricter'} than the others)"
    return _judged("severity", title, value, threshold, abs(value) > threshold, shown, bound, reason)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _few(count: int, needed: int, of: str, none: str) -> str | None:
    """Why a check cannot judge; None where it can."""
    if count == 0:
        return none
    return f"only {count} {of}, {needed} are needed" if count < needed else None


def _few_shared(own: Measures, comparison: Comparison) -> str | None:
    what = f"{comparison.protocol.judged} that others rated too"
    return _few(own.shared, MIN_SHARED, what, "nobody else rated the same items")


def _unknown(
    name: str, title: str, why: str, bound: str, reason: str, threshold: float | None = None
) -> Check:
    return Check(name, title, "unknown", None, threshold, why, bound, reason)


def _judged(
    name: str, title: str, value: float, threshold: float, flagged: bool, shown: str, bound: str, reason: str
) -> Check:
    state: State = "flagged" if flagged else "ok"
    return Check(name, title, state, float(value), float(threshold), shown, bound, reason)


# ---------------------------------------------------------------- the others


@dataclass(frozen=True)
class CountingRaters:
    """The measures of those who count, by rater. Each figure is computed once for all comparisons, so that a
    report costs no more where there are many raters."""

    measures: Mapping[int, Measures]
    _known: dict[str, tuple[dict[int, float], Array]] = field(default_factory=dict, init=False, repr=False)

    def without(self, rater: int, figure: str) -> Array:
        """The figure, a field of `Measures`, of all others who have it, ascending."""
        if figure not in self._known:
            figures = {other: getattr(own, figure) for other, own in self.measures.items()}
            of_rater = {other: value for other, value in figures.items() if value is not None}
            self._known[figure] = of_rater, np.sort(np.array(list(of_rater.values()), dtype=np.float64))
        of_rater, ascending = self._known[figure]
        if rater not in of_rater:
            return ascending
        return np.delete(ascending, np.searchsorted(ascending, of_rater[rater]))


@dataclass(frozen=True)
class Comparison:
    """What a check knows beside the rater: the protocol and the other raters who count."""

    protocol: Protocol
    counting: CountingRaters
    rater: int

    def others(self, figure: str) -> Array:
        """The others' figures, ascending."""
        return self.counting.without(self.rater, figure)

    def usual(self, figure: str) -> float | None:
        """The median over the others; None where nobody has the figure."""
        known = self.others(figure)
        return float(np.median(known)) if len(known) else None

    @property
    def one_other(self) -> bool:
        """Whether a single other rater counts: where the two differ, either may be the one who errs."""
        return len(self.counting.measures.keys() - {self.rater}) == 1

    @property
    def points_range(self) -> float:
        scale = self.protocol.scale
        return float(scale.highest - scale.lowest)


# ---------------------------------------------------------------- false alarms

# Measured on people: annotators whom the organisers of three published campaigns accepted, by
# bench/rater_reports.py (docs/results/data/human-evaluation.yaml has the intervals). Crowd DA: WMT 2022
# German-English, workers whom WMT's own control of quality had let through. ESA and MQM: the campaigns on
# WMT 2023 English-German of Kocmi et al. 2024. Some of these annotators may well have scored without reading:
# the rates are upper limits of false alarms.
CAMPAIGNS = ("crowd DA", "ESA", "MQM")
ANNOTATORS = (151, 33, 12)
DESCRIBED = (7, 1, 0)  # by any of SIGNS
# by the name of a check; one that a campaign gave nothing to judge by flags nobody
FLAGGED: dict[str, tuple[int, int, int]] = {
    "reading": (18, 5, 1),
    "bad-references": (13, 0, 0),
    "repeats": (16, 0, 0),
    "speed": (0, 11, 4),  # with the texts; times that begin with the first click
    "one-answer": (0, 0, 0),
    "run": (7, 0, 0),
    "spread": (5, 0, 0),
    "agreement": (2, 0, 0),
    "severity": (5, 0, 0),
}
NOT_JUDGED: dict[str, tuple[str, ...]] = {
    "repeats": ("ESA", "MQM"),
    "speed": ("crowd DA",),
    "agreement": ("ESA", "MQM"),
    "severity": ("ESA", "MQM"),
}


def flagged_in_words(check: str) -> str:
    """How many accepted annotators a check flags, by campaign; "" for one that was judged on none."""
    counts = FLAGGED.get(check)
    if counts is None:
        return ""
    parts = [
        f"{count} of {of} ({campaign})"
        for campaign, count, of in zip(CAMPAIGNS, counts, ANNOTATORS, strict=True)
        if campaign not in NOT_JUDGED.get(check, ())
    ]
    return f"flags {', '.join(parts)} accepted annotators" if parts else ""


def described_in_words() -> str:
    """How many accepted annotators got a description, together and by campaign."""
    parts = ", ".join(
        f"{campaign} {count} of {of}"
        for campaign, count, of in zip(CAMPAIGNS, DESCRIBED, ANNOTATORS, strict=True)
    )
    share = 100 * sum(DESCRIBED) / sum(ANNOTATORS)
    together = f"{sum(DESCRIBED)} of {sum(ANNOTATORS)}"
    return f"{together} annotators whom published campaigns accepted ({share:.0f} %; {parts})"
