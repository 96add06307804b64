"""`creamtea campaign preview | launch | status | close | list | log | rm`: from the draft to the end."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from creamtea.access import audit
from creamtea.cli.campaign.shared import ACTOR, Name, show
from creamtea.cli.printing import say
from creamtea.cli.workplace import AsJson, existing_database
from creamtea.human.making import campaigns, launching
from creamtea.human.rating import progress, raters
from creamtea.store.queries import find_campaign
from creamtea.store.tables import ItemKind
from creamtea.wording import counted

if TYPE_CHECKING:
    from creamtea.human.making.preview import Preview

# of a rater in `status --json`; who a rater is, and said of themselves, is for `raters list`
PROGRESS = (
    *("id", "pseudonym", "created_at", "consented_at", "excluded_at", "forgotten_at"),
    *("submitted", "skipped", "tutorial", "attention", "last_submit", "finished"),
)


def register(commands: typer.Typer) -> None:
    commands.command(epilog="Example: `creamtea campaign preview first`")(preview)
    commands.command(epilog="Example: `creamtea campaign launch first`")(launch)
    commands.command(epilog="Example: `creamtea campaign status first --json`")(status)
    commands.command(epilog="Example: `creamtea campaign close first --reason 'enough items'`")(close)
    commands.command("list", epilog="Example: `creamtea campaign list`")(list_campaigns)
    commands.command(epilog="Example: `creamtea campaign log first`")(log)
    commands.command("rm", epilog="Example: `creamtea campaign rm first`")(remove)


def preview(name: Name, json_output: AsJson = False) -> None:
    """Show what a campaign will cost and what it can show: items, rater hours, power."""
    from creamtea.human.making.preview import preview as make_preview  # scipy.stats takes a second

    with existing_database() as database:
        plan = make_preview(database, name)
    show(json_output, plan, _in_words(plan))


def _in_words(plan: Preview) -> list[str]:
    kinds = ", ".join(ItemKind(kind).counted(count) for kind, count in plan.kinds.items())
    lines = [
        f"campaign {plan.campaign} ({plan.protocol}, {plan.state})",
        *([plan.doubt] if plan.doubt else []),
        f"items       {kinds}",
    ]
    if plan.pages is not None:
        lines.append(f"pages       {plan.pages:,}, {plan.minutes_per_page:.1f} minutes each on average")
    if plan.split:
        lines.append(
            f"            {plan.split:,} of {plan.of_documents:,} documents are longer than a page "
            f"({plan.segments_per_page} segments)"
            + ("; the whole is scored on the last page" if plan.document_score else "")
        )
    if plan.media.files:
        lines.append(f"files       {plan.media.files:,} beside sources, {plan.media.size / 1e6:,.1f} MB")
    if plan.drawn is not None:
        drawn = plan.drawn
        lines.append(
            "drawn       "
            + (f"{drawn.documents:,} of {drawn.of_documents:,} documents, " if drawn.documents else "")
            + f"{drawn.chosen:,} of {counted(drawn.population, 'segment')}"
            + (f" on which {' and '.join(drawn.between)} differ" if drawn.between else "")
            + f"; the test set has {drawn.segments:,}, the systems differ on {drawn.differing:,}"
        )
    lines += [
        f"ratings     {plan.ratings:,} ({plan.ratings_per_item} per item), "
        f"{plan.minutes_per_item:g} minutes each",
        f"hours       {plan.rater_hours:.1f} in all; {plan.hours_per_rater:.1f} each for "
        f"{counted(plan.raters, 'rater')}",
        f"power       {plan.power:.0%} to find a difference of {plan.said(plan.delta)} between a system and "
        f"the baseline (two-sided paired t-test at 5 %, {plan.units:,.0f} segments' worth{_documents(plan)})",
        f"            {plan.no_difference:.0%} to show that no difference is larger, where there is none",
        "            " + _reach(plan),
        f"            assuming that differences vary by {plan.said(plan.deviation)} (standard deviation), "
        + (f"as in {plan.deviation_from}" if plan.deviation_from else "the usual without earlier ratings"),
    ]
    if plan.comparisons > 1:
        lines.append(f"            for one comparison; Holm's correction for {plan.comparisons} lowers it")
    return lines


def _documents(plan: Preview) -> str:
    if plan.documents is None or plan.intraclass is None:
        return ""
    return (
        f" in {plan.documents:,.0f} documents' worth: segments within one correlate (ρ = "
        f"{plan.intraclass:.2f}), so {plan.design_effect:.2f} times as many are needed as single ones"
    )


def _reach(plan: Preview) -> str:
    reach = "none" if plan.detectable is None else plan.said(plan.detectable)
    needed = "over a million" if plan.units_needed is None else f"{plan.units_needed:,}"
    return (
        f"smallest detectable difference (80 % power): {reach}; for {plan.said(plan.delta)} it takes "
        f"{needed} segments"
    )


def launch(name: Name, json_output: AsJson = False) -> None:
    """Open a draft to its raters. Items, settings and the planned analysis are registered and frozen."""
    with existing_database() as database:
        registered = launching.launch(database, name, ACTOR)
    lines = (
        f"campaign {name} is launched; registered as {registered['digest'][:16]}",
        f"next: creamtea campaign link {quote(name)} --rater PSEUDONYM",
    )
    show(json_output, registered, lines)


def close(
    name: Name,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; the log keeps it.")] = "",
) -> None:
    """End the rating for good. What raters saved stays."""
    with existing_database() as database:
        launching.close(database, name, ACTOR, reason)
    say(f"campaign {name} is closed")


def remove(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json_output: AsJson = False,
) -> None:
    """Remove a draft or a closed campaign for good, with its ratings, raters and log.

    To keep the ratings, run `creamtea campaign export` first. A launched campaign must be closed first.
    `creamtea gc` frees the space of files beside sources.
    """
    from creamtea.upkeep import remove_campaign, what_it_holds

    with existing_database() as database:
        if not yes:
            with database.session() as session:
                found = what_it_holds(session, find_campaign(session, name))
            holds = f"{counted(found.items, 'item')}, {counted(found.raters, 'rater')}"
            holds += f" and {counted(found.answers, 'answer')}"
            typer.confirm(f"remove campaign {name} with {holds} for good?", abort=True)
        removed = remove_campaign(database, name)
    show(
        json_output,
        {"campaign": name, **dataclasses.asdict(removed)},
        [f"removed campaign {name}: {counted(removed.items, 'item')}, {counted(removed.answers, 'answer')}"],
    )


def status(name: Name, json_output: AsJson = False) -> None:
    """Show a campaign's progress by item kind and by rater, and whether it is as it was registered."""
    with existing_database() as database:
        summary = campaigns.summary(database, name)
        with database.session() as session:
            row = find_campaign(session, name)
            kinds = progress.by_kind(session, row)
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
            counted(kind.submitted, "rating")  # every rater gets them: no number is wanted
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


def rater_lines(campaign: str, people: Sequence[raters.RaterProgress]) -> list[str]:
    """Each rater's progress in a line."""
    none = f"no raters yet: creamtea campaign link {quote(campaign)} --rater PSEUDONYM"
    return [_rater_line(person) for person in people] or [none]


def _rater_line(person: raters.RaterProgress) -> str:
    marks = [
        word
        for word, moment in (("excluded", person.excluded_at), ("identity deleted", person.forgotten_at))
        if moment is not None
    ]
    if not person.has_begun or person.finished:
        marks.append("finished" if person.finished else "not begun")
    last = f", last {person.last_submit:%Y-%m-%d %H:%M} UTC" if person.last_submit is not None else ""
    shown = f" ({', '.join(marks)})" if marks else ""
    checks = person.attention
    passed = f", {checks.passed} of {checks.answered} attention checks passed" if checks.answered else ""
    return f"{person.pseudonym}: {person.submitted} rated, {person.skipped} skipped{passed}{last}{shown}"


def list_campaigns(json_output: AsJson = False) -> None:
    """List the campaigns and how far they are."""
    with existing_database() as database:
        listed = campaigns.summaries(database)
    lines = [
        f"{campaign.name}: {campaign.state}, {_origin(campaign)}, "
        f"{counted(len(campaign.systems), 'system')}, {campaign.ratings} of {campaign.wanted} item ratings, "
        f"{counted(campaign.raters, 'rater')}"
        for campaign in listed
    ]
    show(json_output, listed, lines or ["no campaigns yet; see creamtea campaign create --help"])


def log(name: Name, json_output: AsJson = False) -> None:
    """Show who decided what in a campaign, when and why."""
    with existing_database() as database:
        entries = audit.read(database, campaigns.summary(database, name).id)
    show(json_output, entries, map(_log_line, entries))


def _log_line(entry: audit.Entry) -> str:
    rater = f" {entry.rater}" if entry.rater is not None else ""
    reason = f": {entry.reason}" if entry.reason else ""
    return f"{entry.at:%Y-%m-%d %H:%M:%S} UTC  {entry.actor}  {entry.action}{rater}{reason}"
