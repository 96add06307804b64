"""The loop that runs studies: claim ready steps, start them, wait, commit.

All state that must survive is in SQL; the controller's own memory can be lost at any moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from creamtea.engine import events, queue, state
from creamtea.engine import lease as leases
from creamtea.engine.executors.base import (
    DAMAGED,
    GAVE_WAY,
    Capacity,
    Executor,
    FinishedAttempt,
    StepTask,
    storable,
)
from creamtea.engine.queue import AbsentNodes, Choice, Queue
from creamtea.engine.runner import describe
from creamtea.engine.tracking import Tracking
from creamtea.errors import CreamteaError, InfrastructureError, StepError
from creamtea.store.artefacts import EVERY_STEP, ArtefactStore, Progress
from creamtea.store.database import Database
from creamtea.store.engines import Outage, OutageClock, outage_of, reason_of, wait_out

T = TypeVar("T")
POLL_SECONDS = 0.2  # how long one round waits for a step to finish
CHECK_SECONDS = 1.0  # between renewals of the leases, which also look for changes by other processes
NO_MACHINE = "no machine that runs steps is connected now; it begins as soon as one is"
LOAD_SECONDS = 30.0  # the queue is built again at most this often


@dataclass
class _Running:
    task: StepTask
    workers: int = 1
    started: float = field(default_factory=time.monotonic)
    progress: Progress | None = None  # the last report
    heard: float = field(default_factory=time.monotonic)  # time of the last report
    offered: int = 0  # workers, by `_offer_room`

    def overdue(self) -> bool:
        minutes = self.task.resources.timeout_minutes
        return minutes is not None and time.monotonic() > self.started + 60 * minutes

    def silent(self) -> bool:
        minutes = self.task.resources.silent_minutes
        return minutes is not None and time.monotonic() > self.heard + 60 * minutes


class Controller:
    """Runs one study, or every queued one. A database has at most one controller at a time.

    `emit` is called in the thread of `run`.
    """

    def __init__(
        self,
        database: Database,
        store: ArtefactStore,
        executor: Executor,
        emit: Callable[[events.EngineEvent], None] = lambda event: None,
    ) -> None:
        self._database = database
        self._store = store
        self._executor = executor
        self._show = emit
        self._tracking = Tracking(database, store, emit)
        self._running: dict[str, _Running] = {}
        self._absent = AbsentNodes()
        self._outage_clock = OutageClock()
        self._noticed: set[str] = set()
        self._shown_reasons: dict[str, str] = {}  # those on pages: `_show_reasons`
        self._next_check = 0.0
        self._next_load = 0.0
        self._until: Callable[[], bool] = lambda: False
        self._queue = Queue([], {}, [], 0.0)

    def run(
        self,
        study_id: int | None = None,
        until: Callable[[], bool] = lambda: False,
        until_idle: bool = False,
        lease: leases.Lease | None = None,
    ) -> None:
        """Run one study until it ends, or all studies; with `until_idle` until all have ended.

        Returns earlier once `until` is true. `lease`: the lease for this study, if the caller holds it. If
        the database goes away, the controller waits for it while steps run on (how long: `store.engines`).
        Raises InputError while another controller is running, and CreamteaError if one takes over. In every
        case, steps that are still running at the end become ready again.
        """
        self._until = until
        if lease is None:
            address = self._executor.address
            lease = self._wait_out(lambda: leases.acquire(self._database, address, study_id))
        try:
            self._load(lease)
            ends = study_id is not None or until_idle
            while not (ends and self._is_idle(lease)) and not until():
                if time.monotonic() >= self._next_check:
                    self._check(lease)
                self._start_ready(lease)
                for finished in self._executor.poll(POLL_SECONDS):
                    self._commit(finished)
        finally:
            try:
                self._executor.shutdown()
            finally:
                self._release(lease)
            self._tracking.close()
            for running in self._running.values():
                self._emit(events.StepStopped(running.task.key, running.task.name))

    def _emit(self, event: events.EngineEvent) -> None:
        self._show(event)
        self._tracking.hear(event)

    def _is_idle(self, lease: leases.Lease) -> bool:
        """Return True if no study is unfinished, after looking for new ones in the database."""
        if not self._queue.studies and self._wait_out(lambda: state.live_studies_of(self._database, lease)):
            self._load(lease)
        return not self._queue.studies

    def _release(self, lease: leases.Lease) -> None:
        try:
            leases.release(self._database, lease)
        except SQLAlchemyError as error:
            outage = outage_of(error)
            if outage is None:
                raise
            then = f"the next one takes over within {leases.LEASE.seconds} seconds"
            self._emit(events.Notice(f"{outage}. So this controller's lease is still held; {then}"))

    def _wait_out(self, work: Callable[[], T]) -> T:
        """Run one transaction; wait for the database unless this controller is asked to stop."""

        def wait(outage: Outage, pause: float) -> bool:
            self._next_load = 0.0  # the queue may be wrong: an unconfirmed commit may have succeeded
            self._emit(events.Notice(f"{outage.trying_again(pause)}; steps run on"))
            deadline = time.monotonic() + pause
            while time.monotonic() < deadline and not self._until():
                time.sleep(min(POLL_SECONDS, pause))
            return not self._until()

        return wait_out(work, wait, self._outage_clock)

    def _check(self, lease: leases.Lease) -> None:
        """Renew leases, stop cancelled and overdue steps, report progress, find new studies."""
        self._next_check = time.monotonic() + CHECK_SECONDS
        if not self._wait_out(lambda: leases.renew(self._database, lease)):
            raise CreamteaError(
                "another controller works on this database now, because this one gave no sign of life for "
                f"{leases.LEASE.seconds} seconds (its machine slept, or was too busy). Nothing is lost: "
                "the other one continues its steps"
            )
        for finished in self._executor.poll(0.0):  # steps that ended during an outage are not overdue
            self._commit(finished)
        tasks = [running.task for running in self._running.values()]
        for task in self._wait_out(lambda: state.renew(self._database, tasks)):
            self._stop(task)
            self._emit(events.StepStopped(task.key, task.name))
        for task in [running.task for running in self._running.values() if running.overdue()]:
            why = f"ran longer than {task.resources.timeout_minutes:g} minutes, its limit"
            self._give_up(task, "timeout", why, "timeout_minutes")
        for running in self._running.values():
            self._report_progress(running)
        for task in [running.task for running in self._running.values() if running.silent()]:
            why = f"its worker reported nothing for {task.resources.silent_minutes:g} minutes and was stopped"
            self._give_up(task, "infrastructure", why, "silent_minutes")
        self._offer_room()
        live = set(self._wait_out(lambda: state.live_studies_of(self._database, lease)))
        if live != self._queue.studies or time.monotonic() >= self._next_load:
            self._load(lease)

    def _load(self, lease: leases.Lease) -> None:
        """Build the queue again, and set the next time so that this takes a small share of the time."""
        started = time.monotonic()
        self._queue, blocked = self._wait_out(
            lambda: state.load(self._database, lease, self._running, time.monotonic)
        )
        self._wait_out(lambda: self._tracking.watch(self._queue.studies))
        now = time.monotonic()
        self._next_load = now + max(LOAD_SECONDS, 50 * (now - started))
        self._report_blocked(blocked)

    def _start_ready(self, lease: leases.Lease) -> None:
        # the executor is asked only when there is work: if all steps are reused, Ray never starts
        if not self._queue.has_ready(time.monotonic()):
            return
        self._notice(self._executor.opening, trouble=False)
        capacity = self._executor.capacity()
        if not any(node.total.cpus > 0 for node in capacity.nodes.values()):
            self._show_reasons(lease, {EVERY_STEP: NO_MACHINE})
            where = (
                f"the cluster at {self._executor.address}" if self._executor.address else "this machine's Ray"
            )
            self._notice(f"{where} has no CPU now; waiting for a node")
            return
        choices: dict[str, Choice] = {}
        while (choice := self._queue.next(capacity, time.monotonic())) is not None:
            if choice.key in self._running:  # cancelled and submitted again: the next check stops the attempt
                self._next_load = 0.0
                continue
            if self._waits_for_a_node(choice, capacity):
                continue
            choices[choice.key] = choice
            if choice.nodes:
                capacity.take(choice.nodes, choice.need)
        self._show_reasons(lease, self._absent.reasons(time.monotonic()))
        if not choices:
            return
        tasks = self._wait_out(lambda: state.claim(self._database, lease, list(choices), self._store.root))
        for choice in choices.values():
            task = tasks.get(choice.key)
            if task is None:  # another process has changed the step; the next load of the queue finds out
                continue
            if choice.nodes:
                self._emit(events.StepStarted(task.key, task.name, task.kind, task.attempt))
                self._running[task.key] = _Running(task, len(choice.nodes))
                self._executor.start(task, choice.nodes)
            else:
                error = f"{capacity.refusal(choice.need)}; change it under resources.{task.kind} in the study"
                if self._executor.address:
                    wait = f"waited {queue.NODE_SECONDS / 60:g} minutes for nodes that have it"
                    self._fail(task, "unavailable", f"{error}, or retry when there are some ({wait})")
                else:
                    self._fail(task, "deterministic", error)

    def _waits_for_a_node(self, choice: Choice, capacity: Capacity) -> bool:
        """Return True if a step waits until a node can take it; only a cluster can get such a node."""
        refusal = None if choice.nodes or not self._executor.address else capacity.refusal(choice.need)
        now = time.monotonic()
        reported = set(self._absent.reasons(now).values())
        if not self._absent.waits(choice.key, refusal, now):
            return False
        if (reason := self._absent.reasons(now)[choice.key]) not in reported:
            self._emit(events.Notice(reason))
        self._queue.add(choice.key, now, queue.NODE_PAUSE)
        return True

    def _commit(self, finished: FinishedAttempt) -> None:
        task, outcome = finished.task, finished.outcome
        self._running.pop(task.key)
        if outcome.error_kind == GAVE_WAY:
            if self._wait_out(lambda: state.give_way(self._database, task, outcome.error)):
                self._queue.add(task.key, time.monotonic())
            self._emit(events.StepStopped(task.key, task.name, outcome.error))
            return
        if outcome.error_kind == DAMAGED:
            self._remake_inputs(task, outcome.error)
            return
        if outcome.error_kind is not None:
            self._fail(task, outcome.error_kind, outcome.error)
            return
        behind = self._queue.released_by(task.key)
        try:
            ready = self._wait_out(lambda: state.finish(self._database, self._store, task, outcome, behind))
        except (StepError, InfrastructureError) as error:  # its outputs cannot be stored
            kind, message = describe(error)
            self._fail(task, kind, storable(message))
            return
        except DBAPIError as error:  # a later attempt or another controller would fail in the same way
            if outage_of(error) is not None:
                raise
            self._fail(task, "deterministic", f"the database refuses its result: {reason_of(error)}")
            return
        if ready is None:
            self._emit(events.StepStopped(task.key, task.name))
            return
        self._emit(events.StepSucceeded(task.key, task.name, float(outcome.result.facts["seconds"])))
        self._end(self._queue.succeeded(task.key))
        for key in ready:
            self._queue.add(key, time.monotonic())

    def _remake_inputs(self, task: StepTask, why: str) -> None:
        """Rerun the steps whose files are damaged, and let this step wait for them."""
        digests = {file.digest for steps in task.inputs.values() for files in steps for file in files}
        try:
            damaged = [digest for digest in sorted(digests) if self._store.is_set_aside(digest)]
        except InfrastructureError as error:
            self._fail(task, "infrastructure", str(error))
            return
        if not damaged or task.attempt >= task.resources.max_attempts:
            self._fail(task, "infrastructure", why)
            return
        again = self._wait_out(lambda: state.remake(self._database, task, damaged, why))
        self._emit(events.StepStopped(task.key, task.name, why))
        for key, name in (again or {}).items():
            self._emit(events.StepReset(key, name, "one of its files was damaged"))
        self._next_check = self._next_load = 0.0  # the queue lacks these steps

    def _offer_room(self) -> None:
        """Tell groups of workers that they could be larger, unless other steps wait for the free room."""
        now = time.monotonic()
        small = [
            running
            for running in self._running.values()
            if running.workers < running.task.resources.workers[1]
            and now > running.started + queue.GROW_AFTER
        ]
        if not small or self._queue.has_ready(now):
            return
        for running in small:
            task = running.task
            room = queue.larger_group(task.resources, running.workers, self._executor.capacity())
            write = partial(self._store.write_room, task.key, task.fence, room)
            if room != running.offered and self._hint(write):
                running.offered = room

    def _fail(self, task: StepTask, kind: str, error: str) -> None:
        failure = self._wait_out(lambda: state.fail(self._database, task, kind, error))
        if failure is None:
            self._emit(events.StepStopped(task.key, task.name))
        elif failure.pause is not None:
            self._emit(events.StepRetried(task.key, task.name, task.attempt, error, failure.pause))
            self._queue.add(task.key, time.monotonic(), failure.pause)
        else:
            self._emit(events.StepFailed(task.key, task.name, kind, error))
            self._report_blocked(failure.blocked)
            self._end(self._queue.remove([task.key, *(step.key for step in failure.blocked)]))

    def _report_blocked(self, blocked: list[state.Blocked]) -> None:
        for step in blocked:
            self._emit(events.StepFailed(step.key, step.name, step.kind, step.error))

    def _end(self, studies: list[int]) -> None:
        """End the studies whose last step has left the queue."""
        if studies:
            self._wait_out(lambda: state.end(self._database, studies))
            self._queue.studies -= set(studies)

    def _give_up(self, task: StepTask, kind: str, why: str, limit: str) -> None:
        """Stop the step and fail it. `limit`: the key of the resource that it has exceeded."""
        self._stop(task)
        self._fail(task, kind, f"{why}; resources.{task.kind}.{limit} in the study sets another limit")

    def _stop(self, task: StepTask) -> None:
        self._executor.cancel(task)
        self._running.pop(task.key)

    def _show_reasons(self, lease: leases.Lease, reasons: dict[str, str]) -> None:
        """Store why steps wait, for pages, whenever the reasons change."""
        write = partial(self._store.write_reasons, lease.fence, reasons)
        if reasons != self._shown_reasons and self._hint(write):
            self._shown_reasons = reasons

    def _hint(self, write: Callable[[], None]) -> bool:
        """Write something that steps and pages can do without; return True if that succeeded."""
        # a store that cannot be written now, such as a full disk, must not end all running steps
        try:
            write()
        except InfrastructureError as error:
            self._notice(f"{error}; steps run on")
            return False
        return True

    def _notice(self, message: str, trouble: bool = True) -> None:
        """Report a message once."""
        if message and message not in self._noticed:
            self._noticed.add(message)
            self._emit(events.Notice(message, trouble))

    def _report_progress(self, running: _Running) -> None:
        task = running.task
        progress = self._store.read_progress(task.key, task.fence)
        if progress is not None and progress != running.progress:
            running.progress, running.heard = progress, time.monotonic()
            self._emit(events.StepProgressed(task.key, task.name, **vars(progress)))
