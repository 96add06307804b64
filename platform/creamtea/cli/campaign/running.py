"""`creamtea campaign preview`, `launch`, `status`, …, `report`, `disputes`: from a draft to results."""

from __future__ import annotations

import dataclasses
from shlex import quote
from typing import Annotated, get_args

import typer

from creamtea.access import audit
from creamtea.cli.campaign.raters import rater_lines, rater_values
from creamtea.cli.campaign.shared import ACTOR, Name, Reason, Why, Yes, show
from creamtea.cli.printing import say
from creamtea.cli.report import ExportFolder, Formats, HtmlFile, Markdown, Printing
from creamtea.cli.workplace import AsJson, existing_database
from creamtea.document.mistakes import one_of
from creamtea.errors import InputError
from creamtea.human.making import campaigns, launching
from creamtea.human.making.settings import WmtRuleName
from creamtea.human.rating import raters
from creamtea.store.queries import find_campaign
from creamtea.store.tables import ItemKind
from creamtea.wording import counted

RULE_NAMES = get_args(WmtRuleName)
# fields of a rater in `status --json`; only `raters list` has identities and answers to questions
PROGRESS = (
    *("id", "pseudonym", "created_at", "consented_at", "excluded_at", "forgotten_at"),
    *("submitted", "skipped", "tutorial", "attention", "last_submit", "finished"),
)


commands = typer.Typer()


@commands.command(epilog="Example: `creamtea campaign preview first`")
def preview(name: Name, json_output: AsJson = False) -> None:
    """Show a campaign's cost and statistical power: items, rater hours, detectable differences."""
    from creamtea.human.making.preview import preview as make_preview  # scipy.stats takes a second

    with existing_database() as database:
        plan = make_preview(database, name)
    lines = [f"campaign {plan.campaign} ({plan.protocol}, {plan.state})", *filter(None, [plan.doubt])]
    show(json_output, plan, [*lines, *(f"{about:<12}{text}" for about, text in plan.facts())])


@commands.command(epilog="Example: `creamtea campaign launch first`")
def launch(name: Name, json_output: AsJson = False) -> None:
    """Open a draft to its raters. Items, settings and the planned analysis are registered and frozen."""
    with existing_database() as database:
        registered = launching.launch(database, name, ACTOR)
    lines = (
        f"campaign {name} is launched; registered as {registered['digest'][:16]}",
        f"next: creamtea campaign link {quote(name)} --rater PSEUDONYM",
    )
    show(json_output, registered, lines)


@commands.command(epilog="Example: `creamtea campaign status first --json`")
def status(name: Name, json_output: AsJson = False) -> None:
    """Show a campaign's progress by item kind and rater, and whether it changed since its registration."""
    with existing_database() as database:
        summary = campaigns.summary(database, name)
        with database.session() as session:
            row = find_campaign(session, name)
            kinds = campaigns.progress_by_kind(session, row)
            changed = launching.changes(session, row)
            registered = row.registered
        people = raters.overview(database, summary.id)
    values = dataclasses.asdict(summary) | {
        "kinds": kinds,
        "raters": [{field: getattr(person, field) for field in PROGRESS} for person in people],
        "registered": registered,
        "changed": changed,
    }
    lines = [f"campaign {name}: {summary.state}, {_origin(summary)}"]
    if summary.pages != summary.items:
        lines.append(f"{counted(summary.items, 'item')} on {counted(summary.pages, 'page')}")
    if registered is not None:
        state = f"CHANGED since: {', '.join(changed)}" if changed else "unchanged since"
        lines.append(f"registered at its launch as {registered['digest'][:16]}, {state}")
    lines += [
        f"  {ItemKind(kind.kind).label:<15} {counted(kind.items, 'item')}, "
        + (
            counted(kind.submitted, "rating")  # every rater answers them: no total is planned
            if ItemKind(kind.kind).is_written
            else f"{kind.submitted:,} of {counted(kind.wanted, 'rating')}, {kind.complete:,} complete"
            + (f", {kind.passed_over:,} passed over" if kind.passed_over else "")
        )
        for kind in kinds
    ]
    lines += [f"  {line}" for line in rater_lines(name, people)]
    show(json_output, values, lines)


def _origin(campaign: campaigns.CampaignSummary) -> str:
    origin = f"study {campaign.study}" if campaign.study else "no study"
    return f"{campaign.protocol}, {origin}, {campaign.test_set}"


@commands.command(epilog="Example: `creamtea campaign close first --reason 'enough items'`")
def close(
    name: Name,
    reason: Why = "",
) -> None:
    """End the rating. What raters saved stays; `creamtea campaign reopen` lets them go on."""
    with existing_database() as database:
        launching.close(database, name, ACTOR, reason)
    say(f"campaign {name} is closed")


@commands.command(epilog="Example: `creamtea campaign reopen first --reason 'a rater came late'`")
def reopen(name: Name, reason: Reason) -> None:
    """Let raters go on in a closed campaign. Its log keeps the reason, and its report says so."""
    with existing_database() as database:
        launching.reopen(database, name, ACTOR, reason)
    say(f"campaign {name} is open again")


@commands.command("list", epilog="Example: `creamtea campaign list`")
def list_campaigns(json_output: AsJson = False) -> None:
    """List the campaigns and their progress."""
    with existing_database() as database:
        listed = campaigns.summaries(database)
    lines = [
        f"{campaign.name}: {campaign.state}, {_origin(campaign)}, "
        f"{counted(len(campaign.systems), 'system')}, {campaign.ratings} of {campaign.wanted} item ratings, "
        f"{counted(campaign.raters, 'rater')}"
        for campaign in listed
    ]
    show(json_output, listed, lines or ["no campaigns yet; see creamtea campaign create --help"])


@commands.command(epilog="Example: `creamtea campaign log first`")
def log(name: Name, json_output: AsJson = False) -> None:
    """Show who decided what in a campaign, when and why."""
    with existing_database() as database:
        entries = audit.read(database, campaigns.summary(database, name).id)
    lines = [
        f"{entry.at:%Y-%m-%d %H:%M:%S} UTC  {entry.actor}  {entry.action}"
        + (f" {whom}" if (whom := entry.rater or entry.detail.get("role")) else "")
        + (f": {entry.reason}" if entry.reason else "")
        for entry in entries
    ]
    show(json_output, entries, lines)


@commands.command("rm", epilog="Example: `creamtea campaign rm first`")
def remove(
    name: Name,
    yes: Yes = False,
    json_output: AsJson = False,
) -> None:
    """Remove a draft or a closed campaign for good, with its ratings, raters and log.

    To keep the ratings, run `creamtea campaign export` first. A launched campaign must be closed first.
    `creamtea gc` frees the space of files beside sources.
    """
    from creamtea.upkeep import remove_campaigns, what_it_holds

    with existing_database() as database:
        if not yes:
            with database.session() as session:
                contents = what_it_holds(session, find_campaign(session, name))
            holds = f"{counted(contents.items, 'item')}, {counted(contents.raters, 'rater')}"
            holds += f" and {counted(contents.answers, 'answer')}"
            typer.confirm(f"remove campaign {name} with {holds} for good?", abort=True, err=True)
        (removed,) = remove_campaigns(database, [name])
    show(
        json_output,
        {"campaign": name, **dataclasses.asdict(removed)},
        [f"removed campaign {name}: {counted(removed.items, 'item')}, {counted(removed.answers, 'answer')}"],
    )


@commands.command(
    epilog="Examples: `creamtea campaign report first` · `creamtea campaign report first --full` · "
    "`creamtea campaign report first --html first.html` · "
    "`creamtea campaign report first --export paper --format latex`"
)
def report(
    name: Name,
    markdown: Markdown = False,
    html: HtmlFile = None,
    export: ExportFolder = None,
    formats: Formats = None,
    wmt: Annotated[
        str | None,
        typer.Option(
            metavar="RULE", help=f"WMT's rules for ranks: {', '.join(RULE_NAMES)}; by default the campaign's."
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Print every table and text, as --markdown and --html always do."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what raters say: means with intervals and verdicts.

    With `--full` also agreement, ranks, metrics against human scores, and outputs that raters disagree on. It
    also works for imported ratings, which have no study. `creamtea report STUDY` shows the same beside the
    study's metrics. `--json` adds the raters' reports (`creamtea campaign raters report`).
    """
    from creamtea.report.human.build import build_human  # its statistics take a second to import

    if wmt is not None and wmt not in RULE_NAMES:
        raise InputError(f"--wmt {wmt}: unknown rules; give {one_of(RULE_NAMES, wmt)}")
    printing = Printing(markdown, as_json, html, export, formats, full)
    with existing_database() as database:
        built = build_human(database, name, wmt)
        printing.show(built, values=lambda: {"raters": rater_values(database, built.number)})


@commands.command(
    epilog="Examples: `creamtea campaign disputes first` · "
    "`creamtea campaign disputes first --apart 2 --ask --reason 'before the paper'`"
)
def disputes(
    name: Name,
    apart: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            min=0,
            help="Ratings of one output at least this far apart; by default the campaign's bound.",
        ),
    ] = None,
    ask: Annotated[bool, typer.Option("--ask", help="Ask for a third rating of each listed output.")] = False,
    reason: Why = "",
    as_json: AsJson = False,
) -> None:
    """List the outputs whose ratings lie far apart, and with --ask give them to one more rater.

    Third ratings are kept apart: reports show them beside the others, and no mean or test includes them.
    The bound is `raters.disputed_from`, or else half of the scale (12.5 points in MQM).
    """
    from creamtea.human.results.disputes import ask_for_third_ratings, list_disputes

    with existing_database() as database:
        asked = ask_for_third_ratings(database, name, ACTOR, apart, reason) if ask else 0
        disputed = list_disputes(database, name, apart)
    lines = []
    for output in disputed.listed:
        third = f"; third rating: {output.third_in_words}" if output.asked else ""
        lines.append(f"{output.segment}, {output.system}: {output.in_words}{third}")
    lines.append(
        f"{len(disputed.listed):,} of {counted(disputed.outputs, 'output')} with two raters or more have "
        f"ratings {counted(disputed.bound, 'point')} apart or more"
    )
    if asked:
        lines.append(
            f"{counted(asked, 'page')} given to one more rater; see creamtea campaign status {quote(name)}"
        )
    show(as_json, disputed, lines)
