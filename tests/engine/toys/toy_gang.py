"""Errors of Ray Train as a group of workers meets them, made in a process of their own.

Ray reads the environment when it is imported, so importing it into pytest's process would decide for every
later test whether a cluster asks for a token and where a local Ray listens.
"""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from creamtea.engine.executors.base import GAVE_WAY
from creamtea.engine.executors.ray import MemberFailed, _failure

ALONE = MemberFailed("infrastructure", "another worker of this step was lost: connection closed")
LARGER = MemberFailed(GAVE_WAY, "it goes on with more workers")
WRONG = MemberFailed("deterministic", "the training loss is nan at update 3")


def outcomes() -> dict[str, tuple[str | None, str]]:
    """What is reported of each error: its kind and message."""
    from ray.train import ControllerError, WorkerGroupError

    gone = RuntimeError("The actor died unexpectedly\nand more")
    errors = {
        "alone": WorkerGroupError("", {0: ALONE, 1: gone}),
        "wrong": WorkerGroupError("", {0: ALONE, 1: WRONG}),
        "gone": WorkerGroupError("", {1: gone}),
        "larger": WorkerGroupError("", {0: ALONE, 1: LARGER}),
        "no room": ControllerError(OSError("no room")),
    }
    reported = {name: _failure(error) for name, error in errors.items()}
    return {name: (outcome.error_kind, outcome.error) for name, outcome in reported.items()}


def outcomes_elsewhere() -> dict[str, tuple[str | None, str]]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(outcomes).result()
