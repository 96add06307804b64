"""Which items are full is found out from the answers that there are, on both databases."""

from __future__ import annotations

import pytest
from filled_tables import fill
from sqlalchemy import select, update

from creamtea.store import schema
from creamtea.store.database import open_database
from creamtea.store.tables import Assignment, Campaign, Item, Rater


@pytest.mark.parametrize("excluded", [False, True])
def test_an_item_is_full_with_the_answers_of_raters_who_count(head_url: str, excluded: bool) -> None:
    database = open_database(head_url)
    fill(database)
    with database.transaction() as session:
        now = database.now(session)
        session.execute(update(Campaign).values(ratings_per_item=1))
        session.execute(update(Item).values(original_id=None, full=False))
        session.execute(update(Item).where(Item.id == 2).values(original_id=1))
        session.execute(update(Assignment).values(item_id=1, submitted_at=now, skipped_at=None))
        session.execute(update(Rater).values(excluded_at=now if excluded else None))
    schema.downgrade(head_url, "0020")
    schema.upgrade(head_url)
    with database.session() as session:
        assert dict(session.execute(select(Item.id, Item.full)).all()) == {1: not excluded, 2: not excluded}
    database.close()
