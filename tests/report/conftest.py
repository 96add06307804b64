"""The tea-time study, to be filled in with a test's changes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from human_rows import add_campaign, add_segment_scores
from teatime_study import SPEC, Fill, fill_study

from creamtea.store.database import Database, open_database


@pytest.fixture
def spec() -> dict[str, Any]:
    """A copy of the study that `fill` writes, to change."""
    return deepcopy(SPEC)


@pytest.fixture
def fill() -> Fill:
    return fill_study


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
