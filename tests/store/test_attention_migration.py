"""Attention checks: up from the eighth schema and back, on both databases."""

from __future__ import annotations

from filled_tables import dump, fill
from sqlalchemy import select, update

from creamtea.store import schema
from creamtea.store.database import open_database
from creamtea.store.tables import Assignment, Item


def test_checks_go_with_their_answers_and_all_else_stays(head_url: str) -> None:
    database = open_database(head_url)
    fill(database)
    whole = dump(database)
    schema.downgrade(head_url, "0008")
    before = dump(database)
    assert len(before["item"]) == len(whole["item"])
    schema.upgrade(head_url)
    assert {row["warned"] for row in dump(database)["assignment"]} == {0}
    with database.transaction() as session:
        session.execute(update(Item).where(Item.id == 1).values(kind="attention-check"))
        session.execute(update(Assignment).values(warned=2))
        answered = set(session.scalars(select(Assignment.id).where(Assignment.item_id == 1)))
    assert answered
    schema.downgrade(head_url, "0008")
    after = dump(database)
    assert after["item"] == [row for row in before["item"] if row["id"] != 1]
    assert after["assignment"] == [row for row in before["assignment"] if row["id"] not in answered]
    assert after["rating"] == [row for row in before["rating"] if row["assignment_id"] not in answered]
    schema.upgrade(head_url)
