"""Temporary folders named after their process, so that those of a killed process can be removed.

`tempfile.TemporaryDirectory` removes its folder when its process exits normally. After `kill -9`, or when the
machine runs out of memory, the folder would stay forever; the next step on the same machine removes it.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
import zlib
from pathlib import Path

# creamtea-WHAT-HOST-PID-…: containers that share a folder do not share their process numbers
_NAME = re.compile(r"creamtea-[a-z]+-(?P<host>[0-9a-f]{8})-(?P<pid>\d{1,9})-")


def scratch_folder(what: str) -> tempfile.TemporaryDirectory[str]:
    """A new temporary folder of this process; `what` in lower-case letters."""
    return tempfile.TemporaryDirectory(prefix=f"creamtea-{what}-{host_id()}-{os.getpid()}-")


def clear_abandoned() -> None:
    """Remove the temporary folders of this machine's processes that are gone."""
    for folder in Path(tempfile.gettempdir()).glob("creamtea-*"):
        name = _NAME.match(folder.name)
        if name and name["host"] == host_id() and not is_running(int(name["pid"])):
            shutil.rmtree(folder, ignore_errors=True)  # another process may be removing it, too


def host_id() -> str:
    """This machine, in eight letters and digits."""
    return f"{zlib.crc32(socket.gethostname().encode()):08x}"


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True
