"""`creamtea run`: runs a study in the foreground, from its file to its report."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from creamtea.cli import workplace
from creamtea.cli.printing import say
from creamtea.cli.stopping import stoppable
from creamtea.errors import InputError
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database

if TYPE_CHECKING:
    from creamtea.engine.executors.base import Executor
    from creamtea.orders.submission import Submission

EXAMPLES = """Examples:

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
    from creamtea.engine.lease import AnotherController

    runs_steps = workplace.make_executor(executor, address)
    runs_steps.check()
    with workplace.opened_database() as database:
        store = workplace.artefact_store()

        def queue() -> Submission:
            return workplace.submit_study(database, store, study, data, override)

        try:
            carry_out(database, store, runs_steps, queue, as_json=as_json, quiet=quiet)
        except AnotherController as error:
            raise InputError(f"{error}. `creamtea submit` queues this study behind it") from error


def carry_out(
    database: Database,
    store: ArtefactStore,
    executor: Executor,
    queue: Callable[[], Submission],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """`control` it, then print its outcome."""
    from creamtea.cli.outcome import conclude

    started = time.monotonic()
    submission = control(database, store, executor, queue, quiet=quiet)
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
    then. Exits with 130 where a person interrupts it.
    """
    from creamtea.cli.progress import shown
    from creamtea.engine import lease as leases
    from creamtea.engine.controller import Controller
    from creamtea.orders.submission import cancel

    submission: Submission | None = None

    def queue_it() -> int:
        nonlocal submission
        submission = queue()
        return submission.study_id

    try:
        lease = leases.hold(database, executor.address, queue_it)
    except leases.AnotherController:
        if submission is not None:  # one took over while the study was planned
            cancel(database, submission.study_id)
        raise
    assert submission is not None
    try:
        with stoppable() as stop, shown(len(submission.keys), submission.reused, quiet) as display:
            controller = Controller(database, store, executor, display)
            controller.run(submission.study_id, until=stop.is_set, lease=lease)
        interrupted = stop.is_set()
    except KeyboardInterrupt:
        interrupted = True
    except InputError:  # of the executor
        cancel(database, submission.study_id)
        raise
    if interrupted and cancel(database, submission.study_id):
        say(
            f"creamtea: interrupted. The same command, or `creamtea retry {submission.name}`, continues from "
            "here: finished steps are kept, and training resumes from its last checkpoint",
            err=True,
        )
        raise typer.Exit(130)
    return submission
