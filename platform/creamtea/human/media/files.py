"""One file: checked before it is kept, and kept under its SHA-256 in the artefact store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Annotated, Any, Protocol

from pydantic import AfterValidator, Field, ValidationError, model_validator

from creamtea.document.values import Strict
from creamtea.errors import InputError
from creamtea.human.media.types import ALLOWED, CAPTIONS, ENDINGS, HEAD, MAX_BYTES, kind_of, media_type
from creamtea.regular import open_regular
from creamtea.store.storable import check_text
from creamtea.wording import file_name

MAX_CAMPAIGN = 2_000_000_000  # bytes of all files of a campaign
MAX_PER_ITEM = 8
MAX_DESCRIPTION = 1000  # characters


def _known(media: str) -> str:
    if media not in ENDINGS:
        raise ValueError(f"a file of type {media}")
    return media


Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Description = Annotated[str, Field(max_length=MAX_DESCRIPTION), AfterValidator(check_text)]


class ItemMedia(Strict):
    """A file beside the source of an item, as `Item.media` has it."""

    digest: Digest  # SHA-256 of its content, its name in the artefact store
    type: Annotated[str, AfterValidator(_known)]  # MIME
    description: Description = ""  # what it shows or says, for who cannot see or hear it
    captions: Digest | None = None  # SHA-256 of a WebVTT file, of sound or video

    @model_validator(mode="after")
    def _captions_of_what_is_heard(self) -> ItemMedia:
        if self.captions and kind_of(self.type) == "image":
            raise ValueError("captions of an image")
        return self

    def stored(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_none=True)


class FileStore(Protocol):
    """What campaigns need of the artefact store."""

    root: str

    def put_file(self, path: Path) -> str: ...

    def read(self, digest: str) -> bytes: ...

    def exists(self, digest: str) -> bool: ...

    def open(self, digest: str) -> AbstractContextManager[IO[bytes]]: ...


def check_stored(store: FileStore, digest: str, media: str) -> None:
    """InputError for a file beside sources that is gone from the store."""
    if not store.exists(digest):
        raise InputError(
            f"a file beside sources ({media}) is not in {store.root} any more: put it back there as "
            f"objects/{digest[:2]}/{digest}, which is its SHA-256"
        )


@dataclass(frozen=True)
class CheckedFile:
    """A file on this machine that may be kept."""

    path: Path
    type: str
    size: int  # bytes


def check_entries(entries: Iterable[Any]) -> None:
    """ValueError for what `Item.media` cannot hold."""
    try:
        digests = [ItemMedia.model_validate(entry).digest for entry in entries]
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    if len(digests) > MAX_PER_ITEM or len(set(digests)) < len(digests):
        raise ValueError(f"at most {MAX_PER_ITEM} different files")


def types_of(entries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """SHA-256 → MIME type of every file that these entries (`Item.media`) name, captions too."""
    found: dict[str, str] = {}
    for entry in entries:
        found[entry["digest"]] = entry["type"]
        if captions := entry.get("captions"):
            found[captions] = CAPTIONS
    return found


def check_file(path: Path, place: str) -> CheckedFile:
    """A file of an allowed type and size. InputError with `place` and what to do."""
    try:
        with open_regular(path) as file:
            head = file.read(HEAD)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise InputError(f"{place}: {file_name(path)}: {error.strerror or error}") from None
    found = media_type(head)
    if found is None:
        raise InputError(f"{place}: {path.name} is none of {ALLOWED} by its content: convert it")
    if path.suffix.lower() not in ENDINGS[found]:
        fitting = " or ".join(ENDINGS[found])
        raise InputError(f"{place}: {path.name} is {found} by its content: rename it to end in {fitting}")
    most = MAX_BYTES[kind_of(found)]
    if size > most:
        raise InputError(
            f"{place}: {path.name} has {size / 1e6:,.1f} MB; at most {most / 1e6:,.0f} MB are allowed for "
            f"{kind_of(found)} files: make it smaller"
        )
    return CheckedFile(path, found, size)


def inside(folder: Path, name: str, place: str) -> Path:
    """The file of this name in the folder or below it; InputError for a name that leads elsewhere, by a link
    in the folder, say."""
    parts = PurePosixPath(name).parts
    path = folder.joinpath(*parts)
    plain = bool(parts) and ".." not in parts and not name.startswith("/") and not set("\\:") & set(name)
    if not plain or not path.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{place}: file: found {name[:80]!r}; allowed: a file in the folder or below it")
    return path


def check_total(sizes: Iterable[int], place: str) -> None:
    """InputError where the files of a campaign are more than it may have; `sizes` of different files."""
    if (total := sum(sizes)) > MAX_CAMPAIGN:
        raise InputError(
            f"{place}: {total / 1e6:,.0f} MB in all; at most {MAX_CAMPAIGN / 1e6:,.0f} MB are allowed for "
            "a campaign's files"
        )


def keeper(store: FileStore) -> Callable[[CheckedFile], str]:
    """Puts files into the store: each once, however often it is named. It returns the SHA-256."""
    known: dict[Path, str] = {}

    def keep(file: CheckedFile) -> str:
        if file.path not in known:
            known[file.path] = store.put_file(file.path)
        return known[file.path]

    return keep
