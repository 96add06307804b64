"""Follows a study that another process runs, by reading the database; what to say where none runs it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import typer

from creamtea.cli.printing import say
from creamtea.cli.progress import shown
from creamtea.engine import events
from creamtea.engine.state import has_ended
from creamtea.errors import CreamteaError
from creamtea.orders.controllers import live_controller
from creamtea.orders.submission import Submission
from creamtea.settings import Settings
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.engines import Outage, Waited, wait_out
from creamtea.store.queries import Node, steps_of, study_nodes

POLL_SECONDS = 1.0
MISSING_SECONDS = 30.0  # without any controller, after which waiting is given up


def nobody() -> str:
    """What to say where no controller is running."""
    if Settings.load().controller_is_service:
        return "no controller is running now: what is queued waits until the service is back"
    return (
        "no controller is running: `creamtea controller --until-idle` starts one, "
        "which continues the studies that have not ended"
    )


class Patience:
    """How long a controller has been missing."""

    def __init__(self) -> None:
        self._alive_at = time.monotonic()

    def check(self, alive: bool, message: str) -> None:
        """CreamteaError with the message where none has been alive for long, nor will one start by itself."""
        if alive or Settings.load().controller_is_service:
            self._alive_at = time.monotonic()
        elif time.monotonic() > self._alive_at + MISSING_SECONDS:
            raise CreamteaError(message)


def follow(
    database: Database, store: ArtefactStore, submission: Submission, log: str
) -> Iterator[events.EngineEvent]:
    """What happens to the study, as events, until it has ended.

    CreamteaError when no controller is left that could continue it; `log` is where to look then.
    """
    study_id = submission.study_id
    # what finished between the submission and the first poll is reported as well
    seen = {key: "succeeded" if key in submission.reused_keys else "pending" for key in submission.keys}
    patience, waited = Patience(), Waited()
    while True:
        over, nodes, alive = wait_out(lambda: _look(database, study_id), _wait, waited)
        for key, node in steps_of(nodes).items():
            if node.state != seen[key]:
                event = _event(node, seen[key])
                seen[key] = node.state
                if event is not None:
                    yield event
            if node.state == "running":
                progress = store.read_progress(key, node.fence)
                if progress is not None:
                    yield events.StepProgressed(key, node.name, **vars(progress))
        if over:
            return
        patience.check(
            alive,
            f"no controller is working on the study any more; {log} says why. "
            "`creamtea submit` starts a new one",
        )
        time.sleep(POLL_SECONDS)


def follow_shown(
    database: Database, store: ArtefactStore, submission: Submission, log: str, quiet: bool
) -> None:
    """`follow` it with a display. Exits with 130 where a person interrupts it; the study goes on."""
    try:
        with shown(len(submission.keys), submission.reused, quiet) as display:
            for event in follow(database, store, submission, log):
                display(event)
    except KeyboardInterrupt:
        say(
            f"creamtea: the study continues; follow it with `creamtea status {submission.name} --watch`",
            err=True,
        )
        raise typer.Exit(130) from None


def _look(database: Database, study_id: int) -> tuple[bool, list[Node], bool]:
    """Whether the study is over, its nodes, and whether a controller is running."""
    over = has_ended(database, study_id)  # before the rows, so that the last change is reported
    with database.session() as session:
        nodes = study_nodes(session, study_id)
    return over, nodes, live_controller(database) is not None


def _wait(outage: Outage, pause: float) -> bool:
    time.sleep(pause)
    return True


def _event(node: Node, before: str) -> events.EngineEvent | None:
    error = node.error or ""
    match node.state:
        case "running":
            return events.StepStarted(node.key, node.name, node.kind, node.attempts)
        case "succeeded":
            return events.StepSucceeded(node.key, node.name, float(node.facts.get("seconds", 0.0)))
        case "failed":
            return events.StepFailed(node.key, node.name, node.error_kind or "", error)
        case "ready" if before == "running" and node.error_kind is not None:
            return events.StepRetried(node.key, node.name, node.attempts, error, node.pause)
        case "pending" | "ready" if before == "succeeded":
            return events.StepReset(node.key, node.name)
        case "pending" | "ready" | "cancelled" if before == "running":
            return events.StepStopped(node.key, node.name)
    return None
