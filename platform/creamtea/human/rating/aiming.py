"""Campaigns that aim: how every comparison with the baseline stands, and what is rated next.

Documents (segments, where they stand alone) have their turns in the order of their first items, which was
drawn from the campaign's seed. When a document's turn comes, one number u between 0 and 1 is drawn for it,
and an output of it is to be rated if u is below the output's chance: 1 while the verdict of one of the
systems that say it is open, a twentieth once it is settled or hopeless (`creamtea.stats.sequential`). The
baseline's chance is the highest on the segment, so that whatever is rated, is rated beside it. Chances and
outcomes are stored with the items; means weighted by inverse chances are unbiased. A comparison whose chance
has fallen is over: its verdict is that of the units before.

Where outputs stand side by side, an item is composed when its turn comes: it shows the outputs that are
drawn, the baseline's and those of open systems, and its controls show the same. Where scores are relative,
each item is a pair with the baseline, a unit of its own, with the chance of the other system.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from creamtea.human.making.settings import settings_of
from creamtea.human.protocols import find_protocol
from creamtea.human.results.ratings import Array, Ratings, documents_apart, load_ratings
from creamtea.stats.sequential import Look, State, course, look, probability, unbiased_mean
from creamtea.store.tables import CONTROL_KINDS, SYSTEM_KINDS, Assignment, Campaign, Item, Rater

BLOCK = 5  # segments at least that have their turn at once: as many are rated before the next look


@dataclass(frozen=True)
class Standing:
    """A comparison with the baseline so far.

    `complete` units of the `planned` have all their ratings; the test is over those before the comparison was
    over. `unbiased` is the mean difference over all planned units by inverse chances, once all that was to be
    rated is rated.
    """

    system: int
    look: Look
    complete: int
    planned: int
    unbiased: float | None


@dataclass(frozen=True)
class _Planned:
    """A segment (a pair, where scores are relative) as the campaign's items have it; by system the chance of
    its output, None before its turn."""

    segment: int
    document: int
    first: int  # position of its first item
    weight: float
    chance: dict[int, float | None]
    drawn: dict[int, bool | None]


@dataclass(frozen=True)
class _Unit:
    """A document's (segment's) part in a comparison, a value for each of its segments: w·d, 0 where it was
    passed over and None while a rating is missing; w; the chance that it was rated, and whether it was."""

    sums: list[float | None]
    sizes: list[float]
    chances: list[float]
    rated: list[bool]

    @property
    def complete(self) -> bool:
        return None not in self.sums

    @property
    def sure(self) -> bool:
        return min(self.chances) >= 1.0

    @property
    def total(self) -> float:
        return sum(value or 0.0 for value in self.sums)


def standings(session: Session, ratings: Ratings, baseline: int, delta: float) -> list[Standing]:
    """Every comparison with the baseline, over documents (segments, where they stand alone) of which all
    ratings are in. Of a campaign that aims: those up to the first one that is still being rated, or that was
    not sure to be rated, without outputs that a rater has skipped. A skipped one may never be rated: the
    rater does not get it again, and nobody else may come. That another rater rates it later changes nothing,
    nor does a skip of what was complete, so that what a look has seen stays as it was; the looks are those of
    the campaign as it was planned."""
    planned = _planned(session, ratings.campaign.id, relative=ratings.campaign.protocol.relative)
    aims = ratings.campaign.settings.aim
    skipped = _skipped(session, ratings) if aims else {}
    matrix, complete = ratings.matrix(), _complete(ratings)
    others = [system for system in range(len(ratings.campaign.systems)) if system != baseline]
    courses, over, whole = [], [], []
    for system in others:
        units = [
            _unit(segments, planned, complete, matrix, system, baseline)
            for segments in _documents(planned, skipped, {system, baseline})
        ]
        planned_units = len(_documents(planned, {}, {system, baseline}))
        tested = []
        for unit in units:
            if aims and not (unit.complete and unit.sure):
                break
            if unit.complete:
                tested.append((unit.total, sum(unit.sizes)))
        sums, sizes = np.array(tested, dtype=np.float64).reshape(-1, 2).T
        courses.append(course(sums, sizes, planned_units))
        # not rated on every unit, or nothing is left to be rated
        over.append(not all(unit.sure for unit in units) or len(tested) == len(units))
        whole.append(units)
    looks = look(courses, delta, over)
    return [
        Standing(system, seen, sum(unit.complete for unit in units), len(units), _unbiased(units))
        for system, seen, units in zip(others, looks, whole, strict=True)
    ]


def _documents(
    planned: dict[int, _Planned], skipped: Mapping[int, set[int]], systems: set[int]
) -> list[list[int]]:
    """The segments (pairs) that show all of the systems, none of them `skipped`, by documents in the order of
    their turns. Those of weight 0 tell nothing."""
    first: dict[int, int] = {}
    found: dict[int, list[int]] = defaultdict(list)
    for key, place in planned.items():
        first[place.document] = min(place.first, first.get(place.document, place.first))
        if place.weight > 0 and systems <= place.chance.keys() - skipped.get(key, set()):
            found[place.document].append(key)
    return [found[document] for document in sorted(found, key=lambda document: first[document])]


def _unit(
    segments: list[int],
    planned: dict[int, _Planned],
    complete: dict[int, tuple[int, Array]],
    matrix: Array,
    system: int,
    baseline: int,
) -> _Unit:
    found = _Unit([], [], [], [])
    for segment in segments:
        place = planned[segment]
        rated, chance = place.drawn[system] is not False, place.chance[system]
        at = complete.get(segment)
        value: float | None = None
        if not rated:
            value = 0.0
        elif at is not None and at[1][[system, baseline]].all():
            value = place.weight * float(matrix[at[0], system] - matrix[at[0], baseline])
        found.sums.append(value)
        found.sizes.append(place.weight)
        found.chances.append(1.0 if chance is None else chance)
        found.rated.append(rated)
    return found


def _unbiased(units: list[_Unit]) -> float | None:
    if not units or not all(unit.complete for unit in units):
        return None
    columns = (
        [value for unit in units for value in getattr(unit, name)]
        for name in ("sums", "sizes", "chances", "rated")
    )
    return unbiased_mean(*(np.array(column) for column in columns))


def _planned(session: Session, campaign_id: int, *, relative: bool) -> dict[int, _Planned]:
    """By the segment's number; by the item's, where scores are relative."""
    columns = (
        Item.id,
        Item.segment_index,
        Item.document,
        Item.position,
        Item.weight,
        Item.systems,
        Item.chance,
        Item.drawn,
        Item.output_chances,
        Item.output_drawn,
    )
    rows = session.execute(
        select(*columns)
        .where(Item.campaign_id == campaign_id, Item.kind.in_(SYSTEM_KINDS))
        .order_by(Item.position)
    ).all()
    documents = documents_apart([row.document for row in rows], [row.segment_index for row in rows])
    found: dict[int, _Planned] = {}
    for row, document in zip(rows, documents.tolist(), strict=True):
        place = found.setdefault(
            row.id if relative else row.segment_index,
            _Planned(row.segment_index, document, row.position, row.weight, {}, {}),
        )
        alike = len(row.systems)
        place.chance.update(zip(row.systems, row.output_chances or [row.chance] * alike, strict=True))
        place.drawn.update(zip(row.systems, row.output_drawn or [row.drawn] * alike, strict=True))
    return found


def _skipped(session: Session, ratings: Ratings) -> dict[int, set[int]]:
    """By segment (item, where scores are relative) the systems on items that a rater who counts has skipped
    before they had all their ratings."""
    other, of_other = aliased(Assignment), aliased(Rater)
    before = (
        select(func.count())
        .select_from(other)
        .join(of_other, of_other.id == other.rater_id)
        .where(
            other.item_id == Item.id,
            other.submitted_at <= Assignment.skipped_at,
            of_other.excluded_at.is_(None),
        )
        .scalar_subquery()
    )
    rows = session.execute(
        select(Item.id, Item.segment_index, Item.systems)
        .join(Assignment, Assignment.item_id == Item.id)
        .join(Rater, Rater.id == Assignment.rater_id)
        .where(
            Item.campaign_id == ratings.campaign.id,
            Item.kind.in_(SYSTEM_KINDS),
            Assignment.skipped_at.is_not(None),
            Rater.excluded_at.is_(None),
            before < ratings.campaign.ratings_per_item,
        )
    )
    found: dict[int, set[int]] = defaultdict(set)
    for row in rows:
        found[row.id if ratings.campaign.protocol.relative else row.segment_index].update(row.systems)
    return found


def _complete(ratings: Ratings) -> dict[int, tuple[int, Array]]:
    """Segment (item, where scores are relative) → its unit, and whether each system has all the ratings that
    were asked for (systems,)."""
    shape = len(ratings.segment_index), len(ratings.campaign.systems)
    many = np.zeros(shape, dtype=np.int64)
    np.add.at(many, (ratings.unit, ratings.system), 1)
    enough = many >= ratings.campaign.ratings_per_item
    keys = ratings.segment_index
    if ratings.campaign.protocol.relative:
        keys = ratings.item[np.unique(ratings.unit, return_index=True)[1]]
    return {int(key): (unit, enough[unit]) for unit, key in enumerate(keys)}


def take_turns(session: Session, campaign: Campaign) -> bool:
    """Give the next documents their turn; False where none is left. Call it with the campaign's lock, so that
    a document has one turn."""
    protocol = find_protocol(campaign.protocol, campaign.settings)
    planned = _planned(session, campaign.id, relative=protocol.relative)
    waiting: dict[int, dict[int, None]] = defaultdict(dict)  # document → segments
    for place in planned.values():
        if None in place.drawn.values():
            waiting[place.document][place.segment] = None
    if not waiting:
        return False
    settings = settings_of(campaign.settings)
    baseline = settings.position_of_baseline(campaign.systems)
    so_far = standings(
        session, load_ratings(session, campaign), baseline, settings.delta or protocol.usual_delta
    )
    states = {standing.system: standing.look.state for standing in so_far}
    turned: dict[int, float] = {}
    for segments in waiting.values():  # in the order of their first items
        if len(turned) >= BLOCK:
            break
        u = random.Random(f"{campaign.seed}/turn/{next(iter(segments))}").random()
        turned.update(dict.fromkeys(segments, u))
    items = session.scalars(
        select(Item).where(
            Item.campaign_id == campaign.id,
            Item.kind.in_(SYSTEM_KINDS),
            Item.segment_index.in_(turned),
            Item.drawn.is_(None),
        )
    ).all()
    # where the number of outputs is fixed, an item is rated as a whole
    side_by_side = protocol.max_outputs > protocol.min_outputs and not protocol.relative
    texts = _texts(items) if side_by_side else {item.id: [list(item.systems)] for item in items}
    by_segment: dict[int, list[Item]] = defaultdict(list)
    for item in items:
        by_segment[item.segment_index].append(item)
    for segment, own in by_segment.items():
        shared = None if protocol.relative else baseline
        chances = chances_on([texts[item.id] for item in own], states, shared)
        for item, of_item in zip(own, chances, strict=True):
            item.chance = max(of_item.values())
            item.drawn = turned[segment] < item.chance
            if side_by_side:
                item.output_chances = [of_item[system] for system in item.systems]
                item.output_drawn = [turned[segment] < chance for chance in item.output_chances]
    if side_by_side:
        _show_the_same(session, {item.id: item for item in items})
    session.flush()
    return True


def _texts(items: Sequence[Item]) -> dict[int, list[list[int]]]:
    """Item → its systems by what they say, on the item, or in the whole document where that is on pages: a
    system's text is there from its beginning to its end, or not at all."""
    pages: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        if item.page is not None:
            pages[item.document].append(item)
    found = {}
    for item in items:
        said: dict[int, list[tuple[int, str]]] = {system: [] for system in item.systems}
        for read in pages[item.document] if item.page is not None else [item]:
            for system, output in zip(read.systems, read.outputs, strict=True):
                said.setdefault(system, []).append((read.segment_index, output))
        groups: dict[tuple[tuple[int, str], ...], list[int]] = defaultdict(list)
        for system in item.systems:
            groups[tuple(sorted(said[system]))].append(system)
        found[item.id] = list(groups.values())
    return found


def chances_on(
    items: Sequence[Sequence[Sequence[int]]], states: Mapping[int, State], baseline: int | None
) -> list[dict[int, float]]:
    """Of a segment's items, each the systems of its texts: the chance of each system's output.

    That of a text is the highest of all that say it. The `baseline` has no state of its own: its text has the
    highest chance on the segment (None: each item shows it anyway).
    """
    chances = [
        [max(probability(states.get(system, State.HOPELESS)) for system in text) for text in texts]
        for texts in items
    ]
    highest = max(chance for of_item in chances for chance in of_item)
    return [
        {
            system: highest if baseline in text else chance
            for text, chance in zip(texts, of_item, strict=True)
            for system in text
        }
        for texts, of_item in zip(items, chances, strict=True)
    ]


def _show_the_same(session: Session, originals: dict[int, Item]) -> None:
    """Controls show what their originals do. One whose spoilt text is passed over tells nothing and is not
    shown; of a page with several one suffices."""
    controls = session.scalars(
        select(Item).where(Item.original_id.in_(originals), Item.kind.in_(CONTROL_KINDS))
    ).all()
    pages: dict[int, list[Item]] = defaultdict(list)
    for control in controls:
        assert control.original_id is not None  # what was asked for
        control.output_drawn = originals[control.original_id].output_drawn
        pages[control.position if control.page is None else control.page].append(control)
    for page in pages.values():
        tells = any(control.degraded is None or control.degraded in control.shown for control in page)
        for control in page:
            control.drawn = tells
