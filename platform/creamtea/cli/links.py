"""`creamtea links list | revoke`: the links that were made, and withdrawing one."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Annotated

import typer

from creamtea.cli.campaign.shared import ACTOR, Reason, as_json
from creamtea.cli.workplace import AsJson, opened_database
from creamtea.human import links
from creamtea.human.links import Link


def register(app: typer.Typer) -> None:
    commands = typer.Typer(
        help="The links of readers, organisers and raters.", no_args_is_help=True, rich_markup_mode="markdown"
    )
    commands.command("list", epilog="Examples: `creamtea links list` · `creamtea links list --all --json`")(
        list_links
    )
    commands.command(epilog="Example: `creamtea links revoke 12 --reason 'left the team'`")(revoke)
    app.add_typer(commands, name="links")


def list_links(
    every: Annotated[bool, typer.Option("--all", help="Those that open nothing any more, too.")] = False,
    json: AsJson = False,
) -> None:
    """List the links that still let somebody in: not used yet, or by a browser that is signed in; and the
    organisers who may sign in by OpenID Connect.

    Never a secret: those are stored nowhere.
    """
    with opened_database() as database:
        found = links.listed(database, opening=not every)
    if json:
        typer.echo(as_json([dataclasses.asdict(one) for one in found]))
        return
    if not found:
        typer.echo("no links")
    for one in found:
        typer.echo(_line(one))


def revoke(
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="The link, as `list` numbers it.")],
    reason: Reason = "",
) -> None:
    """Withdraw a link, and end the sessions of browsers that were signed in by it.

    All links of a rater, and a sign-in by OpenID Connect: `creamtea campaign revoke`.
    """
    with opened_database() as database:
        links.revoke(database, number, ACTOR, reason.strip())
    typer.echo(f"link {number} withdrawn")


def _line(one: Link) -> str:
    """As "3  reader  created 2026-03-04 05:06, used 2026-03-04 06:00, 1 browser signed in"."""
    what = " ".join([one.role, *([f"{one.rater!r}"] if one.rater else [])])
    where = f" of {one.campaign}" if one.campaign else ""
    if one.sign_in is not None:
        where += f", signs in as {one.sign_in}"
    facts = [f"created {_minute(one.created_at)}"]
    if one.used_at is not None:
        facts.append(f"used {_minute(one.used_at)}")
    if one.revoked_at is not None:
        facts.append(f"withdrawn {_minute(one.revoked_at)}")
    elif one.used_at is None:
        facts.append(f"{'expires' if one.opens else 'expired'} {_minute(one.expires_at)}")
    if one.revoked_at is None and (one.used_at is not None or one.sign_in is not None):
        facts.append(f"{one.sessions} browser{'s' * (one.sessions != 1)} signed in")
    return f"{one.id}  {what}{where}  {', '.join(facts)}"


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
