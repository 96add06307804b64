"""Stores with studies of the papers: none, those at our size, and enough for every table."""

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from paper_rows import ENOUGH, OURS, fill

from creamtea.papers.catalogue import papers
from creamtea.report.papers import Reports
from creamtea.store.database import Database, open_database

NewStore = Callable[..., Database]


@pytest.fixture(scope="session")
def new_store(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewStore]:
    """`new_store(*names)`: a store on SQLite of the test's own, with the studies of these names."""
    opened = []

    @cache
    def filled(*names: str) -> Path:
        path = tmp_path_factory.mktemp("papers") / "filled.db"
        shutil.copyfile(sqlite_template, path)
        database = open_database(f"sqlite:///{path}")
        fill(database, *names)
        database.close()
        return path

    def make(*names: str) -> Database:
        path = tmp_path_factory.mktemp("papers") / "creamtea.db"
        shutil.copyfile(filled(*names), path)
        opened.append(open_database(f"sqlite:///{path}"))
        return opened[-1]

    yield make
    for database in opened:
        database.close()


@pytest.fixture(scope="session")
def no_studies(new_store: NewStore) -> Database:
    return new_store()


@pytest.fixture(scope="session")
def our_size(new_store: NewStore) -> Database:
    return new_store(*OURS)


@pytest.fixture(scope="session")
def g2p(new_store: NewStore) -> Database:
    return new_store("g2p")


@pytest.fixture(scope="session")
def reports(new_store: NewStore) -> dict[str, Reports]:
    """By paper, from a store with enough studies for every table."""
    database = new_store(*ENOUGH)
    return {name: Reports(database, paper) for name, paper in papers().items()}
