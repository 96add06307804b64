"""Whole studies through the command line."""

import json
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command_line import Done, call

Report = dict[str, Any]


@pytest.fixture(scope="module")
def creamtea(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Done]:
    """The command line in a home of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CREAMTEA", "RAY"))}
    return partial(call, {**kept, "CREAMTEA_HOME": str(tmp_path_factory.mktemp("home"))})


@pytest.fixture(scope="module")
def report(creamtea: Callable[..., Done], study: Path, data: Path) -> Report:
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
