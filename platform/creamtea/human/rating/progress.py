"""How far a campaign is, by the kind of item."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from creamtea.human.rating.places import THIRD_PLACES
from creamtea.store.tables import WRITTEN_KINDS, Assignment, Campaign, Item, ItemKind, Rater


@dataclass(frozen=True)
class KindProgress:
    """`submitted` and `complete` leave excluded raters out; an item that the organiser wrote is never
    complete, because every rater does it."""

    kind: str
    items: int
    passed_over: int  # of them: not drawn by an adaptive design, so that nobody gets them
    # submitted assignments in the end, of ratings made elsewhere those that there are; of written items: by
    # as many raters as an item has
    wanted: int
    submitted: int
    complete: int  # items with all their ratings


def by_kind(session: Session, campaign: Campaign) -> list[KindProgress]:
    """Return the progress of every kind of item that a campaign has, by name."""
    submitted = (
        select(Assignment.item_id, func.count().label("count"))
        .join(Rater, Rater.id == Assignment.rater_id)
        .where(
            Rater.campaign_id == campaign.id,
            Rater.excluded_at.is_(None),
            Assignment.submitted_at.is_not(None),
        )
        .group_by(Assignment.item_id)
        .subquery()
    )
    per_item = campaign.ratings_per_item if campaign.is_planned else None
    needed = case((Item.kind == ItemKind.THIRD, THIRD_PLACES), else_=per_item or 1)
    enough = (submitted.c.count >= needed) & Item.kind.not_in(WRITTEN_KINDS)
    rows = session.execute(
        select(
            Item.kind,
            func.count(),
            func.count().filter(Item.drawn.is_(False)),
            func.coalesce(func.sum(submitted.c.count), 0),
            func.count().filter(enough),
        )
        .outerjoin(submitted, submitted.c.item_id == Item.id)
        .where(Item.campaign_id == campaign.id)
        .group_by(Item.kind)
        .order_by(Item.kind)
    )
    return [
        KindProgress(
            kind,
            items,
            passed,
            int(done)
            if per_item is None
            else (items - passed) * (THIRD_PLACES if kind == ItemKind.THIRD else per_item),
            int(done),
            complete,
        )
        for kind, items, passed, done, complete in rows
    ]
