"""Files and folders that people name: text, gzip and ZIP files, new folders, temporary folders.

A text is UTF-8, with or without a byte-order mark. Its lines end with LF or CR LF and nothing else: U+2028,
U+0085 and similar characters, where Python's `splitlines` ends a line, are part of a line.
"""

from __future__ import annotations

import errno
import gzip
import io
import lzma
import os
import re
import shutil
import socket
import stat
import tempfile
import uuid
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from creamtea.errors import InputError
from creamtea.printable import is_utf8

HEAD = 265  # bytes that show whether a file is text
MIN_ZEROS = 3  # fewer may be NUL characters of UTF-8
OLD_MAC = "lines that end with CR alone, as on old Macs (tr '\\r' '\\n' converts them)"
_SHEET = "unpack it, or save the sheet as CSV"
_UNPACK = "unpack it first"
_OTHERS = (  # (position, bytes at it, name of the file's format, remedy)
    (0, b"\x1f\x8b", "a gzip file", "unpack it first, with gunzip"),
    (0, b"PK\x03\x04", "a ZIP file, as .xlsx and .ods are", _SHEET),
    (0, b"PK\x05\x06", "an empty ZIP file", "choose another"),
    (4, b"1AY&SY", "a bzip2 file", _UNPACK),
    (4, b"\x17rE8P\x90", "a bzip2 file", _UNPACK),  # of nothing
    (0, b"\xfd7zXZ\x00", "an xz file", _UNPACK),
    (0, b"]\x00\x00", "an LZMA file", _UNPACK),
    (0, b"\x28\xb5\x2f\xfd", "a Zstandard file", _UNPACK),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip file", _UNPACK),
    # with the NUL, because a text may have the five letters there ("me gustaría")
    (257, b"ustar\0", "a tar archive", _UNPACK),
    (257, b"ustar  \0", "a tar archive", _UNPACK),
    (0, b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (0, b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
    (0, b"version https://git-lfs.", "a pointer of Git LFS", "fetch the file itself, with git lfs pull"),
    (0, b"%PDF-", "a PDF file", "give a text file"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file, as .xls is", "save the sheet as CSV"),
)


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file for reading. Raise OSError also for a pipe or a device, which may never end."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # `open` itself refuses a folder
        raise OSError(errno.EINVAL, "a pipe or a device, not a file")
    return path.open("rb")


def other_than_text(head: bytes) -> tuple[str, str]:
    """Return a file's type by its first HEAD bytes, and a remedy; ("", "") if it may be text."""
    for position, magic, what, remedy in _OTHERS:
        if head[position:].startswith(magic):
            return what, remedy
    for zeros, letters in ((head[::2], head[1::2]), (head[1::2], head[::2])):
        if 2 * zeros.count(0) > len(zeros) > MIN_ZEROS and 0 not in letters:  # without a byte-order mark
            return "UTF-16 text", "save it as UTF-8"
    return "", ""


def decode(content: bytes, where: str, remedy: str = "save it as UTF-8") -> str:
    """Decode the bytes of a file, without a byte-order mark and with every line end as it is.

    Raises InputError if it is not UTF-8 text. The message begins with `where`; if only the encoding is wrong,
    it has the line and the `remedy`.
    """
    what, instead = other_than_text(content[:HEAD])
    if what:
        raise InputError(f"{where} is {what}: {instead}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1  # `object` has no byte-order mark
        raise InputError(f"{where}, line {line:,}: not UTF-8 text: {remedy}") from None


def read_text(path: Path, where: str, most: int, remedy: str = "save it as UTF-8") -> str:
    """Read and `decode` a text file. Raise InputError also if it is unreadable or exceeds `most` bytes."""
    try:
        with open_regular(path) as file:
            content = file.read(most + 1)
    except OSError as error:
        raise InputError(f"{where}: {error.strerror or error}") from None
    if len(content) > most:
        raise InputError(f"{where}: more than {most:,} bytes: make it smaller")
    return decode(content, where, remedy)


def read_storable(path: Path, where: str, most: int) -> str:
    """Read a text as `read_text` does. Raise InputError also for a NUL character."""
    text = read_text(path, where, most)
    if "\0" in text:
        raise InputError(f"{where}: holds a NUL character, which a database cannot store")
    return text


def lines_of(text: str, where: str) -> list[str]:
    """Split a text into its lines, without their ends.

    Raises InputError, which begins with `where`, if carriage returns alone end them.
    """
    lines = text.split("\n")
    if len(lines) == 1 and "\r" in text.removesuffix("\r"):
        raise InputError(f"{where}: {OLD_MAC}")
    if lines[-1] == "":  # after the last line's end
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


GZIP_MAGIC = b"\x1f\x8b"


def unpacked(file: BinaryIO) -> BinaryIO:
    """Return a stream of an opened file's bytes, unpacked if it is gzip.

    Reading may then raise EOFError, zlib.error and gzip.BadGzipFile, which is an OSError.
    """
    is_gzip = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    file.seek(0)
    return cast(BinaryIO, gzip.GzipFile(fileobj=file)) if is_gzip else file


MAX_NAME = 60  # characters, of up to four bytes each: many file systems allow names of 255 bytes


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a new path beside `target`; the file that the block writes there replaces `target`.

    The mode stays. If the block raises, nothing is left behind, and `target` is unchanged.
    """
    beside = target.with_name(f".{target.name[:MAX_NAME]}.{uuid.uuid4().hex[:8]}")
    try:
        yield beside
        if target.exists():
            beside.chmod(target.stat().st_mode & 0o777)
        beside.replace(target)
    finally:
        with suppress(OSError):  # it has replaced `target`, or was never written
            beside.unlink()


def check_new(path: Path, option: str) -> None:
    """Raise InputError unless the folder is new or empty, and its name is UTF-8.

    `option`: the option that gave the folder, for the message.
    """
    if not is_utf8(str(path)):
        raise InputError(f"{option} {path}: the name is not UTF-8; give another")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        what = "it is not empty" if path.is_dir() else "it is a file"
        raise InputError(f"{option} {path}: {what}; give a new folder or an empty one")


@contextmanager
def new_folder(path: Path, option: str) -> Iterator[Path]:
    """Yield a new folder to fill; if the block fails, the folder is as it was before.

    Raises InputError like `check_new`, and if something cannot be written.
    """
    made: list[Path] = []
    try:
        check_new(path, option)
        made = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
        try:
            yield path
        except BaseException:
            for entry in path.iterdir():
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)
            raise
    except BaseException as error:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            name = Path(error.filename) if isinstance(error.filename, str) else path
            within = f"{name.relative_to(path)}: " if name != path and name.is_relative_to(path) else ""
            raise InputError(f"{option} {path}: {within}{error.strerror or error}") from None
        raise


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts as UTF-8 files by name, with line ends unchanged; return the files.

    Makes the folders in a name.
    """
    files = [folder / name for name in texts]
    for file, text in zip(files, texts.values(), strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    return files


# creamtea-WHAT-HOST-PID-…: containers that share a folder do not share their process numbers
_NAME = re.compile(r"creamtea-[a-z]+-(?P<host>[0-9a-f]{8})-(?P<pid>\d{1,9})-")


def scratch_folder(what: str) -> tempfile.TemporaryDirectory[str]:
    """Make a temporary folder for this process. `what`, in lower-case letters, enters its name."""
    return tempfile.TemporaryDirectory(prefix=f"creamtea-{what}-{host_id()}-{os.getpid()}-")


def clear_abandoned() -> None:
    """Remove temporary folders of this machine whose processes have ended."""
    for folder in Path(tempfile.gettempdir()).glob("creamtea-*"):
        name = _NAME.match(folder.name)
        if name and name["host"] == host_id() and not is_running(int(name["pid"])):
            shutil.rmtree(folder, ignore_errors=True)  # another process may also be removing it


def host_id() -> str:
    """Return eight letters and digits that identify this machine."""
    return f"{zlib.crc32(socket.gethostname().encode()):08x}"


def is_running(pid: int) -> bool:
    """Return True if a process of any user has this id. (On Windows `os.kill` would end the process.)"""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is running, and this user may not signal it
        pass
    return True


MAX_FILES = 20_000
MAX_UNPACKED = 512_000_000  # bytes; the command line reads larger folders
CHUNK = 1 << 16  # bytes
# raised by `zipfile` for a file that is not a ZIP file, is damaged or has a password
UNREADABLE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, UnicodeDecodeError)


def unpack(packed: Path, folder: Path) -> Path:
    """Unpack a ZIP file into the new `folder`; return it, or the single folder inside it that has everything.

    Raises InputError if it is not a ZIP file or has a password, if it has more than MAX_FILES files or more
    than MAX_UNPACKED bytes (counted while writing: a ZIP file may lie about sizes), and for links and names
    that lead out of the folder.
    """
    folder.mkdir()
    try:
        with zipfile.ZipFile(packed) as archive:
            # without folders and files that macOS adds; `is_dir` would fail at an empty name
            members = [
                member
                for member in archive.infolist()
                if not member.filename.startswith("__MACOSX/")
                and not member.filename.endswith(("/", ".DS_Store"))
            ]
            if len(members) > MAX_FILES:
                raise InputError(f"{packed.name}: more than {MAX_FILES:,} files; use the command line")
            bytes_left = MAX_UNPACKED
            for member in members:
                target = folder.joinpath(*_parts(packed, member))
                bytes_left -= _write(packed, archive, member, target, bytes_left)
    except UNREADABLE:
        raise InputError(f"{packed.name}: not a zip file that can be read, or one with a password") from None
    except OSError as error:
        raise InputError(f"{packed.name}: cannot be unpacked ({error.strerror or error})") from None
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder


def _parts(packed: Path, member: zipfile.ZipInfo) -> tuple[str, ...]:
    name = member.filename
    parts = PurePosixPath(name).parts
    link = stat.S_ISLNK(member.external_attr >> 16)
    if not parts or name.startswith("/") or ".." in parts or set("\\:\0") & set(name) or link:
        raise InputError(f"{packed.name}: {name[:80]!r} is not a plain file: zip the folder again")
    return parts


def _write(packed: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, left: int) -> int:
    """Write a member of the archive; return its size in bytes. Raise InputError if it exceeds `left`."""
    if target.exists():
        raise InputError(f"{packed.name}: {member.filename[:80]!r} occurs twice")
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
