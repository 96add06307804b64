"""The wheel, and the documentation in it, which `make docs-site` builds in the same way."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from fenced import ROOT
from limits import COMMAND
from made_once import made_once


def built_wheel(factory: pytest.TempPathFactory) -> Path:
    """Build the wheel once for all tests."""
    (wheel,) = made_once(factory, "wheel", _build).glob("*.whl")
    return wheel


def built_site(factory: pytest.TempPathFactory) -> Path:
    """Unpack the site that the wheel has."""
    folder = factory.mktemp("site")
    with zipfile.ZipFile(built_wheel(factory)) as wheel:
        wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith("creamtea/site/")])
    return folder / "creamtea" / "site"


def _build(folder: Path) -> None:
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    command = [sys.executable, "-m", "pip", "wheel", *options, str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND)
    assert done.returncode == 0, done.stdout + done.stderr
