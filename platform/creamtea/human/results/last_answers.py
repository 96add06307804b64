"""The answers that count, one by one: for tables of what is more than a score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Subquery, func, select
from sqlalchemy.orm import Session

from creamtea.store.item_kinds import SYSTEM_KINDS
from creamtea.store.tables import Assignment, Item, Rater, Rating


@dataclass(frozen=True)
class LastAnswer:
    """A rater's last revision about one system's output of an item."""

    system: int  # position in Campaign.systems
    step: int
    payload: dict[str, Any] | None
    active_ms: int | None  # on the whole item, before the first revision
    segment: int  # of the test set
    # errors that were marked beforehand; None: in none of the item's outputs
    proposed: list[dict[str, Any]] | None


def last_revisions(campaign: int) -> Subquery:
    """Of each assignment of a campaign with ratings: `assignment_id`, and its last `revision`."""
    return (
        select(Rating.assignment_id, func.max(Rating.revision).label("revision"))
        .join(Assignment)
        .join(Item)
        .where(Item.campaign_id == campaign)
        .group_by(Rating.assignment_id)
        .subquery()
    )


def last_answers(session: Session, campaign: int) -> list[LastAnswer]:
    """Of items that rate systems, by raters who count."""
    last = last_revisions(campaign)
    query = (
        select(
            Rating.system,
            Rating.step,
            Rating.payload,
            Assignment.active_ms,
            Item.segment_index,
            Item.proposals,
        )
        .join(last, (last.c.assignment_id == Rating.assignment_id) & (last.c.revision == Rating.revision))
        .join(Assignment, Assignment.id == Rating.assignment_id)
        .join(Item, Item.id == Assignment.item_id)
        .join(Rater, Rater.id == Assignment.rater_id)
        .where(Item.kind.in_(SYSTEM_KINDS), Rater.excluded_at.is_(None))
        .order_by(Rating.id)
    )
    return [
        LastAnswer(
            system=row.system,
            step=row.step,
            payload=row.payload,
            active_ms=row.active_ms,
            segment=row.segment_index,
            proposed=None if row.proposals is None else row.proposals.get(str(row.system), []),
        )
        for row in session.execute(query)
    ]
