"""`creamtea gc`, `creamtea du` and `creamtea study rm`: what takes space, and removing it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from creamtea.cli import workplace
from creamtea.cli.printing import say
from creamtea.report.terminal import make_console
from creamtea.store.inventory import AREAS, Entry
from creamtea.upkeep.storage import Use, usage

GC_EXAMPLES = "Examples: `creamtea gc` · `creamtea gc --delete` · `creamtea gc --older-than 72`"
DU_EXAMPLES = "Examples: `creamtea du` · `creamtea du demo --json`"

study_commands = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


def gc(
    delete: Annotated[bool, typer.Option("--delete", help="Delete it.")] = False,
    older_than: Annotated[
        float,
        typer.Option(min=1, max=1_000_000, metavar="HOURS", help="Keep what was written in the last HOURS."),
    ] = 24.0,
    as_json: workplace.AsJson = False,
) -> None:
    """Show the files that no study needs; with --delete, delete them.

    Studies may run meanwhile. Keep HOURS longer than any database outage: a new file counts as needed
    only once the database has it.
    """
    from creamtea.scratch import clear_abandoned
    from creamtea.upkeep.storage import collect, unneeded

    age = timedelta(hours=older_than)
    with workplace.existing_database() as database:
        store = workplace.artefact_store()
        garbage = unneeded(database, store, age)
    if delete:
        garbage = collect(store, garbage, age)
        clear_abandoned()
    areas = _sums(garbage)
    if as_json:
        say(json.dumps({"deleted": delete, "areas": areas}))
        return
    if not garbage:
        say(f"nothing to delete in {store.root}")
        return
    table = Table("unneeded", Column("files", justify="right"), Column("size", justify="right"))
    for area, sums in areas.items():
        table.add_row(AREAS[area].files, str(sums["files"]), in_units(sums["bytes"]))
    make_console().print(table)
    total = in_units(sum(entry.size for entry in garbage))
    say(
        f"deleted {total} from {store.root}"
        if delete
        else f"`creamtea gc --delete` frees {total} in {store.root}"
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
    as_json: workplace.AsJson = False,
) -> None:
    """Show how many bytes each study takes in the artefact store, by kind of step.

    What several studies share is listed apart: removing one of them does not free it.
    """
    from creamtea.store.queries import find_study

    with workplace.existing_database() as database:
        if name is not None:
            with database.session() as session:
                find_study(session, name)
        store = workplace.artefact_store()
        uses = [use for use in usage(database, store) if name is None or name in use.studies]
    if as_json:
        say(json.dumps([asdict(use) for use in uses]))
        return
    make_console().print(_usage_table(uses))


def _usage_table(uses: Sequence[Use]) -> Table:
    right: dict[str, Any] = {"justify": "right"}
    table = Table("study", "kind", "files of", Column("files", **right), Column("size", **right))
    owners = sorted(
        {use.studies for use in uses}, key=lambda studies: (len(studies) != 1, not studies, studies)
    )
    for studies in owners:
        for use in (use for use in uses if use.studies == studies):
            table.add_row(escape(_whose(studies)), use.kind, use.part, str(use.files), in_units(use.size))
        table.add_section()
    table.add_row("all", "", "", str(sum(use.files for use in uses)), in_units(sum(use.size for use in uses)))
    return table


def _whose(studies: Sequence[str]) -> str:
    if not studies:
        return "no study (see `creamtea gc`)"
    return studies[0] if len(studies) == 1 else f"shared: {', '.join(studies)}"


@study_commands.command("rm", epilog="Examples: `creamtea study rm demo --older` · `creamtea study rm demo`")
def remove(
    name: workplace.StudyName,
    older: Annotated[
        bool,
        typer.Option("--older", help="Only the submissions before the newest; those with a campaign stay."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: workplace.AsJson = False,
) -> None:
    """Remove a study with its results for good. What other studies share stays.

    A study that is running or that a campaign needs is not removed. `creamtea gc` frees the space.
    """
    from creamtea.store.queries import find_study
    from creamtea.upkeep.removal import remove_study
    from creamtea.upkeep.storage import needs_no_files

    with workplace.existing_database() as database:
        with database.session() as session:
            find_study(session, name)
        if not yes:
            what = "the earlier submissions" if older else "all submissions"
            typer.confirm(f"remove {what} of study {name} with their results for good?", abort=True)
        removed = remove_study(database, name, older)
        emptied = needs_no_files(database)
    if as_json:
        say(json.dumps({"study": name, **asdict(removed)}))
        return
    frees = "`creamtea gc` shows the files that this frees"
    if emptied:
        frees = f"nothing else is stored: delete {workplace.artefact_store().root} to free its space"
    say(f"removed {name}: {removed.submissions} submissions, {removed.steps} steps; {frees}")


def in_units(size: int) -> str:
    """Bytes for people: 1.5 GB (powers of 1,000)."""
    value, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if value < 999.95:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
