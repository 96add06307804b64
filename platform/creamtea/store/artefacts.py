"""Artefacts: content-addressed files under one root, a local folder or any fsspec address.

`store.areas` lists the folders below the root and their files. No file is visible before it is complete: it
is written under tmp/, synced, and then renamed.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, TypeVar
from urllib.parse import urlsplit

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem
from pydantic import TypeAdapter

from creamtea.contract.step import Checkpoints, LiveView
from creamtea.errors import (
    CreamteaError,
    DamagedArtefact,
    DamagedCheckpoint,
    InfrastructureError,
    InputError,
    StepError,
)
from creamtea.files import replacing, scratch_folder
from creamtea.settings import make_private
from creamtea.store import MAX_INDEXED

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
STALE_SECONDS = 24 * 3600  # a file in tmp/ that is older was left by a killed process


@dataclass(frozen=True)
class StoredFile:
    """An output file of a step: its name in the step's folder, its sha256, its size in bytes."""

    name: str
    digest: str
    size: int


@dataclass(frozen=True)
class Progress:
    """The progress of an attempt. `at`: when the worker reported it, by the worker's clock."""

    done: float
    total: float
    message: str
    at: float
    seconds_left: float | None = None  # at the speed since the attempt's first report


Report = TypeVar("Report")
T = TypeVar("T")
EVERY_STEP = "*"  # stands for a step's key

_PROGRESS, _LIVE, _VALUES = TypeAdapter(Progress), TypeAdapter(LiveView), TypeAdapter(dict[str, Any])


class ArtefactStore:
    """The artefacts under `root`. It keeps no file open, so it can be pickled and used by many processes.

    Raises InputError for an address that fsspec does not know. If the disk or the remote store fails, every
    method raises an InfrastructureError that names the place.
    """

    def __init__(self, root: str | Path) -> None:
        self.fs, base = open_root(str(root))
        self.local = isinstance(self.fs, LocalFileSystem)
        # absolute, because a worker's process may have another working directory
        self.root = base if self.local else str(root)
        self.base = base.rstrip("/")
        protocols = {self.fs.protocol} if isinstance(self.fs.protocol, str) else set(self.fs.protocol)
        self._whole_uploads = bool(protocols & OBJECT_STORES)

    # ------------------------------------------------------------ objects

    def put_folder(self, folder: Path) -> list[StoredFile]:
        """Store every file below `folder`, by name; StepError if there are others than files and folders."""
        return [self._put_object(name, path) for name, path in sorted(files_below(folder).items())]

    def put_file(self, path: Path) -> str:
        """Store one file; return its sha256."""
        return self._put_object(path.name, path).digest

    def materialise(self, files: list[StoredFile], folder: Path, *, verify: bool = True) -> None:
        """Put the files, read-only, into the local `folder`: links to a local root, otherwise copies.

        If a file's content does not match its digest, the file is set aside and DamagedArtefact is raised.
        Without `verify` linked files are not read: a step's first worker verifies them for all workers.
        """
        for file in files:
            target = folder / checked_name(file.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            path = self.object_path(file.digest)
            with self.failures(path, disk=str(folder)):
                if self.local:
                    self._link(Path(path), target)
                    intact = not verify or digest_of(target) == (file.digest, file.size)
                else:
                    # one bad copy may be the transfer's fault; after two, the object is damaged
                    intact = any(self._download(file, path, target) for _ in range(2))
                if not intact:
                    try:
                        place = f"moved to {self._set_aside(file.digest, target)}"
                    except Exception as error:  # every remote file system has its own errors
                        place = f"not moved away ({explain(error, self.root)}): delete it"
                    target.unlink()
                    raise DamagedArtefact(
                        f"artefact {path} ({file.name}) is damaged: its content does not match its name. "
                        f"It was {place}; the next run of its study makes it again"
                    )

    def _set_aside(self, digest: str, read: Path) -> str:
        """Move the damaged object away, so that it is made again; return its new path.

        `read`: the damaged copy, in a local store a link to the object. An object that has been made again in
        the meantime stays.
        """
        path, aside = self.object_path(digest), self.path_of("damaged", digest)
        with suppress(FileNotFoundError):
            if not self.local or Path(path).samefile(read):
                self.fs.makedirs(_parent(aside), exist_ok=True)
                self.fs.mv(path, aside)
        return aside

    def is_set_aside(self, digest: str) -> bool:
        """Return True if the object was found damaged and has not been made again."""
        aside = self.path_of("damaged", checked_name(digest))
        with self.failures(aside):
            return not self.exists(digest) and bool(self.fs.exists(aside))

    def digest(self, digest: str) -> str | None:
        """Read an object and return the sha256 of its content; None if there is no object."""
        path = self.object_path(digest)
        with self.failures(path):
            try:
                with self.fs.open(path, "rb") as file:
                    return hash_of(file)
            except FileNotFoundError:
                return None

    def exists(self, digest: str) -> bool:
        # not `fs.isfile`, which returns False for every failure
        path = self.object_path(digest)
        with self.failures(path):
            try:
                return bool(self.fs.info(path)["type"] != "directory")
            except FileNotFoundError:
                return False

    @contextmanager
    def open(self, digest: str, *, verify: bool = True) -> Iterator[IO[bytes]]:
        """Open an object for reading.

        With `verify` the whole object is read first, and DamagedArtefact is raised if it does not match its
        digest. Turn that off to read a part of a large file.
        """
        path = self.object_path(digest)
        if verify and self.digest(digest) not in (digest, None):
            raise self._damaged(digest)
        with self.failures(path):
            file = self.fs.open(path, "rb")
        with io.BufferedReader(GuardedReads(file, lambda: self.failures(path))) as reader:
            yield reader

    def read(self, digest: str) -> bytes:
        """Return an object's content; DamagedArtefact if it does not match the digest."""
        with self.open(digest, verify=False) as file:
            content = file.read()
        if hashlib.sha256(content).hexdigest() != digest:
            raise self._damaged(digest)
        return content

    def _damaged(self, digest: str) -> DamagedArtefact:
        return DamagedArtefact(
            f"artefact {self.object_path(digest)} is damaged: its content does not match its name. "
            "`creamtea db check` says whose it is, and what to do"
        )

    def _put_object(self, name: str, path: Path) -> StoredFile:
        digest, size = digest_of(path)
        target = self.object_path(digest)
        with self.failures(target):
            if not (self.local and self._renew(Path(target), digest)):
                self._publish(path, target, read_only=True)
        return StoredFile(name, digest, size)

    def _renew(self, path: Path, digest: str) -> bool:
        """Set an object's time to now, so that `creamtea gc` keeps it until the database has its digest.

        Returns False if the object must be written again: it is missing or damaged, or the time stays old.
        """
        try:
            if digest_of(path)[0] != digest:
                return False
            os.utime(path)
        except OSError:
            return False
        return True

    def _link(self, source: Path, target: Path) -> None:
        try:
            target.hardlink_to(source)
        except FileExistsError:
            raise
        except OSError:  # another file system, or one without hard links
            target.symlink_to(source)

    def _download(self, file: StoredFile, source: str, target: Path) -> bool:
        """Copy the object; False if the copy does not match its digest."""
        with replacing(target) as partial:
            with self.fs.open(source, "rb") as remote, partial.open("wb") as copy:
                digest = hash_of(remote, copy)
            partial.chmod(0o444)
        return digest == file.digest

    # ------------------------------------------------------------ checkpoints and progress

    def checkpoints(self, step_key: str) -> Checkpoints:
        """Return a step's checkpoints, from which its next attempt resumes."""
        return StoredCheckpoints(self, checked_name(step_key))

    def drop_checkpoints(self, step_key: str) -> None:
        """Delete the step's checkpoints, if there are any."""
        path = self.path_of("checkpoints", checked_name(step_key))
        with self.failures(path), suppress(FileNotFoundError):
            self.fs.rm(path, recursive=True)

    def write_progress(
        self,
        step_key: str,
        fence: int,
        done: float,
        total: float,
        message: str,
        seconds_left: float | None = None,
    ) -> None:
        """Store the progress of the attempt with this fence; an earlier report is replaced."""
        report = {"done": done, "total": total, "message": message, "seconds_left": seconds_left}
        self._write_report("progress", step_key, fence, report)

    def read_progress(self, step_key: str, fence: int) -> Progress | None:
        """Return the last progress of the attempt with this fence; None if there is none."""
        return self._read_report("progress", step_key, fence, _PROGRESS)

    def write_live(self, step_key: str, fence: int, view: LiveView) -> None:
        """Store the live view of the attempt with this fence; an earlier view is replaced."""
        self._write_report("live", step_key, fence, asdict(view))

    def read_live(self, step_key: str, fence: int) -> LiveView | None:
        """Return the live view of the attempt with this fence; None if there is none."""
        return self._read_report("live", step_key, fence, _LIVE)

    def write_room(self, step_key: str, fence: int, workers: int) -> None:
        """Tell the attempt with this fence how many workers its step could have."""
        self._write_report("room", step_key, fence, {"workers": workers})

    def read_room(self, step_key: str, fence: int) -> int:
        """Return the number of workers that `write_room` stored for this attempt; 0 if none."""
        report = self._read_report("room", step_key, fence, _VALUES)
        return int(report["workers"]) if report else 0

    def write_reasons(self, fence: int, reasons: Mapping[str, str]) -> None:
        """Store why the controller with this fence does not start steps: key or EVERY_STEP -> reason."""
        self._write_report("controller", "waiting", fence, {"reasons": dict(reasons)})

    def read_reasons(self, fence: int) -> dict[str, str]:
        report = self._read_report("controller", "waiting", fence, _VALUES)
        return dict(report["reasons"]) if report else {}

    def _write_report(self, area: str, step_key: str, fence: int, report: dict[str, Any]) -> None:
        path = self.path_of(area, f"{checked_name(step_key)}.json")
        written = json.dumps({"fence": fence, **report, "at": time.time()}, allow_nan=False).encode()
        with self.failures(path):
            self.write(path, lambda place: self.fs.pipe_file(place, written), durable=False)

    def _read_report(self, area: str, step_key: str, fence: int, kind: TypeAdapter[Report]) -> Report | None:
        try:
            report = json.loads(self.fs.cat_file(self.path_of(area, f"{checked_name(step_key)}.json")))
            if report["fence"] != fence:  # an earlier attempt's
                return None
            return kind.validate_python(report)
        except Exception:  # every remote file system has its own errors, and reports are only for people
            return None

    # ------------------------------------------------------------ the root

    def check_writable(self) -> None:
        """Raise InputError unless the root is writable; delete files that killed processes left in tmp/."""
        temporary = self.temporary()
        try:
            if self.local and not self.fs.exists(self.base):
                make_private(Path(self.base))
            if not self._whole_uploads:  # a bucket has no folders
                self.fs.makedirs(_parent(temporary), exist_ok=True)
                self.fs.makedirs(self.path_of("objects"), exist_ok=True)
            self.fs.pipe_file(temporary, b"creamtea")
            self.fs.rm_file(temporary)
        except Exception as error:  # every remote file system has its own errors
            remedy = "; set CREAMTEA_ARTEFACTS to a folder or address that can be written"
            raise InputError(
                f"cannot write artefacts to {self.root}: {explain(error, self.root)}"
                f"{'' if self._whole_uploads else remedy}"
            ) from None
        for path in Path(self.path_of("tmp")).iterdir() if self.local else ():
            with suppress(OSError):
                if path.stat().st_mtime < time.time() - STALE_SECONDS:
                    path.unlink()

    def object_path(self, digest: str) -> str:
        return self.path_of("objects", digest[:2], checked_name(digest))

    def path_of(self, *parts: str) -> str:
        """Return the path of a file or folder below the root."""
        return "/".join((self.base, *parts))

    def temporary(self) -> str:
        """Return a new path below tmp/."""
        return self.path_of("tmp", uuid.uuid4().hex)

    def _publish(self, source: Path, target: str, *, read_only: bool = False) -> None:
        """Copy a local file to `target`, which always has either the old content or the whole new one."""
        if self.local:
            self.write(target, lambda place: copy_to_disk(source, Path(place), read_only))
        else:  # s3fs uploads a large file in parts, and chooses their size so that S3's 10,000 suffice
            self.write(target, lambda place: self.fs.put_file(str(source), place))

    def write(self, target: str, write: Callable[[str], None], *, durable: bool = True) -> None:
        """Let `write` make a file that becomes `target` when it is complete.

        Unless `durable`, a power cut may lose the new content.
        """
        if self._whole_uploads:
            write(target)
            return
        temporary = self.temporary()
        self.fs.makedirs(_parent(temporary), exist_ok=True)
        try:
            write(temporary)
            self._move(temporary, target, durable)
        finally:
            with suppress(OSError):
                self.fs.rm_file(temporary)

    def _move(self, temporary: str, target: str, durable: bool) -> None:
        folder = _parent(target)
        is_new = self.local and not Path(folder).is_dir()
        self.fs.makedirs(folder, exist_ok=True)
        if not self.local:
            self.fs.mv(temporary, target)
            return
        Path(temporary).replace(target)
        if not durable:
            return
        # a new name is durable once its folder has been synced, and a new folder once its parent has
        for place in (folder, _parent(folder))[: 1 + is_new]:
            descriptor = os.open(place, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    @contextmanager
    def failures(self, path: str, disk: str | None = None) -> Iterator[None]:
        """Turn errors of the file system into InfrastructureError.

        `disk`: the folder that data is written to, unless it is the root.
        """
        try:
            yield
        except CreamteaError:
            raise
        except Exception as error:
            if self.local and not isinstance(error, OSError):
                raise  # only remote file systems have other kinds of errors
            if isinstance(error, OSError) and error.errno in DISK_FULL:
                place = disk or (
                    f"{self.root} (`creamtea gc` shows what no study needs), or set CREAMTEA_ARTEFACTS to "
                    "another root"
                )
                raise InfrastructureError(
                    f"no space left for {path}: free some on the disk of {place}"
                ) from error
            if isinstance(error, FileNotFoundError):
                raise InfrastructureError(
                    f"artefact {path} is missing: it was deleted, or {self.root} is not mounted here; "
                    "`creamtea db check` lists all missing files, and what makes them again"
                ) from error
            raise InfrastructureError(
                f"artefact store {self.root}: {path}: {explain(error, self.root)}"
            ) from error


class StoredCheckpoints:
    """The checkpoints of one step in a store; implements `creamtea.contract.step.Checkpoints`.

    A stored file ends with its checksum (`seal`). A file that does not match its checksum is deleted.
    """

    def __init__(self, store: ArtefactStore, step_key: str) -> None:
        self._store = store
        self._key = step_key

    def save(self, name: str, source: Path) -> None:
        path = self._path(name)
        seal(source)
        with self._store.failures(path):
            self._store._publish(source, path)

    def read(self, name: str, parse: Callable[[Path], T]) -> T | None:
        path = self._path(name)
        with scratch_folder("checkpoint") as folder:
            copy = Path(folder) / "copy"
            with self._store.failures(path, disk=folder):
                try:
                    self._store.fs.get_file(path, str(copy))
                except FileNotFoundError:
                    return None
            if not unseal(copy):
                self.remove(name)
                raise DamagedCheckpoint(
                    f"checkpoint {path} does not match its checksum: it is damaged, or from creamtea 0.2.0 "
                    "or earlier. It was deleted; the step's next attempt begins from the previous checkpoint "
                    "if that is intact, otherwise anew"
                )
            return parse(copy)

    def names(self) -> list[str]:
        folder = self._store.path_of("checkpoints", self._key)
        with self._store.failures(folder):
            return [path.removeprefix(f"{folder}/") for path in self._store.fs.find(folder)]

    def remove(self, name: str) -> None:
        path = self._path(name)
        with self._store.failures(path), suppress(FileNotFoundError):
            self._store.fs.rm_file(path)

    def _path(self, name: str) -> str:
        return self._store.path_of("checkpoints", self._key, checked_name(name))


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


# ---------------------------------------------------------------- local files and remote file systems


CHUNK = 1 << 20  # bytes
SEAL = b"creamtea:sha256\n"  # before the digest at the end of a sealed file


def files_below(folder: Path) -> dict[str, Path]:
    """Return relative name → path for every file below the folder; links to files count as files."""
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
    """Return the sha256 of a stream; write its content to `copy` as well."""
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
    """Remove the checksum that `seal` appended; if it does not match, leave the file and return False."""
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


# protocols of stores that show an upload only when it is complete: it needs no temporary name
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "az"})
EXTRAS = {"s3": "s3", "s3a": "s3"}  # protocol -> the extra of creamtea that it requires
S3 = {
    "use_listings_cache": False,  # other processes write as well
    # s3fs itself repeats these
    "config_kwargs": {"retries": {"mode": "standard", "max_attempts": 2}},
}

REMEDIES = {  # for errors of a local root
    errno.EACCES: "give this user the right",
    errno.EPERM: "give this user the right",
    errno.EROFS: "mount the disk writable",
    errno.EIO: "the disk fails: see the machine's log",
}


def open_root(root: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path in it; InputError if it cannot be used."""
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
    """Explain a file system's error, with a remedy if one is known."""
    # S3's errors are recognised by name: its packages may not be installed
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
    """A file for reading; `failures` surrounds every read and explains its errors.

    Other errors while the file is open are not explained as errors of the file system.
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
