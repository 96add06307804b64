"""Opening and reading what a user names as a file."""

from __future__ import annotations

import errno
import io
import stat
from pathlib import Path

from creamtea.errors import InputError


def open_regular(path: Path) -> io.BufferedReader:
    """The file, to be read. OSError for a pipe or a device, too, whose end may never come."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # `open` refuses a folder in words of its own
        raise OSError(errno.EINVAL, "a pipe or a device, not a file")
    return path.open("rb")


def read_text(path: Path, where: str, most: int, remedy: str = "save it as UTF-8") -> str:
    """The text of a UTF-8 file without a byte-order mark, with every line end as it is.

    InputError that begins with `where` and ends with the `remedy`: a file that cannot be read, of more than
    `most` bytes, or with bytes that are not UTF-8.
    """
    try:
        with open_regular(path) as file:
            content = file.read(most + 1)
    except OSError as error:
        raise InputError(f"{where}: {error.strerror or error}") from None
    if len(content) > most:
        raise InputError(f"{where}: more than {most:,} bytes: make it smaller")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{where}, line {line:,}: not UTF-8 text: {remedy}") from None
