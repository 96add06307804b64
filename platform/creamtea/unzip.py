"""An export that somebody packed into a ZIP file, unpacked without trusting anything that the file says."""

from __future__ import annotations

import lzma
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from creamtea.errors import InputError

MAX_FILES = 20_000
MAX_UNPACKED = 512_000_000  # bytes; more is for the command line, which reads folders
CHUNK = 1 << 16  # bytes
# what Python's zipfile raises for a file that is none, is damaged or has a password
UNREADABLE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, UnicodeDecodeError)


def unpack(packed: Path, folder: Path) -> Path:
    """Unpack into the new `folder`; the folder in it where all is in one, as in a zip of a folder.

    InputError for what is no ZIP file, holds more than MAX_FILES files or unpacks to more than MAX_UNPACKED
    bytes (counted while it is written: sizes in a ZIP file may be lies), and for names that lead elsewhere,
    links and files with a password.
    """
    folder.mkdir()
    try:
        with zipfile.ZipFile(packed) as archive:
            members = [member for member in archive.infolist() if not _is_left_out(member)]
            if len(members) > MAX_FILES:
                raise InputError(f"{packed.name}: more than {MAX_FILES:,} files; use the command line")
            left = MAX_UNPACKED
            for member in members:
                target = folder.joinpath(*_parts(packed, member))
                left -= _write(packed, archive, member, target, left)
    except UNREADABLE:
        raise InputError(f"{packed.name}: not a zip file that can be read, or one with a password") from None
    except OSError as error:
        raise InputError(f"{packed.name}: cannot be unpacked ({error.strerror or error})") from None
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder


def _is_left_out(member: zipfile.ZipInfo) -> bool:
    """Folders, and what macOS adds. Not by `is_dir`, which fails at a name without a letter."""
    return (
        member.filename.endswith("/")
        or member.filename.startswith("__MACOSX/")
        or member.filename.endswith(".DS_Store")
    )


def _parts(packed: Path, member: zipfile.ZipInfo) -> tuple[str, ...]:
    name = member.filename
    parts = PurePosixPath(name).parts
    link = stat.S_ISLNK(member.external_attr >> 16)
    if not parts or name.startswith("/") or ".." in parts or set("\\:\0") & set(name) or link:
        raise InputError(f"{packed.name}: {name[:80]!r} is not a plain file: zip the folder again")
    return parts


def _write(packed: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, left: int) -> int:
    """How many bytes were written; InputError once they are more than `left`."""
    if target.exists():
        raise InputError(f"{packed.name}: {member.filename[:80]!r} is there twice")
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with archive.open(member) as source, target.open("wb") as copy:
        while chunk := source.read(CHUNK):
            written += len(chunk)
            if written > left:
                raise InputError(
                    f"{packed.name}: unpacks to more than {MAX_UNPACKED // 10**6} MB; use the command line"
                )
            copy.write(chunk)
    return written
