"""How every comparison with the baseline stands before the end of a campaign."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from operator import mul

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.human.protocols import Protocol
from creamtea.human.results.ratings import Array, Ratings, documents_apart
from creamtea.stats.sequential import Look, course, look
from creamtea.store.tables import SYSTEM_KINDS, Item


@dataclass(frozen=True)
class Standing:
    """A comparison with the baseline so far, over the `complete` units of the `planned`."""

    system: int
    look: Look
    complete: int
    planned: int


@dataclass(frozen=True)
class PlannedUnit:
    """A segment (a pair, if scores are relative) as the campaign's items have it."""

    document: int
    first: int  # position of its first item
    weight: float
    systems: set[int]


def standings(session: Session, ratings: Ratings, baseline: int, delta: float) -> list[Standing]:
    """Compare every system with the baseline, over documents of which all ratings are in.

    Segments that stand alone are their own documents.
    """
    planned = planned_units(session, ratings.campaign.id, ratings.campaign.protocol)
    matrix, complete = ratings.matrix(), _complete(ratings)
    others = [system for system in range(len(ratings.campaign.systems)) if system != baseline]
    courses, many = [], []
    for system in others:
        units = _documents(planned, {system, baseline})
        tested = []
        for unit in units:
            rated = [complete[key] for key in unit if key in complete]
            if len(rated) == len(unit) and all(enough[[system, baseline]].all() for _, enough in rated):
                weights = [planned[key].weight for key in unit]
                differences = [matrix[row, system] - matrix[row, baseline] for row, _ in rated]
                tested.append((sum(map(mul, weights, differences)), sum(weights)))
        sums, sizes = np.array(tested, dtype=np.float64).reshape(-1, 2).T
        courses.append(course(sums, sizes, len(units)))
        many.append((len(tested), len(units)))
    looks = look(courses, delta)
    return [Standing(system, seen, *each) for system, seen, each in zip(others, looks, many, strict=True)]


def _documents(planned: dict[int, PlannedUnit], systems: set[int]) -> list[list[int]]:
    """Return the segments (pairs) that show all of the systems, by document in order of first items.

    Segments of weight 0 tell nothing and are left out.
    """
    first: dict[int, int] = {}
    found: dict[int, list[int]] = defaultdict(list)
    for key, place in planned.items():
        first[place.document] = min(place.first, first.get(place.document, place.first))
        if place.weight > 0 and systems <= place.systems:
            found[place.document].append(key)
    return [found[document] for document in sorted(found, key=lambda document: first[document])]


def planned_units(session: Session, campaign_id: int, protocol: Protocol) -> dict[int, PlannedUnit]:
    """Load the units by their segments' numbers; by their items' ids, if scores are relative."""
    rows = session.execute(
        select(Item.id, Item.segment_index, Item.document, Item.position, Item.weight, Item.systems)
        .where(Item.campaign_id == campaign_id, Item.kind.in_(SYSTEM_KINDS))
        .order_by(Item.position)
    ).all()
    documents = documents_apart([row.document for row in rows], [row.segment_index for row in rows])
    found: dict[int, PlannedUnit] = {}
    for row, document in zip(rows, documents.tolist(), strict=True):
        unit = PlannedUnit(document, row.position, row.weight, set())
        found.setdefault(row.id if protocol.relative else row.segment_index, unit).systems.update(row.systems)
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
