"""What an artefact store holds, removing some of it while steps may be running, and the logs of attempts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from pathlib import Path
from typing import Any

from creamtea.store.artefacts import ArtefactStore


class Kept(Enum):
    """How long a file is needed."""

    REFERENCED = auto()  # while the database has its digest
    UNFINISHED = auto()  # until its step has succeeded
    STEP = auto()  # as long as its step is in the database
    ALWAYS = auto()
    WRITING = auto()  # while it is young: no database knows it


@dataclass(frozen=True)
class Area:
    """A folder of the store.

    `files`: what `creamtea gc` calls its files. `part`: the heading under which `creamtea du` counts them.
    """

    files: str
    kept: Kept
    part: str = "other"


UPLOADS = "uploads"  # not a folder: uploads in parts that have not ended

AREAS = {
    # objects/ab/<sha256>: an output file of a step, or a file beside a source; never changed
    "objects": Area("outputs", Kept.REFERENCED, "outputs"),
    # checkpoints/<key>/<name>: what a running step resumes from
    "checkpoints": Area("checkpoints", Kept.UNFINISHED, "checkpoints"),
    # progress/<key>.json: how far a running step is
    "progress": Area("progress", Kept.UNFINISHED, "progress"),
    # room/<key>.json: with how many workers it could go on
    "room": Area("offers of more workers", Kept.UNFINISHED, "progress"),
    # live/<key>.json: what a running step shows of itself
    "live": Area("curves and examples of trainings", Kept.STEP, "progress"),
    # logs/<key>/: the logs of its attempts
    "logs": Area("logs", Kept.STEP, "logs"),
    # controller/waiting.json: why the controller does not start steps now
    "controller": Area("what a controller waits for", Kept.ALWAYS),
    # damaged/<sha256>: a damaged object, set aside for who wants to look at it
    "damaged": Area("damaged files", Kept.WRITING),
    # tmp/: what is being written
    "tmp": Area("temporary files", Kept.WRITING),
    UPLOADS: Area("unfinished uploads", Kept.WRITING),
}


def modified_at(info: dict[str, Any]) -> float:
    """Return when a file was written, by fsspec's facts: seconds since 1970; infinite if unknown."""
    for name in ("mtime", "LastModified", "last_modified", "updated", "modified", "created"):
        match info.get(name):
            case datetime() as moment:
                return moment.timestamp()
            case int() | float() as seconds:
                return float(seconds)
    return math.inf


@dataclass(frozen=True)
class Entry:
    """A file in the store."""

    area: str  # the folder below the root, or UPLOADS
    owner: str  # a digest in objects/, a step's key elsewhere
    path: str
    size: int  # bytes
    modified: float  # seconds since 1970


def entries(store: ArtefactStore) -> Iterator[Entry]:
    """Yield every file under the root, in no order."""
    base = store.base
    with store.failures(base):
        files = store.fs.find(base, detail=True)
    for path, info in files.items():
        area, _, rest = path[len(base) + 1 :].partition("/")
        first, _, last = rest.partition("/")
        owner = last if area == "objects" else first.removesuffix(".json")
        yield Entry(area, owner, path, int(info["size"] or 0), modified_at(info))
    yield from _unfinished_uploads(store)


def _unfinished_uploads(store: ArtefactStore) -> Iterator[Entry]:
    """Yield uploads in parts that never ended, which S3 hides and bills; their size is unknown."""
    if not hasattr(store.fs, "list_multipart_uploads"):
        return
    bucket, prefix, _ = store.fs.split_path(store.base)
    with store.failures(store.base):
        uploads = store.fs.list_multipart_uploads(bucket)
    for upload in uploads:
        if upload["Key"].startswith(f"{prefix}/" if prefix else ""):
            path = f"{bucket}/{upload['Key']}"
            yield Entry(UPLOADS, upload["UploadId"], path, 0, upload["Initiated"].timestamp())


def remove(store: ArtefactStore, entry: Entry, before: float) -> bool:
    """Delete the file unless it was written since `before` (seconds since 1970); False if it stays.

    A step that produces an existing object again first renews its time. In a local root a file is therefore
    moved away before its age is read: by then such a step has either renewed it, so that it is moved back, or
    finds it gone and writes it again. A remote store has no such move; there the step would have to come
    between the reading of the age and the deletion, milliseconds later.
    """
    with store.failures(entry.path), suppress(FileNotFoundError):
        if entry.area == UPLOADS:
            bucket, key, _ = store.fs.split_path(entry.path)
            place = {"Bucket": bucket, "Key": key, "UploadId": entry.owner}
            store.fs.call_s3("abort_multipart_upload", **place)
            return True
        if store.local:
            path, aside = Path(entry.path), Path(store.temporary())
            aside.parent.mkdir(parents=True, exist_ok=True)
            path.replace(aside)
            if aside.stat().st_mtime >= before:
                aside.replace(path)
                return False
            aside.unlink()
            with suppress(OSError):  # the folder stays unless this was its last file
                path.parent.rmdir()
            return True
        if modified_at(store.fs.info(entry.path)) < before:
            store.fs.rm_file(entry.path)
            return True
    return False


# ---------------------------------------------------------------- logs

# The logs of attempts: logs/<step key>/<fence>-<worker>.log, UTF-8 text. A claim raises a step's fence, so
# that the last attempt has the largest. Worker 0 is the first of a group, or the only one.

LOG_LIMIT = 1 << 20  # bytes of an attempt's log that are kept: its beginning and its end
LOG_HEAD = 1 << 16  # bytes of its beginning

_NAME = re.compile(r"(\d+)-(\d+)\.log$")


@dataclass(frozen=True, order=True)
class LogName:
    fence: int
    worker: int


def write_log(store: ArtefactStore, key: str, name: LogName, content: bytes) -> None:
    """Replace the attempt's log."""
    path = _path(store, key, name)
    with store.failures(path):
        store.write(path, lambda place: store.fs.pipe_file(place, content), durable=False)


def list_logs(store: ArtefactStore, key: str) -> list[LogName]:
    """List the logs of a step's attempts, oldest first."""
    folder = store.path_of("logs", key)
    with store.failures(folder), suppress(FileNotFoundError):
        matches = map(_NAME.search, store.fs.ls(folder, detail=False))
        return sorted(LogName(int(match[1]), int(match[2])) for match in matches if match)
    return []


def read_log(store: ArtefactStore, key: str, name: LogName) -> str:
    """Return what has been written of an attempt's log; empty if nothing."""
    path = _path(store, key, name)
    with store.failures(path), suppress(FileNotFoundError):
        return bytes(store.fs.cat_file(path)).decode(errors="replace")
    return ""


def shorten_log(content: bytes, length: int) -> bytes:
    """Return a log of `length` bytes as it is stored.

    `content`: the whole log, or its first LOG_HEAD and last LOG_LIMIT - LOG_HEAD bytes.
    """
    if length <= LOG_LIMIT:
        return content
    gap = f"\n… {length - LOG_LIMIT:,} bytes are left out here …\n".encode()
    return content[:LOG_HEAD] + gap + content[LOG_HEAD:]


def new_text(shown: str, content: str) -> str:
    """Return the part of a log's content that has not been shown; `shown` is the earlier content.

    If the beginnings differ, a middle part was left out: then the text after the last shown lines is new.
    """
    if content.startswith(shown):
        return content[len(shown) :]
    _, overlap, after = content.rpartition(shown[-500:])
    return after if overlap else content


def _path(store: ArtefactStore, key: str, name: LogName) -> str:
    return store.path_of("logs", key, f"{name.fence:06d}-{name.worker}.log")
