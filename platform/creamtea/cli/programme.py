"""`creamtea programme`: a human evaluation of many translation directions, from one file to one table.

A direction is a campaign: for all that is missing here, use `creamtea campaign` on each direction.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from creamtea.cli.campaign.campaigns import PROGRESS, Overrides
from creamtea.cli.campaign.exchange import ExportFormat, NewFolder, export_lines
from creamtea.cli.printing import say, show
from creamtea.cli.report import ExportFolder, Formats, HtmlFile, Markdown, Printing
from creamtea.cli.serve import PORT, Address
from creamtea.cli.workplace import (
    ACTOR,
    AsJson,
    Force,
    Reason,
    Surplus,
    Yes,
    artefact_store,
    existing_database,
    listed_raters,
    mistakes_as_json,
    opened_database,
    write_new,
)
from creamtea.document.mistakes import StudyErrors, one_of, shown
from creamtea.errors import InputError
from creamtea.files import new_folder
from creamtea.human.formats import exchange
from creamtea.human.formats.base import NothingToExport
from creamtea.human.making import launching
from creamtea.human.making.campaign_file import create_campaigns
from creamtea.human.making.programme import (
    DIRECTION,
    DIRECTIONS,
    campaign_name,
    campaigns_of,
    directions_in,
    load_programme,
    naming,
    new_programme,
    progress_of,
)
from creamtea.human.making.settings import CampaignDocument
from creamtea.human.rating.raters import invite
from creamtea.printable import csv_of, text_to_cell
from creamtea.settings import LOOPBACK, site_address
from creamtea.study.spec import schema_of
from creamtea.wording import counted

File = Annotated[Path, typer.Argument(metavar="FILE", help="The programme file (.yaml).")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The programme.")]

commands = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@commands.command(epilog="Example: `creamtea programme init wmt -o programme.yaml`")
def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder with system-outputs/PAIR/SYSTEM.txt.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The programme file to write.")
    ] = Path("programme.yaml"),
    force: Force = False,
) -> None:
    """Write a programme of all directions in a folder of mt-metrics-eval, with a comment at every key."""
    write_new(output, new_programme(folder, output), force)
    directions = ", ".join(directions_in(folder))
    say(f"{output} is written: {directions}. Next: creamtea programme create {quote(str(output))}")


@commands.command(epilog="Example: `creamtea programme validate programme.yaml`")
def validate(file: File, override: Overrides = None, as_json: AsJson = False) -> None:
    """Check a programme and the files of all its directions, and list the mistakes.

    Exit code 2: there are mistakes.
    """
    systems: dict[str, list[str]] = {}
    mistakes: dict[str, list[str]] = {}  # with the directions that have them
    with mistakes_as_json(as_json):
        programme = load_programme(file, override or [])
        for direction, loaded in programme.directions.items():
            try:
                systems[direction] = loaded.check()
            except InputError as error:
                message = str(error).removeprefix(f"direction {direction}: ")
                mistakes.setdefault(message, []).append(direction)
        if mistakes:
            lines = [
                f"direction{'s' * (len(where) > 1)} {', '.join(where)}: {message}"
                for message, where in mistakes.items()
            ]
            raise StudyErrors(lines, str(file))
    lines = [f"{file} is valid: {counted(len(systems), 'direction')}"]
    lines += [f"  {direction}: {counted(len(found), 'system')}" for direction, found in systems.items()]
    lines += _note_on_systems(systems)
    show(as_json, {"valid": True, "name": programme.name, "directions": systems}, lines)


def _note_on_systems(systems: Mapping[str, Sequence[str]]) -> list[str]:
    """Name the systems that some directions lack: the name of a file may be misspelt."""
    counts = Counter(chain.from_iterable(systems.values()))
    some = [f"{name} ({count} of {len(systems)})" for name, count in counts.items() if count < len(systems)]
    return [f"note: not in all directions: {', '.join(some)}"] if some else []


@commands.command(epilog="Example: `creamtea programme schema > programme.schema.json`")
def schema() -> None:
    """Print the JSON Schema of a programme, with which an editor completes keys and marks mistakes."""

    # a campaign file's schema with directions, which may have every key of it but the name
    whole = schema_of(CampaignDocument, "creamtea programme")
    direction_keys = {key: value for key, value in whole["properties"].items() if key != "name"}
    whole["$defs"]["Direction"] = {
        "type": "object",
        "properties": direction_keys,
        "additionalProperties": False,
    }
    whole["properties"][DIRECTIONS] = {
        "type": "object",
        "description": "each direction's own keys, which override the keys above",
        "minProperties": 1,
        "propertyNames": {"pattern": f"^{DIRECTION.pattern}$"},
        "additionalProperties": {"anyOf": [{"$ref": "#/$defs/Direction"}, {"type": "null"}]},
    }
    whole["description"] = "A human evaluation of many translation directions (programme.yaml)."
    whole["required"] = ["name", DIRECTIONS]
    say(json.dumps(whole, ensure_ascii=False, indent=1))


@commands.command(epilog="Example: `creamtea programme create programme.yaml --set sample.items=50`")
def create(
    file: File,
    override: Overrides = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the drafts of this programme.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create the campaigns of all directions as drafts: all of them, or none if one cannot be.

    The campaign of direction en-de is called NAME-en-de.
    """
    programme = load_programme(file, override or [])
    with opened_database() as database:
        requests = create_campaigns(
            *(database, list(programme.directions.values()), artefact_store()),
            replace=replace,
            programme=programme.name,
        )
        made = progress_of(database, programme.name)
    lines = [f"programme {programme.name}: {counted(len(requests), 'new draft')}"]
    for each in made:
        campaign = each.campaign
        state = f", {campaign.state}" if campaign.state != "draft" else ""
        lines.append(
            f"  {each.direction}: {counted(campaign.items, 'item')} on {counted(campaign.pages, 'page')}, "
            f"{counted(len(campaign.systems), 'system')}{state}"
        )
        if campaign.name not in requests:  # made by an earlier file
            remove = f"; `creamtea campaign rm {quote(campaign.name)}` removes it"
            stays = f"this direction is not in {file}; its campaign stays"
            lines.append(f"    note: {stays}{remove * (campaign.state == 'draft')}")
        elif (texts := requests[campaign.name].texts) is not None:
            lines += [f"    note: {notice}" for notice in texts.notices]
    lines += _note_on_systems({each.direction: each.campaign.systems for each in made})
    first = quote(next(iter(requests)))
    lines.append(
        f"next: creamtea campaign preview {first}, then creamtea programme launch {quote(programme.name)}"
    )
    show(as_json, [each.campaign for each in made], lines)


@commands.command(epilog="Example: `creamtea programme launch programme`")
def launch(name: Name, as_json: AsJson = False) -> None:
    """Open all drafts of a programme to their raters. Campaigns launched before stay as they are."""
    digests, before = {}, []
    with existing_database() as database:
        with database.session() as session:
            states = {direction: row.state for direction, row in campaigns_of(session, name).items()}
        for direction, state in states.items():
            if state != "draft":
                before.append(f"{direction} was {state} before")
                continue
            with naming(direction):
                registered = launching.launch(database, campaign_name(name, direction), ACTOR)
            digests[direction] = registered["digest"]
    lines = [f"{direction} is launched; registered as {digest[:16]}" for direction, digest in digests.items()]
    lines += [*before, f"next: creamtea programme links {quote(name)} --count N -o links.csv"]
    show(as_json, digests, lines)


@commands.command(epilog="Example: `creamtea programme close programme --reason 'enough items'`")
def close(name: Name, reason: Reason = "") -> None:
    """End the rating of all directions that are launched. What raters saved stays."""
    with existing_database() as database:
        with database.session() as session:
            states = {direction: row.state for direction, row in campaigns_of(session, name).items()}
        if "launched" not in states.values():
            raise InputError(f"programme {name!r}: no direction is launched, so none can be closed")
        for direction, state in states.items():
            if state == "launched":
                with naming(direction):
                    launching.close(database, campaign_name(name, direction), ACTOR, reason)
            stays = "is still a draft" if state == "draft" else "was closed before"
            say(f"{direction} {'is closed' if state == 'launched' else stays}")


@commands.command("rm", epilog="Example: `creamtea programme rm programme`")
def remove(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Remove the campaigns of all directions for good, with ratings, raters and logs.

    All of them are removed, or none if one is launched. To keep the ratings, run `creamtea programme export`
    first.
    """
    from creamtea.upkeep import remove_campaigns, what_it_holds

    with existing_database() as database:
        with database.session() as session:
            campaigns = campaigns_of(session, name)
            answers = sum(what_it_holds(session, row).answers for row in campaigns.values())
        holds = f"{counted(len(campaigns), 'direction')} and {counted(answers, 'item rating')}"
        if not yes:
            typer.confirm(f"remove programme {name} with {holds} for good?", abort=True, err=True)
        removed = remove_campaigns(database, [row.name for row in campaigns.values()])
    values = {direction: dataclasses.asdict(gone) for direction, gone in zip(campaigns, removed, strict=True)}
    show(as_json, values, [f"removed programme {name}: {holds}"])


@commands.command(epilog="Example: `creamtea programme status programme --raters`")
def status(
    name: Name,
    raters: Annotated[bool, typer.Option("--raters", help="List every rater, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the progress of a programme by direction, and with --raters by rater."""
    with existing_database() as database:
        directions = progress_of(database, name)
    done = sum(each.campaign.ratings for each in directions)
    wanted = sum(each.campaign.wanted for each in directions)
    amount = f"{done:,} of {counted(wanted, 'item rating')}"
    lines = [f"programme {name}: {amount} in {counted(len(directions), 'direction')}"]
    width = max(len(each.direction) for each in directions)
    for each in directions:
        campaign = each.campaign
        lines.append(
            f"  {each.direction:<{width}}  {each.share:>4.0%}  {campaign.ratings:,} of {campaign.wanted:,}, "
            f"{campaign.state}; {each.standings or 'no raters'}"
        )
        if raters:
            lines += [
                f"    {rater.pseudonym}: {rater.submitted} rated, {rater.skipped} skipped, {rater.standing}"
                for rater in each.raters
            ]
    values = [
        {
            "direction": each.direction,
            "campaign": dataclasses.asdict(each.campaign),
            "raters": [{field: getattr(person, field) for field in PROGRESS} for person in each.raters],
        }
        for each in directions
    ]
    show(as_json, values, lines)


@commands.command(
    epilog="Examples: `creamtea programme links programme --count 5 -o links.csv` · "
    "`creamtea programme links programme --count en-de=8 --count en-nl=4 -o more-links.csv` · "
    "`creamtea programme links programme --raters directions.txt -o named-links.csv --url "
    "https://rate.example.org`"
)
def links(
    name: Name,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="A new file, which only you can read.")
    ],
    count: Annotated[
        list[str] | None,
        typer.Option(metavar="[DIRECTION=]N", help="Links for N new raters of every direction, or of one."),
    ] = None,
    many: Annotated[
        Path | None,
        typer.Option("--raters", metavar="FILE", help="Named raters: DIRECTION TAB PSEUDONYM, one per line."),
    ] = None,
    surplus: Surplus = False,
    url: Address = f"http://{LOOPBACK[0]}:{PORT}",
) -> None:
    """Write links for raters of all directions into one file (CSV: direction, rater, link), all or none.

    A link works once, within 14 days. The file has mode 0600: whoever has a link can rate as its rater.
    """
    url = site_address(url)
    with existing_database() as database:
        with database.session() as session:
            states = {direction: row.state for direction, row in campaigns_of(session, name).items()}
        wanted = _wanted(states, count or [], many)
        try:
            file = os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", newline="")
        except OSError as error:
            raise InputError(f"--output {output}: {error.strerror}: give a new file") from None
        try:
            with file, database.transaction() as session:
                rows = [["direction", "rater", "link"]]
                for direction, people in wanted.items():
                    campaign = campaign_name(name, direction)
                    with naming(direction):
                        made = invite(session, campaign, ACTOR, people, surplus=surplus)
                    for each in made:
                        rows.append([direction, text_to_cell(each.rater), f"{url}/enter#{each.secret}"])
                file.write(csv_of(rows, "\n"))
                file.flush()  # before the links are valid
        except BaseException:
            output.unlink()
            raise
    say(f"{counted(len(rows) - 1, 'link')} in {output}: send each to its rater only")
    for_all = any("=" not in text for text in count or [])
    if for_all and (closed := [direction for direction in states if direction not in wanted]):
        say(f"no links for {', '.join(closed)}: closed", err=True)
    drafts = [direction for direction in wanted if states[direction] == "draft"]
    if drafts:
        launch_it = f"raters see nothing until `creamtea programme launch {quote(name)}`"
        say(f"{', '.join(drafts)}: {launch_it}", err=True)


def _wanted(states: Mapping[str, str], count: list[str], many: Path | None) -> dict[str, list[str] | int]:
    """Return the raters of each direction: their names, or how many.

    A number for all directions omits closed ones, unless all are closed.
    """
    directions = list(states)
    not_closed = [direction for direction, state in states.items() if state != "closed"] or directions
    wanted: dict[str, list[str] | int] = {}
    if bool(count) == (many is not None):
        raise InputError("say whom the links are for: give --count N or --raters FILE")
    for text in sorted(count, key=lambda text: "=" in text):  # a direction's own number overrides the common
        direction, equals, number = text.rpartition("=")
        if not number.isdecimal() or (equals and direction not in directions):
            raise InputError(f"--count {text}: give N, or DIRECTION=N with {one_of(directions, direction)}")
        wanted |= dict.fromkeys([direction] if equals else not_closed, int(number))
    for place, line in enumerate(listed_raters(many), start=1):
        direction, _, pseudonym = (word.strip() for word in line.partition("\t"))
        if line.strip() and (direction not in directions or not pseudonym):
            raise InputError(
                f"--raters {many}, line {place}: found {shown(line)}, allowed DIRECTION TAB PSEUDONYM with "
                f"{one_of(directions, direction)}"
            )
        if line.strip():
            listed = wanted.setdefault(direction, [])
            assert isinstance(listed, list)
            listed.append(pseudonym)
    if not wanted:
        raise InputError(f"--raters {many}: it names nobody: give DIRECTION TAB PSEUDONYM, one per line")
    return wanted


@commands.command(
    epilog="Examples: `creamtea programme report programme` · "
    "`creamtea programme report programme --html programme.html`"
)
def report(
    name: Name,
    markdown: Markdown = False,
    html: HtmlFile = None,
    export: ExportFolder = None,
    formats: Formats = None,
    as_json: AsJson = False,
) -> None:
    """Show one table over all directions: means of systems with intervals, and their mean over directions.

    The table also says in how many directions a system is in the first cluster.
    """
    from creamtea.report.human.build import build_programme  # its statistics take a second to import

    printing = Printing(markdown, as_json, html, export, formats)
    with existing_database() as database:
        printing.show(build_programme(database, name))


@commands.command(epilog="Example: `creamtea programme export programme --format csv -o ratings`")
def export(
    name: Name,
    output: NewFolder,
    kind: ExportFormat = "csv",
    as_json: AsJson = False,
) -> None:
    """Write the ratings of every direction into a folder of its own, as `creamtea campaign export` does.

    Directions without anything to export are left out. If no direction has anything, that is an error.
    """
    done: dict[str, exchange.Exported] = {}
    lines, empty = [], None
    with existing_database() as database, new_folder(output, "--output"):
        with database.session() as session:
            directions = list(campaigns_of(session, name))
        for direction in directions:
            campaign, folder = campaign_name(name, direction), output / direction
            with naming(direction):
                try:
                    exported = exchange.export_campaign(
                        database, campaign, kind, folder, ACTOR, artefact_store()
                    )
                except NothingToExport as error:
                    empty = error
                    lines.append(f"{direction}: left out, as {error}")
                    continue
            done[direction] = exported
            lines += export_lines(direction, kind, folder, exported)
        if empty is not None and not done:
            raise empty
    show(as_json, done, lines)
