"""The documentation built into a folder, as `make docs-site` and a wheel build it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fenced import ROOT
from limits import COMMAND
from made_once import made_once


def built_site(factory: pytest.TempPathFactory) -> Path:
    """Build the site once for all tests."""
    return made_once(factory, "site", _build)


def _build(folder: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    variables = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=COMMAND)
    assert done.returncode == 0, done.stdout + done.stderr
