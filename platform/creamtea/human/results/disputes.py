"""Outputs on which raters disagree (disputes), and third ratings of them.

A third rating is for a copy of the item (`ItemKind.THIRD`), which goes to a rater who never had the item. It
was asked for because of the first ratings, so it counts in no mean and no test: reports show it beside them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from shlex import quote

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from creamtea.access import audit
from creamtea.errors import InputError
from creamtea.human.making.launching import in_state
from creamtea.human.rating.page import items_of_page
from creamtea.human.rating.raters import lock
from creamtea.human.results.ratings import (
    Ratings,
    ScoresByRater,
    by_rater,
    load_ratings,
    repeated_scores,
)
from creamtea.stats.agreement import Spread, largest_spread
from creamtea.stats.estimate import ROUNDING
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Item, ItemKind
from creamtea.wording import counted, option, with_minus

COPIED = (
    *("segment_index", "document", "source", "context", "references", "media"),
    *("systems", "outputs", "output_drawn", "proposals"),
)


@dataclass(frozen=True)
class Dispute:
    """An output whose ratings differ."""

    unit: int  # numbered as in the campaign's `Ratings`, like `system`
    system: int
    spread: Spread  # its `output` is the row of `ScoresByRater`
    asked: bool  # whether a third rating was asked for
    third: float | None  # points of the third rating; None before it is given

    def apart(self, bound: float) -> bool:
        """Return True if the ratings lie at least `bound` points apart."""
        return self.spread.highest - self.spread.lowest >= bound * (1 - ROUNDING)


def disputes_of(session: Session, ratings: Ratings, outputs: ScoresByRater) -> list[Dispute]:
    """Return all outputs whose ratings differ, the largest difference first.

    For a pair only the first output is returned: the second has the same score with the other sign.
    """
    rows = np.arange(len(outputs.unit))
    if ratings.campaign.protocol.relative:
        rows = np.unique(outputs.unit, return_index=True)[1]
    units = dict(zip(ratings.item.tolist(), ratings.unit.tolist(), strict=True))
    asked: dict[tuple[int, int], list[float]] = {}  # points of third ratings, by unit and system
    third = ratings.third
    for item in session.scalars(
        select(Item).where(Item.campaign_id == ratings.campaign.id, Item.kind == ItemKind.THIRD)
    ):
        for system in item.shown if item.original_id in units else ():
            points = third.value[(third.item == item.id) & (third.system == system)]
            asked.setdefault((units[item.original_id], system), []).extend(points.tolist())
    disputes = []
    for spread in largest_spread(outputs.scores[rows]):
        spread = replace(spread, output=int(rows[spread.output]))
        cell = int(outputs.unit[spread.output]), int(outputs.system[spread.output])
        points = asked.get(cell, [])
        disputes.append(Dispute(*cell, spread, cell in asked, float(np.mean(points)) if points else None))
    return disputes


def rated_twice(ratings: Ratings, outputs: ScoresByRater) -> int:
    """Return the number of outputs (pairs, if scores are relative) that two raters or more have rated."""
    twice = (~np.isnan(outputs.scores)).sum(axis=1) > 1
    relative = ratings.campaign.protocol.relative
    return len(np.unique(outputs.unit[twice])) if relative else int(twice.sum())


@dataclass(frozen=True)
class ListedDispute:
    """A dispute as commands and pages list it, in points of the scale."""

    segment: str
    system: str
    ratings: dict[str, float]  # by the rater's pseudonym
    apart: float
    asked: bool
    third: float | None

    @property
    def in_words(self) -> str:
        return ", ".join(f"{rater} {with_minus(f'{points:g}')}" for rater, points in self.ratings.items())

    @property
    def third_in_words(self) -> str:
        if not self.asked:
            return ""
        return "asked for" if self.third is None else with_minus(f"{self.third:g}")


@dataclass(frozen=True)
class Disputes:
    """The outputs of a campaign with ratings `bound` points apart or more."""

    bound: float
    listed: list[ListedDispute]
    outputs: int  # all outputs (pairs, if scores are relative) with two raters or more
    judged: str  # what these are: "output" or "pair"


def list_disputes(database: Database, campaign: str, bound: float | None = None) -> Disputes:
    """List the outputs with ratings `bound` points apart or more, by default the campaign's bound.

    InputError for an unknown campaign.
    """
    with database.session() as session:
        ratings = load_ratings(session, find_campaign(session, campaign))
        return _listed(session, ratings, bound)[0]


def _listed(session: Session, ratings: Ratings, bound: float | None) -> tuple[Disputes, list[Dispute]]:
    settings = ratings.campaign.settings
    if bound is not None and not bound > 0:  # nor nan
        raise InputError(f"{option('apart')} {bound:g}: give more than 0 points", about="apart")
    bound = settings.disputed_bound(ratings.campaign.protocol) if bound is None else bound
    outputs = by_rater(ratings, repeated_scores(session, ratings))
    disputes = [dispute for dispute in disputes_of(session, ratings, outputs) if dispute.apart(bound)]
    listed = []
    for dispute in disputes:
        segment = settings.segment_name(int(ratings.segment_index[dispute.unit]))
        points = zip(ratings.raters, outputs.scores[dispute.spread.output].tolist(), strict=True)
        scores = {rater: score for rater, score in points if not np.isnan(score)}
        apart = dispute.spread.highest - dispute.spread.lowest
        system = ratings.campaign.systems[dispute.system]
        listed.append(ListedDispute(segment, system, scores, apart, dispute.asked, dispute.third))
    judged = ratings.campaign.protocol.judged_one
    return Disputes(bound, listed, rated_twice(ratings, outputs), judged), disputes


def ask_for_third_ratings(
    database: Database, campaign: str, actor: str, bound: float | None = None, reason: str = ""
) -> int:
    """Ask for a third rating of each disputed page that has none; return the number of these pages.

    InputError for a campaign that is not launched, and if no disputed page is left.
    """
    with database.transaction() as session:
        row = lock(session, campaign)
        if row.state != "launched":
            command = f"launch {quote(campaign)}"
            if row.state == "closed":
                command = f"reopen {quote(campaign)} --reason …"
            remedy = f"open it with `creamtea campaign {command}`"
            raise InputError(f"{in_state(row)}, and nobody can rate in it: {remedy}")
        ratings = load_ratings(session, row)
        found, disputes = _listed(session, ratings, bound)
        pages = {}  # by their first item
        for dispute in disputes:
            if not dispute.asked:
                rated = (ratings.unit == dispute.unit) & (ratings.system == dispute.system)
                items = items_of_page(session, session.get_one(Item, int(ratings.item[rated][0])))
                pages[items[0].id] = items
        if not pages:
            apart = f"ratings {counted(found.bound, 'point')} apart or more"
            why = "all have a third rating or wait for one" if disputes else "there are none to ask for"
            raise InputError(f"campaign {campaign!r}: outputs with {apart}: {why}")
        position = session.scalar(select(func.max(Item.position)).where(Item.campaign_id == row.id)) or 0
        for items in pages.values():
            first = position + 1
            for item in items:
                position += 1
                page = None if item.page is None else first
                copied = {name: getattr(item, name) for name in COPIED}
                copied |= {"campaign_id": row.id, "original_id": item.id, "position": position, "page": page}
                session.add(Item(kind=ItemKind.THIRD, weight=0.0, **copied))
        detail = {"pages": len(pages), "points apart": found.bound}
        audit.record(session, row.id, actor, audit.THIRD_ASKED, reason=reason, detail=detail)
        return len(pages)
