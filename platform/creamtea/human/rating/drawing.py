"""Give out the next page to each rater; and show organisers a page as its raters will see it."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from creamtea.human.making.settings import settings_of
from creamtea.human.rating.adaptive import draw_next_part, segments_drawn
from creamtea.human.rating.page import (
    LEASE,
    DocumentScore,
    Order,
    RaterPage,
    Work,
    active_rater,
    campaign_of,
    document_score_of,
    draw_order,
    is_first_of_page,
    items_of_page,
    joint_order,
    lock_campaign,
    lock_rater,
    order_on,
    page_groups,
    page_of,
    protocol_of,
    shown_groups,
)
from creamtea.human.rating.places import (
    ON_LOAN,
    PLACES_TAKEN,
    THIRD_PLACES,
    Outlook,
    is_adaptive,
    items_in_all,
    keeps_place,
    load_outlook,
    takes_place,
)
from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Campaign, Item, ItemKind, Rater

FEW = 8  # candidates that are checked first
LOOKS = 4  # raters who search for a page at once: more would slow down each other and submitting raters
_looks = threading.BoundedSemaphore(LOOKS)


def next_item(database: Database, rater_id: int, lease: timedelta = LEASE) -> Work | None:
    """Return the page this rater is on, or draw a new one; None once nothing is left for them.

    Practice comes first, then due controls, then pages with a place left: first in the rater's present
    document, then by position (`places`). At most k raters have a page at a time (`ratings_per_item`;
    submitted, or with a running lease), and no rater gets it twice, not even after a skip. An expired lease
    is renewed if the item has a place left; otherwise the rater gets another item. In an adaptive design, the
    systems of the next part are drawn when a rater finds nothing else (`human.rating.adaptive`).

    RatingRefused if the campaign is not launched or the rater does not take part in it, ConsentMissing before
    the rater has agreed.
    """
    # The slow search through all items comes before any lock; under the locks, only the places of a few
    # candidates are counted again. The campaign is locked alone only if the rater has left a page unfinished,
    # or if no candidate is free.
    while True:
        with _looks, database.session() as session:
            now = database.now(session)
            campaign = campaign_of(session, rater_id)
            rater = active_rater(session, campaign, rater_id)
            outlook = load_outlook(session, campaign, rater, now)
            held = _held(session, campaign, rater_id, now)
            if held is not None and held.first_assignment.lease_until > now + lease / 2:
                return as_work(campaign, held, outlook, document_score_of(session, campaign, held))
            nothing_left = held is None and not outlook.candidates
            done = segments_drawn(session, campaign) if nothing_left and is_adaptive(campaign) else None
        if nothing_left:
            if done is None or not draw_next_part(database, campaign.id, done):
                return None
            continue
        for lock in (lock_rater, lock_campaign):
            with database.transaction() as session:
                campaign = lock(session, rater_id)
                rater = active_rater(session, campaign, rater_id)
                now = database.now(session)
                held = None
                if lock is lock_campaign:
                    held = _held(session, campaign, rater_id, now)
                elif session.execute(_UNFINISHED, {"rater": rater_id}).first() is not None:
                    continue  # others may take its place at this moment
                held = held or _draw(session, campaign, rater, outlook, now, lease)
                if held is None and lock is lock_campaign:  # all candidates went to others meanwhile
                    outlook = load_outlook(session, campaign, rater, now)
                    held = _draw(session, campaign, rater, outlook, now, lease)
                if held is not None:
                    for assignment in held.assignments:
                        assignment.lease_until = now + lease
                    document_score = document_score_of(session, campaign, held)
                    break
        if held is not None:
            return as_work(campaign, held, outlook, document_score)
        if outlook.candidates or not is_adaptive(campaign):
            return None


def others_have_items(database: Database, rater_id: int) -> bool:
    """Return True if others hold items that this rater never had, so that one may become free.

    RatingRefused for a rater who no longer exists.
    """
    with database.session() as session:
        campaign = campaign_of(session, rater_id)
        values = {"campaign": campaign.id, "rater": rater_id, "now": database.now(session)}
        return bool(session.scalar(ON_LOAN, values))


def _held(session: Session, campaign: Campaign, rater_id: int, now: datetime) -> RaterPage | None:
    """Return the rater's oldest unfinished page that keeps its place, those with a running lease first."""
    unfinished = session.execute(_UNFINISHED, {"rater": rater_id}).all()
    for assignment, item in sorted(unfinished, key=lambda row: row[0].lease_until <= now):
        if keeps_place(session, campaign, item, rater_id, now):
            return page_of(session, assignment, item)
    return None


_UNFINISHED = (
    select(Assignment, Item)
    .join(Item, Item.id == Assignment.item_id)
    .where(
        Assignment.rater_id == bindparam("rater"),
        Assignment.submitted_at.is_(None),
        Assignment.skipped_at.is_(None),
        is_first_of_page(),
    )
    .order_by(Assignment.id)
)


def _draw(
    session: Session, campaign: Campaign, rater: Rater, outlook: Outlook, now: datetime, lease: timedelta
) -> RaterPage | None:
    """Give the rater the first candidate that is free at this moment; None if none is."""
    first = _choose(session, campaign, rater.id, outlook, now)
    if first is None:
        return None
    items = items_of_page(session, first)
    groups = [shown_groups(item) for item in items]
    values = {"items": [item.id for item in items], "campaign": campaign.id, "now": now}
    of_others: dict[int, list[Order]] = {}  # by rater
    for rater_id, seen in session.execute(_ORDERS_SEEN, values):
        of_others.setdefault(rater_id, []).append(seen)
    order = draw_order(
        page_groups(groups),
        of_item=map(joint_order, of_others.values()),
        of_rater=outlook.orders(),
        seed=f"{campaign.seed}/{items[0].position}/{rater.pseudonym}",
    )
    assignments = [
        Assignment(
            item_id=item.id,
            rater_id=rater.id,
            order=order_on(order, of_item),
            lease_until=now + lease,
            created_at=now,
            skip_reason="",
            comment="",
        )
        for item, of_item in zip(items, groups, strict=True)
    ]
    session.add_all(assignments)
    session.flush()
    return RaterPage(assignments, items)


# the orders in which raters who take a place see some items
_ORDERS_SEEN = (
    select(Assignment.rater_id, Assignment.order)
    .where(Assignment.item_id.in_(bindparam("items", expanding=True)), takes_place())
    .order_by(Assignment.id)
)


def _choose(
    session: Session, campaign: Campaign, rater_id: int, outlook: Outlook, now: datetime
) -> Item | None:
    """Return the first item of the first candidate that is free, locked if raters share its places."""
    places = dict.fromkeys(outlook.shortlist, campaign.ratings_per_item)
    places |= dict.fromkeys(outlook.third, THIRD_PLACES)

    def free(items: list[int]) -> list[int]:
        values = {"items": items, "rater": rater_id, "campaign": campaign.id, "now": now}
        rows = session.execute(PLACES_TAKEN, values)
        # another tab of this rater may have drawn the item since the outlook was loaded
        gone = {item for item, taken, had in rows if had or taken >= places.get(item, math.inf)}
        return [item for item in items if item not in gone]

    # one of the first few is usually free, and a short list takes less time
    for candidates in filter(None, (outlook.candidates[:FEW], outlook.candidates[FEW:])):
        for item_id in free(candidates):
            if item_id not in places:
                return session.get_one(Item, item_id)
            # a transaction that has locked the item is changing its places: try the next item
            item = session.get(Item, item_id, with_for_update={"key_share": True, "skip_locked": True})
            if item is not None and free([item_id]):
                return item
    return None


def as_work(
    campaign: Campaign,
    page: RaterPage,
    outlook: Outlook,
    document_score: DocumentScore,
    *,
    draft: list[Any] | None = None,
    document: list[int | None] | None = None,
    comment: str | None = None,
    revision: int = 1,
) -> Work:
    """Return the page as its rater sees it; `draft`, `document` and `comment` default to the stored draft."""
    settings = settings_of(campaign.settings)
    domain = settings.domains.get(page.first_item.document, "")
    tutorial = page.first_item.kind == ItemKind.TUTORIAL
    done = outlook.done(tutorial=tutorial)
    left = len(outlook.tutorial) if tutorial else outlook.at_most
    if page.first_assignment.submitted_at is not None:
        left += 0 if tutorial else outlook.in_work()  # on another page
    else:  # a page that was drawn before is not among the pages to come
        drawn = any(past.id == page.first_assignment.id for past in outlook.past)
        left += len(page.items) if drawn else 0
    return Work(
        assignment_id=page.first_assignment.id,
        protocol=protocol_of(campaign),
        tutorial=tutorial,
        document=page.first_item.page is not None,
        segments=page.segments(),
        draft=page.drafted() if draft is None else draft,
        document_letters=document_score.letters,
        document_draft=document_score.drafted(page) if document is None else document,
        document_before=document_score.before,
        comment=(page.first_assignment.draft or {}).get("comment", "") if comment is None else comment,
        revision=revision,
        done=done,
        left=left,
        total=done + left if tutorial else max(done + left, outlook.items_at_start),
        seconds_left=None if tutorial else outlook.seconds_left(left),
        source_language=campaign.source_language,
        target_language=campaign.target_language,
        instructions=settings.domain_instructions.get(domain, ""),
    )


def page_ahead(session: Session, campaign: Campaign, number: int) -> Work | None:
    """Return page `number` (from 0, practice first) as an only rater sees it; None after the last page."""
    rows = session.execute(
        select(Item.id, Item.kind, Item.page, Item.position)
        .where(Item.campaign_id == campaign.id)
        .order_by(Item.kind != ItemKind.TUTORIAL, Item.position)
    ).all()
    first_rows = [index for index, row in enumerate(rows) if row.page in (None, row.position)]
    if not 0 <= number < len(first_rows):
        return None
    index = first_rows[number]
    first = session.get_one(Item, rows[index].id)
    items = items_of_page(session, first)
    groups = [shown_groups(item) for item in items]
    order = draw_order(page_groups(groups), seed=f"{campaign.seed}/{first.position}/ahead")
    assignments = [
        Assignment(id=item.id, item_id=item.id, order=order_on(order, of_item), comment="")
        for item, of_item in zip(items, groups, strict=True)
    ]
    page = RaterPage(assignments, items)
    outlook = Outlook(items_at_start=items_in_all(session, campaign))
    work = as_work(campaign, page, outlook, document_score_of(session, campaign, page))
    practice = sum(row.kind == ItemKind.TUTORIAL for row in rows)
    done, total = (index, practice) if work.tutorial else (index - practice, work.total)
    return replace(work, done=done, left=total - done, total=total)
