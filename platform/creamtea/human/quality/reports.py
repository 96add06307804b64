"""A rater's report: each check judges one measure against a bound, and says the bound and why it is there.

The bounds were set on simulated raters (tests/human/test_quality.py) and on the annotators of three published
campaigns (bench/rater_reports.py; FLAGGED has how many of them each check flags). A check without enough
to judge by says so; it never passes for want of data. A report says what the checks look like together, and
suggests; it never decides.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from sqlalchemy import select

from creamtea.human.protocols import Protocol
from creamtea.human.quality.measures import (
    MIN_CLUES,
    MIN_ITEMS,
    NONE,
    RUN_BY_CHANCE,
    Answers,
    Measures,
    measure,
    read_answers,
)
from creamtea.human.results.ratings import load_ratings
from creamtea.stats.estimate import Array
from creamtea.stats.paired import sign_flip
from creamtea.store.database import Database
from creamtea.store.tables import Campaign, Rater
from creamtea.wording import counted, with_minus

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

TOO_FAST, STRAIGHT, REVERSED, RANDOM = SIGNS = (
    "too fast",
    "straight-lining",
    "scale reversed",
    "at random",
)
IN_WORDS = {STRAIGHT: "like straight-lining", RANDOM: "given at random"}  # of signs: "answers look …"
REVERSED_BY_CHANCE = 0.01  # p against the rater's own answers in another order
BY_CHANCE = 0.1  # likewise: twice the bound of the check; below, something shows reading

# ---------------------------------------------------------------- false alarms

# Measured on people: annotators whom the organisers of three published campaigns accepted, by
# bench/rater_reports.py (docs/results/data/human-evaluation.yaml has the intervals). Crowd DA: WMT 2022
# German-English, workers whom WMT's own control of quality had let through. ESA and MQM: the campaigns on
# WMT 2023 English-German of Kocmi et al. 2024. Some of these annotators may well have scored without reading:
# the rates are upper limits of false alarms.
CAMPAIGNS = ("crowd DA", "ESA", "MQM")
ANNOTATORS = (151, 33, 12)
DESCRIBED = (7, 1, 0)  # by any of SIGNS
# by the name of a check how many it flags; None: the campaign gave nothing to judge by
FLAGGED: dict[str, tuple[int | None, int | None, int | None]] = {
    "reading": (18, 5, 1),
    "bad-references": (13, 0, 0),
    "repeats": (16, None, None),
    "speed": (None, 11, 4),  # with the texts; times that begin with the first click
    "one-answer": (0, 0, 0),
    "run": (7, 0, 0),
    "spread": (5, 0, 0),
    "agreement": (2, None, None),
    "severity": (5, None, None),
}


def described_in_words() -> str:
    """Say how many accepted annotators would get a description, together and by campaign."""
    parts = ", ".join(
        f"{campaign} {count} of {of}"
        for campaign, count, of in zip(CAMPAIGNS, DESCRIBED, ANNOTATORS, strict=True)
    )
    share = 100 * sum(DESCRIBED) / sum(ANNOTATORS)
    together = f"{sum(DESCRIBED)} of {sum(ANNOTATORS)}"
    return f"{together} annotators of published campaigns, all accepted there ({share:.0f} %; {parts})"


# ---------------------------------------------------------------- checks


@dataclass(frozen=True)
class Check:
    """One judgement. `value` and `threshold` are in the unit that `shown` and `bound` write out."""

    name: str
    title: str
    bound: str  # what is flagged
    reason: str  # why this bound
    threshold: float | None = None
    state: State = "unknown"  # until it has looked at the rater
    value: float | None = None
    shown: str = ""  # the value in words, or why there is none

    def unknown(self, why: str) -> Check:
        return replace(self, shown=why)

    def judged(self, value: float, flagged: bool, shown: str) -> Check:
        return replace(self, state="flagged" if flagged else "ok", value=float(value), shown=shown)

    @property
    def measured(self) -> str:
        """How many accepted annotators of published campaigns it flags; "" where none was judged by it."""
        parts = [
            f"{count} of {of} ({campaign})"
            for campaign, count, of in zip(CAMPAIGNS, FLAGGED.get(self.name, ()), ANNOTATORS, strict=False)
            if count is not None
        ]
        return f"flags {', '.join(parts)} accepted annotators" if parts else ""


@dataclass(frozen=True)
class Comparison:
    """What a check knows beside the rater: the protocol, and the measures of the raters who count.

    Each figure is computed once for all raters, so that a report costs no more if there are many.
    """

    protocol: Protocol
    measures: Mapping[int, Measures]
    rater: int = NONE  # who is compared with the others
    known: dict[str, tuple[dict[int, float], Array]] = field(default_factory=dict, repr=False)

    def others(self, figure: str) -> Array:
        """Return the figure, a field of `Measures`, of all others who have it, ascending."""
        if figure not in self.known:
            figures = {other: getattr(own, figure) for other, own in self.measures.items()}
            of_rater = {other: value for other, value in figures.items() if value is not None}
            self.known[figure] = of_rater, np.sort(np.array(list(of_rater.values()), dtype=np.float64))
        of_rater, ascending = self.known[figure]
        if self.rater not in of_rater:
            return ascending
        return np.delete(ascending, np.searchsorted(ascending, of_rater[self.rater]))

    def usual(self, figure: str) -> float | None:
        """Return the median over the others; None where nobody has the figure."""
        known = self.others(figure)
        return float(np.median(known)) if len(known) else None

    @property
    def one_other(self) -> bool:
        """Whether a single other rater counts: where the two differ, either may be the one who errs."""
        return len(self.measures) - (self.rater in self.measures) == 1

    @property
    def points_range(self) -> float:
        scale = self.protocol.scale
        return float(scale.highest - scale.lowest)


def judge(own: Measures, comparison: Comparison) -> list[Check]:
    """Make every check that the protocol has, in the order in which a report shows them."""
    checks = [reading(own, comparison), bad_references(own), repeats(own, comparison), speed(own, comparison)]
    if comparison.protocol.max_outputs > 1:
        checks.append(equal_scores(own, comparison))
    checks += [one_answer(own, comparison), longest_run(own), spread(own, comparison)]
    checks += [agreement(own, comparison)]
    if not comparison.protocol.relative:
        checks.append(severity(own, comparison))
    if comparison.one_other:  # what would flag a rater for being unlike the other is true of the other, too
        checks = [
            replace(check, state="unknown", shown=f"{check.shown}; {ONE_OTHER}")
            if check.name in AGAINST_OTHERS and check.state == "flagged"
            else check
            for check in checks
        ]
    return checks


def reading(own: Measures, comparison: Comparison) -> Check:
    """Test by permutation whether the scores go with the texts (stats/rater_checks.py)."""
    usual, weak = comparison.usual("strength"), 0.0
    if usual is not None:
        # less than half of it, and below the 5 % of a normal distribution with their median and deviation
        deviation = 1.4826 * float(np.median(np.abs(comparison.others("strength") - usual)))
        weak = max(0.0, min(WEAK * usual, usual - 1.645 * deviation))
    check = Check(
        "reading",
        "signs of reading",
        f"p ≥ {LEVEL:g}, or less than {weak:.1f} standard deviations above chance",
        "bad references, repeats and the others' scores together, against the rater's own answers shuffled: "
        "habits such as round numbers, or many top scores, change nothing. Of raters who do not read, one "
        f"in twenty reaches p < {LEVEL:g}. Also flagged: less than half the others' usual strength, if 19 of "
        "20 of them have more",
        weak,
    )
    if few := _few(own.clues, MIN_CLUES, "clue", "no controls, and nobody else's scores"):
        return check.unknown(few)
    p, strength = own.reading.reads or 1.0, own.reading.strength or 0.0
    above = with_minus(f"{strength:+.1f}")
    shown = f"{above} standard deviations above chance ({own.clues} clues, p = {p:.3f})"
    return check.judged(strength, p >= LEVEL or strength < weak, shown + _others(usual, "+.1f"))


def bad_references(own: Measures) -> Check:
    """Test whether spoilt texts are scored below their originals: one-sided paired sign-flip test."""
    check = Check(
        "bad-references",
        "bad references",
        f"p ≥ {NOT_LOWER:g}, original above bad reference",
        f"raters who read notice a spoilt text. By scoring at random, one in twenty reaches p < {LEVEL:g}; "
        "with ten pairs many who read do not. Spoilt texts scored no lower overall are flagged",
        NOT_LOWER,
    )
    differences = own.bad_differences
    if few := _few(len(differences), MIN_BAD, "pair", "no controls"):
        return check.unknown(few)
    flips = sign_flip(differences)
    # the sign patterns are symmetric: half of the two-sided p lies on the observed side
    two_sided = 1.0 if flips.p_value is None else flips.p_value
    p = two_sided / 2 if (flips.statistic or 0.0) > 0 else 1 - two_sided / 2
    recognised = int((differences > 0).sum())
    lower = with_minus(f"{differences.mean():+.2f}")
    shown = f"p = {p:.3f}; {recognised} of {len(differences)} recognised, {lower} points"
    if LEVEL <= p < NOT_LOWER:
        return check.unknown(f"{shown}: too few pairs to tell")
    return check.judged(p, p >= NOT_LOWER, shown)


def repeats(own: Measures, comparison: Comparison) -> Check:
    """Judge the mean absolute difference between an item and its repeat."""
    check = Check(
        "repeats",
        "repeat consistency",
        "at least the difference of two of the rater's scores picked at random",
        "a rater who reads scores a repeated text more consistently than that",
    )
    mean, chance = own.repeat_difference, own.repeat_by_chance
    few = _few(len(own.repeat_differences), MIN_REPEATS, "repeated output", "no controls")
    if few or mean is None:
        return check.unknown(few)
    shown = f"{mean:.2f} points" + _others(comparison.usual("repeat_difference"), ".2f")
    if not chance:
        return check.unknown(f"{shown}; all scores are equal, so that repeats say nothing")
    return replace(check, threshold=chance).judged(mean, mean >= chance, f"{shown}, by chance {chance:.2f}")


def speed(own: Measures, comparison: Comparison) -> Check:
    """Judge the median reading speed over the items with a time.

    If the others are usually faster than anybody reads, the times measure something else (Appraise's begin
    with the first click), and judge nobody.
    """
    check = Check(
        "speed",
        "time",
        f"median above {MAX_SPEED:.0f} words per minute",
        "twice the mean speed of silent reading of English prose, 238 words per minute (Brysbaert 2019)",
        MAX_SPEED,
    )
    speeds, value = own.words_per_minute, own.speed
    if value is None:
        return check.unknown(_few(len(speeds), MIN_ITEMS, "timed item", "no times"))
    usual = comparison.usual("speed")
    if usual is not None and usual > MAX_SPEED:
        short = f"the others' times are too short for reading ({usual:.0f} words per minute)"
        return check.unknown(f"{short}, so times are not judged")
    above = int((speeds > MAX_SPEED).sum())
    shown = f"{np.median(own.seconds):.1f} s per item, {value:.0f} words per minute; {above} of "
    return check.judged(
        value, value > MAX_SPEED, f"{shown}{counted(len(speeds), 'item')} faster than the bound"
    )


def equal_scores(own: Measures, comparison: Comparison) -> Check:
    """Judge the share of items whose different outputs all got the same score."""
    usual = comparison.usual("share_equal")
    threshold = max(EQUAL_SHARE, (usual or 0.0) + ABOVE_OTHERS)
    check = Check(
        "equal-scores",
        "equal scores",
        f"more than {_percent(threshold)} of the items",
        f"half of the items, or {ABOVE_OTHERS * 100:.0f} percentage points above the others if that is more",
        threshold,
    )
    if few := _few(own.several, MIN_ITEMS, "item", "no such items", " with different outputs"):
        return check.unknown(few)
    share = own.equal / own.several
    return check.judged(share, share > threshold, _share(share, own.several, usual))


def one_answer(own: Measures, comparison: Comparison) -> Check:
    """Judge the share of the commonest answer."""
    usual = comparison.usual("commonest")
    threshold = max(ONE_ANSWER, min((usual or 0.0) + ABOVE_OTHERS, NEARLY_ALL))
    check = Check(
        "one-answer",
        "one answer",
        f"at least {_percent(threshold)} of the items",
        f"nine of ten, or {ABOVE_OTHERS * 100:.0f} percentage points above the others if that is more: "
        "where most outputs are good, raters who read score three of four alike",
        threshold,
    )
    if few := _few(own.answers, MIN_ITEMS, "item", "no items"):
        return check.unknown(few)
    return check.judged(own.commonest, own.commonest >= threshold, _share(own.commonest, own.answers, usual))


def longest_run(own: Measures) -> Check:
    """Judge the longest run of items with the same scores at the same places."""
    check = Check(
        "run",
        "longest run",
        f"at least {MIN_RUN} items in a row, by chance less often than {RUN_BY_CHANCE:g}",
        "by chance: among random orders of the rater's own answers, so giving many alike raises no flag",
        RUN_BY_CHANCE,
    )
    if few := _few(own.answers, MIN_ITEMS, "item", "no items"):
        return check.unknown(few)
    run, p = own.longest_run, own.run_by_chance
    chance = f"{100 * p:.0f}" if p >= 0.1 else f"{100 * p:.2g}"
    shown = f"{run} of {own.answers} items; by chance in {chance} %"
    return check.judged(p, run >= MIN_RUN and p < RUN_BY_CHANCE, shown)


def spread(own: Measures, comparison: Comparison) -> Check:
    """Compare the standard deviation of the scores with the others'."""
    # without others, or beside one who may use too much of it: a twentieth of the scale
    usual = None if comparison.one_other else comparison.usual("spread")
    threshold = 0.05 * comparison.points_range if usual is None else NARROW * usual
    check = Check(
        "spread",
        "use of the scale",
        f"standard deviation below {threshold:.2f} points",
        "a twentieth of the scale's range" if usual is None else "a third of what is usual among the others",
        threshold,
    )
    if few := _few(own.rated, MIN_ITEMS, "score", "no scores"):
        return check.unknown(few)
    value = own.spread or 0.0
    shown = f"standard deviation {value:.2f} points" + _others(usual, ".2f")
    return check.judged(value, value < threshold, shown)


def agreement(own: Measures, comparison: Comparison) -> Check:
    """Judge the correlation with the mean of the others on the same outputs."""
    usual = comparison.usual("correlation")
    threshold = OF_USUAL * max(usual or 0.0, 0.0)
    check = Check(
        "agreement",
        "agreement",
        f"95 % interval of the correlation with the others below {threshold:.2f}",
        "half of what is usual in the campaign; few shared outputs prove nothing",
        threshold,
    )
    few = _few_shared(own, comparison)
    value, low, high = own.agreement.value, own.agreement.low, own.agreement.high
    if few or value is None:
        return check.unknown(few or "the others always agree")
    if high is None:
        return check.unknown(own.agreement.reason or "no interval")
    r, *bounds = (with_minus(f"{bound:+.2f}") for bound in (value, low, high))
    interval = "" if low == high else f" [{', '.join(bounds)}]"
    shown = f"r = {r}{interval} on {own.shared} {comparison.protocol.judged}" + _others(usual, "+.2f")
    return check.judged(value, high < threshold, shown)


def severity(own: Measures, comparison: Comparison) -> Check:
    """Judge how far the rater's mean lies from the others' on the same outputs."""
    threshold = SEVERE * comparison.points_range
    check = Check(
        "severity",
        "severity",
        f"more than {counted(threshold, 'point')} from the others",
        "three tenths of the scale; severity cancels out when systems are compared side by side, but this "
        "much suggests that the scale was misunderstood",
        threshold,
    )
    few, value = _few_shared(own, comparison), own.severity
    if few or value is None:
        return check.unknown(few or "nothing shared")
    shown = f"{with_minus(f'{value:+.2f}')} points ({'milder' if value > 0 else 'stricter'} than the others)"
    return check.judged(value, abs(value) > threshold, shown)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _share(share: float, items: int, usual: float | None) -> str:
    return f"{_percent(share)} of {items} items" + ("" if usual is None else f"; others {_percent(usual)}")


def _others(usual: float | None, digits: str) -> str:
    return "" if usual is None else f"; others {with_minus(f'{usual:{digits}}')}"


def _few(count: int, needed: int, noun: str, none: str, which: str = "") -> str:
    """Say why a check cannot judge; empty where it can."""
    if count == 0:
        return none
    return f"only {counted(count, noun)}{which}, {needed} are needed" if count < needed else ""


def _few_shared(own: Measures, comparison: Comparison) -> str:
    noun = "pair" if comparison.protocol.relative else "output"
    nobody = "nobody else rated the same items"
    return _few(own.shared, MIN_SHARED, noun, nobody, " that others rated too")


# ---------------------------------------------------------------- reports


@dataclass(frozen=True)
class RaterReport:
    """What a rater's answers look like. `seconds` and `values` (points) are for plots."""

    rater_id: int
    answers: int  # submitted items, tutorial items left out
    checks: tuple[Check, ...]
    signs: tuple[str, ...]  # of SIGNS
    seconds: tuple[float, ...]
    values: tuple[float, ...]

    @property
    def flagged(self) -> list[Check]:
        return [check for check in self.checks if check.state == "flagged"]

    @property
    def suggestion(self) -> str:
        """What an organiser might do; ratings are left out by a person, not by this."""
        if not self.flagged:
            unknown = sum(check.state == "unknown" for check in self.checks)
            if unknown == len(self.checks):
                return "too little to judge yet"
            too_little = f"; {unknown} of {counted(len(self.checks), 'check')} have too little to judge by"
            return "nothing flagged" + (too_little if unknown else "")
        looks = ", ".join(IN_WORDS.get(sign, sign) for sign in self.signs)
        at = f"look at {', '.join(check.title for check in self.flagged)}"
        return f"{at} (answers look {looks})" if looks else at


def rater_reports(answers: Answers, protocol: Protocol, excluded: Collection[int] = ()) -> list[RaterReport]:
    """Report on every rater with an answer, in the order of their first ones.

    A rater is compared with the others who are not excluded; an excluded rater has a report too.
    """
    counting = set(answers.rater.tolist()) - set(excluded)
    measures = measure(answers, protocol, counting)
    others = Comparison(protocol, {rater: own for rater, own in measures.items() if rater in counting})
    return [report_of(rater, own, others) for rater, own in measures.items()]


def report_of(rater: int, own: Measures, others: Comparison) -> RaterReport:
    """Report on one rater beside others whose measures are known."""
    checks = judge(own, replace(others, rater=rater))
    lowest = float(others.protocol.scale.lowest)
    signs, values = signs_of(own, checks), (lowest + own.values).tolist()
    return RaterReport(rater, own.answers, tuple(checks), signs, tuple(own.seconds.tolist()), tuple(values))


def signs_of(own: Measures, checks: Sequence[Check]) -> tuple[str, ...]:
    """Say what flagged checks mean together.

    All need that nothing shows reading (stats/rater_checks.py). Too fast: by the time. Scale reversed:
    scores that significantly go the other way. Straight-lining: one answer nearly throughout, equal scores,
    a run, or a narrow use of the scale. At random: neither, and answers that would do as well in another
    order, bad references not recognised.
    """
    flagged = {check.name for check in checks if check.state == "flagged"}
    by_name = {check.name: check for check in checks}
    by_chance = own.reading.reads is None or own.reading.reads >= BY_CHANCE
    signs = [TOO_FAST] if "speed" in flagged and by_chance else []
    # where a single other rater says so, the scale of either may be the reversed one
    known = bool(flagged & {"reading", "bad-references"})
    if known and own.reading.reversed is not None and own.reading.reversed < REVERSED_BY_CHANCE:
        return (*signs, REVERSED)
    if "one-answer" in flagged:
        return (*signs, STRAIGHT)
    if by_name["reading"].state != "ok":
        if flagged & {"equal-scores", "run", "spread"}:
            signs.append(STRAIGHT)
        elif "reading" in flagged and by_chance:
            signs += [RANDOM] if by_name["bad-references"].state != "ok" else []
    return tuple(signs)


def reports_of(database: Database, campaign_id: int) -> list[RaterReport]:
    """Report on a campaign's raters from its stored rows. KeyError where there is no such campaign."""
    with database.session() as session:
        campaign = session.get(Campaign, campaign_id)
        if campaign is None:
            raise KeyError(campaign_id)
        excluded = session.scalars(
            select(Rater.id).where(Rater.campaign_id == campaign_id, Rater.excluded_at.is_not(None))
        ).all()
        ratings = load_ratings(session, campaign)
        return rater_reports(read_answers(session, ratings), ratings.campaign.protocol, excluded)
