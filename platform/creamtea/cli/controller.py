"""`creamtea controller`: runs the studies that `creamtea submit` queues."""

from __future__ import annotations

import signal
from contextlib import nullcontext
from functools import partial
from typing import Annotated, NoReturn

import typer

from creamtea.cli import workplace
from creamtea.cli.printing import say
from creamtea.cli.stopping import Stop, stoppable
from creamtea.engine.lease import AnotherController, shorten
from creamtea.orders.controllers import live_controller
from creamtea.settings import LOOPBACK
from creamtea.store.database import Database
from creamtea.store.engines import Waited, wait_out

WAIT_SECONDS = 2.0  # between checks whether another controller has stopped

EXAMPLES = """Examples:

`creamtea controller --address ray-head:6379`

`creamtea controller --until-idle`

`CREAMTEA_METRICS_TOKEN_FILE=metrics-token creamtea controller --metrics-port 9464`
"""


def controller(
    executor: workplace.ExecutorName = "ray",
    address: workplace.Address = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Exit when every study has ended.")
    ] = False,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve metrics for Prometheus on this port.")
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(help="Address that the metrics listen on; 0.0.0.0 for all of this machine.")
    ] = LOOPBACK[0],
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Only say whether a controller is running: exit code 0 if one is, else 1."
        ),
    ] = False,
) -> None:
    """Run every queued study of the database, until interrupted.

    `creamtea submit` starts a controller if none is running; a permanent one serves a team. While another
    controller is running it stands by, and takes over when that one ends or is lost. Interrupting it loses
    nothing: the next controller continues. SIGTERM ends it with exit code 0.
    """
    if check:
        _check()
    from creamtea.cli.progress import shown
    from creamtea.engine import state
    from creamtea.engine.controller import Controller
    from creamtea.monitoring import served

    runs_steps = workplace.make_executor(executor, address)
    with workplace.opened_database() as database:
        store = workplace.artefact_store()
        metrics = nullcontext() if metrics_port is None else served(database, metrics_host, metrics_port)
        with metrics, stoppable() as stop, shown(None, 0, False) as display:
            while _wait_for_turn(database, until_idle, stop):
                try:
                    Controller(database, store, runs_steps, display).run(
                        until=stop.is_set, until_idle=until_idle
                    )
                except AnotherController:  # that stood by as well
                    continue
                if not stop.is_set() and state.all_ended(database):
                    return  # otherwise a study was queued while the lease was released
    if stop.is_set():
        say("creamtea: the controller was stopped; the next one continues", err=True)
        # a service manager stops a controller with SIGTERM, which is no failure
        raise typer.Exit(0 if stop.number == signal.SIGTERM else 130)


def _check() -> NoReturn:
    """Say which controller renews its lease. A controller that hangs does not, and is started again by
    whatever asks here: compose's or Kubernetes' health check."""
    with workplace.opened_database() as database:
        live = live_controller(database)
    say(f"a controller is running: {live}" if live else "no controller is running", err=live is None)
    raise typer.Exit(0 if live else 1)


def _wait_for_turn(database: Database, until_idle: bool, stop: Stop) -> bool:
    """Wait until no other controller is running; False if that one runs every study, as this one would."""
    announced, waited = False, Waited()
    while (live := wait_out(lambda: live_controller(database), stop.pause, waited)) is not None:
        if live.study_id is None and until_idle:
            return False
        if not announced:
            say(f"waiting for another controller: {live}", err=True)
            announced = True
        wait_out(partial(shorten, database), stop.pause, waited)
        if stop.wait(WAIT_SECONDS):
            return False
    return not stop.is_set()
