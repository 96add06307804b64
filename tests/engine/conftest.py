"""The toy step kind in the catalogue, and what toy studies need."""

import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import toy_catalogue
from toy_study import ToyStudy

from creamtea.engine import lease as leases
from creamtea.engine import state
from creamtea.engine.controller import Controller
from creamtea.engine.events import EngineEvent
from creamtea.engine.executors.base import Executor
from creamtea.engine.executors.inline import InlineExecutor
from creamtea.engine.lease import Lease
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
def lease(database: Database) -> Lease:
    return leases.acquire(database, "", None)


@pytest.fixture
def study(log: Path) -> ToyStudy:
    return ToyStudy(log)


@pytest.fixture
def run_study(store: ArtefactStore) -> Callable[..., list[EngineEvent]]:
    """Submit the study and run it to its end; returns the events."""

    def run(study: ToyStudy, database: Database, executor: Executor | None = None) -> list[EngineEvent]:
        events: list[EngineEvent] = []
        submission = study.submit(database, store)
        Controller(database, store, executor or InlineExecutor(), events.append).run(submission.study_id)
        return events

    return run


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter waits, so that tests of the loop take no time."""
    monkeypatch.setattr("creamtea.engine.controller.CHECK_SECONDS", 0.05)
    monkeypatch.setattr("creamtea.engine.controller.POLL_SECONDS", 0.02)
    monkeypatch.setattr("creamtea.engine.state.BACK_OFF", state.BACK_OFF / 40)


@pytest.fixture
def free_port() -> int:
    """A port of this machine on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
