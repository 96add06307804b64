"""The loop with the inline executor: orders, failures, cancels, kills and what is left afterwards."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from limits import ANSWER, wait_until
from prompt import Prompt
from sqlalchemy import update
from toy_steps import ENOUGH, attempts, counts
from toy_study import ToyStudy

from creamtea.engine.controller import Controller
from creamtea.engine.events import (
    EngineEvent,
    StepFailed,
    StepProgressed,
    StepRetried,
    StepStarted,
    StepStopped,
    StepSucceeded,
)
from creamtea.engine.executors.base import Capacity, FinishedAttempt, StepOutcome, StepTask
from creamtea.engine.executors.inline import InlineExecutor
from creamtea.errors import CreamteaError
from creamtea.orders import controllers
from creamtea.orders.submission import cancel
from creamtea.store import tables

pytestmark = pytest.mark.usefixtures("quick")

TOYS = Path(__file__).parent / "toys"


def test_a_study_runs_to_its_end_and_a_second_time_reuses_all(study_on_both: ToyStudy) -> None:
    study = study_on_both
    study.add("first")
    study.add("second", before=["first"])
    study.add("third", before=["first", "second"])
    events = study.run()
    assert [event.name for event in events if isinstance(event, StepSucceeded)] == list(study.keys)
    assert study.rows()["third"].facts["said"] == "first;first;second;third;"
    assert study.happened("third") == ["started", "succeeded"]
    assert study.state() == "succeeded"
    assert study.run() == []
    assert attempts(study.log) == ["first", "second", "third"]


class Untouchable(Prompt):
    """An executor that must not be brought up."""

    def capacity(self) -> Capacity:
        raise AssertionError("the executor was used")


def test_a_study_that_is_all_reused_never_touches_the_executor(study: ToyStudy) -> None:
    study.add("step")
    study.run()
    assert study.run(Untouchable({})) == []


def test_failures_leave_the_rest_of_the_study_to_run(study: ToyStudy) -> None:
    study.add("bad", "step error")
    study.add("behind", before=["bad"])
    study.add("model", "unavailable")
    study.add("slow", "sleep", resources={"timeout_minutes": 0.005})
    study.add("huge", resources={"cpus": 4096})
    study.add("good")
    events = study.run()
    assert not any(isinstance(event, StepRetried) for event in events), "these failures are final"
    failed = {event.name: event for event in events if isinstance(event, StepFailed)}
    assert {name: event.kind for name, event in failed.items()} == {
        "bad": "deterministic",
        "behind": "upstream",
        "model": "unavailable",
        "slow": "timeout",
        "huge": "deterministic",
    }
    assert failed["behind"].error == "did not run, because bad failed"
    assert failed["slow"].error.startswith("ran longer than 0.005 minutes")
    assert "resources.toy.timeout_minutes" in failed["slow"].error
    assert "cpus=4096" in failed["huge"].error
    assert "resources.toy" in failed["huge"].error
    assert study.states()["good"] == "succeeded"


def test_an_infrastructure_failure_is_tried_again(study: ToyStudy) -> None:
    study.add("shaky", "infrastructure", until=2)
    study.add("behind", before=["shaky"])
    assert [event.attempt for event in study.run() if isinstance(event, StepRetried)] == [1, 2]
    assert set(study.states().values()) == {"succeeded"}
    assert study.happened("shaky") == ["started", "retry", "started", "retry", "started", "succeeded"]


@pytest.mark.slow
def test_a_worker_that_reports_nothing_for_too_long_is_stopped_and_tried_again(study: ToyStudy) -> None:
    resources = {"silent_minutes": 0.01}
    study.add("hung", "nap", seconds=2.0, until=1, resources=resources)
    study.add("alive", "watch", resources=resources)

    def enough() -> None:
        wait_until(lambda: attempts(study.log).count("hung") == 2)
        (study.log / ENOUGH).touch()

    threading.Thread(target=enough).start()
    [retried] = [event for event in study.run() if isinstance(event, StepRetried)]
    assert retried.name == "hung"
    assert "reported nothing for 0.01 minutes" in retried.error
    assert "resources.toy.silent_minutes" in retried.error
    assert set(study.states().values()) == {"succeeded"}


def test_a_result_that_cannot_be_stored_fails_the_step(study_on_both: ToyStudy) -> None:
    outcome = StepOutcome()
    outcome.result.facts.update(seconds=1.0, loss=float("inf"))
    study_on_both.add("step")
    study_on_both.run(Prompt({"step": outcome}))
    row = study_on_both.rows()["step"]
    assert row.state == "failed"
    assert "loss" in str(row.error)


def test_a_cancel_by_another_process_stops_the_running_step(study_on_both: ToyStudy) -> None:
    study = study_on_both
    study.add("long", "sleep")
    study.add("later", before=["long"])

    others: list[threading.Thread] = []

    def react(event: EngineEvent) -> None:
        if isinstance(event, StepProgressed) and not others:  # while the controller goes on
            others.append(threading.Thread(target=cancel, args=(study.database, study.id)))
            others[0].start()

    assert isinstance(study.run(react=react)[-1], StepStopped)
    assert study.states() == {"long": "cancelled", "later": "cancelled"}
    assert controllers.live_controller(study.database) is None


class Endless(Prompt):
    """An executor on which no attempt ends."""

    def start(self, task: StepTask, nodes: Sequence[str]) -> None: ...

    def cancel(self, task: StepTask) -> None: ...

    def poll(self, timeout: float) -> list[FinishedAttempt]:
        time.sleep(0.01)
        return []


def test_a_step_that_is_cancelled_and_submitted_again_never_runs_twice_at_once(
    study_on_both: ToyStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both between two looks of the controller: after the leases were renewed, before its queue is loaded."""
    study = study_on_both
    study.submit("long")
    seen: list[type[EngineEvent]] = []

    def change(*_: object) -> None:
        if "more" not in study.keys:
            cancel(study.database, study.id)
            study.add("more", before=["long"])
            study.submit()

    def see(event: EngineEvent) -> None:
        if isinstance(event, StepStarted | StepStopped) and event.name == "long":
            seen.append(type(event))

    monkeypatch.setattr(Controller, "_report_progress", change)
    controller = Controller(study.database, study.store, Endless({}), see)
    controller.run(until=lambda: seen.count(StepStarted) == 2)
    assert seen == [StepStarted, StepStopped, StepStarted, StepStopped]


def test_a_controller_that_was_replaced_stops_and_says_so(study: ToyStudy) -> None:
    study.add("long", "sleep")

    def replace(event: EngineEvent) -> None:
        if isinstance(event, StepStarted):
            with study.database.transaction() as session:
                session.execute(update(tables.Controller).values(fence=99))

    with pytest.raises(CreamteaError, match="works on this database now"):
        study.run(react=replace)


def test_a_controller_of_all_studies_serves_those_that_come_later(study: ToyStudy) -> None:
    second = study.another("second")
    study.submit("one")

    def emit(event: EngineEvent) -> None:
        if isinstance(event, StepSucceeded) and event.name == "one":
            second.submit("two")

    Controller(study.database, study.store, InlineExecutor(), emit).run(until_idle=True)
    assert attempts(study.log) == ["one", "two"]


# ---------------------------------------------------------------- kills


def start_controller(study: ToyStudy) -> subprocess.Popen[bytes]:
    url = study.database.url.render_as_string(hide_password=False)
    command = [sys.executable, str(TOYS / "toy_controller.py"), url, study.store.root, str(study.id)]
    return subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})


@pytest.mark.slow
def test_after_kill_9_of_the_controller_only_what_was_not_done_runs_again(study_on_both: ToyStudy) -> None:
    study = study_on_both
    study.add("done")
    study.add("counting", "count", before=["done"], stop_at=3)
    study.add("last", before=["counting"])
    study.submit()
    process = start_controller(study)
    try:
        wait_until(lambda: counts(study.log) == ["from 0", "at 3"])
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert study.states() == {"done": "succeeded", "counting": "running", "last": "pending"}
    study.control()
    assert attempts(study.log) == ["done", "counting", "counting", "last"]
    assert counts(study.log) == ["from 0", "at 3", "from 3"], "it went on from its checkpoint"
    rows = study.rows()
    assert {row.state for row in rows.values()} == {"succeeded"}
    assert rows["counting"].attempts == 1, "the attempt that the kill cut off is not counted"
    assert study.store.checkpoints(study.keys["counting"]).names() == [], "checkpoints go at the end"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_everything_ready_to_go_on(study: ToyStudy, number: signal.Signals) -> None:
    study.add("long", "sleep", until=1)
    study.submit()
    process = start_controller(study)
    try:
        wait_until(lambda: attempts(study.log) == ["long"] and study.states()["long"] == "running")
        process.send_signal(number)
        process.wait(ANSWER)
    finally:
        process.kill()
        process.wait()
    if number == signal.SIGINT:
        row = study.rows()["long"]
        assert (row.state, row.attempts, row.owner) == ("ready", 0, None)
    study.control()
    assert study.states() == {"long": "succeeded"}
