"""`creamtea controller`: serves the studies that `creamtea submit` queues."""

from __future__ import annotations

from threading import Event
from typing import Annotated

import typer

from creamtea.cli import workplace as shared
from creamtea.engine.lease import live_controller
from creamtea.store.database import Database

WAIT = 2.0  # seconds between looks whether another controller has ended

EXAMPLES = """Examples:

`creamtea controller --address ray-head:6379`

`creamtea controller --until-idle`
"""


def register(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLES)(controller)


def controller(
    executor: shared.ExecutorName = "ray",
    address: shared.Address = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Leave when no study is unfinished.")
    ] = False,
) -> None:
    """Run every queued study of the database, until interrupted.

    `creamtea submit` starts one by itself where none lives; a permanent one is a service of a team. It
    waits while another controller lives. Interrupting it loses nothing: the next controller goes on.
    """
    from creamtea.cli.progress import shown
    from creamtea.cli.run import stoppable
    from creamtea.engine import state
    from creamtea.engine.controller import Controller

    runs_steps = shared.make_executor(executor, address)
    with shared.opened_database() as database:
        store = shared.artefact_store()
        with stoppable() as stop, shown(None, 0, False) as display:
            while _may_begin(database, until_idle, stop):
                Controller(database, store, runs_steps, display).run(
                    until=lambda: stop.is_set() or (until_idle and state.idle(database))
                )
                if not stop.is_set() and state.idle(database):
                    return  # else a study came while the lease was given back
    if stop.is_set():
        typer.echo("creamtea: the controller was stopped; the next one goes on", err=True)
        raise typer.Exit(130)


def _may_begin(database: Database, until_idle: bool, stop: Event) -> bool:
    """Wait until no other controller lives; False if that one serves every study, as this one would."""
    told = False
    while (live := live_controller(database)) is not None:
        if live.study_id is None and until_idle:
            return False
        if not told:
            typer.echo(f"waiting for another controller: {live}", err=True)
            told = True
        if stop.wait(WAIT):
            return False
    return not stop.is_set()
