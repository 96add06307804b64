"""Opening and reading what a user names as a file.

A text is UTF-8, with or without a byte-order mark. A line of it ends with LF or CR LF and with nothing else:
U+2028, U+0085 and their like are characters of a line, which Python's `splitlines` would end it at.
"""

from __future__ import annotations

import errno
import io
import stat
from pathlib import Path

from creamtea.errors import InputError

HEAD = 262  # bytes, by which a file is told from a text
_SHEET = "unpack it, or save the sheet as CSV"
_UNPACK = "unpack it first"
_OTHERS = (  # place and first bytes, what the file is, what to do
    (0, b"\x1f\x8b", "a gzip file", "unpack it first, with gunzip"),
    (0, b"PK\x03\x04", "a ZIP file, as .xlsx and .ods are", _SHEET),
    (0, b"PK\x05\x06", "an empty ZIP file", "choose another"),
    (0, b"BZh", "a bzip2 file", _UNPACK),
    (0, b"\xfd7zXZ\x00", "an xz file", _UNPACK),
    (0, b"\x28\xb5\x2f\xfd", "a Zstandard file", _UNPACK),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip file", _UNPACK),
    (257, b"ustar", "a tar archive", _UNPACK),
    (0, b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (0, b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
    (0, b"%PDF-", "a PDF file", "give a text file"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file, as .xls is", "save the sheet as CSV"),
)


def open_regular(path: Path) -> io.BufferedReader:
    """The file, to be read. OSError for a pipe or a device, too, whose end may never come."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # `open` refuses a folder in words of its own
        raise OSError(errno.EINVAL, "a pipe or a device, not a file")
    return path.open("rb")


def other_than_text(head: bytes) -> tuple[str, str]:
    """Say by its first HEAD bytes what a file is, and what to do; ("", "") for what may be text."""
    found = ((what, remedy) for at, magic, what, remedy in _OTHERS if head[at:].startswith(magic))
    return next(found, ("", ""))


def decode(content: bytes, where: str, remedy: str = "save it as UTF-8") -> str:
    """Decode the bytes of a file, without a byte-order mark and with every line end as it is.

    InputError that begins with `where`: for what is not text, and for bytes that are not UTF-8, with the
    line and the `remedy`.
    """
    what, instead = other_than_text(content[:HEAD])
    if what:
        raise InputError(f"{where} is {what}: {instead}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{where}, line {line:,}: not UTF-8 text: {remedy}") from None


def read_text(path: Path, where: str, most: int, remedy: str = "save it as UTF-8") -> str:
    """Read a text file as `decode` does; InputError as there, and for a file that cannot be read or has more
    than `most` bytes."""
    try:
        with open_regular(path) as file:
            content = file.read(most + 1)
    except OSError as error:
        raise InputError(f"{where}: {error.strerror or error}") from None
    if len(content) > most:
        raise InputError(f"{where}: more than {most:,} bytes: make it smaller")
    return decode(content, where, remedy)


def lines_of(text: str) -> list[str]:
    """Split a text into its lines, without their ends."""
    lines = text.split("\n")
    if lines[-1] == "":  # behind the last line's end
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
