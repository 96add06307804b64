"""What a campaign says before its end: for organisers who look while it runs, and may end it early.

Items come in an order drawn at its beginning, so that what is complete so far is a random part of the whole.
The tests are those for all looks together (`creamtea.stats.aiming`), not those of the other tables.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.contract.columns import Column
from creamtea.human.results import document_numbers
from creamtea.report.human.material import Judged, count, estimate, p_value, table
from creamtea.report.model import Cell, Row, Table
from creamtea.stats.aiming import EARLY, Look, State, look
from creamtea.stats.estimate import Array, Estimate
from creamtea.stats.sequential import BURN_IN
from creamtea.store.item_kinds import SYSTEM_KINDS
from creamtea.store.tables import Item

ABOUT = (
    "Means and p-values that hold whenever one looks: over the documents (or segments, where they stand "
    f"alone) of which every rating is in, from {BURN_IN} on. Better, worse and no larger difference are "
    "settled: a campaign that ends once all are keeps its 5 % (asymptotic confidence sequences, "
    f"Waudby-Smith et al. 2024; {EARLY:g} of the 5 % are for looks before the end). They are about these "
    "raters. p: after Holm's correction."
)


@dataclass(frozen=True)
class _Planned:
    """A segment as the campaign's items have it."""

    document: int
    position: int  # of its last item
    weight: float
    systems: frozenset[int]


def looks(session: Session, judged: Judged) -> list[Table]:
    """Nothing for a campaign that is complete, and where scores are relative."""
    ratings = judged.ratings
    if judged.protocol.relative or ratings.submitted >= ratings.wanted:
        return []
    planned = _planned(session, ratings.campaign.id)
    complete = _complete(judged)
    values, plans = [], []
    for system in judged.others:
        units: dict[int, list[int]] = defaultdict(list)  # document → segments that show both
        for segment, place in planned.items():
            if {system, judged.baseline} <= place.systems:
                units[place.document].append(segment)
        values.append(_values(judged, system, list(units.values()), planned, complete))
        plans.append(len(units))
    found = look(values, plans, judged.delta)
    rows = [
        Row(judged.systems[system], _cells(judged, one, plan))
        for system, one, plan in zip(judged.others, found, plans, strict=True)
    ]
    columns = [
        Column("units", "complete", 0, note="documents, or segments where they stand alone"),
        Column("planned", "planned", 0),
        judged.points("difference", "difference", "95 % confidence sequence: it holds at all looks together"),
        Column("p_any", "p, any time", 3),
        Column("state", "so far", 0),
    ]
    title = f"If you look before the end, against {judged.systems[judged.baseline]}"
    return [table("looks", title, ABOUT, "system", columns, rows)]


def _planned(session: Session, campaign_id: int) -> dict[int, _Planned]:
    """By the segment's number."""
    rows = session.execute(
        select(Item.segment_index, Item.document, Item.position, Item.weight, Item.systems).where(
            Item.campaign_id == campaign_id, Item.kind.in_(SYSTEM_KINDS)
        )
    ).all()
    segments = [row.segment_index for row in rows]
    documents = document_numbers([row.document for row in rows], segments)
    alone = len(np.unique(documents)) < 2
    found: dict[int, _Planned] = {}
    for row, document in zip(rows, documents.tolist(), strict=True):
        before = found.get(row.segment_index)
        found[row.segment_index] = _Planned(
            -1 - row.segment_index if alone else document,
            max(row.position, before.position if before else 0),
            row.weight,
            frozenset(row.systems) | (before.systems if before else frozenset()),
        )
    return found


def _complete(judged: Judged) -> dict[int, tuple[int, Array]]:
    """Segment → its unit, and whether each system has all the ratings that were asked for (systems,)."""
    ratings = judged.ratings
    shape = len(ratings.segment_index), len(judged.systems)
    many = np.zeros(shape, dtype=np.int64)
    np.add.at(many, (ratings.unit, ratings.system), 1)
    enough = many >= ratings.campaign.ratings_per_item
    return {int(segment): (unit, enough[unit]) for unit, segment in enumerate(ratings.segment_index)}


def _values(
    judged: Judged,
    system: int,
    units: list[list[int]],
    planned: dict[int, _Planned],
    complete: dict[int, tuple[int, Array]],
) -> Array:
    """The y_t of `stats.sequential`: of complete units, in the order of the items."""
    sizes = [sum(planned[segment].weight for segment in segments) for segments in units]
    usual = float(np.mean(sizes)) if sizes else 1.0
    found = []
    for segments in units:
        places = [complete.get(segment) for segment in segments]
        if not all(place is not None and place[1][[system, judged.baseline]].all() for place in places):
            continue
        total = sum(
            planned[segment].weight
            * (judged.matrix[place[0], system] - judged.matrix[place[0], judged.baseline])
            for segment, place in zip(segments, places, strict=True)
            if place is not None
        )
        found.append((max(planned[segment].position for segment in segments), float(total) / usual))
    return np.array([value for _, value in sorted(found)], dtype=np.float64)


def _cells(judged: Judged, found: Look, planned: int) -> dict[str, Cell]:
    few = f"from {BURN_IN} complete ones on"
    looked = found.low is not None
    words = found.state.value.replace("δ", judged.shown_delta()) if looked else "too early"
    if found.state is State.HOPELESS:
        words = "open; what is planned is unlikely to decide it"
    return {
        "units": count(found.units),
        "planned": count(planned),
        "difference": estimate(Estimate(found.mean, found.low, found.high, None if looked else few)),
        "p_any": p_value(found.p_value if looked else None, few),
        "state": Cell("ok", words=words),
    }
