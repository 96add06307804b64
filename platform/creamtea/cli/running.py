"""Commands that run studies: run, submit, retry, cancel, controller."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from creamtea.cli import workplace
from creamtea.cli.printing import say, show
from creamtea.engine import lease as leases
from creamtea.engine.lease import AnotherController, shorten
from creamtea.errors import CreamteaError, InputError
from creamtea.orders.controllers import live_controller
from creamtea.orders.rows import LIVE
from creamtea.settings import LOOPBACK, Settings, child_environment, make_private
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.engines import Outage, OutageClock, wait_out
from creamtea.store.queries import find_study, study_nodes

if TYPE_CHECKING:
    from creamtea.engine.executors.base import Executor
    from creamtea.orders.submission import Submission
    from creamtea.store.tables import Controller as RunningController


class Stop(Event):
    number = 0  # of the signal that set it

    def pause(self, outage: Outage, seconds: float) -> bool:
        """Wait for the database; False if this is set."""
        say(outage.trying_again(seconds), err=True)
        return not self.wait(seconds)


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Yield an event that the first SIGINT (control-C) or SIGTERM (from a service manager) sets.

    The controller thus stops between two transactions, not inside one. A second signal stops it at once.
    """
    stop = Stop()

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.number = number
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


RUN_EXAMPLES = """Examples:

`creamtea run studies/demo.yaml`

`creamtea run my-study.yaml --data corpora --set metrics.0.tokenize=intl`

`creamtea run studies/demo.yaml --executor inline --json --quiet`
"""


def run(
    study: workplace.StudyFile,
    data: workplace.Data = None,
    override: workplace.Overrides = None,
    executor: workplace.ExecutorName = "ray",
    address: workplace.Address = None,
    as_json: workplace.AsJson = False,
    quiet: workplace.Quiet = False,
) -> None:
    """Run a study and print its report. Steps that have succeeded before are reused.

    Exit code 0: done, even if optional steps (scores, say) are unavailable; 1: a step failed; 2: the study or
    an option is wrong; 130: interrupted.
    """
    from creamtea.cli.following import conclude

    runs_steps = workplace.make_executor(executor, address)
    runs_steps.check()
    with workplace.opened_database() as database:
        store = workplace.artefact_store()

        def queue() -> Submission:
            return workplace.submit_study(database, store, study, data, override)

        started = time.monotonic()
        try:
            submission = control(database, store, runs_steps, queue, quiet=quiet)
        except AnotherController as error:
            raise InputError(f"{error}. `creamtea submit` queues this study behind it") from error
        conclude(database, submission, started, as_json=as_json)


def control(
    database: Database,
    store: ArtefactStore,
    executor: Executor,
    queue: Callable[[], Submission],
    *,
    quiet: bool,
) -> Submission:
    """Queue a study and control it until it has ended.

    InputError while another controller is running, or if the executor cannot be started; nothing is queued
    then. Exits with 130 if a person interrupts it.
    """
    from creamtea.cli.following import shown
    from creamtea.engine.controller import Controller
    from creamtea.orders.submission import cancel
    from creamtea.steps.systems import TRAIN

    submission: Submission | None = None

    def queue_it() -> int:
        nonlocal submission
        submission = queue()
        return submission.study_id

    try:
        lease = leases.hold(database, executor.address, queue_it)
    except leases.AnotherController:
        if submission is not None:  # another controller took over while the study was planned
            cancel(database, submission.study_id)
        raise
    assert submission is not None
    try:
        with stoppable() as stop, shown(submission, quiet) as display:
            controller = Controller(database, store, executor, display)
            controller.run(submission.study_id, until=stop.is_set, lease=lease)
        interrupted = stop.is_set()
    except KeyboardInterrupt:
        interrupted = True
    except InputError:  # the executor cannot start
        cancel(database, submission.study_id)
        raise
    if interrupted and cancel(database, submission.study_id):
        with database.transaction() as session:
            trains = bool(study_nodes(session, submission.study_id, TRAIN.name))
        say(
            f"creamtea: interrupted. The same command, or `creamtea retry {submission.name}`, continues from "
            f"here: finished steps are kept{', and training resumes from its last checkpoint' * trains}",
            err=True,
        )
        raise typer.Exit(130)
    return submission


START_SECONDS = 30.0  # for a new controller to take the lease
LOG_TAIL = 2000  # characters of the log to show if it does not start

SUBMIT_EXAMPLES = """Examples:

`creamtea submit studies/demo.yaml --address ray-head:6379`

`creamtea submit my-study.yaml --data corpora --wait`
"""


def submit(
    study: workplace.StudyFile,
    data: workplace.Data = None,
    override: workplace.Overrides = None,
    executor: workplace.ExecutorName = "ray",
    address: workplace.Address = None,
    priority: Annotated[
        int, typer.Option(min=-1_000_000, max=1_000_000, help="Studies with a higher number go first.")
    ] = 0,
    wait: Annotated[bool, typer.Option("--wait", help="Follow it to its end, and print its report.")] = False,
    as_json: workplace.AsJson = False,
    quiet: workplace.Quiet = False,
) -> None:
    """Queue a study, and start a controller in the background unless one is running.

    If CREAMTEA_CONTROLLER=service is set, a service runs the controller, and none is started. With --wait the
    exit codes are those of `creamtea run`.
    """
    from creamtea.cli.following import conclude, follow_shown, tell_of_lost_files

    runs_steps = workplace.make_executor(executor, address)
    with workplace.opened_database() as database:
        store = workplace.artefact_store()
        starts = not Settings.load().controller_is_service
        if not _serves(live_controller(database), address) and starts:
            runs_steps.check()
        submission = workplace.submit_study(database, store, study, data, override, priority)
        log = "the controller's log"
        # checked again: a controller with nothing left to do may have stopped in the meantime
        live = live_controller(database)
        if not _serves(live, address) and starts:
            log = str(_start_controller(database, executor, address, behind=live))
        elif live is None:
            say("no controller is running now: the study waits until the service is back", err=True)
        if not wait:
            tell_of_lost_files(submission)
            _print_queued(submission.study_id, submission.name, log, as_json)
            return
        started = time.monotonic()
        follow_shown(database, store, submission, log, quiet)
        conclude(database, submission, started, as_json=as_json)


def _serves(live: RunningController | None, address: str | None) -> bool:
    """Return whether a running controller will run what is queued. InputError if it uses another cluster."""
    if live is None or live.study_id is not None:
        return False
    if address and address != live.address:
        raise InputError(
            f"the controller of this database, {live}, uses {live.address or 'its own machine'}, not "
            f"{address}; omit --address, or stop that process first"
        )
    return True


def _start_controller(
    database: Database, executor: str, address: str | None, behind: RunningController | None
) -> Path:
    """Start a controller that outlives this process; return its log file.

    CreamteaError with the end of the log if it ends before it has the lease. A slow start is not waited for,
    nor a running `creamtea run` (`behind`), which the controller lets end first.
    """
    logs = Settings.load().home / "logs"
    make_private(logs)
    log = logs / f"controller-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    command = [sys.executable, "-m", "creamtea.cli.main", "controller", "--until-idle"]
    command += ["--executor", executor, *(["--address", address] if address else [])]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env=child_environment(),
        )
    deadline = time.monotonic() + START_SECONDS
    while behind is None and live_controller(database) is None:
        code = process.poll()
        if code == 0:
            break  # there was nothing to do: every step was reused
        if code is None and time.monotonic() > deadline:
            say(f"the controller is still starting after {START_SECONDS:g} s; its log is {log}", err=True)
            break
        if code is not None:
            end = log.read_text(encoding="utf-8", errors="replace")[-LOG_TAIL:].strip()
            raise CreamteaError(
                f"the study is queued, but its controller did not start ({log}): {end or 'its log is empty'}"
            )
        time.sleep(0.1)
    return log


def _print_queued(study_id: int, name: str, log: str, as_json: bool) -> None:
    if as_json:
        say(json.dumps({"study": name, "study_id": study_id, "state": "queued", "log": log}))
        return
    say(f"queued {name} (submission {study_id}); its log is {log}")
    say(f"follow: creamtea status {name} --watch   stop: creamtea cancel {name}")
    say(f"result: creamtea report {name}")


RETRY_EXAMPLES = "Example: `creamtea retry demo`"


def retry(
    name: workplace.StudyOrNumber,
    executor: workplace.ExecutorName = "ray",
    address: workplace.Address = None,
    make_anew: Annotated[
        bool,
        typer.Option(
            "--make-anew", help="Remake everything if the artefact store has no files of the study."
        ),
    ] = False,
    as_json: workplace.AsJson = False,
    quiet: workplace.Quiet = False,
) -> None:
    """Try the failed and cancelled steps of a study again, as it was last submitted.

    Steps whose files are missing from the artefact store run again, too. If the store has no files of the
    study at all, it may be the wrong store: `--make-anew` remakes them. After a change to the study's file
    use `creamtea run`. The steps run here, or in the controller that `creamtea submit` started if it is still
    running.

    Exit code 0: done, even if optional steps (scores, say) are unavailable, or queued for that controller; 1:
    a step failed; 2: no such study, it has not ended, or all of its steps have succeeded; 130: interrupted.
    """
    from creamtea.cli.following import conclude, no_controller
    from creamtea.orders.submission import requeue

    runs_steps = workplace.make_executor(executor, address)
    with workplace.existing_database() as database:
        store = workplace.artefact_store()
        with database.session() as session:
            study = find_study(session, workplace.study_asked_for(database, name))
        live = live_controller(database)
        if live is None and study.state in LIVE:
            raise InputError(f"study {name} is {study.state}, so it cannot be retried; but {no_controller()}")
        if live is None or live.study_id is not None:
            runs_steps.check()  # first: queuing would delete what failed, and why

            def queue() -> Submission:
                here = not runs_steps.address
                return requeue(database, store, study.id, make_anew=make_anew, here=here)

            started = time.monotonic()
            submission = control(database, store, runs_steps, queue, quiet=quiet)
            conclude(database, submission, started, as_json=as_json)
            return
        requeue(database, store, study.id, make_anew=make_anew)
    follow = f"follow with `creamtea status {study.name} --watch`"
    values = {"study": study.name, "study_id": study.id, "state": "queued"}
    show(as_json, values, [f"queued {name} for the controller, {live}; {follow}"])


CANCEL_EXAMPLES = "Example: `creamtea cancel demo`"


def cancel(name: workplace.StudyName, as_json: workplace.AsJson = False) -> None:
    """Cancel a study: running steps stop within seconds, finished ones are kept.

    Steps that another unfinished study needs continue. `creamtea retry NAME` continues a cancelled study.

    Exit code 0: cancelled; 2: no such study, or it has already ended.
    """
    from creamtea.orders.submission import cancel as cancel_study

    with workplace.existing_database() as database:
        with database.session() as session:
            study = find_study(session, name)
        if not cancel_study(database, study.id):
            raise InputError(f"study {name} has already ended ({study.state}): there is nothing to cancel")
    values = {"study": name, "study_id": study.id, "state": "cancelled"}
    show(as_json, values, [f"cancelled {name}; `creamtea retry {name}` continues it"])


WAIT_SECONDS = 2.0  # between checks whether another controller has stopped

CONTROLLER_EXAMPLES = """Examples:

`creamtea controller --address ray-head:6379`

`creamtea controller --until-idle`

`CREAMTEA_METRICS_TOKEN_FILE=metrics-token creamtea controller --metrics-port 9464`
"""


def controller(
    executor: workplace.ExecutorName = "ray",
    address: workplace.Address = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Exit when every study has ended.")
    ] = False,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve metrics for Prometheus on this port.")
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(help="Address that the metrics listen on; 0.0.0.0 for all of this machine.")
    ] = LOOPBACK[0],
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Only say whether a controller is running: exit code 0 if one is, else 1."
        ),
    ] = False,
) -> None:
    """Run every queued study of the database, until interrupted.

    `creamtea submit` starts a controller if none is running; a permanent one serves a team. While another
    controller is running it stands by, and takes over when that one ends or is lost. Interrupting it loses
    nothing: the next controller continues. SIGTERM ends it with exit code 0.
    """
    if check:
        _check()
    from creamtea.cli.following import shown
    from creamtea.engine import state
    from creamtea.engine.controller import Controller
    from creamtea.monitoring import served

    runs_steps = workplace.make_executor(executor, address)
    with workplace.opened_database() as database:
        store = workplace.artefact_store()
        metrics = nullcontext() if metrics_port is None else served(database, metrics_host, metrics_port)
        with metrics, stoppable() as stop, shown(None, False) as display:
            while _wait_for_turn(database, until_idle, stop):
                try:
                    Controller(database, store, runs_steps, display).run(
                        until=stop.is_set, until_idle=until_idle
                    )
                except AnotherController:  # another standby controller was faster
                    continue
                if not stop.is_set() and state.all_ended(database):
                    return  # otherwise a study was queued while the lease was released
    if stop.is_set():
        say("creamtea: the controller was stopped; the next one continues", err=True)
        # a service manager stops a controller with SIGTERM, which is no failure
        raise typer.Exit(0 if stop.number == signal.SIGTERM else 130)


def _check() -> NoReturn:
    """Say which controller renews its lease.

    The health checks of compose and Kubernetes call this, and restart a controller that hangs: it renews no
    lease.
    """
    with workplace.opened_database() as database:
        live = live_controller(database)
    say(f"a controller is running: {live}" if live else "no controller is running", err=live is None)
    raise typer.Exit(0 if live else 1)


def _wait_for_turn(database: Database, until_idle: bool, stop: Stop) -> bool:
    """Wait until no other controller is running; False if the other one makes this one superfluous."""
    announced, clock = False, OutageClock()
    while (live := wait_out(lambda: live_controller(database), stop.pause, clock)) is not None:
        if live.study_id is None and until_idle:
            return False
        if not announced:
            say(f"waiting for another controller: {live}", err=True)
            announced = True
        wait_out(partial(shorten, database), stop.pause, clock)
        if stop.wait(WAIT_SECONDS):
            return False
    return not stop.is_set()
