"""Addresses, sessions, transactions and the clock, on both databases."""

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import psycopg
import pytest
from limits import ANSWER, START
from quick_databases import configure_sqlite
from sqlalchemy import delete, func, make_url, select, text, update
from sqlalchemy.exc import DBAPIError, StatementError
from sqlalchemy.orm import Session
from table_rows import NOON, all_of, one_of, step_row

from creamtea.errors import InputError
from creamtea.settings import Settings
from creamtea.store.database import Database, open_database
from creamtea.store.schema import current, downgrade, head, upgrade
from creamtea.store.tables import Controller, Event, ItemKind, StepRow


def step(key: str = "k") -> StepRow:
    return step_row(key, "corpus", state="running")


def count(database: Database) -> int:
    with database.session() as session:
        return session.scalar(select(func.count()).select_from(StepRow)) or 0


# ---------------------------------------------------------------- addresses


WRITE = "; write sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/DATABASE (%40 for @ in a password)"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("creamtea.db", f"not a database address: 'creamtea.db'{WRITE}"),
        (
            "postgresql://anna:se/cr@t@host:port/x",
            f"not a database address: 'postgresql://anna:***@host:port/x'{WRITE}",
        ),
        (
            "postgresql://anna:se@cret@host/x",
            f"not a database address: 'postgresql://anna:***@host/x'{WRITE}",
        ),
        ("mysql://host/x", f"creamtea cannot use a 'mysql' database{WRITE}"),
        ("postgresql://host", f"the database address PostgreSQL host:5432/ names no database{WRITE}"),
        ("sqlite://", "SQLite in memory cannot be shared by threads; write sqlite:///FILE"),
    ],
)
def test_a_bad_address_is_one_message(url: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        open_database(url)
    assert str(error.value) == message


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_spelling_of_postgresql_means_psycopg_3(scheme: str) -> None:
    assert Database(f"{scheme}://host/x").url.drivername == "postgresql+psycopg"


def test_an_unreachable_postgresql_is_named_without_its_password() -> None:
    with pytest.raises(InputError) as error:
        open_database("postgresql://anna:secret@127.0.0.1:9/results")
    assert "cannot open PostgreSQL 127.0.0.1:9/results: " in str(error.value)
    assert "Connection refused" in str(error.value)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "none/a.db",
            "cannot open SQLite file {0}/none/a.db: there is no folder {0}/none; create it, or name a ",
        ),
        ("file/data/a.db", "{0}/file is a file, not a folder; move it, or name"),
        ("file", "cannot open SQLite file {0}/file: file is not a database"),
    ],
)
def test_a_place_without_a_database_is_named(path: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no database" * 100)
    with pytest.raises(InputError) as error:
        open_database(f"sqlite:///{tmp_path}/{path}")
    assert message.format(tmp_path) in str(error.value)


def test_a_home_that_cannot_be_made_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> None:
        raise OSError(30, "Read-only file system", str(folder))

    monkeypatch.setenv("CREAMTEA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("creamtea.store.engines.make_private", refuse)
    with pytest.raises(InputError, match=r"home cannot be made \(Read-only file system\); name a writable"):
        open_database(f"sqlite:///{tmp_path}/home/a.db")


def test_a_home_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "50%41? it's\na #home"
    monkeypatch.setenv("CREAMTEA_HOME", str(home))
    monkeypatch.delenv("CREAMTEA_DATABASE_URL", raising=False)
    open_database(Settings.load().database_url).close()
    assert [path.name for path in home.iterdir()] == ["creamtea.db"]


def test_a_read_only_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # os.access stands in for the permissions, which do not bind the root user
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(InputError, match=r"cannot write SQLite file .* or its folder; name a writable file"):
        open_database(f"sqlite:///{tmp_path}/a.db")
    monkeypatch.setenv("CREAMTEA_HOME", str(tmp_path))
    with pytest.raises(InputError, match="name a writable folder in CREAMTEA_HOME"):
        open_database(f"sqlite:///{tmp_path}/a.db")


@pytest.mark.parametrize(("before", "after"), [(None, 0o600), (0o644, 0o600), (0o664, 0o660)])
def test_only_its_owner_may_read_a_database(
    before: int | None, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its raters' identities are in it. A file that its group may write has been shared on purpose."""
    home = tmp_path / "deep" / "home"  # made on first use
    monkeypatch.setenv("CREAMTEA_HOME", str(home))
    parts = [home / f"creamtea.db{end}" for end in ("", "-wal", "-shm")]
    if before is not None:
        open_database(f"sqlite:///{parts[0]}").close()
        parts[0].chmod(before)
    database = open_database(f"sqlite:///{parts[0]}")
    with database.transaction() as session:
        session.add(step())
    assert {part.stat().st_mode & 0o777 for part in parts} == {after}
    assert home.stat().st_mode & 0o777 == 0o700
    database.close()


# ---------------------------------------------------------------- sessions and transactions


def test_sqlite_is_configured(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("creamtea.store.engines._configure_sqlite", configure_sqlite)
    with open_database(sqlite_url).session() as session:
        found = {
            name: session.scalar(text(f"PRAGMA {name}"))
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 10000}


def test_postgresql_writers_are_read_committed(postgres_url: str) -> None:
    with open_database(postgres_url).transaction() as session:
        assert session.scalar(text("SHOW transaction_isolation")) == "read committed"


def test_a_postgresql_database_that_cannot_hold_every_text_is_refused(postgres_server: str) -> None:
    for encoding in ("LATIN1", "SQL_ASCII"):
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE other TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'")
        try:
            with pytest.raises(InputError, match=f"{encoding}.*UTF8"):
                open_database(str(make_url(postgres_server).set(database="other")))
        finally:
            with psycopg.connect(postgres_server, autocommit=True) as connection:
                connection.execute("DROP DATABASE other WITH (FORCE)")


def test_a_transaction_commits_at_its_end_and_leaves_nothing_if_it_raises(database: Database) -> None:
    def fail(session: Session) -> None:
        session.add(step())
        session.flush()
        raise RuntimeError

    with pytest.raises(RuntimeError), database.transaction() as session:
        fail(session)
    assert count(database) == 0
    with database.transaction() as session:
        row = step()
        session.add(row)
    assert count(database) == 1
    assert row.key == "k"  # still readable


def test_reports_of_many_readers_leave_a_connection_for_a_rater(database: Database) -> None:
    with ExitStack() as reports:
        for _ in range(40):
            reports.enter_context(database.session()).execute(text("SELECT 1"))
        with database.transaction() as session:
            assert session.scalar(text("SELECT 2")) == 2


def test_a_session_cannot_write(database: Database) -> None:
    with pytest.raises(DBAPIError, match=r"readonly|read-only"), database.session() as session:
        session.execute(delete(StepRow))
    with database.transaction() as session:  # and the connection that goes back to the pool can
        session.add(step())
    assert count(database) == 1


def test_a_session_sees_one_moment(database: Database) -> None:
    query = select(func.count()).select_from(StepRow)
    with database.session() as session:
        before = session.scalar(query)
        with database.transaction() as writer:
            writer.add(step())
        after = session.scalar(query)
    assert (before, after) == (0, 0)
    assert count(database) == 1


def in_four_threads(work: Callable[[], None]) -> None:
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(work) for _ in range(4)]:
            done.result()


def test_sqlite_writers_queue_up(sqlite_url: str) -> None:
    """Read, then write, from four threads: nobody fails with "database is locked", no step is lost."""
    database = open_database(sqlite_url)
    with database.transaction() as session:
        session.add(Controller(id=1, owner="a", address="", fence=0, lease_until=NOON))

    def write() -> None:
        for _ in range(25):
            with database.transaction() as session:
                fence = session.scalar(select(Controller.fence)) or 0
                time.sleep(0.0005)
                session.execute(update(Controller).values(fence=fence + 1))

    in_four_threads(write)
    assert one_of(database, select(Controller.fence)) == 100


def test_nan_in_a_json_column_is_refused(database: Database) -> None:
    row = step()
    row.params = {"rate": float("nan")}
    with (
        pytest.raises((StatementError, ValueError), match="not JSON compliant"),
        database.transaction() as session,
    ):
        session.add(row)


# ---------------------------------------------------------------- fresh databases


def test_a_fresh_database_is_left_alone_if_asked(empty_url: str) -> None:
    with pytest.raises(InputError, match="is empty; run: creamtea db upgrade"):
        open_database(empty_url, migrate=False)


def test_threads_may_open_a_fresh_database_together(empty_url: str) -> None:
    in_four_threads(lambda: open_database(empty_url).close())
    assert current(empty_url) == head()


@pytest.mark.parametrize("older", [False, True], ids=["fresh", "older"])
def test_processes_may_bring_a_database_to_head_together(empty_url: str, older: bool) -> None:
    if older:
        upgrade(empty_url)
        downgrade(empty_url, "-2")
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=upgrade, args=(empty_url,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(START)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    open_database(empty_url, migrate=False).close()


def test_a_database_of_another_program_is_left_alone(empty_url: str) -> None:
    with Database(empty_url).transaction() as session:
        session.execute(text("CREATE TABLE invoices (id INTEGER)"))
    with pytest.raises(InputError, match=r"holds tables that are not creamtea's \(invoices\)"):
        open_database(empty_url)


# ---------------------------------------------------------------- moments


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2026, 3, 29, 1, 30, 0, 123456, tzinfo=timezone(timedelta(hours=2))),
        datetime(2026, 12, 31, 23, 59, 59, 999999, tzinfo=timezone(-timedelta(hours=9, minutes=30))),
        datetime(2026, 7, 1, tzinfo=UTC),
    ],
)
def test_a_moment_comes_back_as_utc(database: Database, moment: datetime) -> None:
    with database.transaction() as session:
        session.add(step())
        session.flush()
        session.add(Event(step_key="k", at=moment, what="started"))
    with database.session() as session:
        if database.engine.dialect.name == "postgresql":
            session.execute(text("SET TIME ZONE 'Asia/Tokyo'"))
        found = session.scalar(select(Event.at))
    assert found == moment
    assert found.tzinfo is UTC


def test_moments_are_ordered_in_sql_as_in_python(database: Database) -> None:
    early, late = NOON, NOON + timedelta(microseconds=1)
    with database.transaction() as session:
        session.add(step())
        session.flush()
        session.add(Event(step_key="k", at=early.astimezone(timezone(timedelta(hours=9))), what="early"))
        session.add(Event(step_key="k", at=late.astimezone(timezone(-timedelta(hours=9))), what="late"))
    assert all_of(database, select(Event.what).where(Event.at < late)) == ["early"]


def test_a_naive_moment_is_refused(database: Database) -> None:
    row = step()
    row.created_at = datetime(2026, 3, 1)
    with pytest.raises(StatementError, match="naive datetime"), database.transaction() as session:
        session.add(row)


def test_the_clock_is_utc_and_moves_within_a_transaction(database: Database) -> None:
    with database.transaction() as session:
        first = database.now(session)
        time.sleep(0.005)
        second = database.now(session)
    assert first.tzinfo is UTC
    assert timedelta(0) < second - first < timedelta(seconds=ANSWER)
    assert abs(datetime.now(UTC) - second) < timedelta(seconds=ANSWER)


@pytest.mark.parametrize(
    ("kind", "counted"),
    [
        (ItemKind.RATED, ("1 rated", "2,000 rated")),
        (ItemKind.RANDOM, ("1 drawn at random", "2,000 drawn at random")),
        (ItemKind.REPEAT, ("1 repeat", "2,000 repeats")),
        (ItemKind.BAD_REFERENCE, ("1 bad reference", "2,000 bad references")),
        (ItemKind.TUTORIAL, ("1 practice item", "2,000 practice items")),
        (ItemKind.ATTENTION, ("1 attention check", "2,000 attention checks")),
    ],
)
def test_items_of_a_kind_are_counted(kind: ItemKind, counted: tuple[str, str]) -> None:
    assert (kind.counted(1), kind.counted(2000)) == counted
    assert kind.label in counted[1]
