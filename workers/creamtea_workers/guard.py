"""Run another program; when it or the caller ends, kill everything that the program started.

    python -I -S guard.py INPUT PROGRAM [ARGUMENT ...]

The program reads the file INPUT as its standard input. The guard passes on its output and its exit code
(128 + n for signal n). The caller holds the guard's standard input open; it closes when the caller ends, even
by SIGKILL, so a killed worker leaves no model in memory. Imports nothing from creamtea.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
WAIT = 0.01  # seconds between two looks for processes that still run


def main(source: str, *command: str) -> int:
    # a process that has left the group (setsid) becomes a child of this one when its parent ends
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    threading.Thread(target=end_with_caller, daemon=True).start()
    with Path(source).open("rb") as lines:
        try:
            process = subprocess.Popen(command, stdin=lines)
        except OSError as error:
            print(json.dumps({"error": f"{command[0]} cannot be started ({error.strerror})"}), flush=True)
            return 1
    code = process.wait()
    end_descendants()
    return code if code >= 0 else 128 - code


def end_with_caller() -> NoReturn:
    while os.read(0, 1):
        pass
    try:
        end_descendants()
    finally:
        os.killpg(0, signal.SIGKILL)
    raise AssertionError  # not reached: this process belongs to the group


def end_descendants() -> None:
    while remaining := list(descendants()):
        for pid in remaining:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(WAIT)


def descendants() -> Iterator[int]:
    """Yield the running descendants of this process; none if the system has no /proc."""
    known = {os.getpid()}
    running = list(processes())
    grown = True
    while grown:
        children = {pid for pid, parent in running if parent in known} - known
        known |= children
        grown = bool(children)
    return (pid for pid, _ in running if pid in known and pid != os.getpid())


def processes() -> Iterator[tuple[int, int]]:
    """Yield the id of each process that is not a zombie, and its parent's id."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # PID (NAME) STATE PARENT …; NAME may hold brackets, and is cut at 15 bytes, even inside a letter
            state, parent = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:2]
            if state not in (b"Z", b"X"):
                yield int(folder.name), int(parent)


if __name__ == "__main__":
    os._exit(main(*sys.argv[1:]))  # at once: the thread still reads
