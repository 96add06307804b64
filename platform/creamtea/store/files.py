"""Local files and remote file systems: names, digests, copies, and the meaning of their errors."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import urlsplit

from fsspec.core import url_to_fs

from creamtea.errors import InputError, StepError
from creamtea.store.tables import MAX_INDEXED

CHUNK = 1 << 20  # bytes
SEAL = b"creamtea:sha256\n"  # before the digest at the end of a sealed file


def files_below(folder: Path) -> dict[str, Path]:
    """Return name with '/' → path for every file below the folder; links to files count as files."""
    files: dict[str, Path] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file():
            files[checked_name(name)] = path
        elif path.is_symlink() or not path.is_dir():
            raise StepError(f"the step's output {name!r} is neither a file nor a folder")
    return files


def checked_name(name: str) -> str:
    """Return the name if it stays inside its folder and every file system and database can hold it."""
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
    """Return a file's sha256 and its size in bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()


def hash_of(source: IO[bytes], copy: IO[bytes] | None = None) -> str:
    """Return the sha256 of a stream; write what is read to `copy`."""
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
    """Remove what `seal` appended; False, leaving the file unchanged, if it does not match the content."""
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


# File systems that are reached by fsspec: opening them, and what their errors mean.


# protocols of stores that show an upload only when it is complete, so that nothing has to be moved afterwards
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "az"})
EXTRAS = {"s3": "s3", "s3a": "s3"}  # protocol -> extra of creamtea that it needs
S3 = {
    "use_listings_cache": False,  # other processes write, too
    # s3fs has retries of its own, around these
    "config_kwargs": {"retries": {"mode": "standard", "max_attempts": 2}},
}

REMEDIES = {  # of a local root
    errno.EACCES: "give this user the right",
    errno.EPERM: "give this user the right",
    errno.EROFS: "mount the disk writable",
    errno.EIO: "the disk fails: see the machine's log",
}


def open_root(root: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path there; InputError if it cannot be used."""
    protocol = root.partition("://")[0] if "://" in root else ""
    try:
        fs, path = url_to_fs(root, **(S3 if protocol in ("s3", "s3a") else {}))
    except ImportError as error:
        extra = EXTRAS.get(protocol)
        remedy = f"pip install 'creamtea[{extra}]' on every machine" if extra else str(error)
        raise InputError(
            f"cannot use {root} for artefacts, a part of creamtea is missing: {remedy}"
        ) from None
    except ValueError as error:
        raise InputError(f"cannot use {root} for artefacts: {error}; see CREAMTEA_ARTEFACTS") from None
    return fs, path


def explain(error: BaseException, root: str) -> str:
    """Explain a file system's error, with a remedy if one is known.

    S3's errors are recognised by name, so that its packages need not be installed.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    bucket = urlsplit(root).netloc
    if names & {"NoCredentialsError", "PartialCredentialsError", "TokenRetrievalError"}:
        return "no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or mount a file of them"
    if "HTTPClientError" in names or names & {"EndpointConnectionError", "FSTimeoutError"}:
        return f"the server does not answer ({error}); check AWS_ENDPOINT_URL and the network"
    if isinstance(error, PermissionError) and bucket:
        return (
            f"no rights on bucket {bucket} ({error}); its policy must allow these credentials to list the "
            "bucket, and to get, put and delete objects"
        )
    if isinstance(error, FileNotFoundError) and bucket:
        return f"there is no bucket {bucket} ({error}); create it, or correct the name"
    if isinstance(error, OSError) and error.strerror:
        remedy = REMEDIES.get(error.errno or 0)
        return f"{error.strerror} ({remedy})" if remedy else error.strerror
    return str(error) or type(error).__name__


class GuardedReads(io.RawIOBase):
    """A file for reading whose every read is within `failures`, which explains errors.

    Other errors while the file is open are not taken for errors of the file system.
    """

    def __init__(self, file: IO[bytes], failures: Callable[[], AbstractContextManager[None]]) -> None:
        self._file = file
        self._failures = failures

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._failures():
            content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with self._failures():
            return self._file.seek(offset, whence)

    def close(self) -> None:
        with self._failures():
            self._file.close()
        super().close()
