"""`creamtea campaign`: human evaluations from the choice of items to the exchange of ratings.

A module here is some commands with a `register(commands)` of its own, called below.
"""

from __future__ import annotations

import typer

from creamtea.cli.campaign import exchange, making, raters, results, running

commands = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")
for module in (making, running, results, raters, exchange):
    module.register(commands)
