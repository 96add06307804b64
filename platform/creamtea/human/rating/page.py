"""A page that a rater was given: one item, or the segments of a document, which stay together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Select, bindparam, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from creamtea.human.rating.model import RatingRefused, ShownSegment
from creamtea.human.rating.orders import Order, groups_of, joint_order
from creamtea.store.tables import Assignment, Item
from creamtea.wording import counted

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class OwnPage:
    """The items of a page in their order, each with its rater's assignment. The first stands for all: it is
    what takes a place, and its assignment names the page."""

    assignments: list[Assignment]
    items: list[Item]

    @property
    def first(self) -> Assignment:
        return self.assignments[0]

    @property
    def lead(self) -> Item:
        return self.items[0]

    @property
    def outputs(self) -> list[str]:
        """The shown outputs, those of the first item first."""
        return [text for segment in self.segments() for text in segment.outputs]

    def segments(self) -> list[ShownSegment]:
        groups = self.systems()
        letters = {system: chr(ord("A") + at) for at, group in enumerate(groups) for system in group}
        return [
            ShownSegment(
                source=item.source,
                context=list(item.context),
                outputs=shown_outputs(item, assignment.order),
                letters=[_names(group, letters) if len(groups) > 1 else "" for group in assignment.order],
                references=list(item.references),
                media=list(item.media),
                proposals=shown_proposals(item, assignment.order),
            )
            for item, assignment in zip(self.items, self.assignments, strict=True)
        ]

    def systems(self) -> Order:
        """The systems of each text that the page shows, from left to right."""
        return joint_order([assignment.order for assignment in self.assignments])

    def drafted(self) -> list[Any]:
        """The answers that were begun; None for each output without one."""
        return [
            answer
            for assignment in self.assignments
            for answer in (assignment.draft or {}).get("answers", [None] * len(assignment.order))
        ]

    def drafted_comment(self) -> str:
        return str((self.first.draft or {}).get("comment", ""))

    def split(self, answers: Sequence[Answer]) -> list[list[Answer]]:
        """The answers about the shown outputs, by item. RatingRefused where their number is wrong."""
        sizes = [len(assignment.order) for assignment in self.assignments]
        ends = list(accumulate(sizes, initial=0))
        if len(answers) != ends[-1]:
            raise RatingRefused(f"{counted(len(answers), 'score')} for {counted(ends[-1], 'output')}")
        return [list(answers[start:end]) for start, end in pairwise(ends)]


def _names(group: Sequence[int], letters: dict[int, str]) -> str:
    """ "B", or "A = C" of two that say the same here and not everywhere on the page."""
    return " = ".join(sorted({letters[system] for system in group}))


def to_show(item: Item) -> Order:
    """The systems of each distinct text that the item shows."""
    shown = set(item.shown)
    groups = groups_of(item.systems, item.outputs)
    return [kept for group in groups if (kept := [system for system in group if system in shown])]


def shown_outputs(item: Item, order: Order) -> list[str]:
    """The item's distinct texts in a drawn order."""
    texts = dict(zip(item.systems, item.outputs, strict=True))
    return [texts[group[0]] for group in order]


def shown_proposals(item: Item, order: Order) -> list[list[dict[str, Any]]]:
    """The errors that are marked beforehand, in a drawn order of the item's distinct texts."""
    return [(item.proposals or {}).get(str(group[0]), []) for group in order]


def leads() -> ColumnElement[bool]:
    """Of a query: only the first item of each page."""
    return or_(Item.page.is_(None), Item.page == Item.position)


def items_of_page(session: Session, lead: Item) -> list[Item]:
    if lead.page is None:
        return [lead]
    of_page = select(Item).where(Item.campaign_id == lead.campaign_id, Item.page == lead.page)
    return list(session.scalars(of_page.order_by(Item.position)))


def own(session: Session, rater_id: int, assignment_id: int) -> OwnPage:
    """The rater's own page with this assignment; RatingRefused for any other's."""
    rows = _own(session, rater_id, Assignment.id, assignment_id)
    if not rows:
        raise RatingRefused("this item is not yours to rate")
    return page_of(session, *rows[0])


def page_of(session: Session, assignment: Assignment, item: Item) -> OwnPage:
    """The page on which an assignment's item is shown."""
    if item.page is None:
        return OwnPage([assignment], [item])
    same = select(Item.id).where(Item.campaign_id == item.campaign_id, Item.page == item.page)
    rows = _own(session, assignment.rater_id, Assignment.item_id, *session.scalars(same))
    return OwnPage([row[0] for row in rows], [row[1] for row in rows])


def _own(
    session: Session, rater_id: int, column: InstrumentedAttribute[Any], *values: int
) -> list[tuple[Assignment, Item]]:
    rows = session.execute(_own_with(column), {"values": values, "rater": rater_id})
    return [(row[0], row[1]) for row in rows]


@cache
def _own_with(column: InstrumentedAttribute[Any]) -> Select[Assignment, Item]:
    return (
        select(Assignment, Item)
        .join(Item, Item.id == Assignment.item_id)
        .where(column.in_(bindparam("values", expanding=True)), Assignment.rater_id == bindparam("rater"))
        .order_by(Item.position)
    )
