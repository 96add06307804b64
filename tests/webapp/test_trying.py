"""Trying a sentence: what is refused, and how a process that hangs or dies ends. No model is loaded."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from limits import wait_until

from creamtea.errors import InputError
from creamtea_webapp.pages import try_out

ANSWERS = """
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    for system in request["systems"]:
        row = {"system": system, "text": request["line"].upper(), "process": os.getpid()}
        print(json.dumps(row), flush=True)
"""


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """Each test has a process of its own."""
    try_out._process.end()
    yield
    try_out._process.end()


def fake(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(try_out, "COMMAND", [sys.executable, "-c", program])


def process_of(line: str) -> int:
    return int(try_out.try_sentence(1, ["a"], line)[0]["process"])


def test_one_process_answers_them_all_in_order_until_it_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, ANSWERS)
    rows = try_out.try_sentence(1, ["b", "a"], 'a "quoted" line; rm -rf /')
    assert [(row["system"], row["text"]) for row in rows] == [
        (name, 'A "QUOTED" LINE; RM -RF /') for name in ("b", "a")
    ]
    first = process_of("one")
    assert process_of("two") == first
    os.kill(first, signal.SIGKILL)
    assert process_of("three") != first


def test_another_one_where_it_has_ended_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, f"{ANSWERS}    break")
    assert process_of("one") != process_of("two")


def test_one_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    going, go_on = tmp_path / "going", tmp_path / "go-on"
    waits = (
        f"import pathlib, time\npathlib.Path({str(going)!r}).touch()\n"
        f"while not pathlib.Path({str(go_on)!r}).exists(): time.sleep(0.01)\n{ANSWERS}"
    )
    fake(monkeypatch, waits)
    first = threading.Thread(target=try_out.try_sentence, args=(1, ["a"], "one"))
    first.start()
    wait_until(going.exists)
    with pytest.raises(try_out.CannotTry, match="Somebody else"):
        try_out.try_sentence(1, ["a"], "two")
    go_on.touch()
    first.join()
    assert try_out.try_sentence(1, ["a"], "three")


def test_what_hangs_is_ended_and_the_next_one_may_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(try_out, "SECONDS", 0.2)
    fake(monkeypatch, "import time; time.sleep(600)")
    with pytest.raises(try_out.CannotTry, match="was ended"):
        try_out.try_sentence(1, ["a"], "one")
    monkeypatch.setattr(try_out, "SECONDS", 60)
    fake(monkeypatch, ANSWERS)
    assert try_out.try_sentence(1, ["a"], "two")


def test_a_process_that_dies_is_named_by_its_system(monkeypatch: pytest.MonkeyPatch) -> None:
    row = json.dumps({"system": "a"})
    part = '{"system": "b", "te'  # it ends while it writes
    fake(monkeypatch, f"print({row!r}); print({part!r}, end=''); raise SystemExit(1)")
    start = subprocess.Popen

    def start_and_wait(*arguments: Any, **options: Any) -> subprocess.Popen[str]:
        process = start(*arguments, **options)
        process.wait()
        return process

    monkeypatch.setattr(subprocess, "Popen", start_and_wait)  # it has ended before it is asked
    with pytest.raises(try_out.CannotTry, match="b could not be tried"):
        try_out.try_sentence(1, ["a", "b"], "one")


@pytest.mark.parametrize(("systems", "line", "word"), [(1, "x" * 1001, ""), (1, "x", "y" * 61), (5, "x", "")])
def test_too_much_is_refused(systems: int, line: str, word: str) -> None:
    with pytest.raises(try_out.CannotTry, match="at most"):
        try_out.try_sentence(1, ["a"] * systems, line, word)


def test_it_is_there_where_the_artefacts_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CREAMTEA_HOME", str(tmp_path))
    assert not try_out.is_available()
    (tmp_path / "artefacts").mkdir()
    assert try_out.is_available()
    monkeypatch.setenv("CREAMTEA_ARTEFACTS", "s3://bucket/artefacts")
    assert not try_out.is_available()
    monkeypatch.delenv("CREAMTEA_ARTEFACTS")
    monkeypatch.setenv("CREAMTEA_TRY_OUT", "off")
    assert not try_out.is_available()
    monkeypatch.setenv("CREAMTEA_TRY_OUT", "perhaps")
    with pytest.raises(InputError, match="on or off"):
        try_out.is_available()
