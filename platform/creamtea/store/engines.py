"""Connections to the database: addresses, engines, and waiting for a database that fails.

A restart, a fail-over, a lost connection or a locked file passes by itself: creamtea waits for up to
PASSING_SECONDS in all. A full or read-only disk and missing rights need a person: the waiting process says
what to do, and gives up after LASTING_SECONDS. It does not wait for a damaged database.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError, TimeoutError
from sqlalchemy.pool import NullPool

from creamtea.errors import InputError
from creamtea.settings import Settings, make_private, path_of

T = TypeVar("T")
FIRST_PAUSE = 0.5  # seconds; each pause is twice as long as the one before
MAX_PAUSE = 30.0
LASTING_SECONDS = 300.0  # how long to wait for a person to mend the database
PASSING_SECONDS = 6 * 3600.0  # how long a database may be away: enough for a night's maintenance

PASSES = ""
FREE = "free some space on its disk (then `creamtea gc` may free more)"
# (part of SQLite's message, what a person has to do); other OperationalErrors are mostly wrong statements
SQLITE = (
    ("locked", PASSES),
    ("busy", PASSES),
    ("is full", FREE),
    ("readonly", "check its rights, its folder's rights, and whether its disk is read-only"),
    ("unable to open", "check that its folder is there, that this user may write both, and `ulimit -n`"),
    ("disk i/o", f"{FREE}; if it is not full, it fails: see the machine's log"),
)
SQLITE_DAMAGED = ("malformed", "not a database")
RESTORE = "restore it from a backup (docs/how-to/backup.md), or name another in CREAMTEA_DATABASE_URL"
LOGIN = "correct the user, the password or the database in CREAMTEA_DATABASE_URL"
# (beginning of the SQLSTATE, what a person has to do), by PostgreSQL's manual, appendix A: psycopg raises
# OperationalError for mistakes as well
POSTGRES = (
    ("08", PASSES),  # the connection is lost
    ("25006", "name the primary server in CREAMTEA_DATABASE_URL, unless this one is about to become it"),
    ("28", LOGIN),
    ("3D000", LOGIN),
    ("3F000", "create the schema that its search_path names, or correct that"),
    ("40", PASSES),  # rolled back because of another transaction
    ("42501", "grant its user the rights, or name another in CREAMTEA_DATABASE_URL"),
    ("53100", "free some space on the server's disk"),
    ("53", PASSES),  # no memory or connections left
    ("55P03", PASSES),  # a lock was not free in time
    ("57014", "raise statement_timeout for its user or database"),
    ("57P0", PASSES),  # the server is shutting down or starting
    ("58030", "see the server's log: its disk fails"),
)
POSTGRES_DAMAGED = ("XX001", "XX002")
# a refused connection has no SQLSTATE
POSTGRES_REFUSES = re.compile(r"FATAL:\s+(password authentication|role|no pg_hba|database .* does not exist)")


@dataclass(frozen=True)
class Outage:
    """Why a transaction failed that can succeed once the database is back or repaired."""

    place: str  # the database's name, for people
    reason: str  # the database's own message, in one line
    remedy: str = PASSES  # what a person has to do
    patience: float = PASSING_SECONDS  # seconds for which to try again

    def __str__(self) -> str:
        if self.remedy:
            return f"{self.place}: {self.reason}; {self.remedy}"
        return f"{self.place} does not answer ({self.reason})"

    def trying_again(self, pause: float) -> str:
        minutes = self.patience / 60
        limit = f"{minutes / 60:g} hours" if minutes > 60 else f"{minutes:g} minutes"
        return f"{self}; trying again in {pause:.2g} s, for {limit} in all"


class OutageClock:
    """Counts the time for which the database has been away, less the time for which it has answered.

    So a server that comes back for moments and fails again also reaches the limit.
    """

    def __init__(self) -> None:
        self._seconds, self._last, self._away = 0.0, time.monotonic(), False

    def failed(self) -> float:
        """Note that the database is away; return the seconds counted so far."""
        self._count(True)
        return self._seconds

    def answered(self) -> None:
        if self._away:
            self._count(False)

    def _count(self, away: bool) -> None:
        now = time.monotonic()
        passed = now - self._last
        self._seconds = self._seconds + passed if self._away else max(0.0, self._seconds - passed)
        self._last, self._away = now, away


def outage_of(error: BaseException) -> Outage | None:
    """Return the outage that caused the error; None if the database did not cause it."""
    if not isinstance(error, SQLAlchemyError):
        return None
    remedy = _remedy(error)
    if remedy is None:
        return None
    patience = 0.0 if remedy == RESTORE else LASTING_SECONDS if remedy else PASSING_SECONDS
    return Outage(getattr(error, "place", "the database"), reason_of(error), remedy, patience)


def _remedy(error: SQLAlchemyError) -> str | None:
    """Return what a person has to do, or PASSES; None if the database did not cause the error."""
    if isinstance(error, TimeoutError):  # all connections of the pool are in use
        return PASSES
    if not isinstance(error, DBAPIError):
        return None
    cause, remedy = error.orig, None
    if isinstance(cause, sqlite3.DatabaseError):
        text = str(cause).lower()
        if any(sign in text for sign in SQLITE_DAMAGED):
            return RESTORE
        if isinstance(cause, sqlite3.OperationalError):
            remedy = next((remedy for sign, remedy in SQLITE if sign in text), None)
    elif (sqlstate := getattr(cause, "sqlstate", None)) is not None:
        if str(sqlstate).startswith(POSTGRES_DAMAGED):
            return RESTORE
        remedy = next((remedy for sign, remedy in POSTGRES if str(sqlstate).startswith(sign)), None)
    # the server did not answer. Tested by name: SQLite's users need not wait for the import of psycopg
    elif {"OperationalError", "InterfaceError"} & {kind.__name__ for kind in type(cause).__mro__}:
        remedy = LOGIN if POSTGRES_REFUSES.search(str(cause)) else PASSES
    return PASSES if remedy is None and error.connection_invalidated else remedy


def name_place(engine: Engine, place: str) -> None:
    """Attach the database's name to errors of the engine, for `outage_of`."""

    def name_it(context: ExceptionContext) -> None:
        if context.sqlalchemy_exception is not None:
            context.sqlalchemy_exception.place = place  # type: ignore[attr-defined]

    event.listen(engine, "handle_error", name_it)


def reason_of(error: SQLAlchemyError) -> str:
    """Return the database's own message, in one line."""
    if isinstance(error, TimeoutError):
        return "all connections to it are in use"
    cause = error.orig if isinstance(error, DBAPIError) else error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return lines[0] if lines else type(cause).__name__


def wait_out(
    work: Callable[[], T], wait: Callable[[Outage, float], bool], clock: OutageClock | None = None
) -> T:
    """Run one transaction, and repeat it while the database may come back; return its result.

    `wait` is called with the outage and the seconds to wait. The error is raised if `wait` returns False or
    the outage lasts longer than its patience. `clock` also counts the outages of earlier transactions. A
    transaction whose commit was not confirmed is repeated: `work` must allow for that.
    """
    pause, began, clock = FIRST_PAUSE, time.monotonic(), clock or OutageClock()
    while True:
        try:
            result = work()
        except SQLAlchemyError as error:
            outage = outage_of(error)
            away = clock.failed()
            spent = time.monotonic() - began if outage is not None and outage.remedy else away
            left = 0.0 if outage is None else outage.patience - spent
            if outage is None or left <= 0 or not wait(outage, min(pause, left)):
                raise
            pause = min(2 * pause, MAX_PAUSE)
        else:
            clock.answered()
            return result


# ---------------------------------------------------------------- engines
#
# SQLite: the driver runs in autocommit, and SQLAlchemy's event "begin" starts the right kind of transaction;
# by itself the sqlite3 module begins one only before the first write. PostgreSQL: psycopg 3.

ADDRESSES = "sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/DATABASE (%40 for @ in a password)"
BUSY_TIMEOUT = 10_000  # milliseconds that SQLite waits for another writer
# per process: a report holds a connection for seconds, while raters' pages need theirs at once. PostgreSQL
# allows 100 for all processes by default
MAX_CONNECTIONS = 50
KEPT_CONNECTIONS = 20  # these stay open when idle: opening one takes longer than storing a rating
CONNECT_TIMEOUT = 10  # seconds within which PostgreSQL must answer

# JSON columns: NaN is an error on both databases (SQLite would store it, PostgreSQL refuse it)
to_json = partial(json.dumps, ensure_ascii=False, allow_nan=False)


def parse_url(url: str) -> URL:
    """Parse an address and choose its driver; InputError if creamtea cannot use it."""
    try:
        parsed = make_url(url)
        if "@" in (parsed.host or ""):  # the end of a password, which no message may show
            raise ValueError
    except (ArgumentError, ValueError):
        shown = re.sub(r"//([^:@/]*):.*@", r"//\1:***@", url)
        raise InputError(f"not a database address: {shown!r}; write {ADDRESSES}") from None
    if parsed.drivername == "postgres":
        parsed = parsed.set(drivername="postgresql")
    if parsed.drivername in ("postgresql", "postgresql+psycopg"):
        if not parsed.database:
            raise InputError(f"the database address {describe(parsed)} names no database; write {ADDRESSES}")
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
        if parsed.database in (None, "", ":memory:"):
            raise InputError("SQLite in memory cannot be shared by threads; write sqlite:///FILE")
        return parsed.set(database=str(path_of(parsed.database)))
    raise InputError(f"creamtea cannot use a {parsed.drivername!r} database; write {ADDRESSES}")


def is_sqlite(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def missing_file(url: URL) -> Path | None:
    """Return the SQLite file of the address if it does not exist: opening it would create it."""
    if is_sqlite(url):
        path = Path(str(url.database)).absolute()
        return None if path.exists() else path
    return None


def describe(url: URL) -> str:
    """Describe the address for people: file, or host, port and database; never user or password."""
    if is_sqlite(url):
        return f"SQLite file {url.database}"
    host = url.host or url.query.get("host") or "the local socket"
    port = url.port or url.query.get("port") or 5432
    return f"PostgreSQL {host}:{port}/{url.database or ''}"


def make_engine(url: URL, *, migrating: bool = False) -> Engine:
    """Make an engine; `migrating`: without a pool and, on SQLite, without checks of foreign keys."""
    pool: dict[str, Any] = {"poolclass": NullPool}
    if not migrating:
        pool = {
            "pool_pre_ping": True,
            "pool_size": KEPT_CONNECTIONS,
            "max_overflow": MAX_CONNECTIONS - KEPT_CONNECTIONS,
        }
    if is_sqlite(url):
        # isolation_level None is the driver's autocommit: it never begins on its own
        arguments: dict[str, Any] = {"isolation_level": None}
        engine = create_engine(url, json_serializer=to_json, connect_args=arguments, **pool)
        event.listen(engine, "connect", partial(_configure_sqlite, foreign_keys=not migrating))
        event.listen(engine, "begin", _begin_sqlite)
        name_place(engine, describe(url))
        return engine
    arguments = {"client_encoding": "utf8"}  # whatever PGCLIENTENCODING or the database says
    if "connect_timeout" not in url.query:
        arguments["connect_timeout"] = CONNECT_TIMEOUT
    engine = create_engine(
        url, json_serializer=to_json, connect_args=arguments, isolation_level="READ COMMITTED", **pool
    )
    name_place(engine, describe(url))
    return engine


def _configure_sqlite(connection: sqlite3.Connection, record: object, *, foreign_keys: bool) -> None:
    connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT}")
    connection.execute("PRAGMA journal_mode=WAL")
    # a commit that was acknowledged (a rating, a step's result) survives a power cut
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA foreign_keys={'ON' if foreign_keys else 'OFF'}")


def _begin_sqlite(connection: Connection) -> None:
    """Begin a transaction by the engine's option `sqlite_begin`: "read" (default, refuses writes) or "write".

    A writer takes its lock at once. If it read first, it would fail with "database is locked" whenever
    another process wrote in between, and no time-out prevents that.
    """
    write = connection.get_execution_options().get("sqlite_begin", "read") == "write"
    connection.exec_driver_sql(f"PRAGMA query_only={'OFF' if write else 'ON'}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN DEFERRED")


def readers(engine: Engine) -> Engine:
    """Return the engine for transactions that read one snapshot and cannot write."""
    if engine.dialect.name == "sqlite":
        return engine.execution_options(sqlite_begin="read")
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def writers(engine: Engine) -> Engine:
    """Return the engine for transactions that may write."""
    return engine.execution_options(sqlite_begin="write") if engine.dialect.name == "sqlite" else engine


def check_reachable(engine: Engine) -> None:
    """Raise InputError, with place and remedy, if no connection can be made."""
    url = engine.url
    if is_sqlite(url):
        _check_file(Path(str(url.database)))
    try:
        with engine.connect() as connection:
            question = "SELECT 'UTF8' FROM sqlite_master" if is_sqlite(url) else "SHOW server_encoding"
            encoding = connection.exec_driver_sql(question).scalar() or "UTF8"
    except DBAPIError as error:
        remedy = (
            "name another file in CREAMTEA_DATABASE_URL"
            if is_sqlite(url)
            else "check CREAMTEA_DATABASE_URL, and that the server is running and has a free connection"
        )
        outage = outage_of(error)
        if outage is not None and outage.remedy:
            remedy = outage.remedy
        raise InputError(f"cannot open {describe(url)}: {reason_of(error)}; {remedy}") from None
    if encoding != "UTF8":
        raise InputError(
            f"{describe(url)} has the encoding {encoding}, which cannot hold every text; create a database "
            "with ENCODING 'UTF8' TEMPLATE template0, and name it in CREAMTEA_DATABASE_URL"
        )


def _check_file(path: Path) -> None:
    folder, failure = path.absolute().parent, ""
    remedy = "name a writable file in CREAMTEA_DATABASE_URL"
    if folder == Settings.load().home:  # ours, so that the defaults need no set-up
        remedy = "name a writable folder in CREAMTEA_HOME, or a file in CREAMTEA_DATABASE_URL"
        try:
            make_private(folder)
        except OSError as error:
            failure = str(error.strerror)
    if not folder.is_dir():
        in_the_way = next((above for above in (folder, *folder.parents) if above.is_file()), None)
        reason = f"there is no folder {folder}; create it, or {remedy}"
        if failure:
            reason = f"the folder {folder} cannot be made ({failure}); {remedy}"
        if in_the_way is not None:
            reason = f"{in_the_way} is a file, not a folder; move it, or {remedy}"
        raise InputError(f"cannot open SQLite file {path}: {reason}")
    # WAL needs two more files beside the database, so the folder itself must be writable
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise InputError(
            f"cannot write SQLite file {path} or its folder; {remedy}. To see its studies, copy the folder "
            "first: SQLite also writes while it reads"
        )
    # Only the owner may read the database, which has raters' identities. A group-writable file was shared on
    # purpose: only the rights of all others are removed. SQLite gives its -wal and -shm files the rights of
    # the database.
    with suppress(OSError):  # it exists; SQLite itself reports anything else
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    for part in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        with suppress(OSError):  # it is not there, or another user's
            mode = part.stat().st_mode & 0o777
            allowed = mode & (0o770 if mode & 0o020 else 0o700)
            if allowed != mode:
                part.chmod(allowed)
