"""A rater's page: one item, or segments of a document that stay together. Who may have the page, what it
shows, and the answers to it. None of this contains names of systems.

On PostgreSQL every transaction that gives out or takes back a place starts with row locks, so that its counts
stay true until it commits. A rater's transaction locks the rater and the first item of a page (`FOR NO KEY
UPDATE`) and shares the campaign's lock with other raters' transactions (`FOR SHARE`): raters of different
pages do not wait for each other. A transaction that changes many pages (excludes a rater, draws systems,
closes the campaign) locks the campaign alone. On SQLite a write transaction locks the whole file. Times come
from the database's clock.

The score of a whole document is asked for once, on the page with the document's last segments. If the page
has only the end, it also shows the earlier segments to read, whoever rated them. Each distinct text of the
whole document has one score: two systems with equal texts here but different texts before have two scores.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from itertools import accumulate, pairwise
from typing import Any, Literal

import numpy as np
from sqlalchemy import ColumnElement, Select, bindparam, or_, select
from sqlalchemy.orm import Session

from creamtea.errors import CreamteaError, InputError
from creamtea.human.making.settings import settings_of
from creamtea.human.protocols import Protocol, find_protocol
from creamtea.human.record import distinct_outputs, files_of
from creamtea.store.tables import (
    SYSTEM_KINDS,
    Assignment,
    Campaign,
    Item,
    MediaEntry,
    Rater,
    Rating,
    StoredSpan,
)
from creamtea.wording import counted

LEASE = timedelta(hours=2)
Order = list[list[int]]  # for each column, the systems (positions in Campaign.systems) with its output


class RatingRefused(CreamteaError):
    """A page is not given out or an answer is not stored; the message is for the rater.

    Nothing was changed, except that `TryAgain` counts a warning, and a draft for a lost place is kept.
    """


class ConsentMissing(RatingRefused):
    """The rater has not agreed to take part yet (`raters.welcome(...).consented`)."""

    def __init__(self) -> None:
        super().__init__("first read the introduction and agree to take part")


class TryAgain(RatingRefused):
    """The organiser's warning after a wrong answer to a loud attention check, counted but not stored."""


@dataclass(frozen=True)
class ShownSegment:
    """A segment of a page as its rater sees it."""

    source: str
    context: list[str]  # source segments before this one that the page does not show, oldest first
    outputs: list[str]  # distinct, in their drawn order
    letters: list[str]  # each output's letter, the same on the whole page; "" if outputs come one at a time
    proposals: list[list[StoredSpan]]  # for each output, the errors marked beforehand
    references: list[str] = field(default_factory=list)  # human translations of the source
    media: list[MediaEntry] = field(default_factory=list)  # files beside the source
    files: list[list[MediaEntry]] = field(default_factory=list)  # of each output


@dataclass(frozen=True)
class ReadBefore:
    """A segment of the document on an earlier page, shown to read before the document is scored."""

    source: str
    outputs: list[str]  # one for each text of the whole document
    files: list[list[MediaEntry]]  # of each output


@dataclass(frozen=True)
class Work:
    """A page as its rater sees it: one item, or the segments of a document in their order.

    `done`, `left` and `total` count items of the campaign with controls, or practice items if `tutorial` is
    true. `left` is the maximum that this rater may still get, with this page: it falls when others rate some
    of these items. `total` does not change.
    """

    assignment_id: int  # the first item's assignment, which names the page
    protocol: Protocol
    tutorial: bool
    document: bool  # whether the page has segments of a document, even a single one
    segments: list[ShownSegment]
    draft: list[Any]  # for each shown output, segment by segment, the widget's answer or None
    # if a score of the whole document is asked for: each text's letters ("" if there is one text), the scores
    # so far, and the document's segments before the page; empty otherwise
    document_letters: list[str]
    document_draft: list[int | None]
    document_before: list[ReadBefore]
    comment: str
    revision: int  # the revision that a submit will store
    done: int
    left: int
    total: int
    seconds_left: int | None  # at this rater's median pace; None before the first answer
    source_language: str
    target_language: str
    instructions: str = ""  # Markdown for the domain of the page's document

    @property
    def source(self) -> str:
        """Return the source of the first segment."""
        return self.segments[0].source

    @property
    def outputs(self) -> list[str]:
        """Return all outputs of the page, segment by segment."""
        return [text for segment in self.segments for text in segment.outputs]


@dataclass(frozen=True)
class Guidance:
    """Feedback to the answer of a practice item; lists are in the order of the shown outputs."""

    explanation: str
    accepted: list[tuple[int, int] | None] = field(default_factory=list)  # lowest, highest step; None: any
    right: list[bool] = field(default_factory=list)  # whether the stored step is accepted
    # for each output, the expected errors (None: any), and which of them were marked
    spans: list[list[StoredSpan] | None] = field(default_factory=list)
    found: list[list[bool]] = field(default_factory=list)
    marked: list[bool] = field(default_factory=list)  # whether exactly the expected errors were marked


@dataclass(frozen=True)
class Submitted:
    """The stored scores (steps) of a page's revision."""

    assignment_id: int
    revision: int
    of_items: list[dict[int, int]]  # for each item, system's position → step
    guidance: Guidance | None = None  # for a practice item
    document: dict[int, int] = field(default_factory=dict)  # system's position → step of the whole document
    differs: bool = field(default=False, compare=False)  # already stored, but now other values were sent

    @property
    def steps(self) -> dict[int, int]:
        """Return the scores of a page with one item."""
        (steps,) = self.of_items
        return steps


@dataclass(frozen=True)
class Earlier:
    """A page that its rater has submitted; `number` counts items from 1 to the page's first."""

    assignment_id: int
    number: int
    source: str  # of the first segment
    revision: int  # the newest stored revision
    given: str  # the rater's answer in words
    items: int = 1


@dataclass(frozen=True)
class RaterPage:
    """A page as stored: its items in their order, each with the rater's assignment.

    The first assignment names the page and takes the rater's place.
    """

    assignments: list[Assignment]
    items: list[Item]

    @property
    def first_assignment(self) -> Assignment:
        return self.assignments[0]

    @property
    def first_item(self) -> Item:
        return self.items[0]

    def segments(self) -> list[ShownSegment]:
        groups = self.systems()
        letters = {system: chr(ord("A") + place) for place, group in enumerate(groups) for system in group}
        return [
            ShownSegment(
                source=item.source,
                context=list(item.context),
                outputs=shown_outputs(item, assignment.order),
                # "A = C" if two texts are equal here, but not everywhere on the page
                letters=[
                    " = ".join(sorted({letters[system] for system in group})) if len(groups) > 1 else ""
                    for group in assignment.order
                ],
                references=list(item.references),
                media=files_of(item),
                files=[files_of(item, group[0]) for group in assignment.order],
                proposals=shown_proposals(item, assignment.order),
            )
            for item, assignment in zip(self.items, self.assignments, strict=True)
        ]

    def systems(self) -> Order:
        """Return the systems of each text that the page shows, from left to right."""
        return joint_order([assignment.order for assignment in self.assignments])

    def drafted(self) -> list[Any]:
        """Return the drafted answers; None for each output without one."""
        return [
            answer
            for assignment in self.assignments
            for answer in (assignment.draft or {}).get("answers", [None] * len(assignment.order))
        ]

    def with_answers(self, answers: Sequence[Any]) -> list[tuple[Assignment, Item, list[Any]]]:
        """Return each item with the answers about its outputs. RatingRefused if their number is wrong."""
        sizes = [len(assignment.order) for assignment in self.assignments]
        ends = list(accumulate(sizes, initial=0))
        if len(answers) != ends[-1]:
            raise RatingRefused(f"{counted(len(answers), 'score')} for {counted(ends[-1], 'output')}")
        parts = (list(answers[start:end]) for start, end in pairwise(ends))
        return list(zip(self.assignments, self.items, parts, strict=True))


def shown_groups(item: Item) -> Order:
    """Return the systems of each distinct text that the item shows."""
    shown = set(item.shown)
    groups = groups_of(item.systems, distinct_outputs(item))
    return [part for group in groups if (part := [system for system in group if system in shown])]


def shown_outputs(item: Item, order: Order) -> list[str]:
    """Return the item's distinct texts in a drawn order."""
    texts = dict(zip(item.systems, item.outputs, strict=True))
    return [texts[group[0]] for group in order]


def shown_proposals(item: Item, order: Order) -> list[list[StoredSpan]]:
    """Return the errors marked beforehand, in a drawn order of the item's distinct texts."""
    return [(item.proposals or {}).get(str(group[0]), []) for group in order]


def is_first_of_page() -> ColumnElement[bool]:
    """Build the condition that keeps the first item of each page."""
    return or_(Item.page.is_(None), Item.page == Item.position)


def items_of_page(session: Session, first: Item) -> list[Item]:
    if first.page is None:
        return [first]
    of_page = select(Item).where(Item.campaign_id == first.campaign_id, Item.page == first.page)
    # sorted here: with ORDER BY, SQLite reads the whole campaign by position instead of one page
    return sorted(session.scalars(of_page), key=lambda item: item.position)


def load_page(session: Session, rater_id: int, assignment_id: int) -> RaterPage:
    """Load the rater's page with this assignment. RatingRefused if the page is another rater's."""
    row = session.execute(_WITH_ITEM, {"assignment": assignment_id, "rater": rater_id}).one_or_none()
    if row is None:
        raise RatingRefused("this item is not yours to rate")
    return page_of(session, *row)


def page_of(session: Session, assignment: Assignment, item: Item) -> RaterPage:
    """Load the page on which an assignment's item is shown."""
    if item.page is None:
        return RaterPage([assignment], [item])
    same = select(Item.id).where(Item.campaign_id == item.campaign_id, Item.page == item.page)
    values = {"items": session.scalars(same).all(), "rater": assignment.rater_id}
    rows = session.execute(_OF_ITEMS, values).all()
    return RaterPage([row[0] for row in rows], [row[1] for row in rows])


_ASSIGNED = (
    select(Assignment, Item)
    .join(Item, Item.id == Assignment.item_id)
    .where(Assignment.rater_id == bindparam("rater"))
)
_WITH_ITEM = _ASSIGNED.where(Assignment.id == bindparam("assignment"))
_OF_ITEMS = _ASSIGNED.where(Assignment.item_id.in_(bindparam("items", expanding=True))).order_by(
    Item.position
)


_WHY_NOT = {
    "draft": "this evaluation has not begun",
    "closed": "this evaluation is closed; what you saved is kept",
}


Lock = Literal["", "shared", "alone"]


def lock_campaign(session: Session, rater_id: int) -> Campaign:
    """Lock the campaign alone, as the transaction's first statement."""
    return campaign_of(session, rater_id, "alone")


def lock_rater(session: Session, rater_id: int) -> Campaign:
    """Lock the rater, and the campaign shared with other raters, as the transaction's first statements."""
    campaign = campaign_of(session, rater_id, "shared")
    session.get_one(Rater, rater_id, with_for_update={"key_share": True})
    return campaign


def lock_page(session: Session, rater_id: int, assignment_id: int) -> tuple[Campaign, RaterPage]:
    """Lock the rater and the page with this assignment. RatingRefused if the page is another rater's."""
    campaign = lock_rater(session, rater_id)
    page = load_page(session, rater_id, assignment_id)
    session.execute(_LOCK_ITEM, {"item": page.first_item.id})
    return campaign, page


_LOCK_ITEM = select(Item.id).where(Item.id == bindparam("item")).with_for_update(key_share=True)


def campaign_of(session: Session, rater_id: int, lock: Lock = "") -> Campaign:
    """Return the rater's campaign, locked unless `lock` is empty."""
    campaign = session.scalar(_campaign_of(lock), {"rater": rater_id})
    if campaign is None:
        raise RatingRefused("this link is no longer valid; ask for a new one")
    return campaign


@cache
def _campaign_of(lock: Lock) -> Select[Campaign]:
    own = select(Rater.campaign_id).where(Rater.id == bindparam("rater")).scalar_subquery()
    wanted = select(Campaign).where(Campaign.id == own)
    return wanted.with_for_update(read=lock == "shared", key_share=lock == "alone") if lock else wanted


def protocol_of(campaign: Campaign) -> Protocol:
    """Return the campaign's protocol; RatingRefused if its plug-in is missing."""
    try:
        return find_protocol(campaign.protocol, campaign.settings)
    except InputError:
        raise RatingRefused("this evaluation cannot be shown at the moment; tell the organiser") from None


def check_takes_part(campaign: Campaign, rater: Rater) -> None:
    """Raise RatingRefused unless the campaign is launched and the rater neither excluded nor forgotten."""
    if campaign.state != "launched":
        raise RatingRefused(_WHY_NOT[campaign.state])
    if rater.forgotten_at is not None:
        raise RatingRefused("you have left this evaluation; ask the organiser for a new link")
    if rater.excluded_at is not None:
        raise RatingRefused("the organiser has ended your part here; what you saved is kept")


def active_rater(session: Session, campaign: Campaign, rater_id: int) -> Rater:
    """Return the rater. RatingRefused unless the rater takes part and has agreed. Call it after locking."""
    rater = session.get_one(Rater, rater_id)
    check_takes_part(campaign, rater)
    if rater.consented_at is None:
        raise ConsentMissing
    return rater


@dataclass(frozen=True)
class DocumentScore:
    """The question for scores of a whole document, one per distinct text; empty if a page does not ask."""

    groups: Order = field(default_factory=list)  # the systems with each text
    letters: list[str] = field(default_factory=list)  # each text's letter on the page; "" for a single text
    before: list[ReadBefore] = field(default_factory=list)  # the document's segments on earlier pages

    def drafted(self, page: RaterPage) -> list[int | None]:
        """Return the draft's scores, one per text."""
        steps = (page.first_assignment.draft or {}).get("document") or []
        return list(steps) if len(steps) == len(self.groups) else [None] * len(self.groups)

    def stored(self, session: Session, page: RaterPage, revision: int) -> list[int | None]:
        """Load the scores of a revision, one per text."""
        if not self.groups:
            return []
        stored = Rating.assignment_id == page.first_assignment.id, Rating.revision == revision
        rows = session.execute(select(Rating.system, Rating.document_step).where(*stored))
        steps = {row[0]: row[1] for row in rows}
        return [steps.get(group[0]) for group in self.groups]


_NOTHING: tuple[str, str, list[MediaEntry]] = "", "", []


def document_score_of(session: Session, campaign: Campaign, page: RaterPage) -> DocumentScore:
    """Return the scores of a whole document that this page asks for."""
    lead = page.first_item
    if lead.page is None or not settings_of(campaign.settings).document_score:
        return DocumentScore()
    rows: Sequence[Any] = session.execute(
        select(Item.segment_index, Item.source, Item.systems, Item.outputs, Item.media)
        .where(Item.campaign_id == campaign.id, Item.document == lead.document, Item.kind.in_(SYSTEM_KINDS))
        .order_by(Item.segment_index, Item.position)
    ).all()
    if any(row.segment_index > page.items[-1].segment_index for row in rows):
        return DocumentScore()  # a later page has the end
    sources: dict[int, str] = {}
    # by segment and system: the output's identity (`media.distinct`), text and files
    known: dict[tuple[int, int], tuple[str, str, list[MediaEntry]]] = {}
    for row in rows:
        if row.segment_index < lead.segment_index:
            sources[row.segment_index] = row.source
            for system, identity, text in zip(row.systems, distinct_outputs(row), row.outputs, strict=True):
                known[row.segment_index, system] = identity, text, files_of(row, system)
    groups, letters = [], []
    for place, group in enumerate(shown := page.systems()):
        letter = chr(ord("A") + place) if len(shown) > 1 else ""
        parts: dict[tuple[str, ...], list[int]] = {}
        for system in group:
            earlier = tuple(known.get((segment, system), _NOTHING)[0] for segment in sources)
            parts.setdefault(earlier, []).append(system)
        for number, text in enumerate(sorted(parts), start=1):  # an order that reveals no system
            groups.append(parts[text])
            letters.append(f"{letter}{number}" if len(parts) > 1 else letter)
    before = []
    for segment, source in sources.items():
        outputs = [known.get((segment, group[0]), _NOTHING) for group in groups]
        texts, files = [output[1] for output in outputs], [output[2] for output in outputs]
        before.append(ReadBefore(source, texts, files))
    return DocumentScore(groups, letters, before)


# ---------------------------------------------------------------- orders
#
# The column in which a rater sees each output: drawn once per rater and item, balanced, and stored.
#
# Columns are not equal (the output read first anchors the rest), so each output should stand in each column
# equally often, over the raters of an item and over the items of a rater. A fixed cyclic Latin square cannot
# do both if raters come and go and items have different numbers of distinct outputs. So each order is drawn
# as the cheapest assignment of outputs to columns, where the cost of a cell is how often the output has stood
# there: first for the item's raters, then for the rater's items; the seed breaks ties.
#
# Over the raters of an item the counts of two cells never differ by more than one: counts after n full orders
# are a sum of n permutation matrices, so their smallest cells contain a perfect matching (König), and the
# next order takes it.
#
# All segments of a page have one order, so that a rater can follow a system through the text. Systems with
# equal outputs in a segment stand there in the place of the first of them.

_ITEM = 1e3  # above any sum of a rater's deviations, so that the item's balance comes first
_TIE = 1e-6  # below any difference of deviations


def groups_of(systems: Sequence[int], outputs: Sequence[str]) -> Order:
    """Group systems with equal outputs, in the order of first appearance."""
    groups: dict[str, list[int]] = {}
    for system, text in zip(systems, outputs, strict=True):
        groups.setdefault(text, []).append(system)
    return list(groups.values())


def page_groups(groups: Iterable[Order]) -> Order:
    """Group the systems of a page: systems stay together if they share a group in every item."""
    group_numbers: dict[int, list[int]] = {}  # of each system, item by item
    for of_item in groups:
        for number, group in enumerate(of_item):
            for system in group:
                group_numbers.setdefault(system, []).append(number)
    together: dict[tuple[int, ...], list[int]] = {}
    for system in sorted(group_numbers):
        together.setdefault(tuple(group_numbers[system]), []).append(system)
    return list(together.values())


def order_on(page: Order, groups: Order) -> Order:
    """Put the groups of an item into the page's order."""
    places = {system: place for place, group in enumerate(page) for system in group}
    return sorted(groups, key=lambda group: min(places[system] for system in group))


def joint_order(orders: Sequence[Order]) -> Order:
    """Find an order of the page that gives its items these orders (`order_on`); ValueError if none does.

    The order is unique unless equal outputs leave some of it open.
    """
    if orders.count(orders[0]) == len(orders):
        return list(orders[0])
    columns = [{system: place for place, group in enumerate(order) for system in group} for order in orders]
    rest, page = page_groups(orders), []
    seen = [0] * len(orders)  # groups of each item
    while rest:
        # A group can be next if each item has it at its next place or at a place that was seen. Taking such a
        # group never disqualifies another, so this finds an order if there is one.
        fits = (
            group
            for group in rest
            if all(places[group[0]] <= count for places, count in zip(columns, seen, strict=True))
        )
        group = next(fits, None)
        if group is None:
            raise ValueError("these orders are not of one page")
        seen = [max(count, places[group[0]] + 1) for places, count in zip(columns, seen, strict=True)]
        rest.remove(group)
        page.append(group)
    return page


def draw_order(
    groups: Order, *, of_item: Iterable[Order] = (), of_rater: Iterable[Order] = (), seed: str = ""
) -> Order:
    """Draw an order for these groups, given the orders drawn so far for the item and for the rater.

    The same arguments give the same order.
    """
    columns = len(groups)
    draw = random.Random(seed)
    cost = np.array([[_TIE * draw.random() for _ in range(columns)] for _ in range(columns)])
    row_of = {group[0]: row for row, group in enumerate(groups)}
    for order in of_item:
        for column, group in enumerate(order):
            cost[row_of[group[0]], column] += _ITEM
    # how much more often than its fair share a system has stood in each column for this rater
    shown = {system for group in groups for system in group}
    excess: dict[tuple[int, int], float] = {}
    for order in of_rater:
        share = 1 / len(order)
        for column, group in enumerate(order):
            for system in shown.intersection(group):
                for other in range(len(order)):
                    excess[system, other] = excess.get((system, other), 0.0) + (other == column) - share
    for row, group in enumerate(groups):
        for column in range(columns):
            cost[row, column] += sum(excess.get((system, column), 0.0) for system in group)
    from scipy.optimize import linear_sum_assignment  # slow to import

    rows, places = linear_sum_assignment(cost)
    row_at = dict(zip(places.tolist(), rows.tolist(), strict=True))
    return [groups[row_at[column]] for column in range(columns)]
