"""Which items have a place left, and what a rater has done. This module only reads.

A rated or random item has k places (`Campaign.ratings_per_item`). An assignment takes a place if it was
submitted or has a running lease, is not skipped, and its rater is not excluded. So excluding a rater frees
places for others, and including the rater again makes the same ratings count again: an item that somebody
else has rated meanwhile then has more than k counted ratings, never fewer. A third rating has one place, for
a rater who never had one of its outputs (for pairs: the pair) on any item. Practice items, attention checks
and controls (repeats, bad references) have no places: every rater gets each practice item, an attention check
after a fixed number of answers, and each control whose original the rater has rated.

Items of one page are given out together; the first item stands for the page (`page.is_first_of_page`).

Each statement is built once, with parameters (`rater`, `campaign`, `now` ...): SQLAlchemy takes longer to
build a statement than the database takes to run most of them.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from itertools import chain, groupby
from statistics import median
from typing import NamedTuple

from sqlalchemy import ColumnElement, Row, Select, Text, and_, bindparam, cast, func, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from creamtea.human.making.settings import settings_of, share_given_out
from creamtea.human.protocols import find_protocol
from creamtea.human.rating.page import Order, is_first_of_page, joint_order
from creamtea.store.tables import (
    CONTROL_KINDS,
    PLANNED_KINDS,
    SYSTEM_KINDS,
    WRITTEN_KINDS,
    Assignment,
    Campaign,
    Item,
    ItemKind,
    Rater,
    shown_of,
)

SHORTLIST = 100  # open items checked under the lock; if more raters come at once, some take the slow path
THIRD_PLACES = 1  # raters of a third rating
_PACE = 20  # newest answers whose median time is the rater's pace


OpenPage = Row[int, str, list[int], int, list[bool] | None]  # id, document, systems, position, output_drawn
RatedOutput = tuple[int, int | frozenset[int]]  # segment and system; for pairs, segment and both systems


class Past(NamedTuple):
    """One assignment of a rater, with some fields of its item."""

    # Each page reads all of a rater's assignments, thousands of them: hence no times, and no dataclass.

    id: int
    item_id: int
    page: int  # the position of its first item
    kind: str  # a value of ItemKind
    document: str
    submitted: bool
    skipped: bool
    leased: bool  # whether its lease is running
    active_ms: int | None
    order: Order


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """A rater's past assignments and the pages that may come, each named by its first item's id."""

    past: list[Past] = field(default_factory=list)  # submitted ones in the order of submission
    tutorial: list[int] = field(default_factory=list)  # practice items, which come first
    # attention checks that are due, and controls of originals that lie far enough back
    due: list[int] = field(default_factory=list)
    shortlist: list[int] = field(default_factory=list)  # the first open items
    # third ratings without a rater, for outputs that this rater never had
    third: list[int] = field(default_factory=list)
    later: list[int] = field(default_factory=list)  # controls that come when nothing else is left
    # items that may still come: with attention checks and controls, without practice items
    at_most: int = 0
    items_at_start: int  # the same number before the first item, as if nobody else rated

    @property
    def candidates(self) -> list[int]:
        """Pages that the rater may get next, the most urgent first."""
        return [*self.tutorial[:1], *self.due[:1], *self.shortlist, *self.third, *self.later[:1]]

    def done(self, *, tutorial: bool) -> int:
        """Return how many practice items, or how many other items, the rater has submitted."""
        return sum(past.submitted and (past.kind == ItemKind.TUTORIAL) == tutorial for past in self.past)

    def in_work(self) -> int:
        """Return how many items, without practice, the rater has been given but has not answered."""
        return sum(
            past.leased and not past.submitted and not past.skipped and past.kind != ItemKind.TUTORIAL
            for past in self.past
        )

    def seconds_left(self, items: int) -> int | None:
        """Estimate the time for `items` more, by the median of the newest answers; None without answers."""
        spent = [
            past.active_ms
            for past in self.past
            if past.submitted and past.active_ms is not None and past.kind != ItemKind.TUTORIAL
        ]
        return round(items * median(spent[-_PACE:]) / 1000) if spent else None

    def orders(self) -> list[Order]:
        """Return the orders that the rater has seen, one per page, without practice."""
        pages: dict[int, list[Order]] = {}
        for past in self.past:
            if not past.skipped and past.kind != ItemKind.TUTORIAL:
                pages.setdefault(past.page, []).append(past.order)
        return [joint_order(orders) for orders in pages.values()]


def mark_full(session: Session, campaign: Campaign, items: Select[int] | Collection[int]) -> None:
    """Update `Item.full` of some items, which the caller has locked, and of their controls."""
    counted = (
        select(func.count())
        .select_from(Assignment)
        .join(Rater, Rater.id == Assignment.rater_id)
        .where(
            Assignment.item_id == func.coalesce(Item.original_id, Item.id),
            Assignment.submitted_at.is_not(None),
            Rater.excluded_at.is_(None),
        )
        .scalar_subquery()
    )
    session.flush()
    session.execute(
        update(Item)
        .where(or_(Item.id.in_(items), Item.original_id.in_(items)))
        .values(full=counted >= campaign.ratings_per_item)
        .execution_options(synchronize_session=False)
    )


def keeps_place(session: Session, campaign: Campaign, lead: Item, rater_id: int, now: datetime) -> bool:
    """Return True if a rater's unfinished page still has a place for them, or needs none."""
    third = lead.kind == ItemKind.THIRD
    if not third and not ItemKind(lead.kind).rates_systems:
        return True
    values = {"items": [lead.id], "rater": rater_id, "campaign": campaign.id, "now": now}
    taken = sum(others for _, others, _ in session.execute(PLACES_TAKEN, values))
    return taken < (THIRD_PLACES if third else campaign.ratings_per_item)


def load_outlook(session: Session, campaign: Campaign, rater: Rater, now: datetime) -> Outlook:
    """Load a rater's past and the pages that may come. Call it before locking, because it takes time."""
    past = _load_past(session, rater.id, now)
    shortlist, open_items = _open_items(session, campaign, rater, past, now)
    due, later, their_items = _controls(session, campaign, rater.id, past)
    if thirds := _free_thirds(session, campaign, now):
        outputs_had = _outputs_had(session, campaign, rater.id).get(rater.id, set())
        thirds = [page for page in thirds if not page.outputs & outputs_had]
    to_come = open_items + their_items + sum(page.items for page in thirds)
    had = {assignment.item_id for assignment in past}
    written = session.execute(_WRITTEN, {"campaign": campaign.id}).all()
    checks = [item for item, kind in written if kind == ItemKind.ATTENTION]
    start = rater.id % max(1, len(checks))  # raters begin at different checks
    attention = [check for check in (*checks[start:], *checks[:start]) if check not in had]
    every = settings_of(campaign.settings).attention_every
    answers = sum(assignment.submitted and assignment.kind not in WRITTEN_KINDS for assignment in past)
    if attention and answers // every > sum(assignment.kind == ItemKind.ATTENTION for assignment in past):
        due = [attention[0], *due]
    return Outlook(
        past=past,
        tutorial=[item for item, kind in written if kind == ItemKind.TUTORIAL and item not in had],
        due=due,
        shortlist=shortlist,
        third=[page.id for page in thirds],
        later=later,
        at_most=to_come + min(len(attention), to_come // every),
        items_at_start=items_in_all(session, campaign),
    )


def _load_past(session: Session, rater_id: int, now: datetime) -> list[Past]:
    rows = session.execute(_ASSIGNMENTS, {"rater": rater_id, "now": now}).all()
    # one call for all orders: a call takes longer than decoding an order
    orders = json.loads(f"[{','.join(row[-1] for row in rows)}]")
    return [Past._make((*row[:-1], order)) for row, order in zip(rows, orders, strict=True)]


def finished_raters(session: Session, campaign: Campaign, now: datetime) -> set[int]:
    """Return the raters who have rated something and have nothing left to rate.

    No page is open to them, and they hold no unanswered page, not even with an expired lease. `load_outlook`
    answers the same question for one rater.
    """
    own = select(Item.id, Item.kind, Item.original_id, Item.full).where(
        Item.campaign_id == campaign.id, is_first_of_page(), Item.drawn.is_not(False)
    )
    items = session.execute(own).all()
    not_full = select(Item.id).where(Item.campaign_id == campaign.id, Item.full.is_(False))
    counts = (
        select(Assignment.item_id, func.count())
        .where(Assignment.item_id.in_(not_full), takes_place())
        .group_by(Assignment.item_id)
    )
    taken = {row[0]: row[1] for row in session.execute(counts, {"campaign": campaign.id, "now": now})}
    k = campaign.ratings_per_item
    free = {row.id for row in items if row.kind in SYSTEM_KINDS and not row.full and taken.get(row.id, 0) < k}
    thirds = _free_thirds(session, campaign, now)
    outputs_had = _outputs_had(session, campaign) if thirds else {}
    tutorial, checks = (
        {row.id for row in items if row.kind == kind} for kind in (ItemKind.TUTORIAL, ItemKind.ATTENTION)
    )
    controls = [(row.id, row.original_id) for row in items if row.kind in CONTROL_KINDS]
    past: dict[int, list[Row[int, int, str, datetime | None, datetime | None]]] = {}
    columns = (Assignment.rater_id, Assignment.item_id, Item.kind)
    given = select(*columns, Assignment.submitted_at, Assignment.skipped_at).join(Item)
    for row in session.execute(given.where(Item.campaign_id == campaign.id)):
        past.setdefault(row.rater_id, []).append(row)
    every, finished = settings_of(campaign.settings).attention_every, set()
    for rater_id, rows in past.items():
        had = {row.item_id for row in rows}
        held = {row.item_id for row in rows if row.skipped_at is None}
        submitted = [ItemKind(row.kind) for row in rows if row.submitted_at is not None]
        checks_had = sum(row.kind == ItemKind.ATTENTION for row in rows)
        answers = sum(not kind.is_written for kind in submitted)
        if not (
            all(kind == ItemKind.TUTORIAL for kind in submitted)
            or any(row.submitted_at is None and row.skipped_at is None for row in rows)
            or tutorial - had
            or free - had
            or any(not page.outputs & outputs_had.get(rater_id, set()) for page in thirds)
            or any(original in held and control not in had for control, original in controls)
            or (checks - had and answers // every > checks_had)
        ):
            finished.add(rater_id)
    return finished


def is_adaptive(campaign: Campaign) -> bool:
    return settings_of(campaign.settings).design == "adaptive"


def item_kinds(session: Session, campaign_id: int) -> dict[str, int]:
    """Return the number of items of each kind."""
    counted = select(Item.kind, func.count()).where(Item.campaign_id == campaign_id).group_by(Item.kind)
    return dict(session.execute(counted.order_by(Item.kind)).all())


def items_in_all(session: Session, campaign: Campaign) -> int:
    """Return how many items a rater may get, with attention checks and controls, without practice."""
    registered: dict[str, int] | None = (campaign.registered or {}).get("items", {}).get("kinds")
    kinds = item_kinds(session, campaign.id) if registered is None else registered  # None: a draft
    checks = kinds.get(ItemKind.ATTENTION, 0)
    items = round(sum(kinds.get(kind, 0) for kind in PLANNED_KINDS) * share_given_out(campaign))
    return items + min(checks, items // settings_of(campaign.settings).attention_every)


def _open_items(
    session: Session, campaign: Campaign, rater: Rater, past: list[Past], now: datetime
) -> tuple[list[int], int]:
    """Return the first open pages for this rater, and the number of open items and controls.

    A page is open if it has a place and the rater never had it. Pages come by position, so that they are
    completed in that order and raters of the same items can be compared early. With context or documents, the
    rest of the rater's present document comes first. A document comes last if others have begun it and took
    all its places: a rater who begins a document should rate all of its systems, and another rater takes over
    only if nothing else is left. Each rater gets a document's systems in an order of their own. If a page
    shows some of the systems, the pages (documents) whose systems the rater has seen least come first.
    """
    settings, document = settings_of(campaign.settings), _present_document(past)
    adaptive, as_documents = settings.design == "adaptive", settings.by_documents
    values = {
        "campaign": campaign.id,
        "rater": rater.id,
        "now": now,
        "document": document if as_documents or settings.context else "",
        "items": SHORTLIST * (settings.segments_per_page if as_documents else 1),
    }
    leased = session.scalars(_LEASED, values).all()
    places = session.execute(PLACES_TAKEN, values | {"items": leased}) if leased else ()
    values["busy"] = [item for item, taken, _ in places if taken >= campaign.ratings_per_item]
    present: Sequence[OpenPage] = []
    if values["document"]:
        present = session.execute(_open_pages(adaptive, present=True), values).all()
    free: list[OpenPage] = []
    begun: list[OpenPage] = []  # by others
    last = -1
    while len(free) < SHORTLIST and (
        rows := session.execute(_open_pages(adaptive, present=False), {**values, "after": last}).all()
    ):
        last = rows[-1].position
        others: dict[str, int] = {}
        if as_documents:
            documents = {"documents": list({row.document for row in rows})}
            others = {row[0]: row[1] for row in session.execute(_BEGUN_DOCUMENTS, values | documents)}
        for row in rows:
            (free if others.get(row.document, 0) < campaign.ratings_per_item else begun).append(row)
    if settings.systems_per_page:
        free = _by_least_seen(len(campaign.systems), past, free, as_documents)
    if adaptive and begun and session.scalar(_WAITS, values):
        begun = []  # pages that are not drawn yet come before documents begun by others
    shortlist = [*present, *free, *begun][:SHORTLIST]
    if as_documents:
        shortlist = _by_own_order(campaign, rater, shortlist)
    return [row.id for row in shortlist], session.scalar(_OPEN_COUNT, values) or 0


def _by_least_seen(
    systems: int, past: list[Past], rows: Sequence[OpenPage], as_documents: bool
) -> list[OpenPage]:
    """Sort the pages (documents) by how often this rater has seen their systems.

    Only the first pages, as many as there are systems, are sorted. So each rater sees all systems about
    equally often.
    """
    orders = (page.order for page in past if page.kind in SYSTEM_KINDS and not page.skipped)
    seen = Counter(chain.from_iterable(chain.from_iterable(orders)))
    parts = groupby(rows, key=lambda row: row.document if as_documents else row.id)
    units = [list(pages) for _, pages in parts]

    def times_seen(pages: list[OpenPage]) -> float:
        shown = {system for row in pages for system in shown_of(row.systems, row.output_drawn)}
        return sum(seen[system] for system in shown) / max(1, len(shown))

    first = sorted(units[:systems], key=times_seen)
    return [row for pages in (*first, *units[systems:]) for row in pages]


def _by_own_order(campaign: Campaign, rater: Rater, rows: Sequence[OpenPage]) -> list[OpenPage]:
    """Put each document's systems into an order drawn for this rater.

    With one order for all raters, coming first or last would favour or harm the same system everywhere. The
    order of documents, and of the parts of one system's text, does not change.
    """
    ordered: list[OpenPage] = []
    for document, pages in groupby(rows, key=lambda row: row.document):
        if len(own := list(pages)) == 1:
            ordered += own
            continue
        rank = list(range(len(campaign.systems)))
        random.Random(f"{campaign.seed}/systems/{document}/{rater.pseudonym}").shuffle(rank)
        ordered += sorted(own, key=lambda row: (sorted(rank[system] for system in row.systems), row.position))
    return ordered


def _present_document(past: list[Past]) -> str:
    """Return the document that the rater is working on; "" if there is none."""
    rated = (
        (assignment.id, assignment.document)
        for assignment in past
        if assignment.kind in SYSTEM_KINDS
        and not assignment.skipped
        and (assignment.submitted or assignment.leased)
    )
    return max(rated, default=(0, ""))[1]


def _controls(
    session: Session, campaign: Campaign, rater_id: int, past: list[Past]
) -> tuple[list[int], list[int], int]:
    """Return the controls that this rater never had: the due ones, the later ones, and all their items.

    The number of items includes controls of items in work. A control lies some positions after its original
    (half a batch, as the campaign was made). It is due once the rater has answered that many items since the
    original. Items of other raters do not count.
    """
    submitted = [page.item_id for page in past if page.submitted and page.kind not in WRITTEN_KINDS]
    # since a page's first item, so the rest of its page counts, as it does in the distance to the control
    answers_since = {item_id: number for number, item_id in enumerate(reversed(submitted))}
    rows = session.execute(_OPEN_CONTROLS, {"rater": rater_id}).all()
    due: list[int] = []
    later: list[int] = []
    for control_id, original_id, distance, is_first in rows:
        if is_first and original_id in answers_since:
            (due if answers_since[original_id] >= distance - 1 else later).append(control_id)
    return due, later, len(rows)


_COUNTED_RATERS = select(Rater.id).where(
    Rater.campaign_id == bindparam("campaign"), Rater.excluded_at.is_(None)
)


def takes_place() -> ColumnElement[bool]:
    """Build the condition that an assignment takes a place, with the parameters `campaign` and `now`."""
    return and_(
        Assignment.rater_id.in_(_COUNTED_RATERS),
        Assignment.skipped_at.is_(None),
        or_(Assignment.submitted_at.is_not(None), Assignment.lease_until > bindparam("now")),
    )


# for each of some items, the number of places that other raters take, and of this rater's assignments
PLACES_TAKEN = (
    select(
        Assignment.item_id,
        func.count().filter(Assignment.rater_id != bindparam("rater"), takes_place()),
        func.count().filter(Assignment.rater_id == bindparam("rater")),
    )
    .where(Assignment.item_id.in_(bindparam("items", expanding=True)))
    .group_by(Assignment.item_id)
)

# the fields of `Past`, in their order; `order` as JSON text
_ASSIGNMENTS = (
    select(
        *(Assignment.id, Assignment.item_id, func.coalesce(Item.page, Item.position)),
        *(Item.kind, Item.document, Assignment.submitted_at.is_not(None)),
        *(Assignment.skipped_at.is_not(None), Assignment.lease_until > bindparam("now")),
        *(Assignment.active_ms, cast(Assignment.order, Text)),
    )
    .join(Item, Item.id == Assignment.item_id)
    .where(Assignment.rater_id == bindparam("rater"))
    .order_by(Assignment.submitted_at, Item.position)
)


# the items that the rater was ever given
_MINE = select(Assignment.item_id).where(Assignment.rater_id == bindparam("rater"))


_WRITTEN = (
    select(Item.id, Item.kind)
    .where(Item.campaign_id == bindparam("campaign"), Item.kind.in_(WRITTEN_KINDS))
    .order_by(Item.kind, Item.position)  # the index's order: by position alone, SQLite reads all items
)


# whether others hold items that this rater never had: they are open again if nobody answers them
ON_LOAN = select(
    select(Assignment.id)
    .join(Item, Item.id == Assignment.item_id)
    .where(
        takes_place(),
        Assignment.rater_id != bindparam("rater"),
        Assignment.submitted_at.is_(None),
        Item.kind.in_(SYSTEM_KINDS),
        Item.id.not_in(_MINE),
    )
    .exists()
)


_LEASED = select(Assignment.item_id).where(
    Assignment.rater_id.in_(_COUNTED_RATERS),
    Assignment.submitted_at.is_(None),
    Assignment.skipped_at.is_(None),
    Assignment.lease_until > bindparam("now"),
)


def _open(item: ColumnElement[int] | InstrumentedAttribute[int]) -> ColumnElement[bool]:
    """Build the condition that an item has a place and the rater never had `item`: it or its original."""
    return and_(
        Item.campaign_id == bindparam("campaign"),
        Item.full.is_(False),
        Item.drawn.is_not(False),  # False: passed over
        item.not_in(_MINE),
        item.not_in(bindparam("busy", expanding=True)),
    )


# the number of open items with their controls, drawn or not
_OPEN_COUNT = select(func.count()).where(
    _open(func.coalesce(Item.original_id, Item.id)), Item.kind.in_((*SYSTEM_KINDS, *CONTROL_KINDS))
)


@cache
def _open_pages(adaptive: bool, present: bool) -> Select[int, str, list[int], int, list[bool] | None]:
    """Select open pages by position: in the present document, or the next ones outside it."""
    same = Item.document == bindparam("document")
    items = select(Item.id).where(_open(Item.id), Item.kind.in_(SYSTEM_KINDS))
    if adaptive:
        items = items.where(Item.drawn.is_(True))
    if present:
        items = items.where(same)
    else:
        alone = Item.document == ""
        items = items.where(Item.position > bindparam("after"), or_(alone, ~same))
        # the outer query keeps first items: here, the database could not estimate them and would read all
        items = items.order_by(Item.position).limit(bindparam("items"))
    columns = (Item.id, Item.document, Item.systems, Item.position, Item.output_drawn)
    return select(*columns).where(Item.id.in_(items), is_first_of_page()).order_by(Item.position)


# whether an adaptive design has an open page that is not drawn yet
_WAITS = select(
    select(Item.id).where(_open(Item.id), Item.kind.in_(SYSTEM_KINDS), Item.drawn.is_(None)).exists()
)


# the number of other raters who take a place in each document that anybody has begun
_BEGUN_DOCUMENTS = (
    select(Item.document, func.count(Assignment.rater_id.distinct()))
    .join(Assignment, Assignment.item_id == Item.id)
    .where(
        Item.campaign_id == bindparam("campaign"),
        Item.document.in_(bindparam("documents", expanding=True)),
        Item.kind.in_(SYSTEM_KINDS),
        is_first_of_page(),
        Assignment.rater_id != bindparam("rater"),
        takes_place(),
    )
    .group_by(Item.document)
)


@dataclass(frozen=True)
class ThirdPage:
    """A page for a third rating: the id of its first item, its number of items, and its outputs."""

    id: int
    items: int
    outputs: frozenset[RatedOutput]


def _free_thirds(session: Session, campaign: Campaign, now: datetime) -> list[ThirdPage]:
    """Return the pages for third ratings that no rater has, by position."""
    pages: dict[int, tuple[list[int], set[RatedOutput]]] = {}
    rows = session.execute(_THIRDS, {"campaign": campaign.id, "now": now})
    for number, position, page, segment, systems, drawn in rows:
        items, outputs = pages.setdefault(position if page is None else page, ([], set()))
        items.append(number)
        outputs |= _rated_outputs(campaign, segment, shown_of(systems, drawn))
    return [ThirdPage(items[0], len(items), frozenset(outputs)) for items, outputs in pages.values()]


def _rated_outputs(campaign: Campaign, segment: int, shown: Sequence[int]) -> set[RatedOutput]:
    if find_protocol(campaign.protocol, campaign.settings).relative:
        return {(segment, frozenset(shown))}
    return {(segment, system) for system in shown}


def _outputs_had(
    session: Session, campaign: Campaign, rater_id: int | None = None
) -> dict[int, set[RatedOutput]]:
    """Return the outputs that each rater (or one rater) had, in segments with a third rating.

    An output counts on any item, also if it was skipped.
    """
    rows = select(Assignment.rater_id, Item.segment_index, Item.systems, Item.output_drawn)
    rows = rows.join(Item, Item.id == Assignment.item_id).where(
        Item.campaign_id == campaign.id,
        Item.kind.in_((*SYSTEM_KINDS, ItemKind.THIRD)),
        Item.segment_index.in_(
            select(Item.segment_index).where(Item.campaign_id == campaign.id, Item.kind == ItemKind.THIRD)
        ),
    )
    if rater_id is not None:
        rows = rows.where(Assignment.rater_id == rater_id)
    had: dict[int, set[RatedOutput]] = {}
    for rater, segment, systems, drawn in session.execute(rows):
        had.setdefault(rater, set()).update(_rated_outputs(campaign, segment, shown_of(systems, drawn)))
    return had


_THIRDS = (
    select(Item.id, Item.position, Item.page, Item.segment_index, Item.systems, Item.output_drawn)
    .where(
        Item.campaign_id == bindparam("campaign"),
        Item.kind == ItemKind.THIRD,
        ~select(Assignment.id).where(Assignment.item_id == Item.id, takes_place()).exists(),
    )
    .order_by(Item.position)
)


_ORIGINAL, _HELD = aliased(Item), aliased(Assignment)
# id, original, the distance between them, and whether the control is the first item of its page
_OPEN_CONTROLS = (
    select(Item.id, _ORIGINAL.id, Item.position - _ORIGINAL.position, is_first_of_page())
    .join(_ORIGINAL, _ORIGINAL.id == Item.original_id)
    .join(_HELD, _HELD.item_id == _ORIGINAL.id)
    .where(
        _HELD.rater_id == bindparam("rater"),
        _HELD.skipped_at.is_(None),
        Item.kind.in_(CONTROL_KINDS),
        Item.id.not_in(_MINE),
        Item.drawn.is_not(False),  # False: no spoilt text is shown
    )
    .order_by(Item.position)
)
