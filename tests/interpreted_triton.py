"""Triton's kernels on a CPU."""

import os
import subprocess
import sys


def run_interpreted(*arguments: str) -> None:
    """Run Python with Triton's interpreter; a failure shows what it printed.

    In a process of its own: Triton reads TRITON_INTERPRET when it is imported.
    """
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
