"""A small study that campaigns are made from."""

from __future__ import annotations

import pytest
from rated_study import fill_study

from creamtea.store.database import Database


@pytest.fixture
def study_database(database: Database) -> Database:
    fill_study(database)
    return database
