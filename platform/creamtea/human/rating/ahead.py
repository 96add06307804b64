"""A campaign as its raters will see it, for organisers: nothing is given out or stored."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.human.rating.drawing import as_work
from creamtea.human.rating.model import Work
from creamtea.human.rating.orders import draw_order, order_on, together
from creamtea.human.rating.page import OwnPage, items_of_page, to_show
from creamtea.human.rating.places import Outlook, items_in_all
from creamtea.human.rating.whole import whole_of
from creamtea.store.item_kinds import ItemKind
from creamtea.store.tables import Assignment, Campaign, Item


def page_ahead(session: Session, campaign: Campaign, number: int) -> Work | None:
    """Return the page of this number from 0, practice first, as a rater who is alone sees it; None behind
    the last one."""
    rows = session.execute(
        select(Item.id, Item.kind, Item.page, Item.position)
        .where(Item.campaign_id == campaign.id)
        .order_by(Item.kind != ItemKind.TUTORIAL, Item.position)
    ).all()
    firsts = [at for at, row in enumerate(rows) if row.page in (None, row.position)]
    if not 0 <= number < len(firsts):
        return None
    at = firsts[number]
    lead = session.get_one(Item, rows[at].id)
    items = items_of_page(session, lead)
    groups = [to_show(item) for item in items]
    order = draw_order(
        together(groups) if len(items) > 1 else groups[0], seed=f"{campaign.seed}/{lead.position}/ahead"
    )
    assignments = [
        Assignment(id=item.id, item_id=item.id, order=order_on(order, of_item), comment="")
        for item, of_item in zip(items, groups, strict=True)
    ]
    page = OwnPage(assignments, items)
    outlook = Outlook([], [], [], [], [], 0, items_in_all(session, campaign))
    work = as_work(campaign, page, outlook, whole_of(session, campaign, page))
    practice = sum(row.kind == ItemKind.TUTORIAL for row in rows)
    done, total = (at, practice) if work.tutorial else (at - practice, work.total)
    return replace(work, done=done, left=total - done, total=total)
