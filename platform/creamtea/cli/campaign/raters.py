"""`creamtea campaign link | revoke | raters`: who may rate, and whose ratings count."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from creamtea.cli.campaign.running import rater_lines
from creamtea.cli.campaign.shared import ACTOR, Name, RaterName, Reason, plural, show, text_of
from creamtea.cli.serve import PORT, Address, link_to
from creamtea.cli.workplace import AsJson, opened_database
from creamtea.errors import InputError
from creamtea.human import access, campaigns, raters, sign_in
from creamtea.human.invitations import invite, links_csv, recruit, recruiting_address
from creamtea.settings import LOOPBACK


def register(commands: typer.Typer) -> None:
    commands.command(
        epilog="Examples: `creamtea campaign link first --rater anna` · "
        "`creamtea campaign link first --rater ben --subject ben@example.org` · "
        "`creamtea campaign link first --count 20 > links.csv` · "
        "`creamtea campaign link first --participants --url https://rate.example.org` · "
        "`creamtea campaign link first --organiser` · "
        "`creamtea campaign link first --organiser --subject dora@example.org`"
    )(link)
    commands.command(epilog="Example: `creamtea campaign revoke first --rater anna`")(revoke)
    people = typer.Typer(help="The raters of a campaign.", no_args_is_help=True, rich_markup_mode="markdown")
    people.command("list", epilog="Example: `creamtea campaign raters list first`")(list_raters)
    people.command(
        epilog="Example: `creamtea campaign raters exclude first --rater anna --reason 'one score only'`"
    )(exclude)
    people.command(
        epilog="Example: `creamtea campaign raters include first --rater anna --reason 'it was the page'`"
    )(include)
    people.command(epilog="Example: `creamtea campaign raters forget first --rater anna`")(forget)
    commands.add_typer(people, name="raters")


def link(
    name: Name,
    rater: Annotated[
        str | None, typer.Option("--rater", metavar="PSEUDONYM", help="A rater, who is added if new.")
    ] = None,
    many: Annotated[
        Path | None,
        typer.Option(
            "--raters", metavar="FILE", help="Links for all pseudonyms in a file, one per line, as CSV."
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", metavar="N", help="Links for so many new raters, as CSV.")
    ] = None,
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
    """Print a link for a rater, or for an organiser of this campaign. It works once, within 14 days.

    --raters and --count print many links as CSV. The one of --participants works for 90 days, for everybody
    whom a recruiting platform sends with a number of their own (PROLIFIC_PID, or participant).

    With --subject it is the address where this person signs in, and holds no secret. An organiser may for a
    year; `creamtea links list` and `creamtea links revoke` show and end it.
    """
    if [rater is not None, many is not None, count is not None, participants, organiser].count(True) != 1:
        raise InputError(
            "say whom the link is for: give one of --rater PSEUDONYM, --raters FILE, --count N, "
            "--participants and --organiser"
        )
    if subject is not None:
        if rater is None and not organiser:
            raise InputError("--subject is for one person: give it with --rater or --organiser")
        sign_in.checked_subject(subject)
    with opened_database() as database:
        campaign_id = campaigns.summary(database, name).id
        if many is not None or count is not None or (csv and rater is not None and subject is None):
            named = [rater] if rater is not None else text_of("--raters", many).splitlines()
            wanted = count if count is not None else [line for line in named if line.strip()]
            typer.echo(links_csv(invite(database, name, ACTOR, wanted), url), nl=False)
            return
        if participants:
            typer.echo(recruiting_address(url, recruit(database, name, ACTOR)))
            return
        if rater is None and subject is not None:
            sign_in.add_organiser(database, name, ACTOR, subject)
            typer.echo(_sign_in_at(url, campaign_id))
            return
        if rater is None:
            secret = access.create_link(database, "organiser", campaign_id=campaign_id, actor=ACTOR)
        else:
            rater_id = raters.find_or_add(database, name, ACTOR, rater)
            if subject is not None:
                sign_in.set_subject(database, rater_id, ACTOR, subject)
                typer.echo(_sign_in_at(url, campaign_id))
                return
            secret = access.create_link(database, "rater", rater_id=rater_id, actor=ACTOR)
        typer.echo(link_to(url, secret))


def _sign_in_at(url: str, campaign_id: int) -> str:
    return f"{url.rstrip('/')}/login?campaign={campaign_id}"


def revoke(name: Name, rater: RaterName) -> None:
    """Withdraw every link of a rater, used or not, and the sign-in. What the rater has saved stays."""
    with opened_database() as database:
        revoked = access.revoke_rater(database, raters.find(database, name, rater), ACTOR)
    typer.echo(f"{plural(revoked, 'link')} of {rater} withdrawn")


def list_raters(name: Name, json_output: AsJson = False) -> None:
    """List a campaign's raters and what they have done."""
    with opened_database() as database:
        people = raters.overview(database, campaigns.summary(database, name).id)
    show(json_output, people, rater_lines(name, people))


def exclude(name: Name, rater: RaterName, reason: Reason) -> None:
    """Take a rater's ratings out of the results. They are kept, and `include` brings them back."""
    with opened_database() as database:
        raters.exclude(database, raters.find(database, name, rater), ACTOR, reason)
    typer.echo(f"the ratings of {rater} no longer count")


def include(name: Name, rater: RaterName, reason: Reason) -> None:
    """Let the ratings of an excluded rater count again."""
    with opened_database() as database:
        raters.include(database, raters.find(database, name, rater), ACTOR, reason)
    typer.echo(f"the ratings of {rater} count again")


def forget(
    name: Name,
    rater: RaterName,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; the log keeps it.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete who a rater is: name, sign-in, links, answers in own words. The ratings stay, under the
    pseudonym. For good."""
    with opened_database() as database:
        rater_id = raters.find(database, name, rater)
        if not yes:
            typer.confirm(f"delete the identity of {rater} for good?", abort=True)
        raters.forget(database, rater_id, ACTOR, reason)
    typer.echo(f"the identity of {rater} is deleted")
