"""`creamtea db`: shows and migrates the schema of the database."""

from __future__ import annotations

import json
from collections.abc import Callable
from shlex import quote
from typing import Annotated

import typer

from creamtea.cli.printing import say
from creamtea.cli.workplace import AsJson
from creamtea.settings import Settings
from creamtea.store import schema
from creamtea.store.engines import describe, missing_file, parse_url

Url = Annotated[
    str | None,
    typer.Option("--database", metavar="URL", help="A database other than CREAMTEA_DATABASE_URL's."),
]

commands = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@commands.command(epilog="Example: `creamtea db upgrade`")
def upgrade(
    revision: Annotated[str, typer.Argument(help="Revision to reach.")] = "head",
    database: Url = None,
    as_json: AsJson = False,
) -> None:
    """Bring the database to the newest schema, or up to REVISION. Rows are kept.

    Creates the tables of a fresh database.
    """
    _move(schema.upgrade, revision, database, as_json)


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
    _move(schema.downgrade, revision, database, as_json)


@commands.command(epilog="Example: `creamtea db current --json`")
def current(database: Url = None, as_json: AsJson = False) -> None:
    """Show which schema revision the database has, and which one this creamtea needs."""
    url, place = _address(database)
    revision, needed = schema.current(url), schema.head()
    there = missing_file(parse_url(url)) is None
    if as_json:
        say(json.dumps({"database": place, "revision": revision, "needed": needed}))
        return
    state = _word(revision) if there else "not there"
    say(f"{place}: {state}; this creamtea needs revision {needed}")


@commands.command(epilog="Example: `creamtea db check && creamtea run studies/demo.yaml`")
def check(database: Url = None, as_json: AsJson = False) -> None:
    """Succeed if the database can be used as it is; otherwise say what to do, with exit code 2."""
    url, place = _address(database)
    revision = schema.current(url)
    parsed = parse_url(url)
    option = "" if database is None else f" --database {quote(parsed.render_as_string())}"  # without password
    schema.check_revision(parsed, revision, f"creamtea db upgrade{option}")
    if as_json:
        say(json.dumps({"database": place, "revision": revision, "usable": True}))
        return
    say(f"{place}: {_word(revision)}, as this creamtea needs it")


def _address(database: str | None) -> tuple[str, str]:
    """The address, and how it is shown."""
    url = database or Settings.load().database_url
    return url, describe(parse_url(url))


def _word(revision: str | None) -> str:
    return "no tables yet" if revision is None else f"revision {revision}"


def _move(move: Callable[[str, str], None], revision: str, database: str | None, as_json: bool) -> None:
    url, place = _address(database)
    before = schema.current(url)
    move(url, revision)
    after = schema.current(url)
    if as_json:
        say(json.dumps({"database": place, "before": before, "revision": after}))
    elif before == after:
        say(f"{place}: {_word(after)} already")
    else:
        say(f"{place}: {_word(before)} → {_word(after)}")
