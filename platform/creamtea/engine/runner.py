"""Run one attempt of a step in a worker's process, and keep its log.

The log goes into a file, which a thread copies into the artefact store every few seconds. If a worker is
killed, its log lacks only the last seconds.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
import platform
import resource
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import creamtea
from creamtea.contract.step import (
    Checkpoints,
    GaveWay,
    LiveView,
    StepCancelled,
    StepContext,
    StepKind,
    StepParams,
    StepResult,
)
from creamtea.engine.executors.base import DAMAGED, GAVE_WAY, StepOutcome, StepTask, storable
from creamtea.errors import CreamteaError, DamagedArtefact, InfrastructureError, StepError, StepUnavailable
from creamtea.files import clear_abandoned, scratch_folder
from creamtea.methods.plugins import require
from creamtea.settings import is_withheld, processor_name
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.store.areas import LOG_HEAD, LOG_LIMIT, LogName, shorten_log, write_log
from creamtea.store.artefacts import DISK_FULL, ArtefactStore

COPY_EVERY = 2.0  # seconds between copies into a local store
REMOTE_COPY_EVERY = 10.0  # the same for a remote store, which bills each copy as a request


class AttemptLog:
    def __init__(self, store: ArtefactStore, task: StepTask, worker: int, path: Path) -> None:
        self._store, self._key = store, task.key
        self._name = LogName(task.fence, worker)
        self._path = path
        self._copied = 0  # bytes
        self.file = path.open("ab", buffering=0)  # append mode, because child processes write to it as well

    def line(self, text: str) -> None:
        self.file.write(f"{time.strftime('%H:%M:%S')} {text}\n".encode(errors="backslashreplace"))

    def error(self, error: BaseException) -> None:
        """Log an error: its message if that is meant for people, otherwise the whole traceback."""
        if isinstance(error, CreamteaError | GaveWay | StepCancelled):
            self.line(str(error))
        else:
            self.line("".join(traceback.format_exception(error)).rstrip())

    def copy(self) -> None:
        """Copy the log into the store if it has grown; a failure to store it does not fail the step."""
        length = self._path.stat().st_size
        if length == self._copied:
            return
        with self._path.open("rb") as file:
            content = file.read(length if length <= LOG_LIMIT else LOG_HEAD)
            if length > LOG_LIMIT:
                file.seek(length - (LOG_LIMIT - LOG_HEAD))
                content += file.read(LOG_LIMIT - LOG_HEAD)
        with suppress(CreamteaError):
            write_log(self._store, self._key, self._name, shorten_log(content, length))
            self._copied = length


@contextmanager
def captured(store: ArtefactStore, task: StepTask, worker: int, own_process: bool) -> Iterator[AttemptLog]:
    """Log the attempt in the block; with `own_process` also everything that the process prints."""
    with scratch_folder("log") as folder:
        log = AttemptLog(store, task, worker, Path(folder) / "log")
        log.line(
            f"{time.strftime('%Y-%m-%d %Z')}: {task.name}, attempt {task.attempt}"
            f"{f', worker {worker}' if worker else ''}, on {socket.gethostname()}, process {os.getpid()}"
        )
        done = threading.Event()

        def keep_copying() -> None:
            while not done.wait(COPY_EVERY if store.local else REMOTE_COPY_EVERY):
                log.copy()

        copying = threading.Thread(target=keep_copying, daemon=True)
        copying.start()
        try:
            with _logging(log), _output(log) if own_process else nullcontext():
                yield log
        finally:
            done.set()
            copying.join()
            log.copy()
            log.file.close()


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
    """The log as a text stream, for Python's module `logging`."""

    def __init__(self, log: AttemptLog) -> None:
        self._log = log

    def write(self, text: str) -> None:
        if text.strip():
            self._log.line(text.rstrip("\n"))

    def flush(self) -> None:
        """Do nothing: every line is written at once."""


@contextmanager
def _output(log: AttemptLog) -> Iterator[None]:
    """Redirect the descriptors of standard output and error, which child processes share."""
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


# ---------------------------------------------------------------- the attempt: files in, run, files out

PROGRESS_EVERY = 0.5  # seconds between writes
REMOTE_PROGRESS_EVERY = 5.0  # the same for a remote store, which bills each write as a request
LINE_EVERY = 10.0  # seconds between lines of progress in the log
TRACEBACK_LINES = 12  # the last lines of an unexpected error's traceback, kept in its message


def execute(
    task: StepTask,
    cancelled: Callable[[], bool] = lambda: False,
    rank: int = 0,
    own_process: bool = False,
) -> StepOutcome:
    """Run the step and store its output files; every failure becomes an outcome with its error kind.

    `rank` above 0: run as a further worker of the step; only the first worker stores files and progress.
    `own_process`: nothing else runs in this process, so everything that it prints belongs to the step.
    """
    if own_process:
        creamtea.collect_rarely()
        # the node may have been started with variables that workers must not have
        for name in list(filter(is_withheld, os.environ)):
            del os.environ[name]
    try:
        store = ArtefactStore(task.artefacts)
        with captured(store, task, rank, own_process) as log:
            try:
                return _attempt(task, store, cancelled, rank, log)
            except BaseException as error:
                log.error(error)
                raise
    except GaveWay:
        return StepOutcome.failure(GAVE_WAY, "it goes on with more workers")
    except DamagedArtefact as error:
        return StepOutcome.failure(DAMAGED, str(error))
    except StepCancelled as error:
        return StepOutcome.failure("infrastructure", str(error))
    except KeyboardInterrupt:
        raise
    # otherwise a library's SystemExit or a Rust extension's panic would silently end an inline step's thread
    except BaseException as error:
        return StepOutcome.failure(*describe(error))


def describe(error: BaseException) -> tuple[str, str]:
    """Return an error's kind, and a message for people."""
    if isinstance(error, StepUnavailable):
        return "unavailable", str(error)
    if isinstance(error, InfrastructureError):
        return "infrastructure", str(error)
    if isinstance(error, CreamteaError):
        return "deterministic", str(error)
    if isinstance(error, MemoryError):
        return "infrastructure", f"out of memory: {error}".rstrip(": ")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(error, torch.OutOfMemoryError):
        return "infrastructure", (
            f"the GPU's memory ran out: {str(error).partition('. ')[0]}. Where steps share a GPU, give each "
            "more of it under `resources`; else lower `batch_tokens` (training) or `batch_size` (system)"
        )
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        return "infrastructure", f"no space left on the worker's disk: {error}"
    lines = "".join(traceback.format_exception(error)).rstrip().splitlines()
    return "deterministic", "\n".join([f"{type(error).__name__}: {error}", *lines[-TRACEBACK_LINES:]])


def _attempt(
    task: StepTask, store: ArtefactStore, cancelled: Callable[[], bool], rank: int, log: AttemptLog
) -> StepOutcome:
    started = time.monotonic()
    clear_abandoned()
    with scratch_folder("step") as folder:
        kind = _kind(task)
        run = load_step(kind, task.resources.cpus)
        params = kind.params.model_validate(task.params)
        first = rank == 0
        context = Context(task, params, store, Path(folder), cancelled, reports=first, log=log, verify=first)
        result = run(context)
        if not isinstance(result, StepResult):
            raise StepError(f"{kind.worker} returned a {type(result).__name__}, not a StepResult")
        files = store.put_folder(context.output) if rank == 0 else []
        if undeclared := kind.undeclared(context.params, result, [file.name for file in files]):
            raise StepError(
                f"{kind.worker} left what steps of kind {kind.name} do not declare: {', '.join(undeclared)}"
            )
    seconds = time.monotonic() - started
    log.line(f"done in {seconds:.1f} s")
    facts = {**result.facts, **_facts(task, seconds)}
    return StepOutcome(result=replace(result, facts=facts), files=files)


def _kind(task: StepTask) -> StepKind[Any]:
    """Return the step's kind; StepError unless it has the version with which the study was planned."""
    require(task.resources.plugins)
    kind = STEP_KINDS.get(task.kind)
    if kind is None or kind.version != task.version:
        difference = "does not know this kind" if kind is None else f"has version {kind.version}"
        raise StepError(
            f"the worker runs another creamtea: the study was planned with version {task.version} of "
            f"{task.kind} steps, and the worker's creamtea {creamtea.__version__} {difference}; "
            "install the same creamtea everywhere, or, after an upgrade, run the study's file again"
        )
    return kind


def load_module(name: str, cpus: int) -> ModuleType:
    """Import a worker's module, and set the number of threads that its step may use."""
    os.environ["OMP_NUM_THREADS"] = str(cpus)
    module = importlib.import_module(name)
    if "torch" in sys.modules:  # loaded by the module, or by an earlier step of this process
        sys.modules["torch"].set_num_threads(cpus)
    return module


def load_step(kind: StepKind[Any], cpus: int) -> Callable[[StepContext[Any]], StepResult]:
    """Import the function that runs steps of this kind."""
    function: Callable[[StepContext[Any]], StepResult] = getattr(
        load_module(kind.module, cpus), kind.function
    )
    return function


class Context:
    """Implements `creamtea.contract.step.StepContext` over a temporary folder."""

    def __init__(
        self,
        task: StepTask,
        params: StepParams,
        store: ArtefactStore,
        folder: Path,
        cancelled: Callable[[], bool],
        reports: bool = True,
        log: AttemptLog | None = None,
        verify: bool = True,
    ) -> None:
        self.params = params
        self.locations: dict[str, str] = task.locations
        self.output = folder / "output"
        self.checkpoints: Checkpoints = store.checkpoints(task.key)
        self.cpus = task.resources.cpus
        self.gpus = task.resources.gpus
        self._task = task
        self._store = store
        self._cancelled = cancelled
        self._log = log
        self._next_write = 0.0 if reports else math.inf
        self._next_line = 0.0
        self._first: tuple[float, float] | None = None  # time and `done` of this attempt's first report
        self._reports = reports
        self._inputs: dict[str, list[Path]] = {}
        self.output.mkdir()
        for role, steps in task.inputs.items():
            self._inputs[role] = []
            for position, files in enumerate(steps):
                place = folder / "inputs" / role / str(position)
                place.mkdir(parents=True)
                store.materialise(files, place, verify=verify)
                self._inputs[role].append(place)

    def input(self, role: str) -> Path:
        folders = self.inputs(role)
        if len(folders) != 1:
            raise StepError(f"a {self._task.kind} step needs one input {role!r}; it was given {len(folders)}")
        return folders[0]

    def inputs(self, role: str) -> list[Path]:
        return list(self._inputs.get(role, []))

    def progress(self, done: float, total: float, message: str = "") -> None:
        if self._cancelled():
            raise StepCancelled
        now = time.monotonic()
        began, first = self._first = self._first or (now, done)
        if now < self._next_write:
            return
        # from the first report: an attempt may resume far on, and its preparations have another speed
        left = (total - done) * (now - began) / (done - first) if done > first else None
        message = storable(message)  # file names may contain any bytes
        self._next_write = now + (PROGRESS_EVERY if self._store.local else REMOTE_PROGRESS_EVERY)
        self._store.write_progress(self._task.key, self._task.fence, float(done), float(total), message, left)
        if self._log is not None and now >= self._next_line:
            self._next_line = now + LINE_EVERY
            self._log.line(f"{done:g} of {total:g} {message}".rstrip())

    def has_more_room(self) -> bool:
        several = self._task.resources.workers[1] > 1
        return several and self._store.read_room(self._task.key, self._task.fence) > 0

    def show(self, view: LiveView) -> None:
        if self._reports:
            self._store.write_live(self._task.key, self._task.fence, view)


# ---------------------------------------------------------------- facts about the worker


def _facts(task: StepTask, seconds: float) -> Mapping[str, Any]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    facts: dict[str, Any] = {
        "seconds": round(seconds, 3),
        "hardware": hardware(),
        "cpus": task.resources.cpus,
        "gpus": task.resources.gpus,
        "creamtea": creamtea.__version__,
        "python": platform.python_version(),
        "peak_rss_mb": round(peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)),
    }
    if task.resources.plugins:
        facts["plugins"] = dict(task.resources.plugins)
    if "torch" in sys.modules:
        facts["torch"] = sys.modules["torch"].__version__
    return facts


def hardware() -> str:
    """Describe the machine: processor, cores, and the GPU if torch sees one."""
    parts = [f"{processor_name()}, {os.cpu_count()} cores"]
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name(0))
    return ", ".join(parts)
