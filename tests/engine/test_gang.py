"""What an attempt on several workers reports when some of them fail."""

from __future__ import annotations

import pytest
from ray.train.v2.api.exceptions import ControllerError, TrainingFailedError, WorkerGroupError

from creamtea.engine.executors.gang import MemberFailed, _failure

GONE = RuntimeError("The actor died unexpectedly\nand more")
ALONE = MemberFailed("infrastructure", "another worker of this training was lost: connection closed")
WRONG = MemberFailed("deterministic", "the training loss is nan at update 3")


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (WorkerGroupError("", {0: ALONE, 1: GONE}), "infrastructure", ALONE.error),
        (WorkerGroupError("", {0: ALONE, 1: WRONG}), "deterministic", WRONG.error),
        (WorkerGroupError("", {1: GONE}), "infrastructure", "was lost: The actor died unexpectedly"),
        (ControllerError(OSError("no room")), "infrastructure", "was lost: Training failed due to"),
    ],
)
def test_the_reason_of_a_failed_group(error: TrainingFailedError, kind: str, message: str) -> None:
    outcome = _failure(error)
    assert outcome.error_kind == kind
    assert message in outcome.error
    assert "\n" not in outcome.error
