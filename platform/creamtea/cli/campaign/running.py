"""`creamtea campaign preview | launch | status | close | list | log`: from the draft to the end."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from creamtea.cli.campaign.shared import ACTOR, Name, as_json, plural
from creamtea.cli.workplace import AsJson, opened_database
from creamtea.human import audit, campaigns, launching, progress, raters
from creamtea.store.item_kinds import ItemKind

if TYPE_CHECKING:
    from creamtea.human.preview import Preview


def register(commands: typer.Typer) -> None:
    commands.command(epilog="Example: `creamtea campaign preview first`")(preview)
    commands.command(epilog="Example: `creamtea campaign launch first`")(launch)
    commands.command(epilog="Example: `creamtea campaign status first --json`")(status)
    commands.command(epilog="Example: `creamtea campaign close first --reason 'enough items'`")(close)
    commands.command("list", epilog="Example: `creamtea campaign list`")(list_campaigns)
    commands.command(epilog="Example: `creamtea campaign log first`")(log)


def preview(name: Name, json_output: AsJson = False) -> None:
    """Show what a campaign will cost and what it can show: items, rater hours, power."""
    from creamtea.human.preview import preview as make_preview  # scipy.stats takes a second

    with opened_database() as database:
        plan = make_preview(database, name)
    if json_output:
        values = dataclasses.asdict(plan)
        values["drawn"] = None if plan.drawn is None else plan.drawn.model_dump()
        typer.echo(as_json(values))
        return
    for line in _in_words(plan):
        typer.echo(line)


def _in_words(plan: Preview) -> list[str]:
    kinds = ", ".join(f"{count} {ItemKind(kind).label}" for kind, count in plan.kinds.items())
    lines = [
        f"campaign {plan.campaign} ({plan.protocol}, {plan.state})",
        f"items       {kinds}",
    ]
    if plan.drawn is not None:
        drawn = plan.drawn
        lines.append(
            f"drawn       {drawn.chosen:,} of {drawn.population:,} segments; the test set has "
            f"{drawn.segments:,}, the systems differ on {drawn.differing:,}"
        )
    lines += [
        f"ratings     {plan.ratings:,} ({plan.ratings_per_item} per item), "
        f"{plan.minutes_per_item:g} minutes each",
        f"hours       {plan.rater_hours:.1f} in all; {plan.hours_per_rater:.1f} each "
        f"for {plural(plan.raters, 'rater')}",
        f"power       {plan.power:.0%} to find a difference of {plan.delta:g} points between a system and "
        f"the baseline (two-sided paired t-test at 5 %, {plan.units:,.0f} segments' worth)",
        f"            {plan.no_difference:.0%} to show that no difference is larger, where there is none",
        "            " + _reach(plan),
        f"            assuming that differences vary by {plan.deviation:.3g} points (standard deviation), "
        + (f"as in {plan.deviation_from}" if plan.deviation_from else "the usual without earlier ratings"),
    ]
    if plan.comparisons > 1:
        lines.append(
            f"            for one comparison; Holm's correction for {plan.comparisons} takes some of it"
        )
    return lines


def _reach(plan: Preview) -> str:
    reach = "none" if plan.detectable is None else f"{plan.detectable:.3g} points"
    needed = "over a million" if plan.units_needed is None else f"{plan.units_needed:,}"
    return (
        f"smallest detectable difference (80 % power): {reach}; {plan.delta:g} points take {needed} segments"
    )


def launch(name: Name, json_output: AsJson = False) -> None:
    """Open a draft to its raters. Items, settings and the planned analysis are registered and frozen."""
    with opened_database() as database:
        registered = launching.launch(database, name, ACTOR)
    if json_output:
        typer.echo(as_json(registered))
        return
    typer.echo(f"campaign {name} is launched; registered as {registered['digest'][:16]}")
    typer.echo(f"next: creamtea campaign link {name} --rater PSEUDONYM")


def close(
    name: Name,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; the log keeps it.")] = "",
) -> None:
    """End the rating for good. What raters saved stays."""
    with opened_database() as database:
        launching.close(database, name, ACTOR, reason)
    typer.echo(f"campaign {name} is closed")


def status(name: Name, json_output: AsJson = False) -> None:
    """Show a campaign's progress by item kind and by rater, and whether it is as it was registered."""
    with opened_database() as database:
        summary = campaigns.summary(database, name)
        with database.session() as session:
            row = campaigns.find_campaign(session, name)
            kinds = progress.by_kind(session, row)
            changed = launching.changes(session, row)
            registered = row.registered
        people = raters.overview(database, summary.id)
    if json_output:
        values = dataclasses.asdict(summary) | {
            "kinds": [dataclasses.asdict(kind) for kind in kinds],
            "raters": [_rater(person) for person in people],
            "registered": registered,
            "changed": changed,
        }
        typer.echo(as_json(values))
        return
    origin = f"study {summary.study}" if summary.study else "ratings made elsewhere"
    typer.echo(f"campaign {name}: {summary.state}, {summary.protocol}, {origin}, {summary.test_set}")
    if registered is not None:
        state = f"CHANGED since: {', '.join(changed)}" if changed else "unchanged since"
        typer.echo(f"registered at its launch as {registered['digest'][:16]}, {state}")
    for kind in kinds:
        typer.echo(
            f"  {ItemKind(kind.kind).label:<15} {plural(kind.items, 'item')}, {kind.submitted:,} of "
            f"{kind.wanted:,} ratings, {kind.complete:,} complete"
        )
    for person in people:
        typer.echo(f"  {rater_line(person)}")
    if not people:
        typer.echo(f"  no raters yet: creamtea campaign link {name} --rater PSEUDONYM")


def _rater(person: raters.RaterProgress) -> dict[str, object]:
    """Without the name, which is for `raters list`."""
    return {key: value for key, value in dataclasses.asdict(person).items() if key != "name"}


def rater_line(person: raters.RaterProgress) -> str:
    """A rater's progress in a line."""
    marks = [
        word
        for word, moment in (("excluded", person.excluded_at), ("identity deleted", person.forgotten_at))
        if moment is not None
    ]
    if person.consented_at is None:
        marks.append("not begun")
    last = f", last {person.last_submit:%Y-%m-%d %H:%M} UTC" if person.last_submit is not None else ""
    shown = f" ({', '.join(marks)})" if marks else ""
    return f"{person.pseudonym}: {person.submitted} rated, {person.skipped} skipped{last}{shown}"


def list_campaigns(json_output: AsJson = False) -> None:
    """List the campaigns and how far they are."""
    with opened_database() as database:
        listed = campaigns.summaries(database)
    if json_output:
        typer.echo(as_json([dataclasses.asdict(campaign) for campaign in listed]))
        return
    for campaign in listed:
        origin = f"study {campaign.study}" if campaign.study else "ratings made elsewhere"
        typer.echo(
            f"{campaign.name}: {campaign.state}, {campaign.protocol}, {origin}, {campaign.test_set}, "
            f"{len(campaign.systems)} systems, {campaign.ratings} of {campaign.wanted} item ratings, "
            f"{plural(campaign.raters, 'rater')}"
        )
    if not listed:
        typer.echo("no campaigns yet; see creamtea campaign create --help")


def log(name: Name, json_output: AsJson = False) -> None:
    """Show who decided what in a campaign, when and why."""
    with opened_database() as database:
        entries = audit.read(database, campaigns.summary(database, name).id)
    if json_output:
        typer.echo(as_json([dataclasses.asdict(entry) for entry in entries]))
        return
    for entry in entries:
        rater = f" {entry.rater}" if entry.rater is not None else ""
        reason = f": {entry.reason}" if entry.reason else ""
        typer.echo(f"{entry.at:%Y-%m-%d %H:%M:%S} UTC  {entry.actor}  {entry.action}{rater}{reason}")
