"""File systems that are reached by fsspec: opening them, and what their errors mean."""

from __future__ import annotations

import errno
import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import IO, Any
from urllib.parse import urlsplit

from fsspec.core import url_to_fs

from creamtea.errors import InputError

# An upload there is seen only when it is complete, so that nothing has to be moved afterwards
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
    """The file system of an address, and the path there; InputError for one that cannot be used."""
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


def is_object_store(fs: Any) -> bool:
    protocols = {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)
    return bool(protocols & OBJECT_STORES)


def explain(error: BaseException, root: str) -> str:
    """What an error of a file system means for people, with a remedy where it is known.

    The errors of S3 are known by their names, so that nobody needs its packages to read this.
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
    """A file for reading; each read is within `failures`, which says what its errors mean. What else goes
    wrong while the file is open is not an error of the file system."""

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
