"""What takes a process long to import is imported by what needs it only."""

from __future__ import annotations

import subprocess
import sys

import pytest
from limits import ANSWER

WITHOUT_TORCH = (
    "buckets",
    "compare",
    "corpus",
    "encode",
    "outputs",
    "overlap",
    "score",
    "subwords",
    "test_set",
)
MODULES = ["creamtea.report.build", *(f"creamtea_workers.steps.{step}" for step in WITHOUT_TORCH)]
SLOW = {"alembic", "ray", "sacremoses", "scipy.special", "scipy.stats", "streamlit", "torch"}


@pytest.mark.slow
def test_reports_and_steps_that_compute_nothing_start_without_torch() -> None:
    code = f"import sys, {', '.join(MODULES)}; print(*sorted({SLOW!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=ANSWER)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr
