"""Statements that SQLAlchemy compiles once in a process instead of once for each database."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

SIZE = 2000  # statements; beyond it those not used for longest are compiled again


def share_compiled_statements() -> None:
    """Nearly every test opens a database of its own, and an engine keeps what it has compiled to itself: a
    seventh of the processor time of the tests that read and write rows went there.

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
