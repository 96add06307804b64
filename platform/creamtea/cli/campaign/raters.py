"""`creamtea campaign link | revoke | raters`: who may rate, and whose ratings count."""

from __future__ import annotations

from typing import Annotated

import typer

from creamtea.cli.campaign.running import rater_lines
from creamtea.cli.campaign.shared import ACTOR, Name, RaterName, Reason, plural, show
from creamtea.cli.serve import PORT, Address, link_to
from creamtea.cli.workplace import AsJson, opened_database
from creamtea.errors import InputError
from creamtea.human import access, campaigns, raters, sign_in
from creamtea.settings import LOOPBACK


def register(commands: typer.Typer) -> None:
    commands.command(
        epilog="Examples: `creamtea campaign link first --rater anna` · "
        "`creamtea campaign link first --rater ben --subject ben@example.org` · "
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

    With --subject it is the address where this person signs in, and holds no secret. An organiser may for a
    year; `creamtea links list` and `creamtea links revoke` show and end it.
    """
    if (rater is None) != organiser:
        raise InputError("a link is for a rater or an organiser: give --rater PSEUDONYM or --organiser")
    if subject is not None:
        sign_in.checked_subject(subject)
    with opened_database() as database:
        campaign_id = campaigns.summary(database, name).id
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
    """Delete who a rater is: name, sign-in, links. The ratings stay, under the pseudonym. For good."""
    with opened_database() as database:
        rater_id = raters.find(database, name, rater)
        if not yes:
            typer.confirm(f"delete the identity of {rater} for good?", abort=True)
        raters.forget(database, rater_id, ACTOR, reason)
    typer.echo(f"the identity of {rater} is deleted")
