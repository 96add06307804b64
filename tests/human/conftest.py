"""A small study that campaigns are made from, and a launched campaign of four items."""

from __future__ import annotations

import pytest
from rated_study import fill_study
from small_campaigns import make_campaign

from creamtea.store.database import Database


@pytest.fixture
def study_database(database: Database) -> Database:
    fill_study(database)
    return database


@pytest.fixture
def campaign(database: Database) -> Database:
    make_campaign(database)
    return database
