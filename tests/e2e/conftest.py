"""Whole studies through the command line, in processes of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Report = dict[str, Any]


@pytest.fixture(scope="module")
def creamtea(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command line in a home of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CREAMTEA", "RAY"))}
    environment = {**kept, "CREAMTEA_HOME": str(tmp_path_factory.mktemp("home")), "OMP_NUM_THREADS": "1"}

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "creamtea.cli.main", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    return call


@pytest.fixture(scope="module")
def report(creamtea: Callable[..., subprocess.CompletedProcess[str]], study: Path, data: Path) -> Report:
    """The report of the module's study over its data; every step succeeds."""
    done = creamtea("run", str(study), "--data", str(data), "--executor", "inline")
    assert done.returncode == 0, done.stdout + done.stderr
    shown = creamtea("report", study.stem, "--json")
    assert shown.returncode == 0, shown.stderr
    found: Report = json.loads(shown.stdout)
    (steps,) = [fact["value"] for fact in found["facts"] if fact["label"] == "steps"]
    assert re.fullmatch(r"\d+ succeeded", steps)
    assert "missing" not in {section["key"] for section in found["sections"]}
    return found
