"""A small study that campaigns are made from; a launched campaign of four items, with raters at work."""

from pathlib import Path

import pytest
from rated_study import fill_study
from small_campaigns import add_rater, make_campaign, work_for

from creamtea.human.rating import Work
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database


@pytest.fixture
def study_database(database: Database) -> Database:
    fill_study(database)
    return database


@pytest.fixture
def store(tmp_path: Path) -> ArtefactStore:
    return ArtefactStore(tmp_path / "artefacts")


@pytest.fixture
def campaign(database: Database) -> Database:
    make_campaign(database)
    return database


@pytest.fixture
def anna(campaign: Database) -> int:
    return add_rater(campaign)


@pytest.fixture
def bert(campaign: Database, anna: int) -> int:
    return add_rater(campaign, "bert")


@pytest.fixture
def work(campaign: Database, anna: int) -> Work:
    """The first page, on loan to anna."""
    return work_for(campaign, anna)
