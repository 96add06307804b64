"""`creamtea db`: shows and migrates the schema of the database."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from shlex import quote
from typing import Annotated, Any

import typer

from creamtea.cli.printing import say
from creamtea.cli.upkeep import in_units
from creamtea.cli.workplace import AsJson, artefact_store
from creamtea.settings import Settings
from creamtea.store import schema
from creamtea.store.database import open_database
from creamtea.store.engines import describe, missing_file, parse_url
from creamtea.wording import counted

REPORT_SECONDS = 10.0  # between two lines that say how much has been read
MAX_SHOWN = 20  # files that are not as they were stored

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


@commands.command(epilog="Examples: `creamtea db check` · `creamtea db check --no-files`")
def check(
    database: Url = None,
    files: Annotated[
        bool, typer.Option("--files/--no-files", help="Read every file of the artefact store as well.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Check that the database can be used as it is, and that the artefact store holds what was stored.

    Every file that the database refers to is read and compared with its SHA-256. With --database no file is
    read: the artefact store belongs to CREAMTEA_DATABASE_URL. Exit code 2: the database cannot be used; 1: a
    file is damaged or missing. What to do is said.
    """
    url, place = _address(database)
    revision = schema.current(url)
    parsed = parse_url(url)
    option = "" if database is None else f" --database {quote(parsed.render_as_string())}"  # without password
    schema.check_revision(parsed, revision, f"creamtea db upgrade{option}")
    facts: dict[str, Any] = {"database": place, "revision": revision, "usable": True}
    if not as_json:
        say(f"{place}: {_word(revision)}, as this creamtea needs it")
    found = _check_files(url, facts) if files and database is None else ""
    if as_json:
        say(json.dumps(facts))
    elif found:
        say(found)
    if facts.get("faults"):
        raise typer.Exit(1)


def _check_files(url: str, facts: dict[str, Any]) -> str:
    """Read the store's files, add what was found to the facts, and return it for people."""
    from creamtea.upkeep.storage import check_store, remedies

    store = artefact_store(writable=False)
    shown = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal shown
        if time.monotonic() > shown + REPORT_SECONDS:
            shown = time.monotonic()
            say(f"read {in_units(done)} of {in_units(total)}", err=True)

    opened = open_database(url)
    try:
        checked = check_store(opened, store, report)
    finally:
        opened.close()
    facts |= {"artefacts": store.root, "files": checked.files, "bytes": checked.size}
    facts["faults"] = [asdict(fault) for fault in checked.faults]
    amount = f"{counted(checked.files, 'file')} ({in_units(checked.size)}) in {store.root}"
    if not checked.faults:
        return f"{amount}: as they were stored"
    lines = [
        f"  {fault.what}: {fault.path} ({'; '.join(fault.places)})" for fault in checked.faults[:MAX_SHOWN]
    ]
    if len(checked.faults) > MAX_SHOWN:
        lines.append(f"  and {len(checked.faults) - MAX_SHOWN} more: --json lists all")
    first = f"{len(checked.faults)} of {amount} are not what was stored:"
    return "\n".join([first, *lines, " ".join(remedies(checked.faults))])


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
