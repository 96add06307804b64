"""From a database address to a configured SQLAlchemy engine.

SQLite: the driver runs in autocommit and SQLAlchemy's own "begin" says what kind of transaction starts,
because the sqlite3 module would otherwise begin late and lazily. PostgreSQL: psycopg 3.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from creamtea.errors import InputError
from creamtea.settings import Settings, make_private, path_of
from creamtea.store.outages import name_place, outage_of, reason_of

ADDRESSES = "sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
BUSY_TIMEOUT = 10_000  # milliseconds that SQLite waits for another writer
# of a process: a report holds one for seconds, and raters' pages need theirs at once. PostgreSQL's default is
# 100 of all processes
MAX_CONNECTIONS = 50
KEPT_CONNECTIONS = 5  # of them, when nobody needs them
CONNECT_TIMEOUT = 10  # seconds that PostgreSQL has to answer

# JSON columns: NaN is an error on both databases (SQLite would store it, PostgreSQL refuse it)
to_json = partial(json.dumps, ensure_ascii=False, allow_nan=False)


def parse_url(url: str) -> URL:
    """The address with its driver; InputError for one that creamtea cannot use."""
    try:
        parsed = make_url(url)
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
    """The SQLite file of the address, where it is not there: opening it would make it."""
    if is_sqlite(url):
        path = Path(str(url.database)).absolute()
        return None if path.exists() else path
    return None


def describe(url: URL) -> str:
    """The address for people: the file, or host, port and database; never user, password or options."""
    if is_sqlite(url):
        return f"SQLite file {url.database}"
    host = url.host or url.query.get("host") or "the local socket"
    port = url.port or url.query.get("port") or 5432
    return f"PostgreSQL {host}:{port}/{url.database or ''}"


def make_engine(url: URL, *, migrating: bool = False) -> Engine:
    """An engine; `migrating` turns foreign keys off on SQLite, which table rebuilds need, and the pool
    too."""
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
    arguments = {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_TIMEOUT}
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
    """BEGIN, as the engine's option `sqlite_begin` says: "read" (default, refuses writes) or "write".

    A writer takes its lock at once: a transaction that reads first and then writes would fail with
    "database is locked" whenever another wrote in between, and no time-out helps against that.
    """
    write = connection.get_execution_options().get("sqlite_begin", "read") == "write"
    connection.exec_driver_sql(f"PRAGMA query_only={'OFF' if write else 'ON'}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN DEFERRED")


def readers(engine: Engine) -> Engine:
    """The same pool; every transaction reads one snapshot and cannot write."""
    if engine.dialect.name == "sqlite":
        return engine.execution_options(sqlite_begin="read")
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def writers(engine: Engine) -> Engine:
    """The same pool; every transaction may write."""
    return engine.execution_options(sqlite_begin="write") if engine.dialect.name == "sqlite" else engine


def check_reachable(engine: Engine) -> None:
    """InputError, with place and remedy, if no connection can be made."""
    url = engine.url
    if is_sqlite(url):
        _check_file(Path(str(url.database)))
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1 FROM sqlite_master" if is_sqlite(url) else "SELECT 1")
    except DBAPIError as error:
        remedy = (
            "name another file in CREAMTEA_DATABASE_URL"
            if is_sqlite(url)
            else "check that the server is running and that CREAMTEA_DATABASE_URL is right"
        )
        outage = outage_of(error)
        if outage is not None and outage.remedy:
            remedy = outage.remedy
        raise InputError(f"cannot open {describe(url)}: {reason_of(error)}; {remedy}") from None


def _check_file(path: Path) -> None:
    folder = path.absolute().parent
    remedy = "name a writable file in CREAMTEA_DATABASE_URL"
    if folder == Settings.load().home:  # ours, so that the defaults need no set-up
        remedy = "name a writable folder in CREAMTEA_HOME, or a file in CREAMTEA_DATABASE_URL"
        with suppress(OSError):
            make_private(folder)
    if not folder.is_dir():
        raise InputError(
            f"cannot open SQLite file {path}: there is no folder {folder}; create it, or {remedy}"
        )
    # WAL needs two more files beside the database, so the folder itself must be writable
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise InputError(f"cannot write SQLite file {path} or its folder; {remedy}")
    _close_to_others(path)


def _close_to_others(path: Path) -> None:
    """Keep the database, with its raters' identities, to its owner; make it if it is not there.

    A file that its group may write was shared on purpose: only the rights of all others are taken away.
    SQLite gives its -wal and -shm files the rights of the database.
    """
    with suppress(OSError):  # it is there; SQLite itself says what else is the matter
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    for part in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        with suppress(OSError):  # it is not there, or another user's
            mode = part.stat().st_mode & 0o777
            allowed = mode & (0o770 if mode & 0o020 else 0o700)
            if allowed != mode:
                part.chmod(allowed)
