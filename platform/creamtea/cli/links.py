"""`creamtea links list | revoke`: shows the links that were made, and revokes them."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Annotated

import typer

from creamtea.access import sessions
from creamtea.access.sessions import Link
from creamtea.cli.printing import as_json, say
from creamtea.cli.workplace import ACTOR, AsJson, Reason, existing_database
from creamtea.store.rows import MAX_ID
from creamtea.wording import counted

commands = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@commands.command("list", epilog="Examples: `creamtea links list` · `creamtea links list --all --json`")
def list_links(
    every: Annotated[bool, typer.Option("--all", help="Include links that are no longer valid.")] = False,
    json: AsJson = False,
) -> None:
    """List the valid links, and the organisers who may sign in by OpenID Connect.

    A link is valid if it is not used yet, or used by a browser that is still signed in. Secrets are never
    shown: they are not stored.
    """
    with existing_database() as database:
        listed = sessions.list_links(database, opening=not every)
    if json:
        say(as_json([dataclasses.asdict(link) for link in listed]))
        return
    if not listed:
        say("no links")
    for link in listed:
        say(_line(link))


@commands.command(epilog="Example: `creamtea links revoke 1`")
def revoke(
    number: Annotated[
        int, typer.Argument(min=1, max=MAX_ID, metavar="NUMBER", help="The link, as `list` numbers it.")
    ],
    reason: Reason = "",
) -> None:
    """Revoke a link, and end the sessions of the browsers that it signed in.

    The log of the link's campaign keeps the reason. `creamtea campaign revoke` revokes all links of a
    rater, and a sign-in by OpenID Connect.
    """
    with existing_database() as database:
        sessions.revoke(database, number, ACTOR, reason.strip())
    say(f"link {number} revoked")


def _line(link: Link) -> str:
    """Describe a link: "3 reader created 2026-03-04 05:06, used 2026-03-04 06:00, 1 browser signed in"."""

    def minute(moment: datetime) -> str:
        return f"{moment:%Y-%m-%d %H:%M} UTC"

    holder = " ".join([link.role, *([f"{link.rater!r}"] if link.rater else [])])
    if link.role == "rater" and link.rater is None:
        holder = "participants"
    where = f" of {link.campaign}" if link.campaign else ""
    where += f" of the report of {link.study} (number {link.study_id})" if link.study else ""
    if link.sign_in is not None:
        where += f", signs in as {link.sign_in}"
    facts = [f"created {minute(link.created_at)}"]
    if link.used_at is not None:
        facts.append(f"used {minute(link.used_at)}")
    if link.revoked_at is not None:
        facts.append(f"revoked {minute(link.revoked_at)}")
    elif link.used_at is None:
        facts.append(f"{'expires' if link.opens else 'expired'} {minute(link.expires_at)}")
    if link.revoked_at is None and (link.used_at is not None or link.sign_in is not None):
        facts.append(f"{counted(link.sessions, 'browser')} signed in")
    return f"{link.id}  {holder}{where}  {', '.join(facts)}"
