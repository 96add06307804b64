"""`creamtea db`, as a user calls it."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import typer
from sqlalchemy import text
from typer.testing import CliRunner

from creamtea.cli import upkeep
from creamtea.errors import InputError
from creamtea.store.database import open_database
from creamtea.store.schema import head, revisions

app = typer.Typer()
app.add_typer(upkeep.database_commands, name="db")
app.command(hidden=True)(lambda: None)  # typer would otherwise call the one group the whole program


def call(*arguments: str) -> str:
    """What the command prints; the error that it raises."""
    result = CliRunner().invoke(app, ["db", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the database that the environment names is shown."""
    monkeypatch.setenv("CREAMTEA_DATABASE_URL", f"sqlite:///{tmp_path}/a.db")
    return f"SQLite file {tmp_path}/a.db"


def test_up_down_and_where_it_stands(place: str) -> None:
    assert call("current") == f"{place}: not there; this creamtea needs revision {head()}\n"
    assert call("upgrade", "0001") == f"{place}: no tables yet → revision 0001\n"
    assert call("downgrade", "-1") == f"{place}: revision 0001 → revision base\n"
    assert call("current") == f"{place}: revision base; this creamtea needs revision {head()}\n"
    assert call("upgrade", "0001") == f"{place}: revision base → revision 0001\n"
    Path(place.removeprefix("SQLite file ")).unlink()
    assert call("upgrade") == f"{place}: no tables yet → revision {head()}\n"
    assert call("upgrade") == f"{place}: revision {head()} already\n"
    assert call("check", "--no-files") == f"{place}: revision {head()}, as this creamtea requires\n"
    before = revisions()[-2]
    assert call("downgrade", before) == f"{place}: revision {head()} → revision {before}\n"


def test_the_same_as_json(place: str) -> None:
    shown = {"database": place}
    assert json.loads(call("current", "--json")) == shown | {"revision": None, "needed": head()}
    assert json.loads(call("upgrade", "--json")) == shown | {"before": None, "revision": head()}
    usable = shown | {"revision": head(), "usable": True}
    assert json.loads(call("check", "--no-files", "--json")) == usable
    assert json.loads(call("check", "--json")).items() >= (usable | {"files": 0, "faults": []}).items()
    before = revisions()[-2]
    assert json.loads(call("downgrade", "-1", "--json")) == shown | {"before": head(), "revision": before}


def test_another_database_can_be_named(place: str, tmp_path: Path) -> None:
    printed = call("upgrade", "--database", f"sqlite:///{tmp_path}/b.db")
    assert printed == f"SQLite file {tmp_path}/b.db: no tables yet → revision {head()}\n"
    assert not (tmp_path / "a.db").exists()


def test_check_says_what_to_do(place: str, tmp_path: Path) -> None:
    (tmp_path / "a.db").touch()
    with pytest.raises(InputError, match=r"is empty; run: creamtea db upgrade$"):
        call("check")
    call("upgrade", "0001")
    with pytest.raises(InputError, match=r"has schema revision 0001, .*; run: creamtea db upgrade"):
        call("check")
    (tmp_path / "a.db").unlink()
    call("upgrade")
    with open_database(f"sqlite:///{tmp_path}/a.db").transaction() as session:
        session.execute(text("UPDATE alembic_version SET version_num = 'next'"))
    with pytest.raises(InputError, match="which is newer than this creamtea"):
        call("check")


@pytest.mark.parametrize("index", [False, True], ids=["page", "index"])
def test_check_finds_a_damaged_sqlite_file(place: str, tmp_path: Path, index: bool) -> None:
    call("upgrade")
    file = tmp_path / "a.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("INSERT INTO study VALUES (1, 'a', 'b', '{}', 'failed', 0, 'c', '2026', NULL)")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        named = "ix_study_name" if index else "metric"
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [named]).fetchone()
    content = bytearray(file.read_bytes())
    content[page * size - 2 if index else (page - 1) * size] ^= 1  # the indexed name; the kind of page
    file.write_bytes(content)
    with pytest.raises(InputError, match=rf"^{re.escape(place)} is damaged \(.+\); restore it from a backup"):
        call("check", "--no-files")


def test_a_file_that_is_not_there_is_not_made(place: str, tmp_path: Path) -> None:
    named = ("--database", f"sqlite:///{tmp_path}/mistyped.db")
    assert "mistyped.db: not there" in call("current", *named)
    assert json.loads(call("current", *named, "--json"))["revision"] is None
    for arguments in (["check"], ["downgrade", "base"]):
        with pytest.raises(InputError, match=r"mistyped\.db does not exist"):
            call(*arguments, *named)
    assert list(tmp_path.iterdir()) == []


def test_the_advice_is_on_the_database_that_was_named(place: str, tmp_path: Path) -> None:
    named = ("--database", f"sqlite:///{tmp_path}/b.db")
    call("upgrade", "0001", *named)
    with pytest.raises(InputError, match=rf"run: creamtea db upgrade {' '.join(named)}$"):
        call("check", *named)


@pytest.mark.parametrize("command", ["upgrade", "downgrade", "current", "check"])
def test_help_shows_an_example(command: str) -> None:
    assert f"creamtea db {command}" in call(command, "--help").replace("\n", " ")
