"""`make gpu-check`: what it writes, and when."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import gpu_check
import pytest
import torch

ROOT = Path(__file__).parents[2]
ROWS = ("gradients", "recordings", "twice", "translations", "trainings", "decodings", "papers")

TEMPLATE = """# On a GPU
<!-- table: gradients -->
old
<!-- end of table -->
Between the tables.
<!-- table: training -->
older
<!-- end of table -->
"""


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """On a machine with a GPU, by the words of torch."""
    file = tmp_path / "gpu.md"
    file.write_text(TEMPLATE, encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["gpu_check.py", "--output", str(file)])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    return file


def pretend(monkeypatch: pytest.MonkeyPatch, *failed: str, tables: Sequence[str] = ("gradients",)) -> None:
    def check(page: gpu_check.Page, rehearse: bool) -> list[str]:
        for table in tables:
            page.add(table, "| heading |")
            page.add(table, "| measured |")
        return [*failed]

    monkeypatch.setattr(gpu_check, "check", check)


def test_what_was_measured_takes_the_place_of_the_table_before(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch)
    for _ in range(2):  # a second run finds the places again
        gpu_check.main()
        assert output.read_text() == TEMPLATE.replace("old\n", "\n| heading |\n| measured |\n\n", 1)


def test_a_page_without_a_place_for_a_table_stays_as_it_is(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, tables=["gradients", "latency"])
    with pytest.raises(SystemExit, match=r"no place for the table latency: give it <!-- table: latency -->"):
        gpu_check.main()
    assert output.read_text() == TEMPLATE


def test_the_page_of_results_has_a_place_for_every_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of one row each: what the functions measure is not measured here."""
    for rows in ROWS:
        monkeypatch.setattr(gpu_check, rows, lambda *given: iter([["measured"]]))
    page = gpu_check.Page()
    assert gpu_check.check(page, rehearse=True) == []
    copy = tmp_path / "gpu.md"
    copy.write_text((ROOT / "docs/results/data/gpu.md").read_text(encoding="utf-8"), encoding="utf-8")
    page.write(copy)
    assert copy.read_text(encoding="utf-8").count("| measured |") == len(ROWS)


def test_a_gpu_that_is_wrong_gets_no_page(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "Gradients as on the CPU: rnn, scones, 2.0e-01 (wrong)")
    with pytest.raises(SystemExit, match=r"disagree, and nothing was written:\nGradients .*rnn, scones"):
        gpu_check.main()
    assert output.read_text() == TEMPLATE


def test_a_table_that_fails_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object) -> Iterator[list[str]]:
        yield ["first"]
        raise RuntimeError("no such kernel")

    for rows in ROWS:
        monkeypatch.setattr(gpu_check, rows, lambda *given: iter([["measured"]]))
    monkeypatch.setattr(gpu_check, "translations", fails)
    page = gpu_check.Page()
    assert gpu_check.check(page, rehearse=True) == ["translations: RuntimeError: no such kernel"]
    assert "| measured |" in page.tables["translation"]


def test_without_a_gpu_one_message_says_how_to_rehearse(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match=r"^torch sees no GPU here\. `make gpu-check REHEARSE=1`[^\n]*$"):
        gpu_check.main()
    assert output.read_text() == TEMPLATE


def test_a_rehearsal_looks_like_no_result(
    output: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--rehearse"])
    with pytest.raises(SystemExit, match="--output"):
        gpu_check.main()
    monkeypatch.setattr(sys, "argv", ["gpu_check.py", "--rehearse"])
    for rows in ("translations", "trainings", "decodings", "papers"):
        monkeypatch.setattr(gpu_check, rows, lambda *given: iter([["one", "0.1 (wrong)"]]))
    monkeypatch.setattr(gpu_check, "SMALL", {"rnn": gpu_check.SMALL["rnn"]})
    monkeypatch.setattr(gpu_check, "UPDATES", 2)
    with pytest.raises(SystemExit, match="disagree"):
        gpu_check.main()
    shown = capsys.readouterr().out
    assert shown.startswith("# A rehearsal of ")
    assert "| rnn | entmax | 0.0e+00 |" in shown
    assert gpu_check.ON_A_GPU not in shown
    assert output.read_text() == TEMPLATE
