"""Follow a study while it runs, in this process or another, and say how it ended."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from creamtea.cli.printing import say
from creamtea.engine import events
from creamtea.errors import CreamteaError
from creamtea.orders.controllers import live_controller
from creamtea.orders.rows import LIVE
from creamtea.report.terminal import PrintingConsole, make_console, render, render_answer
from creamtea.settings import Settings
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.engines import Outage, OutageClock, wait_out
from creamtea.store.queries import Node, outcome_word, steps_of, study_nodes
from creamtea.store.tables import StudyRow
from creamtea.wording import counted, describe_progress, duration

if TYPE_CHECKING:
    from creamtea.orders.submission import Submission  # slow to import

Display = Callable[[events.EngineEvent], None]


class StepCounts:
    """The numbers of steps that are done, failed, unavailable or not run, in the words of a report.

    `total` is None if the studies are not known in advance.
    """

    def __init__(self, total: int | None, reused: int) -> None:
        self.total = total
        self.reused = reused
        self.ran = 0
        self.without = dict.fromkeys(("failed", "unavailable", "not run"), 0)

    @property
    def ended(self) -> int:
        return self.ran + self.reused + sum(self.without.values())

    def count(self, event: events.EngineEvent) -> None:
        self.ran += isinstance(event, events.StepSucceeded)
        if isinstance(event, events.StepReset):
            self.ran, self.reused = (self.ran, self.reused - 1) if self.reused else (self.ran - 1, 0)
        if isinstance(event, events.StepFailed):
            self.without[outcome_word(event.kind)] += 1

    def __str__(self) -> str:
        of = "steps" if self.total is None else f"of {counted(self.total, 'step')}"
        parts = [f"{self.ran + self.reused} {of} done"]
        parts += [f"{self.reused} reused"] if self.reused else []
        return ", ".join([*parts, *(f"{count} {word}" for word, count in self.without.items() if count)])


@contextmanager
def shown(submission: Submission | None, quiet: bool) -> Iterator[Display]:
    """Open a display on standard error: live lines on a terminal, plain ones elsewhere.

    With `quiet` it shows only trouble.
    """
    counts = StepCounts(len(submission.keys), submission.reused) if submission else StepCounts(None, 0)
    if submission:
        tell_of_lost_files(submission)
    if quiet:
        yield trouble_alone
        return
    console = PrintingConsole(stderr=True, highlight=False)
    if not console.is_terminal:
        yield PlainLines(counts)
        return
    columns = (
        SpinnerColumn(finished_text=" "),
        TextColumn("{task.description}"),
        BarColumn(bar_width=12),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", table_column=Column(no_wrap=True)),
        # last, where a narrow terminal cuts it
        TextColumn("{task.fields[message]}", style="dim", table_column=Column(no_wrap=True, ratio=1)),
    )
    with Progress(*columns, console=console, transient=True, expand=True) as progress:
        yield LiveLines(progress, counts)


def tell_of_lost_files(submission: Submission) -> None:
    """Say that finished steps run again because the store has lost files that they made."""
    if submission.lost:
        steps = counted(submission.lost, "finished step")
        again = "they run again, and so do all steps behind them"
        say(f"creamtea: the store has lost files of {steps}: {again}", err=True)


def trouble_alone(event: events.EngineEvent) -> None:
    if isinstance(event, events.Notice) and event.trouble:
        say(f"creamtea: {event.message}", err=True)


class LiveLines:
    def __init__(self, progress: Progress, counts: StepCounts) -> None:
        self._progress = progress
        self._counts = counts
        self._tasks: dict[str, TaskID] = {}
        self._all = progress.add_task(str(counts), total=counts.total, message="", left="")
        self._progress.update(self._all, completed=counts.reused)

    def __call__(self, event: events.EngineEvent) -> None:
        self._counts.count(event)
        match event:
            case events.StepStarted():
                name = escape(event.name) + (f" (attempt {event.attempt})" if event.attempt > 1 else "")
                self._tasks[event.key] = self._progress.add_task(name, total=None, message="", left="")
            case events.StepProgressed() if event.key in self._tasks:
                task = self._tasks[event.key]
                self._progress.update(
                    task,
                    completed=event.done,
                    total=event.total,
                    message=escape(event.message),
                    left=time_left(event.seconds_left),
                )
            case events.StepSucceeded() | events.StepFailed() | events.StepRetried() | events.StepStopped():
                if event.key in self._tasks:
                    self._progress.remove_task(self._tasks.pop(event.key))
        text = line(event)
        if text and not isinstance(event, events.StepStarted | events.StepSucceeded):
            self._progress.console.print(text, markup=False)
        self._progress.update(self._all, completed=self._counts.ended, description=str(self._counts))


class PlainLines:
    """One line per event, and some of the progress of a long step.

    Progress is first printed after `EVERY` seconds. Each further pause is twice as long, up to `AT_MOST`.
    """

    EVERY, AT_MOST = 15.0, 300.0  # seconds

    def __init__(self, counts: StepCounts) -> None:
        self._counts = counts
        self._next: dict[str, tuple[float, float]] = {}  # when the next line is due, and the pause before it
        self._started = time.monotonic()

    def __call__(self, event: events.EngineEvent) -> None:
        self._counts.count(event)
        now = time.monotonic()
        if isinstance(event, events.StepStarted):
            self._next[event.key] = now + self.EVERY, self.EVERY
        if isinstance(event, events.StepProgressed):
            due, pause = self._next.get(event.key, (now, self.EVERY))
            if now < due:
                return
            pause = min(2 * pause, self.AT_MOST)
            self._next[event.key] = now + pause, pause
            share = describe_progress(event.done, event.total, event.message)
            left = time_left(event.seconds_left)
            self._print(", ".join(filter(None, [f"{event.name}: {share}", left])))
            return
        text = line(event)
        if isinstance(event, events.StepSucceeded):
            text += f"; {self._counts}"
        if text:
            self._print(text)
        if isinstance(event, events.StepFailed):
            self._print(str(self._counts))

    def _print(self, text: str) -> None:
        elapsed = time.monotonic() - self._started
        say(f"[{elapsed:7.1f}s] {text}", err=True)


def time_left(seconds: float | None) -> str:
    return "" if seconds is None else f"about {duration(seconds)} left"


def line(event: events.EngineEvent) -> str:
    """Format an event as a line of a log; empty for progress, which each display shows in its own way."""
    match event:
        case events.StepStarted():
            return f"started   {event.name}" + (f" (attempt {event.attempt})" if event.attempt > 1 else "")
        case events.StepSucceeded():
            return f"done      {event.name} in {event.seconds:.1f} s"
        case events.StepRetried():
            return f"retry     {event.name} in {event.pause:g} s: {first_line(event.error)}"
        case events.StepFailed(kind="upstream"):
            return f"not run   {event.name}: {first_line(event.error)}"
        case events.StepFailed(kind="unavailable"):
            return f"unavailable {event.name}: {first_line(event.error)}"
        case events.StepFailed():
            return f"FAILED    {event.name}: {first_line(event.error)}"
        case events.StepStopped():
            return f"stopped   {event.name}" + (f": {event.reason}" if event.reason else "")
        case events.StepReset():
            return f"again     {event.name}" + (f": {event.reason}" if event.reason else "")
        case events.Notice():
            return event.message
    return ""


def first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""


POLL_SECONDS = 1.0
MISSING_SECONDS = 30.0  # how long to wait without any controller


def no_controller() -> str:
    """Say that no controller is running, and what to do."""
    if Settings.load().controller_is_service:
        return "no controller is running now: what is queued waits until the service is back"
    return (
        "no controller is running: `creamtea controller --until-idle` starts one, "
        "which continues the studies that have not ended"
    )


class Patience:
    """Measures how long no controller has been running."""

    def __init__(self) -> None:
        self._alive_at = time.monotonic()

    def check(self, alive: bool, message: str) -> None:
        """Raise CreamteaError if there has been no controller for long, and none will start by itself."""
        if alive or Settings.load().controller_is_service:
            self._alive_at = time.monotonic()
        elif time.monotonic() > self._alive_at + MISSING_SECONDS:
            raise CreamteaError(message)


def follow(
    database: Database, store: ArtefactStore, submission: Submission, log: str
) -> Iterator[events.EngineEvent]:
    """Yield what happens to the study, as events, until it has ended.

    CreamteaError, which names the `log`, if no controller is left that could continue it.
    """
    study_id = submission.study_id
    # steps that finish between the submission and the first poll are reported as well
    seen = {key: "succeeded" if key in submission.reused_keys else "pending" for key in submission.keys}
    patience, clock = Patience(), OutageClock()
    while True:
        over, nodes, alive = wait_out(lambda: _poll(database, study_id), _wait, clock)
        for key, node in steps_of(nodes).items():
            if node.state != seen[key]:
                event = _event(node, seen[key])
                seen[key] = node.state
                if event is not None:
                    yield event
            if node.state == "running":
                progress = store.read_progress(key, node.fence)
                if progress is not None:
                    yield events.StepProgressed(key, node.name, **vars(progress))
        if over:
            return
        patience.check(
            alive,
            f"no controller is working on the study any more; {log} says why. "
            "`creamtea submit` starts a new one",
        )
        time.sleep(POLL_SECONDS)


def follow_shown(
    database: Database, store: ArtefactStore, submission: Submission, log: str, quiet: bool
) -> None:
    """Follow a study with a display. Exits with 130 if a person interrupts it; the study goes on."""
    try:
        with shown(submission, quiet) as display:
            for event in follow(database, store, submission, log):
                display(event)
    except KeyboardInterrupt:
        say(
            f"creamtea: the study continues; follow it with `creamtea status {submission.name} --watch`",
            err=True,
        )
        raise typer.Exit(130) from None


def _poll(database: Database, study_id: int) -> tuple[bool, list[Node], bool]:
    """Return whether the study is over, its nodes, and whether a controller is running."""
    with database.session() as session:
        over = session.get_one(StudyRow, study_id).state not in LIVE  # first: the last change is reported
        nodes = study_nodes(session, study_id)
    return over, nodes, live_controller(database) is not None


def _wait(outage: Outage, pause: float) -> bool:
    time.sleep(pause)
    return True


def _event(node: Node, before: str) -> events.EngineEvent | None:
    error = node.error or ""
    match node.state:
        case "running":
            return events.StepStarted(node.key, node.name, node.kind, node.attempts)
        case "succeeded" if not node.has_failed:
            return events.StepSucceeded(node.key, node.name, float(node.facts.get("seconds", 0.0)))
        case "failed" | "succeeded":
            return events.StepFailed(node.key, node.name, node.error_kind or "", error)
        case "ready" if before == "running" and node.error_kind is not None:
            return events.StepRetried(node.key, node.name, node.attempts, error, node.pause)
        case "pending" | "ready" if before == "succeeded":
            return events.StepReset(node.key, node.name)
        case "pending" | "ready" | "cancelled" if before == "running":
            return events.StepStopped(node.key, node.name)
    return None


REMEDIES = {
    "deterministic": "a retry would fail again: fix what the message names, then run the study again",
    "infrastructure": "`creamtea retry {name}` tries again, from a checkpoint if there is one",
    "timeout": "raise the limit and run the study again, from a checkpoint if there is one",
}


@dataclass(frozen=True)
class StepProblem:
    node: str
    kind: str  # error kind
    error: str
    attempts: int


@dataclass(frozen=True)
class StudyOutcome:
    study: str
    study_id: int
    state: str
    steps: dict[str, int]  # by outcome: the state; for failed steps also "unavailable" or "not run"
    failed: list[StepProblem]
    unavailable: list[StepProblem]
    left_out: list[StepProblem]  # not run, because an earlier step failed

    @property
    def exit_code(self) -> int:
        return 0 if self.state == "succeeded" else 1


def outcome_of(database: Database, study_id: int) -> StudyOutcome:
    with database.session() as session:
        study = session.get_one(StudyRow, study_id)
        nodes = study_nodes(session, study_id)
    steps = steps_of(nodes)
    by_kind: dict[str, list[StepProblem]] = {"upstream": [], "unavailable": [], "failed": []}
    for node in steps.values():
        if node.has_failed:
            kind = node.error_kind or "deterministic"
            problem = StepProblem(node.name, kind, node.error or "", node.attempts)
            by_kind.get(kind, by_kind["failed"]).append(problem)
    return StudyOutcome(
        study=study.name,
        study_id=study.id,
        state=study.state,
        steps=dict(Counter(node.outcome for node in steps.values())),
        failed=by_kind["failed"],
        unavailable=by_kind["unavailable"],
        left_out=by_kind["upstream"],
    )


def conclude(database: Database, submission: Submission, started: float, *, as_json: bool) -> None:
    """Print the report and the problems, and exit with the study's exit code. `started`: time.monotonic()."""
    from creamtea.report.build import build_report

    outcome = outcome_of(database, submission.study_id)
    report = build_report(database, submission.study_id, complete=not as_json)
    if as_json:
        warnings = [warning.values() for warning in (*submission.warnings, *report.warnings())]
        facts = {"reused": submission.reused, "seconds": round(time.monotonic() - started, 1)}
        say(json.dumps({**asdict(outcome), **facts, "warnings": warnings}, ensure_ascii=False))
    else:
        from creamtea.cli.workplace import show_warnings

        console = make_console()
        render(report, console)
        show_warnings(submission.warnings)
        for text in advise(outcome):
            say(text, err=True)
        if console.is_terminal:
            render_answer(report, console)
            say("\nIn a browser: creamtea serve", err=True)
    raise typer.Exit(outcome.exit_code)


def advise(outcome: StudyOutcome) -> list[str]:
    """Say what to do about each problem; the report has already named it on one line."""
    lines = []
    for kind, remedy in REMEDIES.items():
        problems = [problem for problem in outcome.failed if problem.kind == kind]
        if problems:
            places = ", ".join(problem.node for problem in problems)
            lines.append(f"{places}: {remedy.format(name=outcome.study)}")
        for problem in problems:
            first, _, more = problem.error.partition("\n")
            if more:  # an unexpected error has a traceback
                lines += [f"{problem.node}: {first}", *(f"    {line}" for line in more.splitlines())]
    if outcome.left_out:
        lines.append(f"{counted(len(outcome.left_out), 'step')} not run: an earlier step failed")
    if outcome.unavailable:
        lines.append("the next run tries the unavailable steps again")
    if outcome.state == "cancelled":
        lines.append(f"the study was cancelled; `creamtea retry {outcome.study}` continues it")
    return lines
