"""The toy step kind in the catalogue, and what toy studies need."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import toy_catalogue
from by_hand import ByHand
from toy_study import ToyStudy

from creamtea.engine import state
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STEP_KINDS, "toy", toy_catalogue.TOY)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    folder.mkdir()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> ArtefactStore:
    return ArtefactStore(tmp_path / "artefacts")


@pytest.fixture
def sqlite(sqlite_template: Path, tmp_path: Path) -> Iterator[Database]:
    """A fresh SQLite database, where a second kind of database would show nothing new."""
    path = tmp_path / "database.db"
    shutil.copyfile(sqlite_template, path)
    database = open_database(f"sqlite:///{path}")
    yield database
    database.close()


@pytest.fixture
def study(sqlite: Database, store: ArtefactStore, log: Path) -> ToyStudy:
    return ToyStudy(sqlite, store, log)


@pytest.fixture
def study_on_both(database: Database, store: ArtefactStore, log: Path) -> ToyStudy:
    """On SQLite and on PostgreSQL."""
    return ToyStudy(database, store, log)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter waits, so that tests of the loop take no time."""
    monkeypatch.setattr("creamtea.engine.controller.CHECK_SECONDS", 0.05)
    monkeypatch.setattr("creamtea.engine.controller.POLL_SECONDS", 0.02)
    monkeypatch.setattr("creamtea.engine.state.BACK_OFF", state.BACK_OFF / 40)


@pytest.fixture
def hand(study: ToyStudy) -> ByHand:
    return ByHand(study)
