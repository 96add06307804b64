"""The assignments and ratings of a campaign as whole numbers, in two queries whatever their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import BigInteger, ColumnElement, String, cast, extract, func, select
from sqlalchemy.orm import Session

from creamtea.store.tables import Assignment, Item, Rating

Integers = NDArray[np.int64]


def read_scores(session: Session, campaign_id: int) -> tuple[Integers, Integers]:
    """(assignments, 4): number, item, rater, whole seconds from 1970 to its answer, ascending.
    (ratings, 4): assignment, system, revision, step."""
    mine = Item.campaign_id == campaign_id
    seconds = extract("epoch", Assignment.submitted_at)
    # as a whole number PostgreSQL would round it, SQLite cuts off the fraction
    moment = func.coalesce(cast(seconds - seconds % 1, BigInteger), 0)
    assignments = _numbers(
        session,
        (Assignment.id, Assignment.item_id, Assignment.rater_id, moment),
        lambda q: q.join(Item).where(mine),
    )
    scores = _numbers(
        session,
        (Rating.assignment_id, Rating.system, Rating.revision, Rating.step),
        lambda q: q.join(Assignment).join(Item).where(mine),
    )
    return (
        assignments[np.argsort(assignments[:, 0])],
        scores[np.lexsort((scores[:, 2], scores[:, 1], scores[:, 0]))],
    )


def _numbers(session: Session, columns: Sequence[Any], within: Callable[[Any], Any]) -> Integers:
    """Whole numbers of many rows as (rows, columns), in no order. The database writes them as one text: a row
    of a result is one object per number, which for 100,000 ratings takes several times as long."""
    words: ColumnElement[str] = cast(columns[0], String)
    for column in columns[1:]:
        words = words + " " + cast(column, String)
    table = columns[0].class_
    text = session.scalar(within(select(func.aggregate_strings(words, " ")).select_from(table)))
    return np.fromstring(text or "", dtype=np.int64, sep=" ").reshape(-1, len(columns))
