"""Shows what a controller reports: a line for every running step on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from creamtea.cli.printing import say
from creamtea.engine import events
from creamtea.report.terminal import PrintingConsole
from creamtea.store.queries import outcome_word
from creamtea.wording import counted, duration

Display = Callable[[events.EngineEvent], None]


class StepCounts:
    """How many steps are done, and what became of the others, in the words that a report has for it; `total`
    is None if the studies are not known in advance."""

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
def shown(total: int | None, reused: int, quiet: bool) -> Iterator[Display]:
    """The display for this terminal or file: nothing but trouble, live lines or plain ones; always on
    standard error."""
    counts = StepCounts(total, reused)
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
                name = escape(event.node) + (f" (attempt {event.attempt})" if event.attempt > 1 else "")
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
    """One line per event, and some of the progress of a long step: the first after `EVERY` seconds, each next
    one after twice the time, but at most `AT_MOST`."""

    EVERY, AT_MOST = 15.0, 300.0  # seconds

    def __init__(self, counts: StepCounts) -> None:
        self._counts = counts
        self._next: dict[str, tuple[float, float]] = {}  # when, and how long after the one before
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
            share = f"{event.done:g}/{event.total:g} {event.message}".rstrip()
            left = time_left(event.seconds_left)
            self._print(", ".join(filter(None, [f"{event.node}: {share}", left])))
            return
        text = line(event)
        if text:
            self._print(text)
        if isinstance(event, events.StepSucceeded | events.StepFailed):
            self._print(str(self._counts))

    def _print(self, text: str) -> None:
        elapsed = time.monotonic() - self._started
        say(f"[{elapsed:7.1f}s] {text}", err=True)


def time_left(seconds: float | None) -> str:
    return "" if seconds is None else f"about {duration(seconds)} left"


def line(event: events.EngineEvent) -> str:
    """The event as a line of a log; empty for progress, which each display shows in its own way."""
    match event:
        case events.StepStarted():
            return f"started   {event.node}" + (f" (attempt {event.attempt})" if event.attempt > 1 else "")
        case events.StepSucceeded():
            return f"done      {event.node} in {event.seconds:.1f} s"
        case events.StepRetried():
            return f"retry     {event.node} in {event.pause:g} s: {first_line(event.error)}"
        case events.StepFailed(kind="upstream"):
            return f"not run   {event.node}: {first_line(event.error)}"
        case events.StepFailed(kind="unavailable"):
            return f"unavailable {event.node}: {first_line(event.error)}"
        case events.StepFailed():
            return f"FAILED    {event.node}: {first_line(event.error)}"
        case events.StepStopped():
            return f"stopped   {event.node}" + (f": {event.reason}" if event.reason else "")
        case events.StepReset():
            return f"again     {event.node}" + (f": {event.reason}" if event.reason else "")
        case events.Notice():
            return event.message
    return ""


def first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""
