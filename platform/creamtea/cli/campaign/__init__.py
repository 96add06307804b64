"""`creamtea campaign`: human evaluations from the choice of items to the exchange of ratings."""

from __future__ import annotations

import typer

from creamtea.cli.campaign import campaigns, exchange, raters

commands = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")
for module in (campaigns, raters, exchange):  # in the order of `--help`
    commands.add_typer(module.commands)
