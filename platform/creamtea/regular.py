"""Opening what a user names as a file."""

from __future__ import annotations

import errno
import io
import stat
from pathlib import Path


def open_regular(path: Path) -> io.BufferedReader:
    """The file, to be read. OSError for a pipe or a device, too, whose end may never come."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # `open` refuses a folder in words of its own
        raise OSError(errno.EINVAL, "a pipe or a device, not a file")
    return path.open("rb")
