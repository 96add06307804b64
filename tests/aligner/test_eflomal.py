"""eflomal's tool as a program of its own: a small script stands for it."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest
from limits import wait_until

from creamtea.errors import InfrastructureError, StepError, StepUnavailable
from creamtea_workers.corpora.tokens import Shard
from creamtea_workers.selection import external_aligners
from creamtea_workers.selection.external_aligners import align_with_eflomal

# pairs with an empty or too long side say nothing; ids above 9 have several digits
SOURCES = [[5, 6], [], [5, 7, 5], [12], [4] * 1024, [6]]
TARGETS = [[15, 16], [9], [15, 17, 18], [15], [4], []]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """A script as eflomal-align on the PATH, with `source` and `target` (lines of words) at hand."""

    def make(body: str) -> None:
        program = tmp_path / external_aligners.PROGRAM
        program.write_text(
            f"#!{sys.executable}\nimport os, sys, time\n"
            "arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))\n"
            "source, target = ([l.split() for l in open(arguments[s])] for s in ('-s', '-t'))\n"
            "links = open(arguments['-f'], 'w')\n" + textwrap.dedent(body),
            encoding="utf-8",
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    return make


DIAGONAL = """
for f, e in zip(source, target):
    print(*(f"{i}-{i}" for i in range(min(len(f), len(e)))), file=links)
"""


WAITING = """
open({0!r} + "~", "w").write(str(os.getpid()))
os.rename({0!r} + "~", {0!r})
time.sleep(600)
"""


def test_the_table_counts_links(install) -> None:  # type: ignore[no-untyped-def]
    install(DIAGONAL)
    watched: list[int] = []
    table = align_with_eflomal([Shard.of(SOURCES, TARGETS)], 20, 1, lambda: watched.append(1))
    found = zip(table.source.tolist(), table.target.tolist(), table.probability.tolist(), strict=True)
    # 5-15 twice, 5-18, 6-16, 7-17, 12-15
    assert list(found) == [
        (5, 15, pytest.approx(2 / 3)),
        (5, 18, pytest.approx(1 / 3)),
        (6, 16, 1.0),
        (7, 17, 1.0),
        (12, 15, 1.0),
    ]
    assert table.vocabulary_size == 20
    assert watched


def test_it_runs_with_the_steps_threads_and_without_passwords(install, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("CREAMTEA_DATABASE_URL", "postgresql://u:p@h/d")
    install(
        "assert os.environ['OMP_NUM_THREADS'] == '3' and not 'CREAMTEA_DATABASE_URL' in os.environ" + DIAGONAL
    )
    align_with_eflomal([Shard.of(SOURCES, TARGETS)], 20, 3, lambda: None)


def test_without_eflomal_the_step_is_unavailable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(StepUnavailable, match=r"eflomal-align is not installed here; .*pip install eflomal"):
        align_with_eflomal([Shard.of(SOURCES, TARGETS)], 20, 1, lambda: None)


def test_it_is_also_found_beside_the_interpreter(install, monkeypatch, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    install(DIAGONAL)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert external_aligners.find_program() == tmp_path / external_aligners.PROGRAM


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit('no memory')", r"failed \(code 1\): no memory"),
        ("os.remove(arguments['-f'])", r"failed \(code 0\): it printed nothing"),
        ("print('0-0', file=links)", "links that are not of its 3 sentence pairs"),
        ("print('0-0\\n0-9\\n0-0', file=links)", "links that are not of its 3 sentence pairs"),
        ("print('0-0\\n0\\n0-0', file=links)", "links that are not of its 3 sentence pairs"),
    ],
)
def test_what_goes_wrong_is_told(install, body: str, message: str) -> None:  # type: ignore[no-untyped-def]
    install(body)
    with pytest.raises(StepError, match=message):
        align_with_eflomal([Shard.of(SOURCES, TARGETS)], 20, 1, lambda: None)


def test_nothing_to_align_is_an_error(install) -> None:  # type: ignore[no-untyped-def]
    install(DIAGONAL)
    with pytest.raises(StepError, match="no pair to align"):
        align_with_eflomal([Shard.of([[]], [[4]])], 20, 1, lambda: None)


def test_a_killed_program_is_explained(install) -> None:  # type: ignore[no-untyped-def]
    install("os.kill(os.getpid(), 9)")
    with pytest.raises(
        InfrastructureError, match=r"memory ran out: .* \(\d+ bytes .*memory_gb .*aligner: em"
    ):
        align_with_eflomal([Shard.of(SOURCES, TARGETS)], 20, 1, lambda: None)


@pytest.mark.slow
def test_a_killed_worker_leaves_no_aligner_behind(install, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pid = tmp_path / "pid"
    install(WAITING.format(str(pid)))
    caller = f"""
from creamtea_workers.corpora.tokens import Shard
from creamtea_workers.selection.external_aligners import align_with_eflomal
align_with_eflomal([Shard.of({SOURCES!r}, {TARGETS!r})], 20, 1, lambda: None)
"""
    process = subprocess.Popen([sys.executable, "-c", caller])
    try:
        wait_until(pid.exists)
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not psutil.pid_exists(int(pid.read_text(encoding="utf-8"))))


class Cancelled(BaseException):
    pass


def test_a_cancel_ends_the_program(install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(external_aligners, "_SECONDS", 0.05)
    pid = tmp_path / "pid"
    install(WAITING.format(str(pid)))

    def watch() -> None:
        if pid.exists():
            raise Cancelled

    with pytest.raises(Cancelled):
        align_with_eflomal([Shard.of(SOURCES, TARGETS)], 20, 1, watch)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text(encoding="utf-8")), 0)
