"""`make gpu-check`: what it writes, and when."""

from __future__ import annotations

import sys
from pathlib import Path

import gpu_check
import pytest
import torch


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """On a machine with a GPU, by the words of torch."""
    file = tmp_path / "results-gpu.md"
    monkeypatch.setattr(sys, "argv", ["gpu_check.py", "--output", str(file)])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    return file


def pretend(monkeypatch: pytest.MonkeyPatch, *failed: str) -> None:
    def check(page: gpu_check.Page, rehearse: bool) -> list[str]:
        page.add(gpu_check.ON_A_GPU)
        return [*failed]

    monkeypatch.setattr(gpu_check, "check", check)


def test_what_was_measured_is_written(
    output: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch)
    gpu_check.main()
    assert output.read_text() == capsys.readouterr().out
    assert output.read_text().startswith("# Results on a GPU\n")


def test_a_gpu_that_is_wrong_gets_no_page(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "Gradients as on the CPU: rnn, scones, 2.0e-01 (wrong)")
    with pytest.raises(SystemExit, match=r"disagree, and nothing was written:\nGradients .*rnn, scones"):
        gpu_check.main()
    assert not output.exists()


def test_without_a_gpu_one_message_says_how_to_rehearse(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match=r"^torch sees no GPU here\. `make gpu-check REHEARSE=1`[^\n]*$"):
        gpu_check.main()
    assert not output.exists()


def test_a_rehearsal_looks_like_no_result(
    output: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--rehearse"])
    with pytest.raises(SystemExit, match="--output"):
        gpu_check.main()
    monkeypatch.setattr(sys, "argv", ["gpu_check.py", "--rehearse"])
    for rows in ("translations", "trainings", "decodings"):
        monkeypatch.setattr(gpu_check, rows, lambda *given: iter([["one", "0.1 (wrong)"]]))
    monkeypatch.setattr(gpu_check, "SMALL", {"rnn": gpu_check.SMALL["rnn"]})
    monkeypatch.setattr(gpu_check, "UPDATES", 2)
    with pytest.raises(SystemExit, match="disagree"):
        gpu_check.main()
    shown = capsys.readouterr().out
    assert shown.startswith("# A rehearsal of ")
    assert "| rnn | entmax | 0.0e+00 |" in shown
    assert "Results on a GPU" not in shown
    assert not output.exists()
