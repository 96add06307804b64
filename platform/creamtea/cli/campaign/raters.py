"""`creamtea campaign link | revoke | raters`: who may rate, and whose ratings count."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
from sqlalchemy import select

from creamtea.access import sessions, sign_in
from creamtea.cli.printing import hand_over, say, show
from creamtea.cli.serve import PORT, Address, link_to
from creamtea.cli.workplace import (
    ACTOR,
    AsJson,
    CampaignName,
    Reason,
    Surplus,
    Yes,
    existing_database,
    listed_raters,
)
from creamtea.errors import InputError
from creamtea.human.making import campaigns
from creamtea.human.rating import raters
from creamtea.settings import LOOPBACK, site_address
from creamtea.store.database import Database
from creamtea.store.tables import Rater
from creamtea.wording import counted

RaterNames = Annotated[
    list[str], typer.Option("--rater", metavar="PSEUDONYM", help="The rater, by a pseudonym. Repeatable.")
]

commands = typer.Typer()
people = typer.Typer(
    help="List, check, exclude or forget the raters of a campaign.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
commands.add_typer(people, name="raters")


@commands.command(
    epilog="Examples: `creamtea campaign link first --rater anna` · "
    "`creamtea campaign link first --rater ben --subject ben@example.org` · "
    "`creamtea campaign link first --count 2 > links.csv` · "
    "`creamtea campaign link first --participants --url https://rate.example.org` · "
    "`creamtea campaign link first --organiser` · `creamtea campaign link first --viewer` · "
    "`creamtea campaign link first --organiser --subject dora@example.org`"
)
def link(
    name: CampaignName,
    rater: Annotated[
        list[str] | None,
        typer.Option(
            "--rater", metavar="PSEUDONYM", help="A rater, who is added if new. Repeatable: prints CSV."
        ),
    ] = None,
    many: Annotated[
        Path | None,
        typer.Option(
            "--raters", metavar="FILE", help="Links for all pseudonyms in a file, one per line, as CSV."
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", metavar="N", help="Links for N new raters, as CSV.")
    ] = None,
    surplus: Surplus = False,
    csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV (rater, link) for a single rater, too.")
    ] = False,
    participants: Annotated[
        bool,
        typer.Option("--participants", help="One link for all participants of Prolific or the like."),
    ] = False,
    organiser: Annotated[
        bool, typer.Option("--organiser", help="A link to organise this campaign, and no other.")
    ] = False,
    viewer: Annotated[
        bool,
        typer.Option("--viewer", help="A link to look at this campaign and its results, and change nothing."),
    ] = False,
    subject: Annotated[
        str | None,
        typer.Option(
            "--subject",
            metavar="EMAIL",
            help="Who signs in by OpenID Connect instead: a verified e-mail address, or ISSUER|SUBJECT.",
        ),
    ] = None,
    url: Address = f"http://{LOOPBACK[0]}:{PORT}",
) -> None:
    """Print a link for a rater, or an organiser or viewer of this campaign. It works once, within 14 days.

    A viewer sees progress, the boards and the results until the 14 days are over, but neither raters nor log.

    --raters, --count and several --rater print many links as CSV. With --participants the link works for 90
    days, for everyone whom a recruiting platform sends with their own number (PROLIFIC_PID, or participant).

    With --subject the link is the address where this person signs in, and holds no secret. An organiser may
    sign in for a year; `creamtea links list` and `creamtea links revoke` show and end this.

    A closed campaign has no more links for raters, and in a draft raters see nothing until it is launched.
    """
    url = site_address(url)
    named = rater or []
    if [bool(named), many is not None, count is not None, participants, organiser, viewer].count(True) != 1:
        raise InputError(
            "say whom the link is for: give one of --rater PSEUDONYM, --raters FILE, --count N, "
            "--participants, --organiser and --viewer"
        )
    if subject is not None:
        if len(named) != 1 and not organiser:
            raise InputError("--subject is for one person: give it with --rater or --organiser")
        sign_in.checked_subject(subject)
    if csv and (participants or organiser or viewer or subject is not None):
        raise InputError("--csv is for links of raters: give it with --rater, --raters or --count alone")
    with existing_database() as database:
        campaign = campaigns.summary(database, name)
        if not (organiser or viewer):
            raters.check_invites(campaign)
        if many is not None or count is not None or len(named) > 1 or csv:
            listed = [line for line in listed_raters(many) if line.strip()]
            wanted = count if count is not None else named or listed
            with database.transaction() as session:
                made = raters.invite(session, name, ACTOR, wanted, surplus=surplus)
            text = raters.links_csv(made, url).rstrip("\n")
        elif participants:
            text = raters.recruiting_address(url, raters.recruit(database, name, ACTOR))
        elif organiser and subject is not None:
            sign_in.add_organiser(database, name, ACTOR, subject)
            text = f"{url}/login?campaign={campaign.id}"
        elif organiser or viewer:
            role = "organiser" if organiser else "reader"
            text = link_to(url, sessions.create_link(database, role, campaign_id=campaign.id, actor=ACTOR))
        else:
            rater_id = raters.find_or_add(database, name, ACTOR, named[0])
            if subject is not None:
                sign_in.set_subject(database, rater_id, ACTOR, subject)
                text = f"{url}/login?campaign={campaign.id}"
            else:
                text = link_to(url, sessions.create_link(database, "rater", rater_id=rater_id, actor=ACTOR))
    hand_over(text)
    if campaign.state == "draft" and not (organiser or viewer):
        launch_it = f"raters see nothing until `creamtea campaign launch {quote(name)}`"
        say(f"campaign {name} is a draft: {launch_it}", err=True)


@commands.command(epilog="Example: `creamtea campaign revoke first --rater anna`")
def revoke(name: CampaignName, rater: RaterNames) -> None:
    """Revoke every link of a rater, used or not, and the sign-in. What the rater has saved stays."""
    with existing_database() as database:
        for who, rater_id in _rater_ids(database, name, rater):
            revoked = sessions.revoke_rater(database, rater_id, ACTOR)
            say(f"{counted(revoked, 'link')} of {who} revoked")


@people.command("list", epilog="Example: `creamtea campaign raters list first`")
def list_raters(name: CampaignName, as_json: AsJson = False) -> None:
    """List a campaign's raters and what they have done."""
    with existing_database() as database:
        people = raters.overview(database, campaigns.summary(database, name).id)
    show(as_json, people, rater_lines(name, people))


def rater_lines(campaign: str, people: Sequence[raters.RaterProgress]) -> list[str]:
    """Write each rater's progress in a line."""
    lines = []
    for person in people:
        marks = ["excluded"] if person.excluded_at is not None else []
        marks += ["identity deleted"] if person.forgotten_at is not None else []
        if not person.has_begun or person.finished:
            marks.append("finished" if person.finished else "not begun")
        shown = f" ({', '.join(marks)})" if marks else ""
        last = f", last {person.last_submit:%Y-%m-%d %H:%M} UTC" if person.last_submit is not None else ""
        checks = person.attention
        passed = f", {checks.passed} of {checks.answered} attention checks passed" if checks.answered else ""
        done = f"{person.submitted} rated, {person.skipped} skipped{passed}"
        lines.append(f"{person.pseudonym}: {done}{last}{shown}")
    return lines or [f"no raters yet: creamtea campaign link {quote(campaign)} --rater PSEUDONYM"]


@people.command(
    "report",
    epilog="Examples: `creamtea campaign raters report first` · "
    "`creamtea campaign raters report first --rater anna` · "
    "`creamtea campaign raters report first --json`",
)
def report_raters(
    name: CampaignName,
    rater: Annotated[
        list[str] | None,
        typer.Option("--rater", metavar="PSEUDONYM", help="All checks of this rater. Repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say whether raters' answers look like those of somebody who read and judged.

    A flag is a reason to look, not a verdict: honest raters get one now and then. Nobody is excluded by it.
    """
    # its statistics take a second to import
    from creamtea.human.quality import described_in_words

    with existing_database() as database:
        campaign_id = campaigns.summary(database, name).id
        chosen = [rater_id for _, rater_id in _rater_ids(database, name, rater or [])]
        reports = rater_values(database, campaign_id, chosen)
    lines = []
    for report in reports:
        lines.append(f"{report['rater']}: {report['suggestion']} ({counted(report['answers'], 'answer')})")
        for check in report["checks"] if rater else ():
            lines.append(f"  {check.title}: {check.state}: {check.shown}; flagged if {check.bound}")
    if lines:
        lines.append(f"a flag is a reason to look; a description would go to {described_in_words()}")
    show(as_json, reports, lines or [f"campaign {name}: no answers yet"])


def rater_values(database: Database, campaign_id: int, only: Collection[int] = ()) -> list[dict[str, Any]]:
    """Return the reports of a campaign's raters, or of `only` these, as `--json` shows them."""
    from creamtea.human.quality import reports_of

    with database.session() as session:
        query = select(Rater.id, Rater.pseudonym).where(Rater.campaign_id == campaign_id)
        pseudonyms = dict(session.execute(query).all())
    return [
        {
            "rater": pseudonyms[report.rater_id],
            "answers": report.answers,
            "flags": [check.name for check in report.flagged],
            "looks": report.signs,
            "suggestion": report.suggestion,
            "checks": report.checks,
        }
        for report in reports_of(database, campaign_id)
        if not only or report.rater_id in only
    ]


@people.command(epilog="Example: `creamtea campaign raters reopen first --rater anna --reason 'she asked'`")
def reopen(name: CampaignName, rater: RaterNames, reason: Reason) -> None:
    """Give a rater back the skipped items that still need a rating, for example after the rater finished."""
    with existing_database() as database:
        for who, rater_id in _rater_ids(database, name, rater):
            pages = raters.reopen(database, rater_id, ACTOR, reason)
            say(f"{who} gets {counted(pages, 'skipped page')} again")


@people.command(
    epilog="Example: `creamtea campaign raters exclude first --rater anna --reason 'one score only'`"
)
def exclude(name: CampaignName, rater: RaterNames, reason: Reason) -> None:
    """Take a rater's ratings out of the results. They are kept, and `include` brings them back."""
    with existing_database() as database:
        for who, rater_id in _rater_ids(database, name, rater):
            raters.exclude(database, rater_id, ACTOR, reason)
            say(f"the ratings of {who} no longer count")


@people.command(
    epilog="Example: `creamtea campaign raters include first --rater anna --reason 'it was the page'`"
)
def include(name: CampaignName, rater: RaterNames, reason: Reason) -> None:
    """Let the ratings of an excluded rater count again."""
    with existing_database() as database:
        for who, rater_id in _rater_ids(database, name, rater):
            raters.include(database, rater_id, ACTOR, reason)
            say(f"the ratings of {who} count again")


@people.command(epilog="Example: `creamtea campaign raters forget first --rater anna`")
def forget(
    name: CampaignName,
    rater: RaterNames,
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Delete a rater's identity for good: name, sign-in, links, answers in their own words.

    The ratings stay, under the pseudonym.
    """
    with existing_database() as database:
        for who, rater_id in _rater_ids(database, name, rater):
            if not yes:
                typer.confirm(f"delete the identity of {who} for good?", abort=True, err=True)
            raters.forget(database, rater_id, ACTOR, reason)
            say(f"the identity of {who} is deleted")


def _rater_ids(database: Database, campaign: str, pseudonyms: list[str]) -> list[tuple[str, int]]:
    """Return each rater's pseudonym and id, once. InputError, before anything is done, for an unknown one."""
    return [(who, raters.find(database, campaign, who)) for who in dict.fromkeys(pseudonyms)]
