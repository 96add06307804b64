"""A rater's report: all checks, what they look like together, and a suggestion, never a decision."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from creamtea.human.protocols import Protocol
from creamtea.human.quality.checks import Check, Comparison, CountingRaters, judge
from creamtea.human.quality.measures import Answers, Measures, measure, read_answers
from creamtea.human.results.ratings import load_ratings
from creamtea.store.database import Database
from creamtea.store.tables import Campaign, Rater
from creamtea.wording import counted

TOO_FAST, STRAIGHT, REVERSED, RANDOM = SIGNS = (
    "too fast",
    "straight-lining",
    "scale reversed",
    "at random",
)
REVERSED_BY_CHANCE = 0.01  # p against the rater's own answers in another order
BY_CHANCE = 0.1  # likewise: twice the bound of the check; below, something shows reading


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
        looks = f" (answers look {', '.join(map(_in_words, self.signs))})" if self.signs else ""
        return f"look at {', '.join(check.title for check in self.flagged)}{looks}"


def _in_words(sign: str) -> str:
    return {STRAIGHT: "like straight-lining", RANDOM: "given at random"}.get(sign, sign)


def rater_reports(answers: Answers, protocol: Protocol, excluded: Collection[int] = ()) -> list[RaterReport]:
    """A report for every rater with an answer, in the order of their first ones.

    A rater is compared with the others who are not excluded; an excluded rater has a report too.
    """
    counting = set(answers.rater.tolist()) - set(excluded)
    measures = measure(answers, protocol, counting)
    others = CountingRaters({rater: own for rater, own in measures.items() if rater in counting})
    return [report_of(rater, own, Comparison(protocol, others, rater)) for rater, own in measures.items()]


def report_of(rater: int, own: Measures, comparison: Comparison) -> RaterReport:
    """The report of one rater beside others whose measures are known."""
    checks = judge(own, comparison)
    return RaterReport(
        rater,
        own.answers,
        tuple(checks),
        signs_of(own, checks),
        tuple(own.seconds.tolist()),
        tuple((float(comparison.protocol.scale.lowest) + own.values).tolist()),
    )


def signs_of(own: Measures, checks: Sequence[Check]) -> tuple[str, ...]:
    """What flagged checks mean together.

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
    """The reports of a campaign from its stored rows. KeyError where there is no such campaign."""
    with database.session() as session:
        campaign = session.get(Campaign, campaign_id)
        if campaign is None:
            raise KeyError(campaign_id)
        excluded = session.scalars(
            select(Rater.id).where(Rater.campaign_id == campaign_id, Rater.excluded_at.is_not(None))
        ).all()
        ratings = load_ratings(session, campaign)
        return rater_reports(read_answers(session, ratings), ratings.campaign.protocol, excluded)
