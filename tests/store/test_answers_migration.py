"""Payloads, long scales and protocols of plug-ins: up from the fourth schema and back, on both databases."""

from __future__ import annotations

from typing import Any

import pytest
from filled_tables import dump, fill, row_of
from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from creamtea.store import schema
from creamtea.store.database import Database, open_database
from creamtea.store.tables import Assignment, Base, Campaign, Rating

STEPS = {"steps": [3, None], "comment": "schön", "revision": 1}
ANSWERS = {"answers": [3, None], "comment": "schön", "revision": 1}


def set_drafts(database: Database, drafts: dict[int, Any]) -> None:
    with database.transaction() as session:
        for number, draft in drafts.items():
            session.execute(update(Assignment).where(Assignment.id == number).values(draft=draft))


def drafts_of(database: Database) -> dict[int, Any]:
    with database.session() as session:
        return dict(session.execute(select(Assignment.id, Assignment.draft)).all())


def test_drafts_and_scores_come_up_and_go_back(head_url: str) -> None:
    database = open_database(head_url)
    fill(database)
    with database.transaction() as session:
        session.execute(update(Rating).values(payload=None))
    schema.downgrade(head_url, "0004")
    set_drafts(database, {1: STEPS, 2: None})
    before = dump(database)
    schema.upgrade(head_url)
    assert drafts_of(database) == {1: ANSWERS, 2: None}
    after = dump(database)
    assert [(row["step"], row["payload"]) for row in after["rating"]] == [(25, None), (25, None)]
    schema.downgrade(head_url, "0004")
    assert dump(database) == before


def test_campaigns_of_a_plug_in_go_with_all_their_rows(head_url: str) -> None:
    """The fourth schema allows neither their protocol nor scores above 100; other campaigns stay whole."""
    database = open_database(head_url)
    fill(database)
    kept = {name: rows for name, rows in dump(database).items() if name not in ("item", "web_session")}
    with database.transaction() as session:
        session.execute(update(Campaign).where(Campaign.id == 1).values(protocol="toy-mqm"))
        session.execute(update(Rating).where(Rating.id == 1).values(step=4000, payload={"spans": []}))
    schema.downgrade(head_url, "0004")
    rows = dump(database)
    for table in ("campaign", "item", "rater", "assignment", "rating", "access_token", "audit_event"):
        assert [row["id"] for row in rows[table]] == [2], table
    assert rows["campaign"] == [
        {name: value for name, value in kept["campaign"][1].items() if name != "programme"}
    ]
    assert len(rows["study"]) == len(kept["study"])
    schema.upgrade(head_url)


def test_a_score_may_be_any_number_of_steps_but_none_below_the_lowest(database: Database) -> None:
    fill(database)
    table = Base.metadata.tables["rating"]
    right = row_of(table, 1) | {"id": 3, "revision": 3, "step": 5000, "payload": {"spans": [[0, 3, "major"]]}}
    with database.transaction() as session:
        session.execute(insert(table).values(**right))
    with database.session() as session:
        stored = session.get_one(Rating, 3)
        assert (stored.step, stored.payload) == (5000, {"spans": [[0, 3, "major"]]})
    with pytest.raises(IntegrityError), database.transaction() as session:
        session.execute(insert(table).values(**right | {"id": 4, "revision": 4, "step": -1}))


def test_no_payload_is_null_in_the_database(database: Database) -> None:
    """Not JSON's null: a query for answers that are more than a score finds no others."""
    fill(database)
    with database.transaction() as session:
        session.execute(update(Rating).where(Rating.id == 1).values(payload=None))
    with database.session() as session:
        assert session.scalars(select(Rating.id).where(Rating.payload.is_(None))).all() == [1]
