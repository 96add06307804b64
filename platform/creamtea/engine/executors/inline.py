"""Runs steps in this process, one after the other: for tests, debugging and very small studies.

Each runs in a thread, so that the controller keeps renewing its lease and can cancel it. A thread
cannot be killed: a cancelled step stops at its next `progress`, and nothing starts before that.
"""

from __future__ import annotations

import os
import queue
import threading
from dataclasses import dataclass, field

import psutil

from creamtea.engine.executors.base import NOTHING, Amounts, Capacity, FinishedAttempt
from creamtea.engine.runner import execute
from creamtea.engine.task import StepOutcome, StepTask

STOP_WAIT = 5.0  # seconds that shutdown waits for a cancelled step


@dataclass
class _Attempt:
    task: StepTask
    cancelled: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None


class InlineExecutor:
    address = ""
    opening = ""

    def __init__(self) -> None:
        self._finished: queue.Queue[tuple[_Attempt, StepOutcome]] = queue.Queue()
        self._attempt: _Attempt | None = None

    def check(self) -> None:
        """This process is always available."""

    def capacity(self) -> Capacity:
        memory = psutil.virtual_memory().total / (1 << 30)
        machine = Amounts(float(os.cpu_count() or 1), 0.0, memory)
        busy = self._busy()
        return Capacity(NOTHING if busy else machine, machine, idle=not busy)

    def _busy(self) -> bool:
        """A cancelled attempt counts until its thread has stopped, any other until it has been polled."""
        attempt = self._attempt
        if attempt is None or attempt.thread is None:
            return False
        return attempt.thread.is_alive() or not attempt.cancelled.is_set()

    def start(self, task: StepTask) -> None:
        attempt = self._attempt = _Attempt(task)
        attempt.thread = threading.Thread(target=self._run, args=(attempt,), daemon=True, name=task.node)
        attempt.thread.start()

    def poll(self, timeout: float) -> list[FinishedAttempt]:
        try:
            attempt, outcome = self._finished.get(timeout=timeout)
        except queue.Empty:
            return []
        if attempt.cancelled.is_set():
            return []
        self._attempt = None
        return [FinishedAttempt(attempt.task, outcome)]

    def cancel(self, task: StepTask) -> None:
        if self._attempt is not None and self._attempt.task == task:
            self._attempt.cancelled.set()

    def shutdown(self) -> None:
        attempt = self._attempt
        if attempt is not None and attempt.thread is not None:
            attempt.cancelled.set()
            attempt.thread.join(STOP_WAIT)

    def _run(self, attempt: _Attempt) -> None:
        self._finished.put((attempt, execute(attempt.task, attempt.cancelled.is_set)))
