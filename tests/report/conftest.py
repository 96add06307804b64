"""The tea-time study, to be filled in with a test's changes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from human_rows import add_campaign, add_segment_scores
from teatime_study import SPEC, Fill, fill_study

from creamtea.report.build import build_report
from creamtea.report.model import Document
from creamtea.store.database import Database, open_database


@pytest.fixture
def spec() -> dict[str, Any]:
    """A copy of the study that `fill` writes, to change."""
    return deepcopy(SPEC)


@pytest.fixture
def fill() -> Fill:
    return fill_study


@pytest.fixture(scope="session")
def new_database(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Database]]:
    """`new_database()`: a database as `filled` that outlives a test, for documents that tests only read."""
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
    """The report of the study as `fill` writes it."""
    database = new_database()
    fill_study(database)
    return build_report(database, "teatime")


@pytest.fixture
def filled(sqlite_template: Path, tmp_path: Path) -> Iterator[Database]:
    """An SQLite database, empty but for its tables; `fill(filled, …)` writes studies."""
    path = tmp_path / "filled.db"
    shutil.copyfile(sqlite_template, path)
    opened = open_database(f"sqlite:///{path}")
    yield opened
    opened.close()


@pytest.fixture
def tasted(filled: Database, fill: Fill) -> Database:
    study = fill(filled)
    add_campaign(filled, study)
    add_segment_scores(filled, study)
    return filled
