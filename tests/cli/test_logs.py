"""creamtea logs, with fake steps."""

from dataclasses import replace
from pathlib import Path

import pytest

from creamtea.cli import status
from creamtea.store.areas import LogName
from creamtea.store.queries import Node

INLINE = ("--executor", "inline", "--quiet")
TRAIN = "train/softmax/1"


def test_the_log_of_the_last_attempt_has_its_reason_and_all_are_shown_on_request(
    creamtea, study: Path
) -> None:
    creamtea("run", study, *INLINE, FAKES='{"train": "error"}')
    done = creamtea("logs", "tiny", TRAIN)
    assert f"{TRAIN}, attempt 1" in done.stdout
    assert "the loss is NaN at update 3" in done.stdout
    assert "failed (deterministic)" in done.stderr
    assert creamtea("logs", "tiny", TRAIN, "--follow").stdout == done.stdout  # it has ended
    assert "it did not run, because train" in creamtea.refused("logs", "tiny", "decode/softmax-greedy/1/test")
    creamtea("retry", "tiny", *INLINE)
    assert "NaN" not in creamtea("logs", "tiny", TRAIN).stdout
    shown = creamtea("logs", "tiny", TRAIN, "--all").stdout
    assert shown.index("NaN") < shown.index("done in")
    said = creamtea.refused("logs", "tiny", TRAIN, "--worker", "3")
    assert said.startswith(f"creamtea: --worker 3: step {TRAIN} has no log of that worker")
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
