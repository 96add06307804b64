"""Organisers who sign in: from a digest that names them into a column, and back, on both databases."""

from __future__ import annotations

from typing import Any

import pytest
from filled_tables import dump, fill, row_of
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from creamtea.store import schema
from creamtea.store.database import Database, open_database
from creamtea.store.tables import Base


def tokens(database: Database, column: str) -> dict[int, Any]:
    with database.session() as session:
        found = session.execute(text(f"SELECT id, {column} FROM access_token")).all()
    return {row[0]: row[1] for row in found}


def test_an_organisers_sign_in_moves_into_its_column_and_back(head_url: str) -> None:
    """Beside it: a link, another campaign's right of the same person, one with the separators in it."""
    database = open_database(head_url)
    fill(database)
    schema.downgrade(head_url, "0003")
    names = {3: "dora@example.org", 4: "dora@example.org", 5: "https://id.example.org:1|sign-in:2:%"}
    of = {3: 1, 4: 2, 5: 2}
    digests = {number: f"sign-in:{of[number]}:{name}" for number, name in names.items()}
    columns = "id, digest, role, campaign_id, created_at, expires_at"
    with database.transaction() as session:
        for number, digest in digests.items():
            moment = f"'2026-01-0{number} 12:00:00.000000'"
            values = f"{number}, :digest, 'organiser', {of[number]}, {moment}, {moment}"
            session.execute(
                text(f"INSERT INTO access_token ({columns}) VALUES ({values})"), {"digest": digest}
            )
        session.execute(text("UPDATE access_token SET revoked_at = created_at WHERE id = 4"))
    before = dump(database)
    schema.upgrade(head_url)
    assert tokens(database, "subject") == {1: None, 2: None} | names
    after = tokens(database, "digest")
    assert [after.pop(number) for number in names] == [None] * 3
    assert after == {1: "Zeile 1 – ∂", 2: "Zeile 2 – ∂"}
    schema.downgrade(head_url, "0003")
    assert dump(database) == before


def test_tokens_that_the_third_schema_cannot_tell_apart_stay(head_url: str) -> None:
    """A right that was withdrawn and given again, one withdrawn twice, a rater's sign-in."""
    database = open_database(head_url)
    fill(database)
    table = Base.metadata.tables["access_token"]
    bare = row_of(table, 1) | {"digest": None}
    organiser = bare | {"role": "organiser", "rater_id": None}
    dora, eve = (organiser | {"subject": f"{name}@example.org"} for name in ("dora", "eve"))
    rows = [dora | {"revoked_at": None}, dora, eve, eve, bare]
    with database.transaction() as session:
        session.execute(table.insert(), [row | {"id": number} for number, row in enumerate(rows, 3)])
    before = dump(database)
    schema.downgrade(head_url, "0003")
    after = dump(database)  # without the tables that the third schema has not
    assert {name: len(rows) for name, rows in after.items()} == {name: len(before[name]) for name in after}
    assert "access_token" in after
    digests = tokens(database, "digest")
    assert digests[3] == "sign-in:1:dora@example.org"
    assert digests[6] == "sign-in:1:eve@example.org"
    assert [len(bytes.fromhex(digests[number])) for number in (4, 5, 7)] == [32] * 3
    schema.upgrade(head_url)
    subjects = tokens(database, "subject")
    assert (subjects.pop(3), subjects.pop(6)) == ("dora@example.org", "eve@example.org")
    assert set(subjects.values()) == {None}


@pytest.mark.parametrize(
    "wrong",
    [
        {"digest": "of a secret too"},
        {"role": "rater"},
        {"campaign_id": None},
        {"revoked_at": None},  # the same person's second
    ],
)
def test_a_right_to_sign_in_is_an_organisers_and_stands_once(
    database: Database, wrong: dict[str, Any]
) -> None:
    fill(database)
    table = Base.metadata.tables["access_token"]
    right = row_of(table, 1) | {"digest": None, "role": "organiser", "subject": "dora@example.org"}
    with database.transaction() as session:
        session.execute(table.insert(), [right | {"id": 3, "revoked_at": None}, right | {"id": 4}])
    with pytest.raises(IntegrityError), database.transaction() as session:
        session.execute(table.insert().values(**right | {"id": 5} | wrong))
