"""How every comparison with the baseline stands before the end of a campaign.

Campaigns that were launched before `sample.design` could aim: when a document's turn came, each output of it
was drawn with a chance, 1 while the verdict of one of its systems was open, a twentieth once it was settled
or hopeless. Chances and outcomes are stored with the items (`Item.chance`, `Item.drawn`, and by outputs). A
comparison whose chance has fallen is over: its verdict is that of the units before. What had no turn is
rated in full.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from creamtea.human.results.ratings import Array, Ratings, documents_apart
from creamtea.stats.sequential import Look, course, look, unbiased_mean
from creamtea.store.tables import SYSTEM_KINDS, Assignment, Item, Rater


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
    """A segment (a pair, if scores are relative) as the campaign's items have it.

    It has, by system, the chance of its output; None before its turn.
    """

    document: int
    first: int  # position of its first item
    weight: float
    chance: dict[int, float | None]
    drawn: dict[int, bool | None]


class _Part(NamedTuple):
    """A segment's part in a comparison.

    It has w·d (0 if the segment was passed over, None while a rating is missing), w, the chance that the
    segment was rated, and whether it was.
    """

    sum: float | None
    size: float
    chance: float
    rated: bool


_Unit = list[_Part]  # a document's segments, or one that stands alone


def standings(session: Session, ratings: Ratings, baseline: int, delta: float) -> list[Standing]:
    """Compare every system with the baseline, over documents of which all ratings are in.

    Segments that stand alone are their own documents. With adaptive sampling, documents count up to the first
    one that is still being rated, or that was not sure to be rated, without outputs that a rater has skipped.
    A skipped output may never be rated: the rater does not get it again, and nobody else may come. Later
    ratings of it, and skips of what was complete, do not change what a look has seen; the looks are those of
    the campaign as it was planned.
    """
    planned = _planned(session, ratings.campaign.id, relative=ratings.campaign.protocol.relative)
    aims = ratings.campaign.settings.aim
    skipped = _skipped(session, ratings) if aims else {}
    matrix, complete = ratings.matrix(), _complete(ratings)
    others = [system for system in range(len(ratings.campaign.systems)) if system != baseline]
    courses, over, whole = [], [], []
    for system in others:
        units = [
            [_part(planned[key], complete.get(key), matrix, system, baseline) for key in document]
            for document in _documents(planned, skipped, {system, baseline})
        ]
        planned_units = len(_documents(planned, {}, {system, baseline}))
        tested = []
        for unit in units:
            if aims and not (_is_complete(unit) and _is_sure(unit)):
                break
            if _is_complete(unit):
                tested.append((sum(part.sum or 0.0 for part in unit), sum(part.size for part in unit)))
        sums, sizes = np.array(tested, dtype=np.float64).reshape(-1, 2).T
        courses.append(course(sums, sizes, planned_units))
        # not rated on every unit, or nothing is left to be rated
        over.append(not all(map(_is_sure, units)) or len(tested) == len(units))
        whole.append(units)
    looks = look(courses, delta, over)
    return [
        Standing(system, seen, sum(map(_is_complete, units)), len(units), _unbiased(units))
        for system, seen, units in zip(others, looks, whole, strict=True)
    ]


def _is_complete(unit: _Unit) -> bool:
    return all(part.sum is not None for part in unit)


def _is_sure(unit: _Unit) -> bool:
    return all(part.chance >= 1.0 for part in unit)


def _documents(
    planned: dict[int, _Planned], skipped: Mapping[int, set[int]], systems: set[int]
) -> list[list[int]]:
    """Return, by documents in the order of their turns, the segments (pairs) that show all of the systems.

    Segments on which a system is `skipped` are left out, and those of weight 0, which tell nothing.
    """
    first: dict[int, int] = {}
    found: dict[int, list[int]] = defaultdict(list)
    for key, place in planned.items():
        first[place.document] = min(place.first, first.get(place.document, place.first))
        if place.weight > 0 and systems <= place.chance.keys() - skipped.get(key, set()):
            found[place.document].append(key)
    return [found[document] for document in sorted(found, key=lambda document: first[document])]


def _part(
    place: _Planned, rated: tuple[int, Array] | None, matrix: Array, system: int, baseline: int
) -> _Part:
    """`rated`: the segment's unit, and which systems have all their ratings (`_complete`)."""
    drawn, chance = place.drawn[system] is not False, place.chance[system]
    value: float | None = None if drawn else 0.0
    if drawn and rated is not None and rated[1][[system, baseline]].all():
        value = place.weight * float(matrix[rated[0], system] - matrix[rated[0], baseline])
    return _Part(value, place.weight, 1.0 if chance is None else chance, drawn)


def _unbiased(units: list[_Unit]) -> float | None:
    if not units or not all(map(_is_complete, units)):
        return None
    columns = zip(*(part for unit in units for part in unit), strict=True)
    return unbiased_mean(*map(np.array, columns))


def _planned(session: Session, campaign_id: int, *, relative: bool) -> dict[int, _Planned]:
    """By the segment's number; by the item's, where scores are relative."""
    columns = (
        *(Item.id, Item.segment_index, Item.document, Item.position, Item.weight, Item.systems),
        *(Item.chance, Item.drawn, Item.output_chances, Item.output_drawn),
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
            _Planned(document, row.position, row.weight, {}, {}),
        )
        alike = len(row.systems)
        place.chance.update(zip(row.systems, row.output_chances or [row.chance] * alike, strict=True))
        place.drawn.update(zip(row.systems, row.output_drawn or [row.drawn] * alike, strict=True))
    return found


def _skipped(session: Session, ratings: Ratings) -> dict[int, set[int]]:
    """Return, by segment (item, if scores are relative), the systems that a rater who counts has skipped.

    Only skips before the item had all its ratings matter.
    """
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
    """Return, by segment (item, if scores are relative), its unit and whether each system is complete.

    A system is complete with all the ratings that were asked for (systems,).
    """
    shape = len(ratings.segment_index), len(ratings.campaign.systems)
    many = np.zeros(shape, dtype=np.int64)
    np.add.at(many, (ratings.unit, ratings.system), 1)
    enough = many >= ratings.campaign.ratings_per_item
    keys = ratings.segment_index
    if ratings.campaign.protocol.relative:
        keys = ratings.item[np.unique(ratings.unit, return_index=True)[1]]
    return {int(key): (unit, enough[unit]) for unit, key in enumerate(keys)}
