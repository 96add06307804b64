"""Links to one report: gone, with their sessions, where a schema has no column for the study."""

from __future__ import annotations

import pytest
from filled_tables import dump, fill, row_of
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from creamtea.access import sessions
from creamtea.store import schema
from creamtea.store.database import Database, open_database
from creamtea.store.tables import Base


def test_a_link_to_one_report_never_becomes_one_to_all(head_url: str) -> None:
    database = open_database(head_url)
    fill(database)
    token, session_of = (Base.metadata.tables[name] for name in ("access_token", "web_session"))
    reader = row_of(token, 1) | {"role": "reader", "rater_id": None, "campaign_id": None}
    lent = {"id": 3, "digest": "lent", "study_id": 1}
    with database.transaction() as session:
        session.execute(token.insert(), [reader | lent, reader | {"id": 4, "digest": "all"}])
        opened = row_of(session_of, 1) | {"role": "reader", "rater_id": None}
        for number in (3, 4):
            row = opened | {"id": number, "token_id": number, "digest": f"of {number}"}
            session.execute(session_of.insert().values(**row))
    schema.downgrade(head_url, "0007")
    before = dump(database)
    schema.downgrade(head_url, "0006")
    schema.upgrade(head_url, "0007")
    after = dump(database)
    for name, gone in (("access_token", 3), ("web_session", 3)):
        assert after.pop(name) == [row for row in before.pop(name) if row["id"] != gone]
    assert after == before
    database.close()


def test_only_a_readers_link_is_for_one_report(database: Database) -> None:
    with pytest.raises(ValueError, match="only a reader's"):
        sessions.create_link(database, "organiser", study_id=1)
    sessions.create_link(database, "organiser")
    with pytest.raises(IntegrityError), database.transaction() as session:
        session.execute(text("UPDATE access_token SET study_id = 1"))
