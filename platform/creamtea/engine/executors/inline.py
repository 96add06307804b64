"""Run steps in this process, one after the other: for tests, debugging and very small studies.

Each step runs in a thread, so that the controller can renew its lease and cancel the step. A thread cannot be
killed: a cancelled step stops at its next `progress`, and no other step starts before that.
"""

from __future__ import annotations

import atexit
import os
import queue
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

import psutil

from creamtea.engine.executors.base import Amounts, Capacity, FinishedAttempt, Names, Need, StepTask
from creamtea.engine.runner import execute

NODE = "this process"
STOP_WAIT = 5.0  # seconds that shutdown waits for a cancelled step


class _Attempt(threading.Thread):
    def __init__(self, task: StepTask, finished: queue.Queue[_Attempt]) -> None:
        super().__init__(daemon=True, name=task.name)
        self.task, self.cancelled = task, threading.Event()
        self.finished = finished

    def run(self) -> None:
        self.outcome = execute(self.task, self.cancelled.is_set)
        self.finished.put(self)


class InlineExecutor:
    address = ""  # no cluster
    opening = ""  # nothing to announce: this process is running already

    def __init__(self) -> None:
        self._finished: queue.Queue[_Attempt] = queue.Queue()
        self._attempt: _Attempt | None = None

    def check(self) -> None:
        """Do nothing: this process is always available."""

    def capacity(self) -> Capacity:
        memory = psutil.virtual_memory().total / (1 << 30)
        machine = Amounts(float(os.cpu_count() or 1), 0.0, memory)
        attempt = self._attempt
        # a cancelled attempt counts until its thread has stopped, any other until `poll` has returned it
        busy = attempt is not None and (attempt.is_alive() or not attempt.cancelled.is_set())
        running = [([NODE], Need(machine))] if busy else []
        names = {NODE: Names(frozenset({socket.gethostname()}))}
        return Capacity({NODE: machine}, running, shared=False, names=names)

    def start(self, task: StepTask, nodes: Sequence[str]) -> None:
        self._attempt = _Attempt(task, self._finished)
        self._attempt.start()

    def poll(self, timeout: float) -> list[FinishedAttempt]:
        try:
            attempt = self._finished.get(timeout=timeout)
        except queue.Empty:
            return []
        if attempt.cancelled.is_set():
            return []
        self._attempt = None
        return [FinishedAttempt(attempt.task, attempt.outcome)]

    def cancel(self, task: StepTask) -> None:
        if self._attempt is not None and self._attempt.task == task:
            self._attempt.cancelled.set()

    def shutdown(self) -> None:
        if self._attempt is not None:
            self._attempt.cancelled.set()
            self._attempt.join(STOP_WAIT)


def leave_running_steps(code: int) -> None:
    """Let this process end with `code` even if a step is still running in it."""
    # Python would interrupt the step's thread wherever it is; inside torch that aborts the process (134)
    if _is_running_a_step():
        atexit.register(_end_at_once, code)


def _end_at_once(code: int) -> None:
    if _is_running_a_step():
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # the reader of the output has ended
                stream.flush()
        os._exit(code)


def _is_running_a_step() -> bool:
    return any(isinstance(thread, _Attempt) for thread in threading.enumerate())
