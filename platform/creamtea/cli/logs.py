"""`creamtea logs`: what a step said, also while it runs."""

from __future__ import annotations

import difflib
import time
from typing import Annotated

import typer

from creamtea.cli import workplace
from creamtea.cli.follow import Patience, nobody
from creamtea.cli.printing import hand_over, say
from creamtea.errors import InputError
from creamtea.orders.controllers import live_controller
from creamtea.orders.rows import UNFINISHED
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.logs import LogName, list_logs, news, read_log
from creamtea.store.queries import Node, find_study, study_nodes

POLL_SECONDS = 1.0
EXAMPLES = "Examples: `creamtea logs demo train/softmax/1` · `creamtea logs demo train/softmax/1 --follow`"


def logs(
    name: workplace.StudyName,
    step: Annotated[
        str, typer.Argument(metavar="STEP", help="Its place, as `creamtea status NAME` shows it.")
    ],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep showing until the step has ended.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="All attempts, not only the last.")] = False,
    worker: Annotated[int, typer.Option(min=0, help="Of a step with several workers: which one.")] = 0,
) -> None:
    """Show the log of a step: messages, warnings and progress of its last attempt, failed ones too.

    A running step's log is a few seconds old. The middle of a log above a megabyte is left out.
    """
    store = workplace.artefact_store(writable=False)
    with workplace.existing_database() as database:
        node = _node(database, name, step)
        names = [log for log in list_logs(store, node.key) if log.worker == worker]
        for earlier in names[:-1] if every else []:
            hand_over(read_log(store, node.key, earlier), nl=False)
        last = names[-1] if names else None
        if follow:
            node, last = _follow(database, store, (name, step, worker), last)
        elif last is not None:
            hand_over(read_log(store, node.key, last), nl=False)
    if last is None:
        raise InputError(_no_log(list_logs(store, node.key), node, worker))
    if node.state == "failed":
        first_line = (node.error or "").partition("\n")[0]
        say(f"{step} failed ({node.error_kind}): {first_line}", err=True)


def _no_log(others: list[LogName], node: Node, worker: int) -> str:
    """Why there is nothing to show; `others`: the logs of the step's other workers."""
    if others:
        workers = ", ".join(map(str, sorted({log.worker for log in others})))
        return f"--worker {worker}: step {node.name} has no log of that worker; it has those of {workers}"
    return f"step {node.name} has no log: it is {node.state}"


def _follow(
    database: Database,
    store: ArtefactStore,
    place: tuple[str, str, int],
    last: LogName | None,
) -> tuple[Node, LogName | None]:
    """Print the log of the last attempt so far and what is new until the step has ended; a later attempt's
    log follows that of the one before."""
    name, step, worker = place
    shown, told, patience = "", False, Patience()
    while True:
        node = _node(database, name, step)  # before the log, so that its end is shown
        for log in list_logs(store, node.key):
            if log.worker != worker or (last is not None and log < last):
                continue
            if log != last:
                last, shown = log, ""
            content = read_log(store, node.key, log)
            if node.state in UNFINISHED:
                content = content[: content.rfind("\n") + 1]  # whole lines
            hand_over(news(shown, content), nl=False)
            shown = content
        if node.state not in UNFINISHED:
            return node, last
        alive = live_controller(database) is not None
        if not alive and not told:
            say(f"creamtea: {nobody()}", err=True)
        told = not alive
        patience.check(alive, f"step {step} has not ended, and {nobody()}")
        time.sleep(POLL_SECONDS)


def _node(database: Database, name: str, step: str) -> Node:
    """The step at a place of the study; InputError that names similar places."""
    with database.session() as session:
        nodes = {node.name: node for node in study_nodes(session, find_study(session, name).id)}
    if step not in nodes:
        similar = difflib.get_close_matches(step, nodes, n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(similar)}?" if similar else f"`creamtea status {name}` lists them"
        raise InputError(f"study {name} has no step {step}; {hint}")
    return nodes[step]
