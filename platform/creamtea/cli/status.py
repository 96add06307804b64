"""`creamtea status` and `creamtea logs`: studies, their steps, and the log of a step."""

from __future__ import annotations

import difflib
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from creamtea.cli import workplace
from creamtea.cli.following import Patience, no_controller
from creamtea.cli.printing import as_json as as_line
from creamtea.cli.printing import hand_over, say
from creamtea.errors import InputError
from creamtea.orders.controllers import live_controller
from creamtea.orders.rows import LIVE, UNFINISHED, pause_left
from creamtea.report.terminal import make_console
from creamtea.store.areas import LogName, list_logs, new_text, read_log
from creamtea.store.artefacts import ArtefactStore, Progress
from creamtea.store.database import Database
from creamtea.store.queries import Node, find_study, list_studies, study_nodes
from creamtea.store.rows import from_row
from creamtea.wording import describe_progress

REFRESH = 1.0  # seconds
STYLES = {
    **{"running": "bold cyan", "succeeded": "green", "failed": "bold red"},
    **dict.fromkeys(("cancelled", "unavailable", "not run"), "yellow"),
}
STATUS_EXAMPLES = """Examples:

`creamtea status`

`creamtea status demo --watch`

`creamtea status demo --json`
"""


# what `status --json` prints, too


@dataclass(frozen=True)
class StudyLine:
    id: int
    study: str
    state: str
    steps: dict[str, int]  # by state
    unavailable: int
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True)
class StepLine:
    node: str  # its place in the study
    key: str
    kind: str
    state: str
    outcome: str
    attempts: int
    pause_left: float | None  # [s] until a step that failed is tried again
    progress: Progress | None
    seconds: float | None
    where: str | None  # the machine
    error_kind: str | None
    error: str | None


@dataclass(frozen=True)
class AllStudies:
    studies: list[StudyLine]
    controller: str | None  # the one that is running

    @property
    def unfinished(self) -> bool:
        return any(study.state in LIVE for study in self.studies)


@dataclass(frozen=True)
class OneStudy:
    id: int
    study: str
    state: str
    created_at: datetime
    finished_at: datetime | None
    steps: list[StepLine]
    controller: str | None  # the one that is running

    @property
    def unfinished(self) -> bool:
        return self.state in LIVE


def status(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A study, or its number; without it, all.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Keep showing until the study has ended.")] = False,
    as_json: workplace.AsJson = False,
) -> None:
    """Show the studies, or one study's steps with state, attempts, progress, seconds and error."""
    if watch and as_json:
        raise InputError("--watch draws tables, and --json prints one state: give one of them")
    with workplace.existing_database() as database:
        shown = _read_status(database, name)
        if as_json:
            say(as_line(shown))
            return
        console = make_console()
        if not watch:
            console.print(_drawn(shown))
            return
        patience = Patience()
        with Live(_drawn(shown), console=console, auto_refresh=False) as live:
            while shown.unfinished:
                patience.check(shown.controller is not None, no_controller())
                time.sleep(REFRESH)
                shown = _read_status(database, name)
                live.update(_drawn(shown), refresh=True)


def _read_status(database: Database, name: str | None) -> AllStudies | OneStudy:
    study = None if name is None else workplace.study_asked_for(database, name)
    with database.session() as session:
        running = live_controller(database)
        controller = None if running is None else str(running)
        if study is None:
            lines = [from_row(StudyLine, row, study=row.name) for row in list_studies(session)]
            return AllStudies(lines, controller)
        store, now = workplace.artefact_store(writable=False), database.now(session)
        row = find_study(session, study)
        steps = [_step_line(node, now, store) for node in study_nodes(session, row.id)]
        return from_row(OneStudy, row, study=row.name, steps=steps, controller=controller)


def _step_line(node: Node, now: datetime, store: ArtefactStore) -> StepLine:
    seconds = None
    if node.started_at is not None and node.state in ("running", "succeeded", "failed", "cancelled"):
        seconds = round(((node.finished_at or now) - node.started_at).total_seconds(), 1)
    return from_row(
        StepLine,
        node,
        node=node.name,
        pause_left=round(pause_left(node.not_before, now), 1) if node.state == "ready" else None,
        progress=store.read_progress(node.key, node.fence) if node.state == "running" else None,
        seconds=seconds,
        where=node.facts.get("node"),
    )


def _drawn(shown: AllStudies | OneStudy) -> RenderableType:
    return _studies_table(shown) if isinstance(shown, AllStudies) else _steps_table(shown)


def _studies_table(shown: AllStudies) -> RenderableType:
    if not shown.studies:
        return Text("no studies yet; `creamtea run STUDY.yaml` runs one")
    table = _table(
        ("id", "study", "state", "done", "no result", "unavailable", "submitted (UTC)"),
        [
            (
                str(study.id),
                escape(study.study),
                _styled(study.state),
                f"{study.steps.get('succeeded', 0)}/{sum(study.steps.values())}",
                _if_any(study.steps.get("failed", 0) - study.unavailable),
                _if_any(study.unavailable),
                f"{study.created_at:%Y-%m-%d %H:%M}",
            )
            for study in shown.studies
        ],
    )
    live = shown.controller or "none; `creamtea submit` or `creamtea controller` starts one"
    return Group(table, Text(f"controller: {live}"))


def _steps_table(shown: OneStudy) -> RenderableType:
    table = _table(
        ("step", "state", "attempts", "progress", "seconds", "error"),
        [
            (
                escape(step.node),
                _styled(step.outcome),
                str(step.attempts) if step.attempts > 1 else "",
                escape(_progress(step)),
                "" if step.seconds is None else f"{step.seconds:.1f}",
                escape(_error(step)),
            )
            for step in shown.steps
        ],
    )
    missing = [Text(no_controller(), "yellow")] if shown.unfinished and shown.controller is None else []
    return Group(Text(f"{shown.study} (submission {shown.id}): {shown.state}"), table, *missing)


def _table(heads: tuple[str, ...], rows: list[tuple[str | Text, ...]]) -> Table:
    """Draw a table without its empty columns. A narrow terminal breaks names, and never cuts states."""
    filled = [column for column in range(len(heads)) if any(row[column] for row in rows)]
    table = Table(highlight=False)
    for column in filled:
        width = max(len(row[column]) for row in rows) if heads[column] == "state" else None
        table.add_column(heads[column], min_width=width, overflow="fold")
    for row in rows:
        table.add_row(*(row[column] for column in filled))
    return table


def _if_any(count: int) -> str:
    return str(count) if count > 0 else ""


def _progress(step: StepLine) -> str:
    if step.progress is None:
        return f"tried again in {step.pause_left:.0f} s" if step.pause_left else ""
    return describe_progress(step.progress.done, step.progress.total, step.progress.message)


def _error(step: StepLine) -> str:
    if not step.error:
        return ""
    kind = f"{step.error_kind}: " if step.outcome in ("failed", "succeeded") else ""
    return f"{kind}{step.error.splitlines()[0]}"


def _styled(state: str) -> Text:
    return Text(state, style=STYLES.get(state, ""))


POLL_SECONDS = 1.0
LOGS_EXAMPLES = (
    "Examples: `creamtea logs demo train/softmax/1` · `creamtea logs demo train/softmax/1 --follow`"
)


def logs(
    name: workplace.StudyOrNumber,
    step: Annotated[
        str, typer.Argument(metavar="STEP", help="Its place, as `creamtea status NAME` shows it.")
    ],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep showing until the step has ended.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="All attempts, not only the last.")] = False,
    worker: Annotated[int, typer.Option(min=0, help="Which worker's log, if the step has several.")] = 0,
) -> None:
    """Show the log of a step: messages, warnings and progress of its last attempt, even if it failed.

    The log of a running step is a few seconds old. A log above a megabyte is shown without its middle.
    """
    store = workplace.artefact_store(writable=False)
    with workplace.existing_database() as database:
        node = _node(database, name, step)
        names = [log for log in list_logs(store, node.key) if log.worker == worker]
        for earlier in names[:-1] if every else []:
            hand_over(read_log(store, node.key, earlier), nl=False)
        last = names[-1] if names else None
        if follow:
            node, last = _follow(database, store, name, step, worker, last)
        elif last is not None:
            hand_over(read_log(store, node.key, last), nl=False)
    if last is None:
        raise InputError(_no_log(list_logs(store, node.key), node, worker))
    if node.state == "failed":
        first_line = (node.error or "").partition("\n")[0]
        say(f"{step} failed ({node.error_kind}): {first_line}", err=True)


def _no_log(others: list[LogName], node: Node, worker: int) -> str:
    """Say why there is nothing to show. `others`: the logs of the step's other workers."""
    if others:
        workers = ", ".join(map(str, sorted({log.worker for log in others})))
        return f"--worker {worker}: step {node.name} has no log of that worker, only of {workers}"
    return f"step {node.name} has no log: it {node.predicate}"


def _follow(
    database: Database,
    store: ArtefactStore,
    name: str,
    step: str,
    worker: int,
    last: LogName | None,
) -> tuple[Node, LogName | None]:
    """Print the last attempt's log, and what is added to it, until the step has ended.

    The logs of later attempts follow.
    """
    shown, announced, patience = "", False, Patience()
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
            hand_over(new_text(shown, content), nl=False)
            shown = content
        if node.state not in UNFINISHED:
            return node, last
        alive = live_controller(database) is not None
        if not alive and not announced:
            say(f"creamtea: {no_controller()}", err=True)
        announced = not alive
        patience.check(alive, f"step {step} has not ended, and {no_controller()}")
        time.sleep(POLL_SECONDS)


def _node(database: Database, name: str, step: str) -> Node:
    """Return the step at a place of the study. InputError names similar places."""
    study = workplace.study_asked_for(database, name)
    with database.session() as session:
        nodes = {node.name: node for node in study_nodes(session, find_study(session, study).id)}
    if step not in nodes:
        similar = difflib.get_close_matches(step, nodes, n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(similar)}?" if similar else f"`creamtea status {name}` lists them"
        raise InputError(f"study {name} has no step {step}; {hint}")
    return nodes[step]
