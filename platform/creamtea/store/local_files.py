"""Local files on their way into the artefact store: their names, digests and copies."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path, PurePosixPath
from typing import IO

from creamtea.errors import StepError
from creamtea.store.columns import MAX_INDEXED

CHUNK = 1 << 20  # bytes
SEAL = b"creamtea:sha256\n"  # before the digest at the end of a sealed file


def files_below(folder: Path) -> dict[str, Path]:
    """Name with '/' → path, for every file below the folder; symbolic links to files count as files."""
    files: dict[str, Path] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file():
            files[checked_name(name)] = path
        elif path.is_symlink() or not path.is_dir():
            raise StepError(f"the step's output {name!r} is neither a file nor a folder")
    return files


def checked_name(name: str) -> str:
    """The name, if it stays inside its folder and every file system and database can hold it."""
    parts = PurePosixPath(name).parts
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise StepError(f"the file name {name!r} is not valid UTF-8") from None
    if not parts or name.startswith("/") or ".." in parts or "/".join(parts) != name or "\0" in name:
        raise StepError(f"the file name {name!r} is not a plain relative path")
    if len(name) > MAX_INDEXED:
        raise StepError(
            f"the file name {name!r} has {len(name)} characters; at most {MAX_INDEXED} are stored"
        )
    return name


def copy_to_disk(source: Path, target: Path, read_only: bool) -> None:
    with source.open("rb") as original, target.open("wb") as copy:
        shutil.copyfileobj(original, copy, CHUNK)
        copy.flush()
        os.fsync(copy.fileno())
    if read_only:
        target.chmod(0o444)


def digest_of(path: Path) -> tuple[str, int]:
    """sha256 and size in bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()


def hash_of(source: IO[bytes], copy: IO[bytes] | None = None) -> str:
    """The sha256 of what can be read; all of it is written to `copy`."""
    digest = hashlib.sha256()
    while chunk := source.read(CHUNK):
        digest.update(chunk)
        if copy is not None:
            copy.write(chunk)
    return digest.hexdigest()


def seal(path: Path) -> None:
    """Append the sha256 of the file's content to it."""
    with path.open("rb+") as file:
        digest = hashlib.file_digest(file, "sha256")
        file.write(SEAL + digest.digest())


def unseal(path: Path) -> bool:
    """Remove what `seal` appended. False, with the file as it was, unless it matches the content."""
    digest = hashlib.sha256()
    size = path.stat().st_size - len(SEAL) - digest.digest_size
    if size < 0:
        return False
    with path.open("rb+") as file:
        left = size
        while left and (chunk := file.read(min(left, CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
        if file.read() != SEAL + digest.digest():
            return False
        file.truncate(size)
    return True
