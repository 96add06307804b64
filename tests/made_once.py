"""What is dear to make, as a trained model: one of the processes of a run makes it, the others copy it."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder of this process's own with what `make` writes into a folder. `name` belongs to one `make`.

    What is made holds no path of its folder. Others wait meanwhile; where `make` fails, the next one tries.
    """
    own = factory.mktemp(name)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        make(own)
        return own
    of_all = factory.getbasetemp().parent  # of this run: each worker's folder lies in it
    made = of_all / f"{name}-of-all"
    with (of_all / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            make(own)
            shutil.copytree(own, of_all / f"{name}-copying")
            (of_all / f"{name}-copying").rename(made)
            return own
    shutil.copytree(made, own, dirs_exist_ok=True)
    return own
