"""A second database beside `database`, to import into; helpers/ on the path."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from creamtea.store.database import Database, open_database


@pytest.fixture
def other(sqlite_template: Path, tmp_path: Path) -> Iterator[Database]:
    """An empty SQLite database."""
    path = tmp_path / "other.db"
    shutil.copyfile(sqlite_template, path)
    opened = open_database(f"sqlite:///{path}")
    yield opened
    opened.close()
