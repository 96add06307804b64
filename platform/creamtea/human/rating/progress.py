"""How far a campaign is: ratings that there are and that are wanted, by item and by the kind of item."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Subquery, case, func, select
from sqlalchemy.orm import Session

from creamtea.human.rating.places import THIRD_PLACES
from creamtea.store.tables import CONTROL_KINDS, WRITTEN_KINDS, Assignment, Campaign, Item, ItemKind, Rater


@dataclass(frozen=True)
class KindProgress:
    """The progress of the items of one kind.

    `submitted` and `complete` leave excluded raters out. An item that the organiser wrote is never complete,
    because every rater does it.
    """

    kind: str
    items: int
    passed_over: int  # of them: not drawn by an adaptive design, so that nobody gets them
    # submitted assignments in the end, of ratings made elsewhere those that there are; of written items: by
    # as many raters as an item has
    wanted: int
    submitted: int
    complete: int  # items with all their ratings


def ratings_of_items(*of_campaigns: ColumnElement[bool]) -> Subquery:
    """Build a row per item: `campaign_id`, `kind`, `drawn`, and its ratings that are `done` and `wanted`.

    Raters who are excluded do not count. `of_campaigns`: conditions on `Item.campaign_id`.
    """
    done, skipped = func.count(Assignment.submitted_at), func.count(Assignment.skipped_at)
    given = (
        select(Assignment.item_id, done.label("done"), skipped.label("skipped"))
        .join(Rater, Rater.id == Assignment.rater_id)
        .join(Item, Item.id == Assignment.item_id)
        .where(Rater.excluded_at.is_(None), *of_campaigns)
        .group_by(Assignment.item_id)
        .subquery()
    )
    have, skips = func.coalesce(given.c.done, 0), func.coalesce(given.c.skipped, 0)
    planned = case(
        (Item.drawn.is_(False), 0),
        (Item.kind == ItemKind.THIRD, THIRD_PLACES),
        # no other rater gets a control that its rater skipped
        (Item.kind.in_(CONTROL_KINDS), Campaign.ratings_per_item - skips),
        else_=Campaign.ratings_per_item,
    )
    # a rater who is included again may give an item more ratings than were planned
    wanted = case((have > planned, have), else_=planned)
    return (
        select(Item.campaign_id, Item.kind, Item.drawn, have.label("done"), wanted.label("wanted"))
        .join(Campaign, Campaign.id == Item.campaign_id)
        .outerjoin(given, given.c.item_id == Item.id)
        .where(*of_campaigns)
        .subquery()
    )


def by_kind(session: Session, campaign: Campaign) -> list[KindProgress]:
    """Return the progress of every kind of item that a campaign has, by name."""
    each = ratings_of_items(Item.campaign_id == campaign.id)
    drawn = each.c.drawn.is_not(False)
    enough = each.c.done >= (each.c.wanted if campaign.is_planned else 1)
    rows = session.execute(
        select(
            each.c.kind,
            func.count(),
            func.count().filter(~drawn),
            func.sum(each.c.wanted if campaign.is_planned else each.c.done),
            func.sum(each.c.done),
            func.count().filter(drawn, enough, each.c.kind.not_in(WRITTEN_KINDS)),
        )
        .group_by(each.c.kind)
        .order_by(each.c.kind)
    )
    return [KindProgress(kind, *map(int, counts)) for kind, *counts in rows]
