"""`creamtea campaign`: create a human evaluation and hand out links to its raters."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer

from creamtea.cli.serve import LOOPBACK, PORT, Address, link_to
from creamtea.cli.workplace import opened_database
from creamtea.human import access, campaigns

Name = Annotated[str, typer.Argument(metavar="NAME", help="The campaign.")]
RaterName = Annotated[str, typer.Option("--rater", metavar="PSEUDONYM", help="The rater, by a pseudonym.")]

commands = typer.Typer(
    help="Human evaluation: people rate outputs side by side.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


def register(app: typer.Typer) -> None:
    app.add_typer(commands, name="campaign")


@commands.command(
    epilog="Example: `creamtea campaign create first --study demo --test-set test --systems a,b --items 20`"
)
def create(
    name: Name,
    study: Annotated[str, typer.Option(help="The study whose outputs are rated.")],
    test_set: Annotated[str, typer.Option(help="One of its test sets.")],
    systems: Annotated[str, typer.Option(metavar="A,B,…", help="Two to eight of its systems.")],
    items: Annotated[int | None, typer.Option(help="At most this many segments; all by default.")] = None,
    ratings: Annotated[int, typer.Option(help="Raters for each segment.")] = 1,
    seed: Annotated[int, typer.Option(help="Draws the segments, and the order of outputs on the page.")] = 1,
) -> None:
    """Create a campaign: contrastive direct assessment, 1 to 6 in steps of 0.2, blind and shuffled.

    Only segments on which the systems differ are rated.
    """
    with opened_database() as database:
        made = campaigns.create_campaign(
            database,
            name,
            study=study,
            test_set=test_set,
            systems=[system.strip() for system in systems.split(",") if system.strip()],
            limit=items,
            ratings_per_item=ratings,
            seed=seed,
        )
    typer.echo(f"campaign {name}: {made.items} items × {len(made.systems)} systems")
    typer.echo(f"next: creamtea campaign link {name} --rater PSEUDONYM")


@commands.command(epilog="Example: `creamtea campaign link first --rater anna`")
def link(name: Name, rater: RaterName, url: Address = f"http://{LOOPBACK[0]}:{PORT}") -> None:
    """Print a link for a rater, who is added if new. It works once, within 14 days."""
    with opened_database() as database:
        rater_id = campaigns.add_rater(database, name, rater)
        typer.echo(link_to(url, access.create_link(database, "rater", rater_id=rater_id)))


@commands.command(epilog="Example: `creamtea campaign revoke first --rater anna`")
def revoke(name: Name, rater: RaterName) -> None:
    """Withdraw every link of a rater, used or not. What the rater has saved stays."""
    with opened_database() as database:
        revoked = access.revoke_rater(database, campaigns.find_rater(database, name, rater))
    typer.echo(f"{revoked} link{'s' * (revoked != 1)} of {rater} withdrawn")


@commands.command("list")
def list_campaigns(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the campaigns and how far they are."""
    with opened_database() as database:
        found = campaigns.summaries(database)
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(one) for one in found], ensure_ascii=False))
        return
    for one in found:
        typer.echo(
            f"{one.name}: study {one.study}, {one.test_set}, {len(one.systems)} systems, "
            f"{one.ratings} of {one.wanted} item ratings, {one.raters} raters"
        )
    if not found:
        typer.echo("no campaigns yet; see creamtea campaign create --help")
