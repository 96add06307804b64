"""What an attempt says while it runs: its lines, its logging and, in a worker's process, all of its output.

They go into a file, which a thread copies into the artefact store every few seconds. So the log of a worker
that was killed lacks only what it said in the last of them.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from creamtea.contract.step import GaveWay, StepCancelled
from creamtea.engine.task import StepTask
from creamtea.errors import CreamteaError
from creamtea.scratch import scratch_folder
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.logs import HEAD, LIMIT, LogName, shortened, write_log

COPY_EVERY = 2.0  # seconds between copies into a local store
REMOTE_COPY_EVERY = 10.0  # each of which is a request that is billed


class AttemptLog:
    """The growing log of one attempt."""

    def __init__(self, store: ArtefactStore, task: StepTask, worker: int, path: Path) -> None:
        self._store, self._key = store, task.key
        self._name = LogName(task.fence, worker)
        self._path = path
        self._copied = 0  # bytes
        self.file = path.open("ab", buffering=0)  # appends, also when a child process writes to it

    def line(self, text: str) -> None:
        self.file.write(f"{time.strftime('%H:%M:%S')} {text}\n".encode(errors="backslashreplace"))

    def error(self, error: BaseException) -> None:
        """The message of an error that is meant for people, the whole traceback of any other."""
        if isinstance(error, CreamteaError | GaveWay | StepCancelled):
            self.line(str(error))
        else:
            self.line("".join(traceback.format_exception(error)).rstrip())

    def copy(self) -> None:
        """Into the store, if there is something new. A log that cannot be stored does not fail the step."""
        length = self._path.stat().st_size
        if length == self._copied:
            return
        with self._path.open("rb") as file:
            content = file.read(length if length <= LIMIT else HEAD)
            if length > LIMIT:
                file.seek(length - (LIMIT - HEAD))
                content += file.read(LIMIT - HEAD)
        with suppress(CreamteaError):
            write_log(self._store, self._key, self._name, shortened(content, length))
            self._copied = length


@contextmanager
def captured(store: ArtefactStore, task: StepTask, worker: int, own_process: bool) -> Iterator[AttemptLog]:
    """The log of the attempt that runs inside. `own_process`: everything that this process prints is its."""
    with scratch_folder("log") as folder:
        log = AttemptLog(store, task, worker, Path(folder) / "log")
        log.line(
            f"{time.strftime('%Y-%m-%d %Z')}: {task.node}, attempt {task.attempt}"
            f"{f', worker {worker}' if worker else ''}, on {socket.gethostname()}, process {os.getpid()}"
        )
        done = threading.Event()
        copying = threading.Thread(target=_keep_copying, args=(log, store.local, done), daemon=True)
        copying.start()
        try:
            with _logging(log), _output(log) if own_process else nullcontext():
                yield log
        finally:
            done.set()
            copying.join()
            log.copy()
            log.file.close()


def _keep_copying(log: AttemptLog, local: bool, done: threading.Event) -> None:
    while not done.wait(COPY_EVERY if local else REMOTE_COPY_EVERY):
        log.copy()


@contextmanager
def _logging(log: AttemptLog) -> Iterator[None]:
    handler = logging.StreamHandler(_Lines(log))
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


class _Lines:
    """The log as a stream of text, for logging."""

    def __init__(self, log: AttemptLog) -> None:
        self._log = log

    def write(self, text: str) -> None:
        if text.strip():
            self._log.line(text.rstrip("\n"))

    def flush(self) -> None:
        """Every line is written at once."""


@contextmanager
def _output(log: AttemptLog) -> Iterator[None]:
    """Standard output and error by their descriptors, so that libraries and programs are heard as well."""
    saved = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    _flush()
    for descriptor in saved:
        os.dup2(log.file.fileno(), descriptor)
    try:
        yield
    finally:
        _flush()
        for descriptor, before in saved.items():
            os.dup2(before, descriptor)
            os.close(before)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
