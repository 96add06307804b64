"""`creamtea db`: shows and migrates the schema of the database."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from creamtea.cli.workplace import AsJson
from creamtea.settings import Settings
from creamtea.store import schema
from creamtea.store.engines import describe, parse_url

Url = Annotated[
    str | None,
    typer.Option("--database", metavar="URL", help="A database other than CREAMTEA_DATABASE_URL's."),
]

commands = typer.Typer(help="The schema of the database.", no_args_is_help=True, rich_markup_mode="markdown")


def register(app: typer.Typer) -> None:
    app.add_typer(commands, name="db")


@commands.command(epilog="Example: `creamtea db upgrade`")
def upgrade(
    revision: Annotated[str, typer.Argument(help="Revision to reach.")] = "head",
    database: Url = None,
    as_json: AsJson = False,
) -> None:
    """Bring the database to the newest schema, or up to REVISION. Rows are kept.

    Creates the tables of a fresh database.
    """
    url = _address(database)
    before = schema.current(url)
    schema.upgrade(url, revision)
    _show_move(url, before, as_json)


@commands.command(
    epilog="Examples: `creamtea db downgrade -1` · `creamtea db downgrade 0001`",
    context_settings={"ignore_unknown_options": True},  # otherwise -1 would be taken for an option
)
def downgrade(
    revision: Annotated[
        str, typer.Argument(help="Revision to go back to: its name, -1 for one back, base for none.")
    ],
    database: Url = None,
    as_json: AsJson = False,
) -> None:
    """Undo the migrations after REVISION; the tables and columns that they added are dropped."""
    url = _address(database)
    before = schema.current(url)
    schema.downgrade(url, revision)
    _show_move(url, before, as_json)


@commands.command(epilog="Example: `creamtea db current --json`")
def current(database: Url = None, as_json: AsJson = False) -> None:
    """Show which schema revision the database has, and which one this creamtea needs."""
    url = _address(database)
    revision, needed = schema.current(url), schema.head()
    if as_json:
        typer.echo(json.dumps({"database": _place(url), "revision": revision, "needed": needed}))
        return
    typer.echo(f"{_place(url)}: {_word(revision)}; this creamtea needs revision {needed}")


@commands.command(epilog="Example: `creamtea db check && creamtea run studies/demo.yaml`")
def check(database: Url = None, as_json: AsJson = False) -> None:
    """Succeed if the database can be used as it is; otherwise say what to do, with exit code 2."""
    url = _address(database)
    revision = schema.current(url)
    schema.check_revision(parse_url(url), revision)
    if as_json:
        typer.echo(json.dumps({"database": _place(url), "revision": revision, "usable": True}))
        return
    typer.echo(f"{_place(url)}: {_word(revision)}, as this creamtea needs it")


def _address(database: str | None) -> str:
    return database or Settings.load().database_url


def _place(url: str) -> str:
    return describe(parse_url(url))


def _word(revision: str | None) -> str:
    return "no tables yet" if revision is None else f"revision {revision}"


def _show_move(url: str, before: str | None, as_json: bool) -> None:
    after = schema.current(url)
    if as_json:
        typer.echo(json.dumps({"database": _place(url), "before": before, "revision": after}))
    elif before == after:
        typer.echo(f"{_place(url)}: {_word(after)} already")
    else:
        typer.echo(f"{_place(url)}: {_word(before)} → {_word(after)}")
