"""Runs a scorer, and ends it with everything that it started when the caller is gone.

    python -I -S guard.py INPUT PROGRAM [ARGUMENT ...]

The scorer reads the file INPUT as its standard input; its output and its exit code are passed on (128 + n for
signal n). The caller holds this process's standard input open. It closes when the caller ends, however that
happens: a worker that is killed must not leave a model in memory. Imports nothing from creamtea.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import NoReturn


def main(source: str, *command: str) -> int:
    threading.Thread(target=end_with_caller, daemon=True).start()
    with Path(source).open("rb") as lines:
        try:
            process = subprocess.Popen(command, stdin=lines)
        except OSError as error:
            print(json.dumps({"error": f"{command[0]} cannot be started ({error.strerror})"}), flush=True)
            return 1
    code = process.wait()
    return code if code >= 0 else 128 - code


def end_with_caller() -> NoReturn:
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)
    raise AssertionError  # not reached: this process is of the group


if __name__ == "__main__":
    os._exit(main(*sys.argv[1:]))  # at once: the thread still reads
