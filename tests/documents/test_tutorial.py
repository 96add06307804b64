"""The tutorial's commands, one after the other, on a little of its text."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fenced import ROOT, commands, fenced
from limits import COMMAND

PAGE = ROOT / "docs" / "tutorial.md"
PAIRS = 500
# what makes it short: little text, few epochs, no timing of updates, no Ray
SHORTER = {
    "creamtea init": "creamtea init --no-timing",
    "max_epochs=15": "max_epochs=4 --executor inline",
}


def script() -> str:
    blocks = [
        block for block in fenced(PAGE) if block.language == "sh" and not block.mark.startswith("not run")
    ]
    lines = [line for block in blocks for line in commands(block)]
    for words, shorter in SHORTER.items():
        assert any(words in line for line in lines)
        lines = [line.replace(words, shorter) for line in lines]
    return "\n".join(lines)


@pytest.mark.slow
def test_the_commands_of_the_tutorial_run_to_their_end(tmp_path: Path) -> None:
    folder = tmp_path / "studies" / "tatoeba"
    folder.mkdir(parents=True)
    for name in ("train.en", "train.de"):
        with (ROOT / "studies" / "tatoeba" / name).open(encoding="utf-8") as lines:
            (folder / name).write_text("".join(itertools.islice(lines, PAIRS)), encoding="utf-8")
    program = tmp_path / "creamtea"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m creamtea.cli.main "$@"\n')
    program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CREAMTEA", "RAY"))}
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script()],
        cwd=tmp_path,
        env=kept | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=COMMAND,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "baseline greedy" in done.stdout
    assert "/enter#" in done.stdout  # the rater's link
    assert (tmp_path / "first-study" / "study.yaml").is_file()
