"""The undisturbed run, with which the others are compared."""

from __future__ import annotations

import os

import pytest
from filelock import FileLock
from places import STUDY, Place


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Run once, for all processes of the suite."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # that of all processes
    place = Place(base / "undisturbed")
    with FileLock(base / "undisturbed.lock"):
        if not (done := place.home / "done").exists():
            place.home.mkdir(exist_ok=True)
            output = place.run("run", str(STUDY), "--executor", "inline")
            assert "nvs" in output
            done.touch()
    return place
