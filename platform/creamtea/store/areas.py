"""List the files of an artefact store, remove some while steps may be running, and store attempts' logs."""

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
    """How long a file is kept."""

    REFERENCED = auto()  # while the database has its digest
    UNFINISHED = auto()  # until its step has succeeded
    STEP = auto()  # as long as its step is in the database
    ALWAYS = auto()
    WRITING = auto()  # while it is young: no database has a row about it


@dataclass(frozen=True)
class Area:
    """A folder of the store.

    `files`: the name of its files in `creamtea gc`. `part`: the heading that counts them in `creamtea du`.
    """

    files: str
    kept: Kept
    part: str = "other"


UPLOADS = "uploads"  # not a folder: multipart uploads that were never completed

AREAS = {
    # objects/ab/<sha256>: an output file of a step, or a media file; never changed
    "objects": Area("outputs", Kept.REFERENCED, "outputs"),
    # checkpoints/<key>/<name>: the state from which a step's next attempt resumes
    "checkpoints": Area("checkpoints", Kept.UNFINISHED, "checkpoints"),
    # progress/<key>.json: the progress of a running step
    "progress": Area("progress", Kept.UNFINISHED, "progress"),
    # room/<key>.json: the larger number of workers that a running step could have
    "room": Area("offers of more workers", Kept.UNFINISHED, "progress"),
    # live/<key>.json: the live view of a running step
    "live": Area("curves and examples of trainings", Kept.STEP, "progress"),
    # logs/<key>/: the logs of a step's attempts
    "logs": Area("logs", Kept.STEP, "logs"),
    # controller/waiting.json: why the controller does not start steps now
    "controller": Area("what a controller waits for", Kept.ALWAYS),
    # damaged/<sha256>: a damaged object, set aside so that people can look at it
    "damaged": Area("damaged files", Kept.WRITING),
    # tmp/: files that are being written
    "tmp": Area("temporary files", Kept.WRITING),
    UPLOADS: Area("unfinished uploads", Kept.WRITING),
}


def modified_at(info: dict[str, Any]) -> float:
    """Return when a file was written, in seconds since 1970; infinite if fsspec does not know."""
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
    """Yield every file under the root, in any order."""
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
    """Yield multipart uploads that were never completed: S3 hides and bills them; their size is unknown."""
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

    A step that makes an existing object again renews the object's time instead of writing it. So a file in a
    local root is moved away before its age is read: either the step has renewed it, and it is moved back, or
    the step finds it gone and writes it. A remote store cannot do that: a step that renews the object in the
    milliseconds between the reading of its age and its deletion loses it.
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

# The logs of attempts: logs/<step key>/<fence>-<worker>.log, UTF-8 text. Each claim raises a step's fence, so
# the last attempt has the largest. Worker 0 is the first of a group, or the only one.

LOG_LIMIT = 1 << 20  # bytes; of a longer log only the beginning and the end are kept
LOG_HEAD = 1 << 16  # bytes of the beginning

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
    """Return an attempt's log as far as it is written; empty if there is none."""
    path = _path(store, key, name)
    with store.failures(path), suppress(FileNotFoundError):
        return bytes(store.fs.cat_file(path)).decode(errors="replace")
    return ""


def shorten_log(content: bytes, length: int) -> bytes:
    """Return a log of `length` bytes in the form in which it is stored.

    `content`: the whole log, or its first LOG_HEAD and last LOG_LIMIT - LOG_HEAD bytes.
    """
    if length <= LOG_LIMIT:
        return content
    gap = f"\n… {length - LOG_LIMIT:,} bytes are left out here …\n".encode()
    return content[:LOG_HEAD] + gap + content[LOG_HEAD:]


def new_text(shown: str, content: str) -> str:
    """Return the new part of a log's content; `shown` is the content that was shown before.

    If their beginnings differ, the log has been shortened: then the text after the last shown lines is new.
    """
    if content.startswith(shown):
        return content[len(shown) :]
    _, overlap, after = content.rpartition(shown[-500:])
    return after if overlap else content


def _path(store: ArtefactStore, key: str, name: LogName) -> str:
    return store.path_of("logs", key, f"{name.fence:06d}-{name.worker}.log")
