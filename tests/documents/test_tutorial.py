"""The tutorial's commands, one after the other, on a little of its text."""

from __future__ import annotations

import itertools
import shlex
import subprocess
from pathlib import Path

import pytest
from fenced import ROOT, commands, fenced
from typer.testing import CliRunner

from creamtea.cli.main import app

PAGE = ROOT / "docs" / "tutorial.md"
PAIRS = 500
# what makes it short: little text, a small model, few epochs, no timing of updates, no Ray
SMALL = {"architecture.width": 32, "architecture.feed_forward": 64, "training.autocast": "none"}
SMALLER = " ".join(f"--set variants.softmax.{key}={value}" for key, value in SMALL.items())
SHORTER = {
    "creamtea init": "creamtea init --no-timing",
    "max_epochs=15": f"max_epochs=2 {SMALLER} --executor inline",
}


def shortened_lines() -> list[str]:
    blocks = [block for block in fenced(PAGE) if block.language == "sh" and "not run" not in block.mark]
    lines = [line for block in blocks for line in commands(block)]
    for words, shorter in SHORTER.items():
        assert any(words in line for line in lines)
        lines = [line.replace(words, shorter) for line in lines]
    return lines


@pytest.mark.slow
def test_the_commands_of_the_tutorial_run_to_their_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "studies" / "tatoeba"
    folder.mkdir(parents=True)
    for name in ("train.en", "train.de"):
        with (ROOT / "studies" / "tatoeba" / name).open(encoding="utf-8") as lines:
            (folder / name).write_text("".join(itertools.islice(lines, PAIRS)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CREAMTEA_HOME", raising=False)
    monkeypatch.delenv("CREAMTEA_DATABASE_URL", raising=False)
    printed = ""
    for line in shortened_lines():
        before, _, command = line.rpartition(" | ")
        words = shlex.split(command)
        if words[0] == "cd":
            monkeypatch.chdir(words[1])
        elif words[0] == "creamtea":
            text = subprocess.check_output(["bash", "-c", before], text=True) if before else None
            done = CliRunner().invoke(app, words[1:], input=text, catch_exceptions=False)
            assert done.exit_code == 0, f"{line}: {done.output}"
            printed += done.stdout
        else:
            subprocess.run(["bash", "-c", line], check=True)
    assert "baseline greedy" in printed
    assert "/enter#" in printed  # the rater's link
    assert (tmp_path / "first-study" / "study.yaml").is_file()
