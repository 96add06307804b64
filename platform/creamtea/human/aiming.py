"""Campaigns that aim: how every comparison with the baseline stands, and what is rated next.

Segments have their turns in the order of their first items, which was drawn from the campaign's seed. When a
segment's turn comes, one number u between 0 and 1 is drawn for it, and an item is to be rated if u is below
its chance: 1 while the verdict of one of its systems is open, a tenth once it is settled or hopeless
(`creamtea.stats.aiming`). The baseline's chance is the highest on the segment, so that whatever is rated, is
rated beside it. Chance and outcome are stored with the item; means weighted by inverse chances are unbiased.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.human.results import Array, Ratings, document_numbers, load_ratings
from creamtea.human.settings import settings_of
from creamtea.stats.aiming import Look, State, look, probability
from creamtea.store.item_kinds import SYSTEM_KINDS
from creamtea.store.tables import Campaign, Item

BLOCK = 5  # segments that have their turn at once: as many are rated before the next look


@dataclass(frozen=True)
class Standing:
    """A comparison with the baseline so far, and the number of units that the campaign has for it."""

    system: int
    look: Look
    planned: int


@dataclass(frozen=True)
class _Planned:
    """A segment as the campaign's items have it; by system the chance of its output, None before its turn."""

    document: int
    first: int  # position of its first item
    weight: float
    chance: dict[int, float | None]
    drawn: dict[int, bool | None]


def standings(session: Session, ratings: Ratings, baseline: int, delta: float) -> list[Standing]:
    """Every comparison with the baseline, over documents (segments, where they stand alone) of which all
    ratings are in. Of a campaign that aims: those up to the first one that is still being rated, since
    what was passed over is known at once."""
    planned = _planned(session, ratings.campaign.id)
    aims = bool(ratings.campaign.settings.get("aim"))
    matrix, complete = ratings.matrix(), _complete(ratings)
    others = [system for system in range(len(ratings.campaign.systems)) if system != baseline]
    values, plans = [], []
    for system in others:
        units: dict[int, list[int]] = defaultdict(list)  # document → segments that show both
        for segment, place in planned.items():
            if {system, baseline} <= place.chance.keys():
                units[place.document].append(segment)
        ordered = sorted(units.values(), key=lambda segments: min(planned[one].first for one in segments))
        sizes = [sum(planned[segment].weight for segment in segments) for segments in ordered]
        usual = float(np.mean(sizes)) if sizes else 1.0
        found = []
        for segments in ordered:
            value = _value(segments, planned, complete, matrix, system, baseline)
            if value is not None:
                found.append(value / usual)
            elif aims:
                break
        values.append(np.array(found, dtype=np.float64))
        plans.append(len(ordered))
    return [
        Standing(system, one, plan)
        for system, one, plan in zip(others, look(values, plans, delta), plans, strict=True)
    ]


def _value(
    segments: list[int],
    planned: dict[int, _Planned],
    complete: dict[int, tuple[int, Array]],
    matrix: Array,
    system: int,
    baseline: int,
) -> float | None:
    """A unit's Σ w·d/q, 0 where it was passed over; None where a rating is missing."""
    total = 0.0
    for segment in segments:
        place = planned[segment]
        if place.drawn[system] is False:
            continue
        at = complete.get(segment)
        if at is None or not at[1][[system, baseline]].all():
            return None
        difference = matrix[at[0], system] - matrix[at[0], baseline]
        total += place.weight * float(difference) / (place.chance[system] or 1.0)
    return total


def _planned(session: Session, campaign_id: int) -> dict[int, _Planned]:
    """By the segment's number."""
    columns = (
        Item.segment_index,
        Item.document,
        Item.position,
        Item.weight,
        Item.systems,
        Item.chance,
        Item.drawn,
    )
    rows = session.execute(
        select(*columns)
        .where(Item.campaign_id == campaign_id, Item.kind.in_(SYSTEM_KINDS))
        .order_by(Item.position)
    ).all()
    segments = [row.segment_index for row in rows]
    documents = document_numbers([row.document for row in rows], segments)
    alone = len(np.unique(documents)) < 2
    found: dict[int, _Planned] = {}
    for row, document in zip(rows, documents.tolist(), strict=True):
        own = -1 - row.segment_index if alone else document
        place = found.setdefault(row.segment_index, _Planned(own, row.position, row.weight, {}, {}))
        place.chance.update(dict.fromkeys(row.systems, row.chance))
        place.drawn.update(dict.fromkeys(row.systems, row.drawn))
    return found


def _complete(ratings: Ratings) -> dict[int, tuple[int, Array]]:
    """Segment → its unit, and whether each system has all the ratings that were asked for (systems,)."""
    shape = len(ratings.segment_index), len(ratings.campaign.systems)
    many = np.zeros(shape, dtype=np.int64)
    np.add.at(many, (ratings.unit, ratings.system), 1)
    enough = many >= ratings.campaign.ratings_per_item
    return {int(segment): (unit, enough[unit]) for unit, segment in enumerate(ratings.segment_index)}


def take_turns(session: Session, campaign: Campaign) -> bool:
    """Give the next segments their turn; False where none is left. Call it with the campaign's lock, so that
    a segment has one turn."""
    waiting = session.scalars(
        select(Item)
        .where(Item.campaign_id == campaign.id, Item.kind.in_(SYSTEM_KINDS), Item.drawn.is_(None))
        .order_by(Item.position)
    ).all()
    if not waiting:
        return False
    settings = settings_of(campaign.settings)
    baseline = list(campaign.systems).index(settings.baseline) if settings.baseline else 0
    found = standings(session, load_ratings(session, campaign), baseline, settings.delta or 1.0)
    states = {one.system: one.look.state for one in found}
    next_ones = list(dict.fromkeys(item.segment_index for item in waiting))[:BLOCK]
    for segment in next_ones:
        items = [item for item in waiting if item.segment_index == segment]
        u = random.Random(f"{campaign.seed}/turn/{segment}").random()
        chances = [max(_chance(states, system) for system in item.systems) for item in items]
        for item, chance in zip(items, chances, strict=True):
            item.chance = max(chances) if baseline in item.systems else chance
            item.drawn = u < item.chance
    session.flush()
    return True


def _chance(states: dict[int, State], system: int) -> float:
    """Of one system's output; of the baseline's the lowest, which others on the segment raise."""
    return probability(states[system]) if system in states else probability(State.HOPELESS)
