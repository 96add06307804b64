"""What an artefact store holds, and removing some of it while steps may be running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from creamtea.store.ages import modified_at
from creamtea.store.areas import UPLOADS
from creamtea.store.artefacts import ArtefactStore


@dataclass(frozen=True)
class Entry:
    """A file in the store."""

    area: str  # the folder below the root, or UPLOADS (see `store.areas`)
    owner: str  # whose it is: a digest in objects/, a step's key elsewhere
    path: str
    size: int  # bytes
    modified: float  # seconds since 1970


def entries(store: ArtefactStore) -> Iterator[Entry]:
    """Every file under the root, in no order."""
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
    """Uploads in parts that never ended, which S3 keeps out of sight and bills; of unknown size."""
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
    """Delete the file unless it was written since `before` (seconds since 1970); False: it stays.

    A step that produces an existing object again makes it young first. A file of a local root is therefore
    moved away before its age is read: at this moment such a step has either made it young, and it is moved
    back, or it finds the object gone and writes it anew. A remote store has no such move; there the step
    would have to come between the reading of the age and the deletion, milliseconds later.
    """
    with store.failures(entry.path), suppress(FileNotFoundError):
        if entry.area == UPLOADS:
            bucket, key, _ = store.fs.split_path(entry.path)
            place = {"Bucket": bucket, "Key": key, "UploadId": entry.owner}
            store.fs.call_s3("abort_multipart_upload", **place)
            return True
        if store.local:
            return _remove_local(Path(entry.path), Path(store.temporary()), before)
        if modified_at(store.fs.info(entry.path)) < before:
            store.fs.rm_file(entry.path)
            return True
    return False


def _remove_local(path: Path, aside: Path, before: float) -> bool:
    aside.parent.mkdir(parents=True, exist_ok=True)
    path.replace(aside)
    if aside.stat().st_mtime >= before:
        aside.replace(path)
        return False
    aside.unlink()
    with suppress(OSError):  # the folder stays unless this was its last file
        path.parent.rmdir()
    return True
