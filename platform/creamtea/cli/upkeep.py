"""Commands for disk space (`gc`, `du`, `study rm`) and for the database (`db`)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import timedelta
from shlex import quote
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from creamtea.cli import workplace
from creamtea.cli.printing import say, show
from creamtea.cli.workplace import AsJson, artefact_store
from creamtea.files import clear_abandoned
from creamtea.report.terminal import make_console
from creamtea.settings import Settings
from creamtea.store import schema
from creamtea.store.areas import AREAS, Entry
from creamtea.store.database import open_database
from creamtea.store.engines import describe, missing_file, parse_url
from creamtea.store.queries import find_study
from creamtea.upkeep import (
    AGE,
    StoreCheck,
    Use,
    check_store,
    collect,
    needs_no_files,
    remedies,
    remove_study,
    unneeded,
    usage,
)
from creamtea.wording import counted

GC_EXAMPLES = "Examples: `creamtea gc` · `creamtea gc --delete` · `creamtea gc --older-than 72`"
DU_EXAMPLES = "Examples: `creamtea du` · `creamtea du demo --json`"

study_commands = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


def gc(
    delete: Annotated[bool, typer.Option("--delete", help="Delete these files.")] = False,
    older_than: Annotated[
        float,
        typer.Option(min=1, max=1_000_000, metavar="HOURS", help="Keep what was written in the last HOURS."),
    ] = 24.0,
    as_json: AsJson = False,
) -> None:
    """Show the files that no study needs; with --delete, delete them.

    Studies may run meanwhile. Keep HOURS longer than any database outage: a new file counts as needed
    only once the database has it.
    """
    age = timedelta(hours=older_than)
    with workplace.existing_database() as database:
        store = artefact_store(writable=delete)
        garbage = unneeded(database, store, age)
        of_any_age = unneeded(database, store, timedelta(0)) if as_json or not garbage else []
        too_new = [entry for entry in of_any_age if entry not in garbage]
    if delete:
        garbage = collect(store, garbage, age)
        clear_abandoned()
    areas = _sums(garbage)
    if as_json:
        say(json.dumps({"deleted": delete, "areas": areas, "too_new": _sums(too_new)}))
        return
    if not garbage:
        say(f"nothing to delete in {store.root}{_about_new(too_new, older_than)}")
        return
    table = Table("unneeded", Column("files", justify="right"), Column("size", justify="right"))
    for area, sums in areas.items():
        table.add_row(AREAS[area].files, str(sums["files"]), in_units(sums["bytes"]))
    make_console().print(table)
    total = in_units(sum(entry.size for entry in garbage))
    again = "" if age == AGE else f" --older-than {older_than:g}"
    say(
        f"deleted {total} from {store.root}"
        if delete
        else f"`creamtea gc --delete{again}` frees {total} in {store.root}"
    )


def _about_new(too_new: Sequence[Entry], hours: float) -> str:
    """Say how many unneeded files stay because they are new."""
    if not too_new:
        return ""
    size = in_units(sum(entry.size for entry in too_new))
    return (
        f" yet: {counted(len(too_new), 'unneeded file')} ({size}) changed in the last {hours:g} h, and a "
        "running step may need them (--older-than HOURS)"
    )


def _sums(garbage: Iterable[Entry]) -> dict[str, dict[str, int]]:
    sums: dict[str, dict[str, int]] = {}
    for entry in garbage:
        area = sums.setdefault(entry.area, {"files": 0, "bytes": 0})
        area["files"] += 1
        area["bytes"] += entry.size
    return sums


def du(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A study; without it, all.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show how many bytes each study takes in the artefact store, by kind of step.

    Files that several studies share are listed apart: removing one study does not free them.
    """

    with workplace.existing_database() as database:
        if name is not None:
            with database.session() as session:
                find_study(session, name)
        store = artefact_store(writable=False)
        uses = [use for use in usage(database, store) if name is None or name in use.studies]
        emptied = needs_no_files(database)
    if as_json:
        say(json.dumps([asdict(use) for use in uses]))
        return
    make_console().print(_usage_table(uses, emptied))
    if emptied and uses:
        say(f"this database needs none of them; if no other does, delete {store.root} to free their space")


def _usage_table(uses: Sequence[Use], emptied: bool) -> Table:
    right: dict[str, Any] = {"justify": "right"}
    table = Table("study", "kind", "files of", Column("files", **right), Column("size", **right))
    owners = sorted(
        {use.studies for use in uses}, key=lambda studies: (len(studies) != 1, not studies, studies)
    )
    for studies in owners:
        owner = studies[0] if len(studies) == 1 else f"shared: {', '.join(studies)}"
        if not studies:
            owner = "no study" if emptied else "no study (see `creamtea gc`)"
        for use in (use for use in uses if use.studies == studies):
            table.add_row(escape(owner), use.kind, use.part, str(use.files), in_units(use.size))
        table.add_section()
    table.add_row("all", "", "", str(sum(use.files for use in uses)), in_units(sum(use.size for use in uses)))
    return table


@study_commands.command("rm", epilog="Examples: `creamtea study rm demo --older` · `creamtea study rm demo`")
def remove(
    name: workplace.StudyName,
    older: Annotated[
        bool,
        typer.Option("--older", help="Only the submissions before the newest; those with a campaign stay."),
    ] = False,
    yes: workplace.Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove a study for good, with the results that no other study shares.

    A study that is running or that a campaign needs is not removed. `creamtea gc` frees the space.
    """

    with workplace.existing_database() as database:
        with database.session() as session:
            find_study(session, name)
        if not yes:
            submissions = "the earlier submissions" if older else "all submissions"
            typer.confirm(
                f"remove {submissions} of study {name} with their results for good?", abort=True, err=True
            )
        removed = remove_study(database, name, older)
        emptied = needs_no_files(database)
    frees = "`creamtea gc` shows the files that this frees"
    if emptied:
        frees = f"nothing else is stored: delete {artefact_store(writable=False).root} to free its space"
    amount = f"{counted(removed.submissions, 'submission')}, {counted(removed.steps, 'step')}"
    show(as_json, {"study": name, **asdict(removed)}, [f"removed {name}: {amount}; {frees}"])


def in_units(size: int) -> str:
    """Format bytes for people: 1.5 GB (powers of 1,000)."""
    value, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if value < 999.95:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


REPORT_SECONDS = 10.0  # between two lines of progress
MAX_SHOWN = 20  # damaged or missing files listed

Url = Annotated[
    str | None,
    typer.Option("--database", metavar="URL", help="A database other than CREAMTEA_DATABASE_URL's."),
]

database_commands = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@database_commands.command(epilog="Example: `creamtea db upgrade`")
def upgrade(
    revision: Annotated[str, typer.Argument(help="Revision to reach.")] = "head",
    database: Url = None,
    as_json: AsJson = False,
) -> None:
    """Bring the database to the newest schema, or up to REVISION. Rows are kept.

    Creates the tables of a fresh database.
    """
    _move(schema.upgrade, revision, database, as_json)


@database_commands.command(
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


@database_commands.command(epilog="Example: `creamtea db current --json`")
def current(database: Url = None, as_json: AsJson = False) -> None:
    """Show which schema revision the database has, and which one this creamtea needs."""
    url, place = _address(database)
    revision, needed = schema.current(url), schema.head()
    exists = missing_file(parse_url(url)) is None
    if as_json:
        say(json.dumps({"database": place, "revision": revision, "needed": needed}))
        return
    state = _in_words(revision) if exists else "not there"
    say(f"{place}: {state}; this creamtea needs revision {needed}")


@database_commands.command(epilog="Examples: `creamtea db check` · `creamtea db check --no-files`")
def check(
    database: Url = None,
    files: Annotated[
        bool, typer.Option("--files/--no-files", help="Read every file of the artefact store as well.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Check that the database is usable, and that the files of the artefact store are complete and unchanged.

    Every file that the database refers to is read and compared with its SHA-256. With --database no file is
    read: the artefact store belongs to CREAMTEA_DATABASE_URL. Exit code 2: the database cannot be used; 1: a
    file is damaged or missing. The remedy is printed.
    """
    url, place = _address(database)
    revision = schema.current(url)
    parsed = parse_url(url)
    option = "" if database is None else f" --database {quote(parsed.render_as_string())}"  # without password
    schema.check_revision(parsed, revision, f"creamtea db upgrade{option}")
    schema.check_pages(parsed)
    if not as_json:
        say(f"{place}: {_in_words(revision)}, as this creamtea requires")
    checked = _read_store(url) if files and database is None else None
    if as_json:
        facts: dict[str, Any] = {"database": place, "revision": revision, "usable": True}
        if checked is not None:
            facts |= {"artefacts": checked.root, "files": checked.files, "bytes": checked.size}
            facts["faults"] = [asdict(fault) for fault in checked.faults]
        say(json.dumps(facts))
    elif checked is not None:
        say(_store_in_words(checked))
    if checked is not None and checked.faults:
        raise typer.Exit(1)


def _read_store(url: str) -> StoreCheck:
    """Read all files of the store, and say from time to time how far that is."""
    last_line = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal last_line
        if time.monotonic() > last_line + REPORT_SECONDS:
            last_line = time.monotonic()
            say(f"read {in_units(done)} of {in_units(total)}", err=True)

    opened = open_database(url)
    try:
        return check_store(opened, artefact_store(writable=False), report)
    finally:
        opened.close()


def _store_in_words(checked: StoreCheck) -> str:
    amount = f"{counted(checked.files, 'file')} ({in_units(checked.size)}) in {checked.root}"
    if not checked.faults:
        return f"{amount}: as they were stored"
    lines = [
        f"  {fault.what}: {fault.path} ({'; '.join(fault.places)})" for fault in checked.faults[:MAX_SHOWN]
    ]
    if len(checked.faults) > MAX_SHOWN:
        lines.append(f"  and {len(checked.faults) - MAX_SHOWN} more: --json lists all")
    first = f"{len(checked.faults)} of {amount} are damaged or missing:"
    return "\n".join([first, *lines, " ".join(remedies(checked))])


def _address(database: str | None) -> tuple[str, str]:
    """Return the database's URL, and how messages show it."""
    url = database or Settings.load().database_url
    return url, describe(parse_url(url))


def _in_words(revision: str | None) -> str:
    return "no tables yet" if revision is None else f"revision {revision}"


def _move(move: Callable[[str, str], None], revision: str, database: str | None, as_json: bool) -> None:
    url, place = _address(database)
    before = schema.current(url)
    move(url, revision)
    after = schema.current(url)
    if as_json:
        say(json.dumps({"database": place, "before": before, "revision": after}))
    elif before == after:
        say(f"{place}: {_in_words(after)} already")
    else:
        say(f"{place}: {_in_words(before)} → {_in_words(after)}")
