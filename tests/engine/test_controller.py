"""The loop with the inline executor: orders, failures, cancels, kills and what is left afterwards."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from limits import ANSWER, wait_until
from prompt import Prompt
from sqlalchemy import select, update
from table_rows import one_of
from toy_steps import ENOUGH, attempts, counts
from toy_study import ToyStudy, happenings

from creamtea.engine.controller import NO_MACHINE, Controller
from creamtea.engine.events import (
    EngineEvent,
    Notice,
    StepFailed,
    StepProgressed,
    StepRetried,
    StepStarted,
    StepStopped,
    StepSucceeded,
)
from creamtea.engine.executors.base import Amounts, Capacity, FinishedAttempt, StepOutcome, StepTask
from creamtea.engine.executors.inline import InlineExecutor
from creamtea.errors import CreamteaError, InfrastructureError
from creamtea.orders import controllers
from creamtea.orders.submission import cancel
from creamtea.store import tables
from creamtea.store.artefacts import EVERY_STEP, ArtefactStore
from creamtea.store.database import Database

pytestmark = pytest.mark.usefixtures("quick")

Run = Callable[..., list[EngineEvent]]
TOYS = Path(__file__).parent / "toys"


def test_a_study_runs_to_its_end_and_a_second_time_reuses_all(
    database: Database, study: ToyStudy, log: Path, run_study: Run
) -> None:
    study.add("first")
    study.add("second", before=["first"])
    study.add("third", before=["first", "second"])
    events = run_study(study, database)
    assert [event.name for event in events if isinstance(event, StepSucceeded)] == list(study.keys)
    row = study.rows(database)["third"]
    assert row.facts["said"] == "first;first;second;third;"
    assert run_study(study, database) == []
    assert attempts(log) == ["first", "second", "third"]


class Untouchable:
    """An executor that must not be brought up."""

    address = ""
    opening = ""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"{name} was used")

    def poll(self, timeout: float) -> list[FinishedAttempt]:
        return []

    def shutdown(self) -> None:
        pass


def test_a_study_that_is_all_reused_never_touches_the_executor(
    sqlite: Database, study: ToyStudy, run_study: Run
) -> None:
    study.add("step")
    run_study(study, sqlite)
    assert run_study(study, sqlite, Untouchable()) == []


def test_failures_leave_the_rest_of_the_study_to_run(
    sqlite: Database, study: ToyStudy, run_study: Run
) -> None:
    study.add("bad", "step error")
    study.add("behind", before=["bad"])
    study.add("model", "unavailable")
    study.add("good")
    events = run_study(study, sqlite)
    failed = {event.name: (event.kind, event.error) for event in events if isinstance(event, StepFailed)}
    assert failed == {
        "bad": ("deterministic", "the loss is NaN"),
        "behind": ("upstream", "did not run, because bad failed"),
        "model": ("unavailable", "no toy model here"),
    }
    assert study.states(sqlite)["good"] == "succeeded"


def test_an_infrastructure_failure_is_tried_again(sqlite: Database, study: ToyStudy, run_study: Run) -> None:
    key = study.add("shaky", "infrastructure", until=2)
    study.add("behind", before=["shaky"])
    events = run_study(study, sqlite)
    assert [event.attempt for event in events if isinstance(event, StepRetried)] == [1, 2]
    assert set(study.states(sqlite).values()) == {"succeeded"}
    assert happenings(sqlite, key) == ["started", "retry", "started", "retry", "started", "succeeded"]


def test_a_step_that_takes_too_long_is_stopped(sqlite: Database, study: ToyStudy, run_study: Run) -> None:
    study.add("slow", "sleep", resources={"timeout_minutes": 0.005})
    [failed] = [event for event in run_study(study, sqlite) if isinstance(event, StepFailed)]
    assert failed.kind == "timeout"
    assert failed.error.startswith("ran longer than 0.005 minutes")
    assert "resources.toy.timeout_minutes" in failed.error


@pytest.mark.slow
def test_a_worker_that_reports_nothing_for_too_long_is_stopped_and_tried_again(
    sqlite: Database, study: ToyStudy, run_study: Run
) -> None:
    resources = {"silent_minutes": 0.01}
    study.add("hung", "nap", seconds=2.0, until=1, resources=resources)
    study.add("alive", "watch", resources=resources)

    def enough() -> None:
        wait_until(lambda: attempts(study.log).count("hung") == 2)
        (study.log / ENOUGH).touch()

    threading.Thread(target=enough).start()
    [retried] = [event for event in run_study(study, sqlite) if isinstance(event, StepRetried)]
    assert retried.name == "hung"
    assert "reported nothing for 0.01 minutes" in retried.error
    assert "resources.toy.silent_minutes" in retried.error
    assert set(study.states(sqlite).values()) == {"succeeded"}


def test_a_step_too_large_for_the_machine_fails_and_says_so(
    sqlite: Database, study: ToyStudy, run_study: Run
) -> None:
    study.add("huge", resources={"cpus": 4096})
    [failed] = [event for event in run_study(study, sqlite) if isinstance(event, StepFailed)]
    assert "cpus=4096" in failed.error
    assert "resources.toy" in failed.error


def test_a_result_that_cannot_be_stored_fails_the_step(
    sqlite: Database, store: ArtefactStore, study: ToyStudy
) -> None:
    study.add("step")
    submission = study.submit(sqlite, store)
    outcome = StepOutcome()
    outcome.result.facts.update(seconds=1.0, loss=float("inf"))
    Controller(sqlite, store, Prompt({"step": outcome})).run(submission.study_id)
    row = study.rows(sqlite)["step"]
    assert row.state == "failed"
    assert row.error is not None
    assert "loss" in row.error


def test_a_cancel_by_another_process_stops_the_running_step(
    database: Database, store: ArtefactStore, study: ToyStudy, log: Path
) -> None:
    study.add("long", "sleep")
    study.add("later", before=["long"])
    submission = study.submit(database, store)
    events: list[EngineEvent] = []
    controller = Controller(database, store, InlineExecutor(), events.append)
    thread = threading.Thread(target=controller.run, args=(submission.study_id,))
    thread.start()
    wait_until(lambda: any(isinstance(event, StepProgressed) for event in events))
    cancel(database, submission.study_id)
    thread.join(ANSWER)
    assert not thread.is_alive()
    assert isinstance(events[-1], StepStopped)
    assert study.states(database) == {"long": "cancelled", "later": "cancelled"}
    assert controllers.live_controller(database) is None


class Roomy:
    """An executor on which any number of attempts run, and none ends."""

    address = ""
    opening = ""

    def capacity(self) -> Capacity:
        return Capacity({"node": Amounts(100.0, 0.0, 100.0)})

    def start(self, task: StepTask, nodes: Sequence[str]) -> None: ...

    def cancel(self, task: StepTask) -> None: ...

    def poll(self, timeout: float) -> list[FinishedAttempt]:
        time.sleep(0.01)
        return []

    def shutdown(self) -> None: ...


def test_a_step_that_is_cancelled_and_submitted_again_never_runs_twice_at_once(
    database: Database, store: ArtefactStore, study: ToyStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both between two looks of the controller: after the leases were renewed, before its queue is loaded."""
    study.add("long")
    submissions = [study.submit(database, store).study_id]
    seen: list[type[EngineEvent]] = []

    def change(*_: object) -> None:
        if len(submissions) == 1:
            cancel(database, submissions[0])
            study.add("more", before=["long"])
            submissions.append(study.submit(database, store).study_id)

    def see(event: EngineEvent) -> None:
        if isinstance(event, StepStarted | StepStopped) and event.name == "long":
            seen.append(type(event))

    monkeypatch.setattr(Controller, "_report_progress", change)
    Controller(database, store, Roomy(), see).run(until=lambda: seen.count(StepStarted) == 2)
    assert seen == [StepStarted, StepStopped, StepStarted, StepStopped]


def test_a_controller_that_was_replaced_stops_and_says_so(
    sqlite: Database, store: ArtefactStore, study: ToyStudy
) -> None:
    study.add("long", "sleep")
    submission = study.submit(sqlite, store)

    def replace(event: EngineEvent) -> None:
        if isinstance(event, StepStarted):
            with sqlite.transaction() as session:
                session.execute(update(tables.Controller).values(fence=99))

    with pytest.raises(CreamteaError, match="works on this database now"):
        Controller(sqlite, store, InlineExecutor(), replace).run(submission.study_id)


def test_a_cluster_without_a_machine_is_told_until_there_is_one(
    sqlite: Database, store: ArtefactStore, study: ToyStudy
) -> None:
    study.add("one")
    submission = study.submit(sqlite, store)
    told: list[dict[str, str]] = []

    class Growing(InlineExecutor):
        def capacity(self) -> Capacity:
            fence = controllers.live_controller(sqlite).fence  # type: ignore[union-attr]
            told.append(store.read_reasons(fence))
            return Capacity({}) if len(told) < 3 else super().capacity()

    Controller(sqlite, store, Growing()).run(submission.study_id)
    assert told == [{}, {EVERY_STEP: NO_MACHINE}, {EVERY_STEP: NO_MACHINE}]
    fence = one_of(sqlite, select(tables.Controller.fence))
    assert store.read_reasons(fence) == {}


def test_a_store_that_takes_no_notice_ends_no_controller(
    sqlite: Database, study: ToyStudy, run_study: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    class Growing(InlineExecutor):
        def capacity(self) -> Capacity:
            asked.append(1)
            return Capacity({}) if len(asked) < 3 else super().capacity()

    def full(self: ArtefactStore, fence: int, reasons: dict[str, str]) -> None:
        raise InfrastructureError("no space left at /artefacts")

    monkeypatch.setattr(ArtefactStore, "write_reasons", full)
    study.add("one")
    events = run_study(study, sqlite, Growing())
    assert study.states(sqlite) == {"one": "succeeded"}
    assert events.count(Notice("no space left at /artefacts; steps run on")) == 1


def test_a_controller_of_all_studies_serves_those_that_come_later(
    sqlite: Database, store: ArtefactStore, log: Path
) -> None:
    first, second = ToyStudy(log, "first"), ToyStudy(log, "second")
    first.add("one")
    second.add("two")
    first.submit(sqlite, store)

    def emit(event: EngineEvent) -> None:
        if isinstance(event, StepSucceeded) and event.name == "one":
            second.submit(sqlite, store)

    Controller(sqlite, store, InlineExecutor(), emit).run(until_idle=True)
    assert attempts(log) == ["one", "two"]


# ---------------------------------------------------------------- kills


def start_controller(
    database: Database, store: ArtefactStore, study_id: int, executor: str = "inline"
) -> subprocess.Popen[bytes]:
    url = database.url.render_as_string(hide_password=False)
    command = [sys.executable, str(TOYS / "toy_controller.py"), url, store.root, executor, str(study_id)]
    return subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})


@pytest.mark.slow
def test_after_kill_9_of_the_controller_only_what_was_not_done_runs_again(
    database: Database, store: ArtefactStore, study: ToyStudy, log: Path
) -> None:
    study.add("done")
    study.add("counting", "count", before=["done"], stop_at=3)
    study.add("last", before=["counting"])
    submission = study.submit(database, store)
    process = start_controller(database, store, submission.study_id)
    try:
        wait_until(lambda: counts(log) == ["from 0", "at 3"])
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert study.states(database) == {"done": "succeeded", "counting": "running", "last": "pending"}
    Controller(database, store, InlineExecutor()).run(submission.study_id)
    assert attempts(log) == ["done", "counting", "counting", "last"]
    assert counts(log) == ["from 0", "at 3", "from 3"], "it went on from its checkpoint"
    rows = study.rows(database)
    assert {row.state for row in rows.values()} == {"succeeded"}
    assert rows["counting"].attempts == 1, "the attempt that the kill cut off is not counted"
    assert store.checkpoints(study.keys["counting"]).names() == [], "checkpoints go at the end"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_everything_ready_to_go_on(
    sqlite: Database, store: ArtefactStore, study: ToyStudy, log: Path, number: signal.Signals
) -> None:
    study.add("long", "sleep", until=1)
    submission = study.submit(sqlite, store)
    process = start_controller(sqlite, store, submission.study_id)
    try:
        wait_until(lambda: attempts(log) == ["long"] and study.states(sqlite)["long"] == "running")
        process.send_signal(number)
        process.wait(ANSWER)
    finally:
        process.kill()
        process.wait()
    if number == signal.SIGINT:
        row = study.rows(sqlite)["long"]
        assert (row.state, row.attempts, row.owner) == ("ready", 0, None)
    Controller(sqlite, store, InlineExecutor()).run(submission.study_id)
    assert study.states(sqlite) == {"long": "succeeded"}
