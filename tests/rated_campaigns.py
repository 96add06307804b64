"""Campaigns with ratings, written straight into the tables: for tests of what is computed from them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sqlalchemy import insert, select
from table_rows import NOON, assignment_row, campaign_row, item_row

from creamtea.human.rating.places import mark_full
from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Campaign, Item, Rater, Rating


def rated_campaign(
    database: Database,
    items: Sequence[dict[str, Any]],
    *,
    name: str = "tasting",
    systems: Sequence[str] = ("plain", "beam"),
    raters: Sequence[str] = ("anna", "ben"),
    excluded: Iterable[str] = (),
    **campaign: Any,
) -> int:
    """The id of a new campaign. An item may say any field of its row, and `steps`: rater → a step for each of
    its systems, or a list of such lists, one a revision. Item i is segment i of all systems by default, with
    outputs "o<i>-<system>"; equal texts are shown as one.
    """
    with database.transaction() as session:
        row = campaign_row(name=name, systems=list(systems), **campaign)
        session.add(row)
        session.flush()
        joined = {"campaign_id": row.id, "created_at": NOON, "consented_at": NOON}
        out = dict.fromkeys(excluded, NOON)
        people = {name: Rater(pseudonym=name, excluded_at=out.get(name), **joined) for name in raters}
        session.add_all(people.values())
        session.flush()
        # all of one table at once: each flush of its own would take longer than the test
        rows = [_item(row, position, given) for position, given in enumerate(items)]
        session.add_all(rows)
        session.flush()
        answers = [
            (item, steps, _assignment(item, people[pseudonym], steps))
            for item, given in zip(rows, items, strict=True)
            for pseudonym, steps in given.get("steps", {}).items()
        ]
        session.add_all(assignment for _, _, assignment in answers)
        session.flush()
        moment = {"created_at": NOON}
        ratings = [
            {"assignment_id": given.id, "system": at, "revision": number, "step": int(step), **moment}
            for item, steps, given in answers
            for number, revision in enumerate(_revisions(steps), 1)
            for at, step in zip(item.systems, revision, strict=True)
        ]
        if ratings:
            session.execute(insert(Rating), ratings)
        mark_full(session, row, select(Item.id).where(Item.campaign_id == row.id))
        return row.id


def _item(campaign: Campaign, position: int, given: dict[str, Any]) -> Item:
    fields = {key: value for key, value in given.items() if key != "steps"}
    shown = fields.setdefault("systems", list(range(len(campaign.systems))))
    fields.setdefault("outputs", [f"o{position}-{campaign.systems[at]}" for at in shown])
    return item_row(campaign.id, position, **fields)


def _assignment(item: Item, rater: Rater, steps: list[Any]) -> Assignment:
    groups: dict[str, list[int]] = {}
    for at, text in zip(item.systems, item.outputs, strict=True):
        groups.setdefault(text, []).append(at)
    skipped = {"submitted_at": None, "skipped_at": NOON, "skip_reason": "source broken"}
    return assignment_row(item.id, rater.id, list(groups.values()), **{} if steps else skipped)


def _revisions(steps: list[Any]) -> list[list[Any]]:
    nested = bool(steps) and isinstance(steps[0], list)
    return steps if nested or not steps else [steps]


def side_by_side(steps: Any, raters: Sequence[str] = ("anna", "ben")) -> list[dict[str, Any]]:
    """Items of steps (items, systems, raters): every rater on every item."""
    array = np.asarray(steps)
    return [
        {"steps": {name: item[:, at].tolist() for at, name in enumerate(raters[: array.shape[2]])}}
        for item in array
    ]


def drawn_steps(
    items: int, means: Sequence[float], raters: int, *, seed: int = 1, highest: int = 25, noise: float = 3.0
) -> Any:
    """Steps (items, systems, raters) around the systems' means: an item's own level, and noise."""
    draw = np.random.default_rng(seed)
    level = draw.normal(0, noise, (items, 1, 1))
    scores = np.asarray(means)[None, :, None] + level + draw.normal(0, noise, (items, len(means), raters))
    return np.clip(np.rint(scores), 0, highest).astype(int)
