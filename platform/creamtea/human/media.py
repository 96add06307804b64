"""Image, audio and video files of sources and outputs: their types, their list, and where they are stored.

An organiser lists the files in JSON Lines, with one object for each file:

    {"segment": 1, "file": "photos/tea.png", "description": "A cup of tea beside a scone"}
    {"document": "interview-3", "file": "interview-3.mp3"}
    {"tutorial": 1, "file": "practice.webm"}
    {"attention": 2, "file": "check.png"}
    {"segment": 1, "system": "greedy", "file": "greedy/1.mp3"}
    {"tutorial": 1, "output": 2, "file": "practice-2.mp3"}

`segment` is a number in the test set, from 1; `document` is a name in `documents`; `tutorial` and `attention`
are numbers of practice items and attention checks, from 1. The file is shown beside the source. With `system`
(in practice items and checks, with `output`, the output's number) it is the system's output, or is shown
beside the output's text: two outputs are equal if their texts and their files are equal. The files are in the
folder of the list, or below it. A document's file is shown once on each of its pages, or with each of its
segments if segments are rated alone. A file `interview-3.vtt` beside `interview-3.mp3` has its captions.

All files are checked before any is stored, under its SHA-256 in the artefact store.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Annotated, Any, Protocol

from pydantic import AfterValidator, Field, ValidationError, model_validator
from sqlalchemy import Row, delete, func, select
from sqlalchemy.orm import Session

from creamtea.document.document import read_lines
from creamtea.document.values import Strict
from creamtea.errors import InputError
from creamtea.files import open_regular, read_text
from creamtea.store.rows import check_text
from creamtea.store.tables import CampaignMedia, Item, MediaEntry
from creamtea.wording import file_name

# ---------------------------------------------------------------- allowed types
# SVG is not allowed, because it can contain scripts; nor are formats that some browsers cannot play. A file's
# ending must match its content, because people rely on it.

HEAD = 4096  # first bytes, which show the type

# MIME type → its endings, the usual one first
ENDINGS = {
    "image/png": (".png",),
    "image/jpeg": (".jpg", ".jpeg"),
    "image/webp": (".webp",),
    "image/gif": (".gif",),
    "audio/mpeg": (".mp3",),
    "audio/ogg": (".ogg", ".oga", ".opus"),
    "audio/wav": (".wav",),
    "audio/mp4": (".m4a",),
    "video/mp4": (".mp4",),
    "video/webm": (".webm",),
}
# of sound and video; never shown by itself
CAPTIONS, CAPTIONS_ENDING = "text/vtt", ".vtt"
MAX_BYTES = {"image": 20_000_000, "audio": 100_000_000, "video": 200_000_000}  # of a file
MAX_CAMPAIGN = 2_000_000_000  # bytes of all files of a campaign
MAX_PER_PLACE = 8  # beside a source, or of an output
MAX_DESCRIPTION = 1000  # characters
ALLOWED = ", ".join(endings[0].removeprefix(".") for endings in ENDINGS.values())

_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
# beginnings of the first page of an Ogg stream with sound (RFC 3533, RFC 7845)
_OGG_AUDIO = (b"\x01vorbis", b"OpusHead", b"\x7fFLAC", b"Speex   ")
# brands of an ISO base media file (ISO/IEC 14496-12), without HEIC, AVIF and QuickTime
_M4A = (b"M4A ", b"M4B ")
_MP4 = (b"iso", b"mp41", b"mp42", b"avc1", b"M4V ", b"dash", b"mmp4", b"MSNV", b"f4v ")


def media_type(head: bytes) -> str | None:
    """Return the MIME type of a file with these first bytes (`HEAD` of them); None if it is not allowed."""
    for magic, image in _IMAGES.items():
        if head.startswith(magic):
            return image
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12])
    if head.startswith(b"OggS"):
        return "audio/ogg" if any(head[28:].startswith(codec) for codec in _OGG_AUDIO) else None
    if head[4:8] == b"ftyp":
        if head[8:12] in _M4A:
            return "audio/mp4"
        return "video/mp4" if head[8:12].startswith(_MP4) else None
    if head.startswith(b"\x1a\x45\xdf\xa3"):  # EBML; a Matroska file has another document type
        return "video/webm" if b"\x42\x82\x84webm" in head[:256] else None
    return "audio/mpeg" if _is_mp3(head) else None


def _is_mp3(head: bytes) -> bool:
    """Recognise an ID3 tag, or a frame of MPEG audio layer III with valid rates (ISO/IEC 11172-3)."""
    if head.startswith(b"ID3"):
        return True
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return False
    version, layer, bitrate, rate = head[1] >> 3 & 3, head[1] >> 1 & 3, head[2] >> 4, head[2] >> 2 & 3
    return version != 1 and layer == 1 and bitrate not in (0, 15) and rate != 3


def kind_of(media: str) -> str:
    """Return "image", "audio" or "video" for a MIME type."""
    return media.partition("/")[0]


def export_name(digest: str, media: str) -> str:
    """Return a file's name in an export."""
    return f"{digest}{CAPTIONS_ENDING if media == CAPTIONS else ENDINGS[media][0]}"


def _allowed(media: str) -> str:
    if media not in ENDINGS:
        raise ValueError(f"a file of type {media}")
    return media


Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Description = Annotated[str, Field(max_length=MAX_DESCRIPTION), AfterValidator(check_text)]


class ItemMedia(Strict):
    """A file of an item, as `Item.media` has it."""

    # the system whose output the file is or accompanies: a name, in the database a number; None: the source
    system: Annotated[str, Field(min_length=1)] | None = None
    digest: Digest  # SHA-256 of its content, its name in the artefact store
    type: Annotated[str, AfterValidator(_allowed)]  # MIME
    description: Description = ""  # its content in words, for people who cannot see or hear it
    captions: Digest | None = None  # SHA-256 of a WebVTT file, for sound or video

    @model_validator(mode="after")
    def _check_captions(self) -> ItemMedia:
        if self.captions and kind_of(self.type) == "image":
            raise ValueError("captions of an image")
        return self

    def stored(self) -> MediaEntry:
        return self.model_dump(mode="json", exclude_none=True)


def checked_entries(entries: Any) -> tuple[MediaEntry, ...]:
    """Return entries that `Item.media` can hold; ValueError for anything else."""
    if not isinstance(entries, list | tuple):
        raise ValueError("not a list")
    try:
        given = [ItemMedia.model_validate(entry) for entry in entries]
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    per_place = Counter(entry.system for entry in given)
    if len({(entry.system, entry.digest) for entry in given}) < len(given) or any(
        count > MAX_PER_PLACE for count in per_place.values()
    ):
        raise ValueError(f"at most {MAX_PER_PLACE} different files in one place")
    return tuple(entries)


def distinct(text: str, files: Iterable[MediaEntry]) -> str:
    """Return a text that is equal for two outputs if their texts, files and captions are equal."""
    return "\0".join([text, *(f"{file['digest']} {file.get('captions', '')}" for file in files)])


def types_of(entries: Iterable[MediaEntry]) -> dict[str, str]:
    """Map the SHA-256 of each file that these entries (`Item.media`) name, captions too, to its type."""
    types: dict[str, str] = {}
    for entry in entries:
        types[entry["digest"]] = entry["type"]
        if captions := entry.get("captions"):
            types[captions] = CAPTIONS
    return types


# ---------------------------------------------------------------- one file


class FileStore(Protocol):
    """The part of the artefact store's interface that campaigns use."""

    root: str

    def put_file(self, path: Path) -> str: ...

    def read(self, digest: str) -> bytes: ...

    def exists(self, digest: str) -> bool: ...

    def open(self, digest: str) -> AbstractContextManager[IO[bytes]]: ...


def check_stored(store: FileStore, digest: str, media: str) -> None:
    """Raise InputError if a campaign's file is gone from the store."""
    if not store.exists(digest):
        raise InputError(
            f"a campaign's file ({media}) is not in {store.root} any more: put it back there as "
            f"objects/{digest[:2]}/{digest}, which is its SHA-256"
        )


@dataclass(frozen=True)
class CheckedFile:
    """A file on this machine that may be kept."""

    path: Path
    type: str
    size: int  # bytes

    @property
    def digest(self) -> str:
        """The SHA-256 of the content."""
        with self.path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()


def check_file(path: Path, place: str) -> CheckedFile:
    """Check that a file has an allowed type and size. InputError with `place` and the remedy."""
    try:
        with open_regular(path) as file:
            head = file.read(HEAD)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise InputError(f"{place}: {file_name(path)}: {error.strerror or error}") from None
    type_ = media_type(head)
    if type_ is None:
        raise InputError(f"{place}: {path.name} is none of {ALLOWED} by its content: convert it")
    if path.suffix.lower() not in ENDINGS[type_]:
        fitting = " or ".join(ENDINGS[type_])
        raise InputError(f"{place}: {path.name} is {type_} by its content: rename it to end in {fitting}")
    most = MAX_BYTES[kind_of(type_)]
    if size > most:
        raise InputError(
            f"{place}: {path.name} has {size / 1e6:,.1f} MB; at most {most / 1e6:,.0f} MB are allowed for "
            f"{kind_of(type_)} files: make it smaller"
        )
    return CheckedFile(path, type_, size)


def inside(folder: Path, name: str, place: str) -> Path:
    """Return the path of this name in the folder or below it.

    InputError for a name that leads out of the folder (by a link, say).
    """
    parts = PurePosixPath(name).parts
    path = folder.joinpath(*parts)
    plain = bool(parts) and ".." not in parts and not name.startswith("/") and not set("\\:") & set(name)
    if not plain or not path.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{place}: file: found {name[:80]!r}; allowed: a file in the folder or below it")
    return path


def check_total(sizes: Iterable[int], place: str) -> None:
    """Raise InputError if a campaign's files are too large together; `sizes`: of different files."""
    if (total := sum(sizes)) > MAX_CAMPAIGN:
        raise InputError(
            f"{place}: {total / 1e6:,.0f} MB in all; at most {MAX_CAMPAIGN / 1e6:,.0f} MB are allowed for "
            "a campaign's files"
        )


# ---------------------------------------------------------------- captions
# For people who cannot hear sound or video: a WebVTT file (W3C, WebVTT: The Web Video Text Tracks Format)
# with the media file's name, `talk.vtt` beside `talk.mp3`. Only common mistakes are checked: the encoding,
# the first line, and times in another format. Browsers read the rest, and never as HTML.

MAX_CAPTIONS = 2_000_000  # bytes
_FIRST_LINE = re.compile(r"WEBVTT(?:[ \t].*)?")
_TIME = r"(?:\d{2,}:)?[0-5]\d:[0-5]\d\.\d{3}"
_TIMES = re.compile(rf"{_TIME}[ \t]+-->[ \t]+{_TIME}(?:[ \t].*)?")


def check_captions(path: Path, place: str) -> CheckedFile:
    """Check that a file is WebVTT. InputError with `place`, the line and the remedy."""
    where = f"{place}: {path.name}"
    lines = re.split(r"\r\n|\r|\n", read_text(path, where, MAX_CAPTIONS))
    if not _FIRST_LINE.fullmatch(lines[0]):
        raise InputError(f"{where}, line 1: found {lines[0][:40]!r}; allowed: WEBVTT: make it WebVTT")
    cues = 0
    for number, line in enumerate(lines, start=1):
        if "-->" in line:
            cues += 1
            if not _TIMES.fullmatch(line.strip(" \t")):
                raise InputError(
                    f"{where}, line {number}: found {line[:60]!r}; allowed: 00:01.000 --> 00:02.500, with a "
                    "point before the milliseconds"
                )
    if not cues:
        raise InputError(f"{where}: no captions (00:01.000 --> 00:02.500): add some, or remove the file")
    return CheckedFile(path, CAPTIONS, path.stat().st_size)


# ---------------------------------------------------------------- an organiser's list of files


TARGETS = ("segment", "document", "tutorial", "attention")
Number = Annotated[int, Field(ge=1, le=10**9)]


class MediaLine(Strict):
    segment: Number | None = None
    document: Annotated[str, Field(min_length=1)] | None = None
    tutorial: Number | None = None
    attention: Number | None = None
    system: Annotated[str, Field(min_length=1)] | None = None  # of the segment's output
    output: Number | None = None  # of the practice item or attention check
    file: Annotated[str, Field(min_length=1)]
    description: Description = ""

    @model_validator(mode="after")
    def _check_target(self) -> MediaLine:
        if sum(getattr(self, target) is not None for target in TARGETS) != 1:
            raise ValueError(f"one of {', '.join(TARGETS)} says beside what the file is shown")
        written = (self.tutorial or self.attention) is not None
        if (self.system is not None and self.segment is None) or (self.output is not None and not written):
            raise ValueError("system goes with segment, and output with tutorial or attention")
        return self


@dataclass(frozen=True)
class GivenFile:
    """A checked and stored file, and the place where it is shown.

    `target` is one of TARGETS, `number` a number from 1 or a document's name.
    """

    place: str  # "media.jsonl, line 3"
    target: str
    number: int | str
    output: int | str | None  # the output's number or the system's name; None: beside the source
    media: ItemMedia
    sizes: Mapping[str, int]  # bytes of the file and of its captions, by SHA-256


def read_media(path: Path, store: FileStore | None) -> list[GivenFile]:
    """Read the lines of a list, check all files that they name, then put these files into the store.

    Without a store, digests are placeholders. InputError with the line of every file that is not allowed;
    nothing is stored then.
    """
    lines = read_lines(path, MediaLine, "media")
    checked, mistakes = [], []  # each file, with its captions if it has some
    for place, line in lines:
        try:
            files = [check_file(inside(path.parent, line.file, place), place)]
            if kind_of(files[0].type) != "image":
                captions = inside(path.parent, str(Path(line.file).with_suffix(CAPTIONS_ENDING)), place)
                files += [check_captions(captions, place)] if captions.exists() else []
            checked.append(files)
        except InputError as error:
            mistakes.append(str(error))
    if mistakes:
        raise InputError("\n".join(mistakes))
    different = {file.path: file.size for found in checked for file in found}
    check_total(different.values(), path.name)
    # file → SHA-256; without a store a number, so that two files beside a source differ
    kept = {file: store.put_file(file) if store else f"{k:064x}" for k, file in enumerate(different)}
    given = []
    for (place, line), found in zip(lines, checked, strict=True):
        digests = [kept[file.path] for file in found]
        media = ItemMedia(
            digest=digests[0],
            type=found[0].type,
            description=line.description,
            captions=digests[1] if len(found) > 1 else None,
        )
        sizes = {digest: file.size for digest, file in zip(digests, found, strict=True)}
        target = next(target for target in TARGETS if getattr(line, target) is not None)
        output = line.system or line.output
        given.append(GivenFile(place, target, getattr(line, target), output, media, sizes))
    return given


# ---------------------------------------------------------------- a campaign's files


def store_media(
    session: Session, campaign_id: int, entries: Iterable[MediaEntry], sizes: Mapping[str, int]
) -> None:
    """Record the files that the items of a campaign show (`Item.media`), replacing the former record.

    `sizes`: bytes of each file, by SHA-256.
    """
    session.execute(delete(CampaignMedia).where(CampaignMedia.campaign_id == campaign_id))
    session.add_all(
        CampaignMedia(campaign_id=campaign_id, digest=digest, type=media, size=sizes[digest])
        for digest, media in sorted(types_of(entries).items())
    )


@dataclass(frozen=True)
class KeptFile:
    type: str  # MIME
    size: int  # bytes
    campaigns: Collection[int]  # campaigns that show it


@dataclass(frozen=True)
class Amount:
    files: int
    size: int  # bytes


def amount_of_media(session: Session, campaign_id: int) -> Amount:
    """Return the number and the total size of the different files that a campaign shows."""
    amount = select(func.count(), func.coalesce(func.sum(CampaignMedia.size), 0))
    files, size = session.execute(amount.where(CampaignMedia.campaign_id == campaign_id)).one()
    return Amount(files, int(size))


def first_media(session: Session, campaign_id: int, most: int) -> list[Row[str, str, list[MediaEntry]]]:
    """List the first `most` items with files, equal items once, as rows of `kind`, `source` and `media`."""
    if amount_of_media(session, campaign_id).files == 0:
        return []
    rows: dict[str, Row[str, str, list[MediaEntry]]] = {}
    items = select(Item.kind, Item.source, Item.media).where(Item.campaign_id == campaign_id)
    for row in session.execute(items.order_by(Item.position)):
        if row.media and len(rows) < most:
            rows.setdefault(repr((row.source, row.media)), row)  # the same for each system, and in a control
    return list(rows.values())


def find_media(session: Session, digest: str) -> KeptFile | None:
    """Return the file with this SHA-256; None if no campaign shows it."""
    rows = session.scalars(select(CampaignMedia).where(CampaignMedia.digest == digest)).all()
    if not rows:
        return None
    return KeptFile(rows[0].type, rows[0].size, {row.campaign_id for row in rows})
