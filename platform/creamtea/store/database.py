"""The database: sessions that read, transactions that write, and a clock that all processes share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from creamtea.store.engines import check_reachable, describe, make_engine, parse_url, readers, writers
from creamtea.store.schema import check_revision, revision_of, upgrade

SQLITE_NOW = text("SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')")
POSTGRES_NOW = text("SELECT clock_timestamp()")


class Database:
    """A database at an address; threads may share an object, each process creates its own.

    Raises InputError for an invalid address; connects on first use.
    """

    def __init__(self, url: str) -> None:
        self.url = parse_url(url)
        self.engine: Engine = make_engine(self.url)
        self._readers = readers(self.engine)
        self._writers = writers(self.engine)

    def __repr__(self) -> str:
        return f"Database({describe(self.url)})"

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open a session that reads one snapshot of the database; it refuses to write.

        Open a new one to see later changes.
        """
        with Session(self._readers, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Open a session that is committed at the end of the block, or undone if the block raises.

        SQLite: BEGIN IMMEDIATE, so writers queue up (up to ten seconds). PostgreSQL: READ COMMITTED. Loaded
        objects stay readable after the block.
        """
        with Session(self._writers, expire_on_commit=False) as session, session.begin():
            yield session

    @staticmethod
    def now(session: Session) -> datetime:
        """Return the time of the session's database, in UTC; it advances within a transaction.

        Its resolution is a millisecond or better.
        """
        if session.get_bind().dialect.name == "sqlite":
            moment = session.scalar(SQLITE_NOW)
            return datetime.fromisoformat(str(moment)).replace(tzinfo=UTC)
        moment = session.scalar(POSTGRES_NOW)
        assert isinstance(moment, datetime)
        return moment.astimezone(UTC)

    def close(self) -> None:
        self.engine.dispose()


def open_database(url: str, migrate: bool = True) -> Database:
    """Open the database at `url`, after checking that it answers and has the schema that this code needs.

    An empty database gets the newest schema, unless `migrate` is False. Raises InputError for an invalid
    address, if no database answers, and if the schema is older or newer than this code.
    """
    database = Database(url)
    check_reachable(database.engine)
    revision = revision_of(database.engine)
    if revision is None and migrate:
        upgrade(url)
        revision = revision_of(database.engine)
    check_revision(database.url, revision)
    return database
