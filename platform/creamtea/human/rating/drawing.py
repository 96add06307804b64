"""Who rates which item next; and a campaign as its raters will see it, for organisers."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam, func, select
from sqlalchemy.orm import Session

from creamtea.human.making.settings import settings_of
from creamtea.human.rating.adaptive import next_part, take_turns
from creamtea.human.rating.orders import Order, draw_order, joint_order, order_on, together
from creamtea.human.rating.page import (
    LEASE,
    DocumentScore,
    RaterPage,
    Work,
    active_rater,
    campaign_of,
    document_score_of,
    is_first_of_page,
    items_of_page,
    lock_campaign,
    page_of,
    protocol_of,
    to_show,
)
from creamtea.human.rating.places import (
    THIRD_PLACES,
    Outlook,
    is_adaptive,
    items_in_all,
    keeps_place,
    load_outlook,
    on_loan,
    takes_place,
)
from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Campaign, Item, ItemKind, Rater

FEW = 8  # candidates that are looked at first


def next_item(database: Database, rater_id: int, lease: timedelta = LEASE) -> Work | None:
    """Return the page this rater is on, or draw a new one; None once nothing is left for them.

    First comes the tutorial, then controls that are due, then pages with a place left: those of the document
    that the rater is in, then the others by position (`places`). A page, most often one item, goes to at most
    k raters at a time (`ratings_per_item`: submitted or under a running lease) and never twice to one rater,
    not even after a skip. A lease that ran out is renewed while the item has a place
    left; otherwise the rater gets another item. In an adaptive design segments have their turns a part at a
    time, when a rater finds nothing else (`human.rating.adaptive`).

    Raises RatingRefused where the campaign is not launched or the rater takes no part in it, ConsentMissing
    before the rater has agreed.

    What takes time, looking through all items, happens before the campaign is locked; the lock is there for
    counting the places of a few candidates again.
    """
    with database.session() as session:
        now = database.now(session)
        campaign = campaign_of(session, rater_id)
        rater = active_rater(session, campaign, rater_id)
        outlook = load_outlook(session, campaign, rater, now)
        held = _held(session, campaign, rater_id, now)
        if held is not None and held.first_assignment.lease_until > now + lease / 2:
            return as_work(campaign, held, outlook, document_score_of(session, campaign, held))
        ends = is_adaptive(campaign) and held is None and not outlook.shortlist
        part = next_part(session, campaign) if ends else None
    with database.transaction() as session:
        campaign = lock_campaign(session, rater_id)
        rater = active_rater(session, campaign, rater_id)
        now = database.now(session)
        held = _held(session, campaign, rater_id, now) or _draw(session, campaign, rater, outlook, now, lease)
        if held is None and (outlook.shortlist or outlook.third):  # all of them went to others meanwhile
            outlook = load_outlook(session, campaign, rater, now)
            held = _draw(session, campaign, rater, outlook, now, lease)
        while held is None and is_adaptive(campaign) and take_turns(session, campaign, part):
            part = None
            outlook = load_outlook(session, campaign, rater, now)
            held = _draw(session, campaign, rater, outlook, now, lease)
        if held is None:
            return None
        for assignment in held.assignments:
            assignment.lease_until = now + lease
        document_score = document_score_of(session, campaign, held)
    return as_work(campaign, held, outlook, document_score)


def others_have_items(database: Database, rater_id: int) -> bool:
    """Return whether others hold items that this rater never had, so that one may come back.

    RatingRefused for a rater that is not there (any more).
    """
    with database.session() as session:
        campaign = campaign_of(session, rater_id)
        values = {"campaign": campaign.id, "rater": rater_id, "now": database.now(session)}
        return bool(session.scalar(on_loan(), values))


def _held(session: Session, campaign: Campaign, rater_id: int, now: datetime) -> RaterPage | None:
    """Return the rater's oldest unfinished page that is still theirs; first one with a running lease."""
    unfinished = session.execute(_unfinished(), {"rater": rater_id}).all()
    for assignment, item in sorted(unfinished, key=lambda row: row[0].lease_until <= now):
        if keeps_place(session, campaign, item, rater_id, now):
            return page_of(session, assignment, item)
    return None


@cache
def _unfinished() -> Select[Assignment, Item]:
    return (
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
    """New assignments of the first candidate that this rater can have at this moment."""
    first_id = _choose(session, campaign, rater.id, outlook, now)
    if first_id is None:
        return None
    items = items_of_page(session, session.get_one(Item, first_id))
    groups = [to_show(item) for item in items]
    order = draw_order(
        together(groups) if len(items) > 1 else groups[0],
        of_item=_orders(session, campaign, items, now),
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


def _orders(session: Session, campaign: Campaign, items: list[Item], now: datetime) -> list[Order]:
    """Return the orders in which other raters who take a place see the page."""
    values = {"items": [item.id for item in items], "campaign": campaign.id, "now": now}
    by_rater: dict[int, list[Order]] = {}
    for rater_id, order in session.execute(_orders_seen(), values):
        by_rater.setdefault(rater_id, []).append(order)
    return [joint_order(orders) for orders in by_rater.values()]


@cache
def _orders_seen() -> Select[int, Order]:
    return (
        select(Assignment.rater_id, Assignment.order)
        .where(Assignment.item_id.in_(bindparam("items", expanding=True)), takes_place())
        .order_by(Assignment.id)
    )


def _choose(
    session: Session, campaign: Campaign, rater_id: int, outlook: Outlook, now: datetime
) -> int | None:
    shared = dict.fromkeys(outlook.shortlist, campaign.ratings_per_item)
    shared |= dict.fromkeys(outlook.third, THIRD_PLACES)
    candidates = [*outlook.tutorial[:1], *outlook.due[:1], *shared, *outlook.later[:1]]
    # most often one of a few is free, and a short list keeps the campaign locked for less time
    for some in filter(None, (candidates[:FEW], candidates[FEW:])):
        values = {"items": some, "rater": rater_id, "campaign": campaign.id, "now": now}
        rows = session.execute(_taken_or_had(), values)
        standing = {item_id: (taken, had) for item_id, taken, had in rows}
        for item_id in some:
            taken, had = standing.get(item_id, (0, 0))
            # another tab of this rater may have drawn it since the look
            if not had and (item_id not in shared or taken < shared[item_id]):
                return item_id
    return None


@cache
def _taken_or_had() -> Select[int, int, int]:
    """Count the places of some items that other raters take, and the assignments of this rater."""
    own = Assignment.rater_id == bindparam("rater")
    return (
        select(
            *(Assignment.item_id, func.count().filter(~own, takes_place())),
            func.count().filter(own),
        )
        .where(Assignment.item_id.in_(bindparam("items", expanding=True)))
        .group_by(Assignment.item_id)
    )


def as_work(
    campaign: Campaign,
    page: RaterPage,
    outlook: Outlook,
    document_score: DocumentScore | None,
    *,
    draft: list[Any] | None = None,
    document: list[int | None] | None = None,
    comment: str | None = None,
    revision: int = 1,
    in_work: int = 0,
) -> Work:
    """Show the page to its rater; without `draft`, `document` and `comment` with what was drafted.

    `in_work`: items of another page that the rater is on.
    """
    whole = document_score or DocumentScore([], [], [])
    tutorial = page.first_item.kind == ItemKind.TUTORIAL
    done = outlook.done(tutorial=tutorial)
    left = len(outlook.tutorial) if tutorial else outlook.at_most + in_work
    if page.first_assignment.submitted_at is None:  # what was drawn before is not among those to come
        drawn = any(past.id == page.first_assignment.id for past in outlook.past)
        left += len(page.items) if drawn else 0
    return Work(
        assignment_id=page.first_assignment.id,
        protocol=protocol_of(campaign),
        tutorial=tutorial,
        document=page.first_item.page is not None,
        segments=page.segments(),
        draft=page.drafted() if draft is None else draft,
        document_letters=whole.letters,
        document_draft=whole.drafted(page) if document is None else document,
        document_before=whole.before,
        comment=page.drafted_comment() if comment is None else comment,
        revision=revision,
        done=done,
        left=left,
        total=done + left if tutorial else max(done + left, outlook.items_at_start),
        seconds_left=None if tutorial else outlook.seconds_left(left),
        source_language=campaign.source_language,
        target_language=campaign.target_language,
        instructions=_instructions(campaign, page.first_item),
    )


def _instructions(campaign: Campaign, item: Item) -> str:
    """Return what the organiser wrote for the domain of an item's document."""
    settings = settings_of(campaign.settings)
    return settings.domain_instructions.get(settings.domains.get(item.document, ""), "")


def page_ahead(session: Session, campaign: Campaign, number: int) -> Work | None:
    """Return page `number` (from 0, practice first) as a rater who is alone sees it; None behind the last."""
    rows = session.execute(
        select(Item.id, Item.kind, Item.page, Item.position)
        .where(Item.campaign_id == campaign.id)
        .order_by(Item.kind != ItemKind.TUTORIAL, Item.position)
    ).all()
    firsts = [at for at, row in enumerate(rows) if row.page in (None, row.position)]
    if not 0 <= number < len(firsts):
        return None
    at = firsts[number]
    first = session.get_one(Item, rows[at].id)
    items = items_of_page(session, first)
    groups = [to_show(item) for item in items]
    order = draw_order(
        together(groups) if len(items) > 1 else groups[0], seed=f"{campaign.seed}/{first.position}/ahead"
    )
    assignments = [
        Assignment(id=item.id, item_id=item.id, order=order_on(order, of_item), comment="")
        for item, of_item in zip(items, groups, strict=True)
    ]
    page = RaterPage(assignments, items)
    outlook = Outlook(items_at_start=items_in_all(session, campaign))
    work = as_work(campaign, page, outlook, document_score_of(session, campaign, page))
    practice = sum(row.kind == ItemKind.TUTORIAL for row in rows)
    done, total = (at, practice) if work.tutorial else (at - practice, work.total)
    return replace(work, done=done, left=total - done, total=total)
