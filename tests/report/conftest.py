"""The tea-time study, to be filled in with a test's changes."""

import shutil
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from human_rows import add_tasting
from teatime_study import SPEC, fill_study

from creamtea.report.build import build_report
from creamtea.report.human.build import build_human
from creamtea.report.model import Document
from creamtea.store.database import Database, open_database


@pytest.fixture
def spec() -> dict[str, Any]:
    """A copy of the study that `fill_study` writes, to change."""
    return deepcopy(SPEC)


@pytest.fixture(scope="session")
def new_database(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Database]]:
    """`new_database()`: an SQLite database that outlives a test, for documents that tests only read."""
    made: list[Database] = []

    def make() -> Database:
        path = tmp_path_factory.mktemp("report") / "shared.db"
        shutil.copyfile(sqlite_template, path)
        made.append(open_database(f"sqlite:///{path}"))
        return made[-1]

    yield make
    for database in made:
        database.close()


@pytest.fixture(scope="session")
def complete(new_database: Callable[[], Database]) -> Document:
    """The report of the study as `fill_study` writes it."""
    database = new_database()
    fill_study(database)
    return build_report(database, "teatime")


@pytest.fixture(scope="session")
def tasted(new_database: Callable[[], Database]) -> Database:
    """The tea-time study with a campaign, for tests that only read; others `add_tasting` to their own."""
    return add_tasting(new_database())


@pytest.fixture(scope="session")
def tasted_report(tasted: Database) -> Document:
    return build_report(tasted, "teatime")


@pytest.fixture(scope="session")
def tasting(tasted: Database) -> Document:
    """The report of the campaign alone."""
    return build_human(tasted, "tasting")
