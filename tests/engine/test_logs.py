"""Logs of attempts: what is in them, when they can be read, and what a killed worker leaves."""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import wait_until
from toy_steps import ENOUGH

from creamtea.contract.step import Resources
from creamtea.engine import runner
from creamtea.engine.executors.base import StepTask
from creamtea.engine.runner import execute
from creamtea.store.areas import (
    LOG_HEAD,
    LOG_LIMIT,
    LogName,
    list_logs,
    new_text,
    read_log,
    shorten_log,
    write_log,
)
from creamtea.store.artefacts import ArtefactStore

KEY = "k" * 64


Task = Callable[..., StepTask]


@pytest.fixture
def task(store: ArtefactStore, log: Path) -> Task:
    def make(do: str = "text", fence: int = 1) -> StepTask:
        params = {"name": "step", "log": str(log), "do": do}
        return StepTask(KEY, fence, "toy/1", "toy", 1, params, {}, {}, Resources(), store.root)

    return make


def the_log(store: ArtefactStore, fence: int = 1) -> str:
    return read_log(store, KEY, LogName(fence, 0))


def test_a_log_has_logging_progress_and_the_reason_of_a_failure(store: ArtefactStore, task: Task) -> None:
    execute(task("nap"))
    execute(task("error", fence=2))
    first, second = the_log(store), the_log(store, 2)
    assert "toy/1, attempt 1" in first
    assert "1 of 2 napping" in first
    assert "done in" in first
    assert "Traceback" in second
    assert "ValueError: the toy is broken" in second
    assert list_logs(store, KEY) == [LogName(1, 0), LogName(2, 0)]


def test_what_is_not_a_failure_is_one_line_of_the_log(store: ArtefactStore, task: Task) -> None:
    execute(task("give way"))
    execute(task("nap", fence=2), cancelled=lambda: True)
    for fence, words in ((1, "saved, to go on with more workers"), (2, "the attempt was cancelled")):
        _, line = the_log(store, fence).splitlines()
        assert line.endswith(words)


def test_a_log_can_be_read_while_the_step_runs(
    store: ArtefactStore, task: Task, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "COPY_EVERY", 0.05)
    thread = threading.Thread(target=execute, args=(task("watch"),))
    thread.start()
    try:
        wait_until(lambda: "tick" in the_log(store))
        logging.getLogger("toys").warning("jam – cream")
        wait_until(lambda: "WARNING toys: jam – cream" in the_log(store))
    finally:
        (log / ENOUGH).touch()
        thread.join()


@pytest.mark.slow
def test_output_of_libraries_and_programs_is_in_the_log_of_a_process_of_its_own(store: ArtefactStore) -> None:
    code = (
        "import os, sys\n"
        "from creamtea.engine.runner import captured\n"
        "from creamtea.engine.executors.base import StepTask\n"
        "from creamtea.contract.step import Resources\n"
        "from creamtea.store.artefacts import ArtefactStore\n"
        f"store = ArtefactStore({store.root!r})\n"
        f"task = StepTask({KEY!r}, 1, 'toy', 'toy', 1, {{}}, {{}}, {{}}, Resources(), store.root)\n"
        "print('before')\n"
        "with captured(store, task, 0, own_process=True):\n"
        "    print('by Python')\n"
        "    os.system('echo by a program >&2')\n"
        "print('after')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ})
    assert done.stdout.split() == ["before", "after"], done.stderr
    assert {"by Python", "by a program"} <= set(the_log(store).splitlines())


def test_a_store_that_fails_does_not_fail_the_step(
    store: ArtefactStore, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        with store.failures("logs"):
            raise OSError("gone")

    monkeypatch.setattr(runner, "write_log", fail)
    assert execute(task()).error_kind is None


def test_the_middle_of_a_long_log_is_left_out(store: ArtefactStore, task: Task, tmp_path: Path) -> None:
    long = runner.AttemptLog(store, task(), 0, tmp_path / "long")
    content = b"".join(b"line %09d\n" % number for number in range(2 * LOG_LIMIT // 15))
    long.file.write(content)
    long.copy()
    kept = the_log(store).encode()
    assert len(kept) < LOG_LIMIT + 100
    assert kept.startswith(content[:LOG_HEAD])
    assert kept.endswith(content[-1000:])
    assert b"bytes are left out here" in kept


def test_logs_are_in_the_order_of_the_attempts(store: ArtefactStore) -> None:
    for fence in (2, 10, 1):
        write_log(store, KEY, LogName(fence, 0), b"")
    assert [name.fence for name in list_logs(store, KEY)] == [1, 2, 10]
    assert list_logs(store, "none") == []


@given(st.lists(st.text("ab\n", max_size=40), max_size=8))
def test_following_shows_every_character_once(parts: list[str]) -> None:
    shown = content = ""
    seen = []
    for part in parts:
        content += part
        seen.append(new_text(shown, content))
        shown = content
    assert "".join(seen) == content


def test_following_a_log_whose_middle_is_cut_continues_after_the_last_line() -> None:
    lines = [f"line {number}\n".encode() for number in range(LOG_LIMIT // 8)]
    before = b"".join(lines[:-2])
    after = b"".join(lines)
    cut = [
        shorten_log(text[:LOG_HEAD] + text[LOG_HEAD - LOG_LIMIT :], len(text)).decode()
        for text in (before, after)
    ]
    assert new_text(*cut) == b"".join(lines[-2:]).decode()
