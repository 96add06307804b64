"""creamtea logs, with fake steps."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from limits import ANSWER

from creamtea.cli import status
from creamtea.store.areas import LogName
from creamtea.store.queries import Node

INLINE = ("--executor", "inline", "--quiet")
TRAIN = "train/softmax/1"


def test_the_log_of_a_failed_step_has_its_reason(creamtea, study: Path) -> None:
    creamtea("run", study, *INLINE, FAKES='{"train": "error"}')
    done = creamtea("logs", "tiny", TRAIN)
    assert f"{TRAIN}, attempt 1" in done.stdout
    assert "the loss is NaN at update 3" in done.stdout
    assert "failed (deterministic)" in done.stderr
    assert creamtea("logs", "tiny", TRAIN, "--follow").stdout == done.stdout  # it has ended
    assert "it did not run, because train" in creamtea.refused("logs", "tiny", "decode/softmax-greedy/1/test")


def test_a_worker_that_a_step_did_not_have(creamtea, study: Path) -> None:
    creamtea("run", study, *INLINE)
    said = creamtea.refused("logs", "tiny", TRAIN, "--worker", "3")
    assert said.startswith(f"creamtea: --worker 3: step {TRAIN} has no log of that worker")


def test_the_last_attempt_is_shown_and_all_on_request(creamtea, study: Path) -> None:
    creamtea("run", study, *INLINE, FAKES='{"train": "error"}')
    creamtea("retry", "tiny", *INLINE)
    assert "NaN" not in creamtea("logs", "tiny", TRAIN).stdout
    shown = creamtea("logs", "tiny", TRAIN, "--all").stdout
    assert shown.index("NaN") < shown.index("done in")


def test_a_step_that_is_not_there_is_refused_with_similar_ones(creamtea, study: Path) -> None:
    creamtea("run", study, *INLINE)
    assert f"did you mean {TRAIN}" in creamtea.refused("logs", "tiny", "train/softmx/1")


def test_following_shows_a_line_that_is_half_written_once(creamtea, monkeypatch: pytest.MonkeyPatch) -> None:
    running = Node(TRAIN, {}, "k", "train", "running", {}, 1, 1, None, None, {}, None, None)
    moments = [
        (running, "first\nsec"),
        (running, "first\nsec"),
        (replace(running, state="succeeded"), "first\nsecond\n"),
    ]
    asked: list[Node] = []

    def node(*_: object) -> Node:
        asked.append(moments[len(asked)][0])
        return asked[-1]

    monkeypatch.setattr(status, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(status, "_node", node)
    monkeypatch.setattr(status, "list_logs", lambda *_: [LogName(1, 0)])
    monkeypatch.setattr(status, "read_log", lambda *_: moments[len(asked) - 1][1])
    assert creamtea("logs", "tiny", TRAIN, "--follow").stdout == "first\nsecond\n"


@pytest.mark.slow
def test_a_running_step_is_followed_to_its_end(creamtea, study: Path, wait_for: Callable[..., None]) -> None:
    creamtea.start("run", str(study), *INLINE, FAKES='{"train": "sleep"}')
    wait_for(lambda: creamtea.state().get(TRAIN) == "running")
    following = creamtea.start("logs", "tiny", TRAIN, "--follow")
    line = following.stdout.readline()  # while it runs
    assert TRAIN in line
    creamtea("cancel", "tiny")
    output, _ = following.communicate(timeout=ANSWER)
    assert following.returncode == 0
    assert TRAIN not in output  # nothing twice
