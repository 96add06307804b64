"""What the databases of tests do without: compiling each statement anew, and waiting for the disk."""

import sqlite3
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

from creamtea.store import engines

SIZE = 2000  # statements; beyond it those not used for longest are compiled again
configure_sqlite = engines._configure_sqlite  # as it is outside tests


def share_compiled_statements() -> None:
    """Nearly every test opens a database of its own, and an engine keeps what it has compiled to itself.

    The keys of that store hold the engine's dialect, so those of one kind of database become equal: all
    SQLite files are opened by one library, and all PostgreSQL databases are on one server.
    """
    shared: dict[type[Any], LRUCache[Any, Any]] = {}
    for kind in (SQLiteDialect_pysqlite, PGDialect_psycopg):
        shared[kind] = LRUCache(SIZE)
        kind.__eq__ = lambda self, other: type(self) is type(other)  # type: ignore[method-assign]
        kind.__hash__ = lambda self: hash(type(self))  # type: ignore[method-assign]

    @event.listens_for(Engine, "engine_connect")
    def use_what_is_shared(connection: Any) -> None:
        connection.engine._compiled_cache = shared[type(connection.dialect)]


def never_wait_for_the_disk() -> None:
    """An SQLite file of a test outlives no power cut: it is not synchronised with the disk. Processes that a
    test starts do as users' processes do."""

    def configure(connection: sqlite3.Connection, record: object, *, foreign_keys: bool) -> None:
        configure_sqlite(connection, record, foreign_keys=foreign_keys)
        connection.execute("PRAGMA synchronous=OFF")

    engines._configure_sqlite = configure
