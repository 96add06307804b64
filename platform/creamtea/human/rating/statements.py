"""The statements that say what lies before a rater and which places are taken.

Each is written once, with names for what differs (`rater`, `campaign`, `now`, `k` ...): writing one takes
SQLAlchemy longer than most of them take the database.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, Subquery, and_, bindparam, case, false, func, or_, select
from sqlalchemy.orm import aliased

from creamtea.human.rating.page import leads
from creamtea.store.item_kinds import CONTROL_KINDS, SYSTEM_KINDS, WRITTEN_KINDS, ItemKind
from creamtea.store.tables import Assignment, Item, Rater


def takes_place() -> ColumnElement[bool]:
    """Of a statement with the parameters `campaign` and `now`."""
    counted = select(Rater.id).where(Rater.campaign_id == bindparam("campaign"), Rater.excluded_at.is_(None))
    return and_(
        Assignment.rater_id.in_(counted),
        Assignment.skipped_at.is_(None),
        or_(Assignment.submitted_at.is_not(None), Assignment.lease_until > bindparam("now")),
    )


@cache
def places_taken() -> Select[int, int]:
    return (
        select(Assignment.item_id, func.count())
        .where(
            Assignment.item_id.in_(bindparam("items", expanding=True)),
            Assignment.rater_id != bindparam("rater"),
            takes_place(),
        )
        .group_by(Assignment.item_id)
    )


@cache
def assignments() -> Select[Any]:
    """The columns of `Past`."""
    return (
        select(
            Assignment.id,
            Assignment.item_id,
            Item.position,
            Item.page,
            Item.kind,
            Item.document,
            Assignment.order,
            Assignment.lease_until,
            Assignment.submitted_at,
            Assignment.skipped_at,
            Assignment.active_ms,
        )
        .join(Item, Item.id == Assignment.item_id)
        .where(Assignment.rater_id == bindparam("rater"))
        .order_by(Assignment.id)
    )


@cache
def sizes() -> Select[int, int]:
    """How many items are there for every rater, and how many attention checks to choose from."""
    return select(
        func.count().filter(Item.kind.not_in(WRITTEN_KINDS)),
        func.count().filter(Item.kind == ItemKind.ATTENTION),
    ).where(Item.campaign_id == bindparam("campaign"))


def mine() -> Select[int]:
    """The items that the rater was ever given."""
    return select(Assignment.item_id).where(Assignment.rater_id == bindparam("rater"))


@cache
def tutorial() -> Select[int]:
    return (
        select(Item.id)
        .where(
            Item.campaign_id == bindparam("campaign"),
            Item.kind == ItemKind.TUTORIAL,
            Item.id.not_in(mine()),
        )
        .order_by(Item.position)
    )


@cache
def on_loan() -> Select[bool]:
    """Whether others are on items that this rater never had: those come back if they are not answered."""
    held = (
        select(Assignment.id)
        .join(Item, Item.id == Assignment.item_id)
        .where(
            takes_place(),
            Assignment.rater_id != bindparam("rater"),
            Assignment.submitted_at.is_(None),
            Item.kind.in_(SYSTEM_KINDS),
            Item.id.not_in(mine()),
        )
    )
    return select(held.exists())


@cache
def open_pages(aims: bool, as_documents: bool, in_context: bool) -> Select[Any]:
    """Id, how many items there are in all, and what their order and their turn are told by."""
    taken = (
        select(Assignment.item_id, func.count().label("count"))
        .where(takes_place())
        .group_by(Assignment.item_id)
        .subquery()
    )
    control = aliased(Item)
    controls = (
        select(control.original_id, func.count().label("count"))
        .where(control.campaign_id == bindparam("campaign"), control.kind.in_(CONTROL_KINDS))
        .group_by(control.original_id)
        .subquery()
    )
    sizes = page_sizes()
    # a page has as many controls as its first item, of its own size
    items = func.coalesce(sizes.c.count, 1) * (1 + func.coalesce(controls.c.count, 0))
    query = (
        select(Item.id, func.sum(items).over(), Item.drawn, Item.document, Item.systems, Item.position)
        .outerjoin(taken, taken.c.item_id == Item.id)
        .outerjoin(controls, controls.c.original_id == Item.id)
        .outerjoin(sizes, sizes.c.page == Item.page)
        .where(
            Item.campaign_id == bindparam("campaign"),
            Item.kind.in_(SYSTEM_KINDS),
            leads(),
            Item.id.not_in(mine()),
            func.coalesce(taken.c.count, 0) < bindparam("k"),
            Item.drawn.is_not(False),  # a campaign that aims has passed it over
        )
    )
    present = Item.document == bindparam("document")
    # of a campaign that aims: those whose turn has not come are among what may come, and not to be had yet
    waits = Item.drawn.is_(None) if aims else false()
    if as_documents:
        begun = begun_documents()
        free = func.coalesce(begun.c.raters, 0) < bindparam("k")
        query = query.outerjoin(begun, begun.c.document == Item.document).order_by(
            case((waits, 2), (present, 0), (free, 1), else_=3)
        )
    elif in_context:
        query = query.order_by(case((waits, 2), (present, 0), else_=1))
    elif aims:
        query = query.order_by(waits)
    return query.order_by(Item.position).limit(bindparam("shortlist"))


def begun_documents() -> Subquery:
    """How many other raters take a place in each document that anybody does."""
    return (
        select(Item.document, func.count(Assignment.rater_id.distinct()).label("raters"))
        .join(Assignment, Assignment.item_id == Item.id)
        .where(
            Item.campaign_id == bindparam("campaign"),
            Item.kind.in_(SYSTEM_KINDS),
            leads(),
            Assignment.rater_id != bindparam("rater"),
            takes_place(),
        )
        .group_by(Item.document)
        .subquery()
    )


def page_sizes() -> Subquery:
    """How many items each page has; items that are shown alone are left out."""
    return (
        select(Item.page, func.count().label("count"))
        .where(Item.campaign_id == bindparam("campaign"), Item.page.is_not(None))
        .group_by(Item.page)
        .subquery()
    )


@cache
def attention_checks() -> Select[int]:
    return (
        select(Item.id)
        .where(Item.campaign_id == bindparam("campaign"), Item.kind == ItemKind.ATTENTION)
        .order_by(Item.position)
    )


@cache
def open_controls() -> Select[int, int, int, int]:
    """Id, original, the distance between them, and how many items the control's page has."""
    original, held, sizes = aliased(Item), aliased(Assignment), page_sizes()
    return (
        select(
            Item.id,
            original.id,
            Item.position - original.position,
            func.coalesce(sizes.c.count, 1),
        )
        .join(original, original.id == Item.original_id)
        .join(held, held.item_id == original.id)
        .outerjoin(sizes, sizes.c.page == Item.page)
        .where(
            leads(),
            held.rater_id == bindparam("rater"),
            held.skipped_at.is_(None),
            Item.campaign_id == bindparam("campaign"),
            Item.kind.in_(CONTROL_KINDS),
            Item.id.not_in(mine()),
            Item.drawn.is_not(False),  # its spoilt text is one that a campaign that aims has passed over
        )
        .order_by(Item.position)
    )
