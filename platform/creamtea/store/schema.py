"""The schema's revisions: find a database's revision, and migrate it up or down with Alembic.

Every migration is one transaction. SQLite's checks of foreign keys are off during it: rebuilding a parent
table would otherwise delete the rows of its child tables. All foreign keys are checked before the commit.

Alembic is imported only to migrate, so that other commands start sooner. In an empty database the tables of
`tables` are created directly, without Alembic; all migrations together make the same tables
(`tests/store/test_migrations.py`).
"""

from __future__ import annotations

import threading
from io import StringIO
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import URL

from creamtea.errors import CreamteaError, InputError
from creamtea.store.engines import (
    RESTORE,
    check_reachable,
    describe,
    make_engine,
    missing_file,
    parse_url,
    writers,
)
from creamtea.store.tables import Base

# Any fixed number: it keeps two processes from migrating one PostgreSQL database at once.
MIGRATION_LOCK = 7_013_201
_VERSION = sa.Table(  # the same as Alembic's own table
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
_migrating = threading.Lock()  # Alembic keeps its state in the module: one migration per process at a time


def migrations_folder() -> Path:
    """Return `creamtea/store/migrations` in an installed wheel, or `migrations` in a checkout."""
    here = Path(__file__).resolve()
    for folder in (here.parent / "migrations", here.parents[3] / "migrations"):
        if (folder / "env.py").is_file():
            return folder
    raise CreamteaError(f"the migrations are missing from {here.parent}: reinstall creamtea")


def revisions() -> list[str]:
    """List the revisions, oldest first, by the names of their files (`0001_first_schema.py`)."""
    files = (migrations_folder() / "versions").glob("[0-9]*_*.py")
    return sorted(path.name.partition("_")[0] for path in files)


def head() -> str:
    """Return the revision that this code needs."""
    return revisions()[-1]


def current(url: str) -> str | None:
    """Return the revision of the database; None if it is empty or its SQLite file does not exist.

    Does not create the file. Raises InputError if the database cannot be opened.
    """
    parsed = parse_url(url)
    if missing_file(parsed) is not None:
        return None
    engine = make_engine(parsed, migrating=True)
    check_reachable(engine)
    return revision_of(engine)


def revision_of(engine: sa.Engine) -> str | None:
    """Return the database's revision, "base" if every migration was undone, None if it is empty."""
    with engine.connect() as connection:
        tables = sa.inspect(connection).get_table_names()
        if not tables:
            return None
        if "alembic_version" not in tables:
            raise InputError(
                f"{describe(engine.url)} holds tables that are not creamtea's "
                f"({', '.join(sorted(tables)[:3])}); name an empty database in CREAMTEA_DATABASE_URL"
            )
        return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar() or "base"


def check_revision(url: URL, revision: str | None, remedy: str = "creamtea db upgrade") -> None:
    """Raise InputError unless the revision is the one that this code needs.

    `remedy`: the command that upgrades.
    """
    place = describe(url)
    if revision == head():
        return
    if revision is None:
        if missing_file(url) is not None:
            raise InputError(f"{place} does not exist: correct the address, or make the file: {remedy}")
        raise InputError(f"{place} is empty; run: {remedy}")
    if revision != "base" and revision not in revisions():
        raise InputError(
            f"{place} has schema revision {revision}, which is newer than this creamtea (it needs {head()}); "
            "install a newer creamtea"
        )
    raise InputError(
        f"{place} has schema revision {revision}, but this creamtea needs {head()}; run: {remedy}"
    )


def check_pages(url: URL) -> None:
    """Raise InputError if the pages or indexes of an SQLite file are damaged; PostgreSQL checks its own.

    SQLite has no checksums: a number or a letter that changed within a row is not found.
    """
    if url.get_backend_name() != "sqlite":
        return
    with make_engine(url).connect() as connection:
        fault = connection.execute(sa.text("PRAGMA integrity_check(1)")).scalar_one()
    if fault != "ok":
        raise InputError(f"{describe(url)} is damaged ({' '.join(fault.split())}); {RESTORE}")


def upgrade(url: str, revision: str = "head") -> None:
    """Bring the database from an older revision to `revision`."""
    _move(url, revision, up=True)


def downgrade(url: str, revision: str) -> None:
    """Undo the migrations after `revision` ("base": all, "-1": the last), and drop the added data."""
    _move(url, revision, up=False)


def _move(url: str, revision: str, *, up: bool) -> None:
    engine = make_engine(parse_url(url), migrating=True)
    if not up and missing_file(engine.url) is not None:
        raise InputError(f"{describe(engine.url)} does not exist; correct the address")
    check_reachable(engine)
    present = revision_of(engine)
    if present not in (None, "base") and present not in revisions():
        check_revision(engine.url, present)
    with _migrating, writers(engine).begin() as connection:
        sqlite = connection.dialect.name == "sqlite"
        if not sqlite:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
        if up and revision == "head" and not sa.inspect(connection).get_table_names():
            for metadata in (Base.metadata, _VERSION.metadata):
                metadata.create_all(connection, checkfirst=False)
            connection.execute(sa.insert(_VERSION).values(version_num=head()))
            return
        _migrate(connection, revision, up=up)
        if sqlite and (orphans := connection.exec_driver_sql("PRAGMA foreign_key_check").all()):
            table, rowid, parent, _ = orphans[0]
            raise CreamteaError(
                f"{describe(engine.url)}: {len(orphans)} rows refer to rows that do not exist (first: "
                f"{table}, rowid {rowid}, to {parent}). Nothing was changed; repair the rows and try again"
            )


def _migrate(connection: sa.Connection, revision: str, *, up: bool) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config(stdout=StringIO())
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        (command.upgrade if up else command.downgrade)(config, revision)
    except (CommandError, AssertionError) as error:  # Alembic asserts that a revision is not ""
        place, why = describe(connection.engine.url), str(error) or "no such revision"
        raise InputError(
            f"cannot move {place} to revision {revision!r}: {why}; `creamtea db current` shows its "
            "revision, and the one that this creamtea needs"
        ) from None
