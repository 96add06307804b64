"""`creamtea submit`: queue a study for a controller that works in the background."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from creamtea.cli import workplace
from creamtea.cli.printing import say
from creamtea.errors import CreamteaError, InputError
from creamtea.settings import Settings, child_environment, make_private
from creamtea.store.database import Database

if TYPE_CHECKING:
    from creamtea.store.tables import Controller

START_SECONDS = 30.0  # that a new controller has to take the lease
LOG_TAIL = 2000  # characters of its log that are shown if it does not

EXAMPLES = """Examples:

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

    With CREAMTEA_CONTROLLER=service in the environment it starts none, as the service runs it. With --wait
    the exit codes are those of `creamtea run`.
    """
    from creamtea.cli.follow import follow_shown
    from creamtea.cli.outcome import conclude
    from creamtea.orders.controllers import live_controller

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
            _print_queued(submission.study_id, submission.name, log, as_json)
            return
        started = time.monotonic()
        follow_shown(database, store, submission, log, quiet)
        conclude(database, submission, started, as_json=as_json)


def _serves(live: Controller | None, address: str | None) -> bool:
    """Whether a running controller will run what is queued. InputError if it uses another cluster."""
    if live is None or live.study_id is not None:
        return False
    if address and address != live.address:
        raise InputError(
            f"the controller of this database, {live}, uses {live.address or 'its own machine'}, not "
            f"{address}; omit --address, or stop that process first"
        )
    return True


def _start_controller(
    database: Database, executor: str, address: str | None, behind: Controller | None
) -> Path:
    """Start a controller that outlives this process; returns its log file.

    CreamteaError with the end of the log if it does not start. It waits for a running `creamtea run`.
    """
    from creamtea.orders.controllers import live_controller

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
        if code is not None or time.monotonic() > deadline:
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
