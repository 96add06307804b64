"""Run programs for a step, each under a guard that ends the program and all its child processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from creamtea.settings import is_withheld

GUARD = Path(__file__).with_name("guard.py")
LAST_SECONDS = 10.0  # time for a guard to end by itself


def inherited_variables() -> dict[str, str]:
    """Return this process's environment for a program that is not creamtea's.

    Omits creamtea's and Ray's variables, and passwords of databases.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CREAMTEA_", "RAY_")) and not is_withheld(name)
    }


def start(command: Sequence[str], source: Path, **options: Any) -> subprocess.Popen[bytes]:
    """Start the guard of a program whose standard input is the file `source`.

    `options` are passed to `subprocess.Popen`.
    """
    return subprocess.Popen(
        # -I -S: nothing of this environment reaches the guard
        [sys.executable, "-I", "-S", str(GUARD), str(source), *command],
        stdin=subprocess.PIPE,  # held open: the guard ends the program when it closes
        start_new_session=True,
        **options,
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """End the guard, the program and what they have started; harmless when they have ended."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=LAST_SECONDS)
    if process.returncode in (None, -signal.SIGKILL):  # the guard is stuck, or was killed before the program
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
