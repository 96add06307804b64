"""Who rates which item next."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.human.assignment.locking import active_rater, campaign_of, lock_campaign, protocol_of
from creamtea.human.assignment.model import LEASE, Work, shown_outputs
from creamtea.human.assignment.orders import draw_order, groups_of
from creamtea.human.assignment.places import (
    Outlook,
    keeps_place,
    load_outlook,
    places_taken,
    takes_place,
)
from creamtea.store.database import Database
from creamtea.store.item_kinds import ItemKind
from creamtea.store.tables import Assignment, Campaign, Item, Rater


def next_item(database: Database, rater_id: int, lease: timedelta = LEASE) -> Work | None:
    """The item this rater is on, or a new one; None once nothing is left for them.

    First comes the tutorial, then controls that are due, then items with a place left, by position. An item
    goes to at most k raters at a time (`ratings_per_item`: submitted or under a running lease) and never
    twice to one rater, skipped ones included. A lease that ran out is renewed while the item has a place
    left; otherwise the rater gets another item. Raises RatingRefused where the campaign is not launched or
    the rater takes no part in it, ConsentMissing before the rater has agreed.

    What takes time, looking through all items, happens before the campaign is locked; the lock is there for
    counting the places of a few candidates again.
    """
    with database.session() as session:
        now = database.now(session)
        campaign = campaign_of(session, rater_id)
        active_rater(session, campaign, rater_id)
        outlook = load_outlook(session, campaign, rater_id, now)
        held = _held(session, campaign, rater_id, now)
        if held is not None and held[0].lease_until > now + lease / 2:
            return as_work(campaign, *held, outlook, draft=held[0].draft)
    with database.transaction() as session:
        campaign = lock_campaign(session, rater_id)
        rater = active_rater(session, campaign, rater_id)
        now = database.now(session)
        held = _held(session, campaign, rater_id, now) or _draw(session, campaign, rater, outlook, now)
        if held is None and outlook.shortlist:  # the whole shortlist went to others meanwhile
            outlook = load_outlook(session, campaign, rater_id, now)
            held = _draw(session, campaign, rater, outlook, now)
        if held is None:
            return None
        held[0].lease_until = now + lease
    return as_work(campaign, *held, outlook, draft=held[0].draft)


def _held(
    session: Session, campaign: Campaign, rater_id: int, now: datetime
) -> tuple[Assignment, Item] | None:
    """The rater's oldest unfinished item that is still theirs."""
    unfinished = session.execute(
        select(Assignment, Item)
        .join(Item, Item.id == Assignment.item_id)
        .where(
            Assignment.rater_id == rater_id,
            Assignment.submitted_at.is_(None),
            Assignment.skipped_at.is_(None),
        )
        .order_by(Assignment.id)
    ).all()
    for assignment, item in unfinished:
        if keeps_place(session, campaign, item.kind, item.id, rater_id, now):
            return assignment, item
    return None


def _draw(
    session: Session, campaign: Campaign, rater: Rater, outlook: Outlook, now: datetime
) -> tuple[Assignment, Item] | None:
    """A new assignment of the first candidate that this rater can have at this moment."""
    item_id = _choose(session, campaign, rater.id, outlook, now)
    if item_id is None:
        return None
    item = session.get_one(Item, item_id)
    of_item = session.scalars(
        select(Assignment.order).where(Assignment.item_id == item_id, takes_place(campaign, now))
    )
    assignment = Assignment(
        item_id=item_id,
        rater_id=rater.id,
        order=draw_order(
            groups_of(item.systems, item.outputs),
            of_item=of_item,
            of_rater=outlook.orders(),
            seed=f"{campaign.seed}/{item.position}/{rater.pseudonym}",
        ),
        lease_until=now,
        created_at=now,
        skip_reason="",
        comment="",
    )
    session.add(assignment)
    session.flush()
    return assignment, item


def _choose(
    session: Session, campaign: Campaign, rater_id: int, outlook: Outlook, now: datetime
) -> int | None:
    candidates = [*outlook.tutorial[:1], *outlook.due[:1], *outlook.shortlist, *outlook.later[:1]]
    # another tab of this rater may have drawn since the look
    had = set(
        session.scalars(
            select(Assignment.item_id).where(
                Assignment.rater_id == rater_id, Assignment.item_id.in_(candidates)
            )
        )
    )
    taken = places_taken(session, campaign, outlook.shortlist, now, rater_id)
    shared = set(outlook.shortlist)
    for item_id in candidates:
        full = item_id in shared and taken.get(item_id, 0) >= campaign.ratings_per_item
        if item_id not in had and not full:
            return item_id
    return None


def as_work(
    campaign: Campaign,
    assignment: Assignment,
    item: Item,
    outlook: Outlook,
    *,
    draft: dict[str, Any] | None,
    revision: int = 1,
) -> Work:
    """The item as its rater sees it. `draft` holds "answers" and "comment", or is empty."""
    draft = draft or {}
    tutorial = item.kind == ItemKind.TUTORIAL
    done = outlook.done(tutorial=tutorial)
    left = len(outlook.tutorial) if tutorial else outlook.at_most
    if assignment.submitted_at is None:  # what was drawn before is not among those to come
        left += any(past.assignment_id == assignment.id for past in outlook.past)
    return Work(
        assignment_id=assignment.id,
        protocol=protocol_of(campaign),
        tutorial=tutorial,
        source=item.source,
        context=list(item.context),
        outputs=shown_outputs(item, assignment.order),
        draft=list(draft.get("answers", [None] * len(assignment.order))),
        comment=draft.get("comment", ""),
        revision=revision,
        done=done,
        total=done + left,
        seconds_left=None if tutorial else outlook.seconds_left(left),
        source_language=campaign.source_language,
        target_language=campaign.target_language,
    )
