"""The file of a bundle: a ZIP archive with rows of the database as JSON Lines, and a manifest.

The manifest has the SHA-256 of every other file. Equal contents give equal bytes (with one version of zlib):
files are ordered by name, without times. The rows omit who raters are (their pseudonyms stay), their free
texts, and where a step ran. Tables of access (tokens, sessions) are not included.
"""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Self

from pydantic import ConfigDict, StrictInt, TypeAdapter, ValidationError
from sqlalchemy import JSON, Boolean, Float, Integer, String

from creamtea.document.values import parse_json
from creamtea.errors import InputError
from creamtea.files import UNREADABLE, replacing
from creamtea.store.rows import check_json
from creamtea.store.tables import (
    Assignment,
    Base,
    Blame,
    Campaign,
    CampaignMedia,
    Item,
    Metric,
    Point,
    Rater,
    Rating,
    StepFile,
    StepInput,
    StepRow,
    StudyRow,
    StudyStep,
    UtcDateTime,
)

# in the order in which rows can be inserted: a table comes after the tables that it refers to
TABLES: tuple[type[Base], ...] = (
    *(StudyRow, StepRow, StepInput, StudyStep, StepFile, Metric, Point),
    *(Campaign, CampaignMedia, Rater, Item, Assignment, Rating, Blame),
)
# omitted columns, with the values that replace them
LEFT_OUT: dict[type[Base], dict[str, Any]] = {
    StepRow: {"owner": None, "lease_until": None, "not_before": None, "locations": {}},
    Rater: {"name": None, "subject": None, "participant": None, "arrival": None, "answers": None},
    Assignment: {"draft": None, "skip_reason": "", "comment": ""},
}


def file_of(table: type[Base]) -> str:
    return f"tables/{table.__tablename__}.jsonl"


def columns_of(table: type[Base]) -> dict[str, Any]:
    """Return the columns that a bundle holds."""
    left_out = LEFT_OUT.get(table, {})
    return {column.key: column for column in table.__table__.columns if column.key not in left_out}


def to_lines(table: type[Base], rows: Iterable[Any]) -> bytes:
    columns = columns_of(table)
    lines = []
    for row in rows:
        values = {name: getattr(row, name) for name in columns}
        lines.append(json.dumps(values, ensure_ascii=False, allow_nan=False, default=datetime.isoformat))
    return "".join(f"{line}\n" for line in lines).encode()


def from_values(table: type[Base], lines: Iterable[Any], place: str) -> list[dict[str, Any]]:
    """Return values for an INSERT, with placeholders for omitted columns.

    InputError with line and column for a value that the table cannot hold.
    """
    columns = columns_of(table)
    rows = []
    for number, values in enumerate(lines, start=1):
        where = f"{place}, line {number}"
        if not isinstance(values, dict) or values.keys() != columns.keys():
            raise InputError(f"{where}: its keys must be the table's columns: {', '.join(columns)}")
        row = {
            name: _read(column, values[name], f"{where}, column {name}") for name, column in columns.items()
        }
        rows.append(row | LEFT_OUT.get(table, {}))
    return rows


def _read(column: Any, value: Any, place: str) -> Any:
    if value is None and column.nullable:
        return None
    try:
        check_json(value)
    except (ValueError, RecursionError) as error:
        why = error if isinstance(error, ValueError) else "nested too deeply"
        raise InputError(f"{place}: found a value {why}, which the table cannot hold") from None
    match column.type, value:
        case UtcDateTime(), str():
            with suppress(ValueError):
                if (moment := datetime.fromisoformat(value)).tzinfo is not None:
                    return moment
        case (JSON(), _) | (Boolean(), bool()) | (String(), str()):
            return value
        case ((Integer() | Float()), bool()):
            pass
        case Integer(), int() if abs(value) < 2**63:
            return value
        case Float(), int() | float() if math.isfinite(value):
            return float(value)
    raise InputError(f"{place}: found {repr(value)[:80]}, which the table cannot hold")


FORMAT = "creamtea bundle 1"
MANIFEST = "manifest.json"
MAX_FILES = 100_000
MAX_BYTES = 4 << 30  # unpacked
MAX_MANIFEST = 64 << 20
FIRST_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest that ZIP can store
PLAIN_FILE = 0o100644 << 16
UNIX = 3


@dataclass(frozen=True)
class PackedStudy:
    name: str
    number: StrictInt


@dataclass(frozen=True)
class PackedFile:
    sha256: str
    bytes: StrictInt


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The content of manifest.json.

    `versions`: Python and the packages that compute. `left_out`: settings that were emptied.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    format: str = FORMAT
    study: PackedStudy
    creamtea: str
    schema: str
    versions: dict[str, str]
    left_out: list[str]
    files: dict[str, PackedFile]


_MANIFEST = TypeAdapter(Manifest)


def json_bytes(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_archive(files: Mapping[str, bytes], path: Path) -> None:
    """Write `files`, the manifest among them, as an archive.

    InputError if it cannot be written or would be too large to be read; no partial file then remains.
    """
    size = sum(map(len, files.values()))
    if len(files) > MAX_FILES or size > MAX_BYTES:
        raise InputError(
            f"{len(files):,} files and {size:,} bytes unpacked, more than a bundle may have "
            f"({MAX_FILES:,} and {MAX_BYTES:,}); leave campaigns with media out"
        )
    try:
        with (
            replacing(path) as partial,
            zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive,
        ):
            for name in sorted(files):
                info = zipfile.ZipInfo(name, FIRST_DATE)
                # pictures, sound and films are compressed already
                method = zipfile.ZIP_STORED if name.startswith("media/") else zipfile.ZIP_DEFLATED
                info.compress_type, info.create_system, info.external_attr = method, UNIX, PLAIN_FILE
                archive.writestr(info, files[name])
    except OSError as error:
        raise InputError(f"--out {path}: {error.strerror or error}") from None


class Archive:
    """An archive, checked against its manifest. Nothing is unpacked to a path that it names.

    InputError if the archive is truncated or too large, if a path leads out of it, or if the manifest does
    not list a file, lists a missing one or gives another SHA-256.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._asked: set[str] = set()
        try:
            self._zip = zipfile.ZipFile(path)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}; give a bundle that can be read") from None
        except UNREADABLE as error:
            with path.open("rb") as file:
                is_cut = file.read(2) == b"PK"
            remedy = "was it copied completely? Get it again" if is_cut else "give one of `creamtea bundle`"
            raise InputError(f"{path}: not a complete ZIP archive ({error}); {remedy}") from None
        try:
            self._check_entries()
            self.manifest = self._read_manifest()
            self._check_files()
        except BaseException:
            self._zip.close()
            raise
        self._asked.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def names(self, folder: str = "") -> list[str]:
        return [name for name in self.manifest.files if name.startswith(folder)]

    def unread(self) -> list[str]:
        """List the files of the manifest that have not been read."""
        return [name for name in self.names() if name not in self._asked]

    def read(self, name: str) -> bytes:
        """Read a file of the manifest; InputError if it is missing or damaged."""
        self._asked.add(name)
        try:
            return self._zip.read(name)
        except KeyError:
            raise InputError(f"{self.path}: {name} is missing: this bundle is incomplete") from None
        except (*UNREADABLE, OSError) as error:  # bzip2 also raises OSError
            raise InputError(
                f"{self.path}: {name} cannot be unpacked ({error}); get the bundle again"
            ) from None

    def read_json(self, name: str) -> Any:
        return parse_json(self.read(name), f"{self.path}: {name}")

    def _check_entries(self) -> None:
        entries = self._zip.infolist()
        size = sum(entry.file_size for entry in entries)
        if len(entries) > MAX_FILES or size > MAX_BYTES:
            raise InputError(
                f"{self.path}: {len(entries):,} files of {size:,} bytes unpacked are more than a bundle may "
                f"have ({MAX_FILES:,} and {MAX_BYTES:,})"
            )
        seen: set[str] = set()
        for entry in entries:
            parts = PurePosixPath(entry.filename).parts
            if entry.filename.startswith("/") or "\\" in entry.filename or ".." in parts:
                raise InputError(f"{self.path}: {entry.filename!r} is not a path within the bundle")
            if entry.filename in seen:
                raise InputError(f"{self.path}: {entry.filename} occurs twice")
            seen.add(entry.filename)

    def _read_manifest(self) -> Manifest:
        if MANIFEST not in self._zip.namelist():
            raise InputError(f"{self.path}: no {MANIFEST} in it: not a bundle; make one with creamtea bundle")
        if self._zip.getinfo(MANIFEST).file_size > MAX_MANIFEST:
            raise InputError(f"{self.path}: {MANIFEST} is too large")
        manifest = self.read_json(MANIFEST)
        format_ = manifest.get("format") if isinstance(manifest, dict) else None
        if format_ != FORMAT:
            raise InputError(
                f"{self.path}: {MANIFEST} says format {format_!r}; this creamtea reads {FORMAT!r}"
            )
        try:
            return _MANIFEST.validate_python(manifest)
        except ValidationError:
            raise InputError(f"{self.path}: {MANIFEST} is not as creamtea bundle writes it") from None

    def _check_files(self) -> None:
        files = self.manifest.files
        packed = set(self._zip.namelist()) - {MANIFEST}
        for name in sorted(packed ^ files.keys()):
            why = "the manifest does not list it" if name in packed else "it is missing"
            raise InputError(f"{self.path}: {name}: {why}; the bundle was changed after it was packed")
        for name, facts in files.items():
            content = self.read(name)
            if (sha256(content), len(content)) != (facts.sha256, facts.bytes):
                raise InputError(
                    f"{self.path}: {name} is not the file that was packed (its SHA-256 is "
                    f"{sha256(content)}, the manifest's {facts.sha256})"
                )


def parse_lines(content: bytes, place: str) -> list[Any]:
    """Parse JSON Lines; InputError with the line."""
    lines = content.split(b"\n")
    if not lines[-1]:  # nothing follows the last line's end, or the file is empty
        lines.pop()
    return [parse_json(line, f"{place}, line {number}") for number, line in enumerate(lines, start=1)]


@dataclass(frozen=True)
class Difference:
    """A stored and a recomputed value that differ.

    `place`: the file, then the place in it. NOTHING stands for a missing value.
    """

    place: str
    stored: Any
    recomputed: Any
