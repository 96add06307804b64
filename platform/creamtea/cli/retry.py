"""`creamtea retry`: runs again what failed or was cancelled."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from creamtea.cli import workplace
from creamtea.cli.printing import say
from creamtea.errors import InputError

EXAMPLES = "Example: `creamtea retry demo`"


def retry(
    name: workplace.StudyName,
    executor: workplace.ExecutorName = "ray",
    address: workplace.Address = None,
    make_anew: Annotated[
        bool,
        typer.Option("--make-anew", help="Even if the artefact store has no files of the study: remake all."),
    ] = False,
    as_json: workplace.AsJson = False,
    quiet: workplace.Quiet = False,
) -> None:
    """Try the failed and cancelled steps of a study again, as it was last submitted.

    Steps whose files the artefact store has lost run again, too: where it has none at all, which may be the
    wrong store, with `--make-anew`. After a change to the study's file use `creamtea run`. The steps run
    here, or in the controller that `creamtea submit` started if it is still running.

    Exit code 0: done, even if optional steps (scores, say) are unavailable, or queued for that controller;
    1: a step failed; 2: no such study, it has not ended, or all of its steps have succeeded; 130:
    interrupted.
    """
    from creamtea.cli.follow import nobody
    from creamtea.cli.run import carry_out
    from creamtea.orders.controllers import live_controller
    from creamtea.orders.rows import LIVE
    from creamtea.orders.submission import Submission, requeue
    from creamtea.store.queries import find_study

    runs_steps = workplace.make_executor(executor, address)
    with workplace.existing_database() as database:
        store = workplace.artefact_store()
        with database.session() as session:
            study = find_study(session, name)
        live = live_controller(database)
        if live is None and study.state in LIVE:
            raise InputError(f"study {name} is {study.state}, so it cannot be retried; but {nobody()}")
        if live is None or live.study_id is not None:
            runs_steps.check()  # before anything is queued, or what failed, and why, would be gone

            def queue() -> Submission:
                return requeue(database, store, study.id, make_anew=make_anew)

            carry_out(database, store, runs_steps, queue, as_json=as_json, quiet=quiet)
            return
        requeue(database, store, study.id, make_anew=make_anew)
    if as_json:
        say(json.dumps({"study": name, "study_id": study.id, "state": "queued"}))
    else:
        say(f"queued {name} for the controller, {live}; follow with `creamtea status {name} --watch`")
