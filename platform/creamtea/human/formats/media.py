"""Files beside sources in exports and imports: a folder of them, each called by its SHA-256 and its type.

Items name them (`ItemContent.media`); an import checks that each is there, and is what its name says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from creamtea.errors import InputError
from creamtea.human.formats.content import Content
from creamtea.human.media.captions import check_captions
from creamtea.human.media.files import (
    CheckedFile,
    FileStore,
    check_file,
    check_stored,
    check_total,
    types_of,
)
from creamtea.human.media.types import CAPTIONS, file_name

FOLDER = "media"


@dataclass(frozen=True)
class MediaFiles:
    """The files of a campaign that is imported, by SHA-256; they are on this machine, and not kept yet."""

    files: dict[str, CheckedFile] = field(default_factory=dict)

    @property
    def sizes(self) -> dict[str, int]:
        """In bytes."""
        return {digest: file.size for digest, file in self.files.items()}


def named(content: Content) -> dict[str, str]:
    """SHA-256 → MIME type of every file that the items name."""
    items = sorted(content.items, key=lambda item: item.position)
    return types_of(entry for item in items for entry in item.media)


def check_kept(content: Content, store: FileStore | None) -> None:
    """InputError unless the store has the files that the items name."""
    for digest, media in named(content).items():
        check_stored(_needed(store), digest, media)


def write_media(content: Content, store: FileStore | None, folder: Path) -> list[Path]:
    """The files, into a new folder; none where no item names one."""
    wanted = named(content)
    if not wanted:
        return []
    store = _needed(store)
    folder.mkdir()
    written = []
    for digest, media in wanted.items():
        path = folder / file_name(digest, media)
        with store.open(digest) as kept, path.open("wb") as copy:
            while chunk := kept.read(1 << 20):
                copy.write(chunk)
        written.append(path)
    return written


def read_media_folder(content: Content, folder: Path, elsewhere: Mapping[str, Path]) -> MediaFiles:
    """The files that the items name; `elsewhere` has those that are called otherwise, by SHA-256. InputError
    for one that is missing, changed, or not allowed."""
    found: dict[str, CheckedFile] = {}
    for digest, media in named(content).items():
        path = elsewhere.get(digest, folder / file_name(digest, media))
        place = f"{path.parent.name}/{path.name}"
        if not path.is_file():
            raise InputError(f"{place}: missing, and an item names it: import the whole export")
        file = (check_captions if media == CAPTIONS else check_file)(path, place)
        with path.open("rb") as opened:
            same = hashlib.file_digest(opened, "sha256").hexdigest() == digest
        if not same or file.type != media:
            raise InputError(f"{place}: not the file that was exported: its name is the SHA-256 of that one")
        found[digest] = file
    check_total((file.size for file in found.values()), folder.name)
    return MediaFiles(found)


def keep_media(media: MediaFiles, store: FileStore | None) -> None:
    """Put the files of an import where the campaign's rows will say that they are."""
    for file in media.files.values():
        _needed(store).put_file(file.path)


def _needed(store: FileStore | None) -> FileStore:
    if store is None:
        raise ValueError("a campaign with files beside its sources needs the artefact store")
    return store
