"""The tea-time study, to be filled in with a test's changes."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from human_rows import Rated, add_tasting
from rated_campaigns import rated_campaign
from teatime_study import SPEC, Build, Change, Spec, fill_study

from creamtea.report.build import build_report
from creamtea.report.html import to_html
from creamtea.report.human.build import build_human
from creamtea.report.model import Document
from creamtea.store.database import Database, open_database


@pytest.fixture
def spec() -> Spec:
    """A copy of the study that `fill_study` writes, to change."""
    return deepcopy(SPEC)


@pytest.fixture
def build(database: Database, spec: Spec) -> Build:
    """`build(changes)`: the report of `spec` with its steps changed, submitted once more."""

    def fill_and_build(changes: dict[str, Change] | None = None, **study: Any) -> Document:
        return build_report(database, fill_study(database, spec, changes, **study))

    return fill_and_build


@pytest.fixture
def rated(database: Database) -> Rated:
    """`rated(items, **campaign)`: the report of a new campaign, as `rated_campaign` writes it."""

    def rate_and_build(items: Sequence[dict[str, Any]], name: str = "tasting", **campaign: Any) -> Document:
        rated_campaign(database, items, name=name, **campaign)
        return build_human(database, name)

    return rate_and_build


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
def shared_report(new_database: Callable[[], Database]) -> Build:
    """`shared_report(spec, changes)`: a report that outlives a test, for tests that only read it."""

    def fill_and_build(spec: Spec = SPEC, changes: dict[str, Change] | None = None, **study: Any) -> Document:
        database = new_database()
        return build_report(database, fill_study(database, spec, changes, **study))

    return fill_and_build


@pytest.fixture(scope="session")
def complete(shared_report: Build) -> Document:
    """The report of the study as `fill_study` writes it."""
    return shared_report()


@pytest.fixture(scope="session")
def tasted(new_database: Callable[[], Database]) -> Database:
    """The tea-time study with a campaign, for tests that only read; others `add_tasting` to their own."""
    return add_tasting(new_database())


@pytest.fixture(scope="session")
def tasted_report(tasted: Database) -> Document:
    return build_report(tasted, "teatime")


@pytest.fixture(scope="session")
def tasted_page(tasted_report: Document) -> str:
    """The same as HTML, of which drawing the figures takes seconds."""
    return to_html(tasted_report)


@pytest.fixture(scope="session")
def tasting(tasted: Database) -> Document:
    """The report of the campaign alone."""
    return build_human(tasted, "tasting")
