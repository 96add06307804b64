"""The file of a bundle: a ZIP archive with a manifest that has the SHA-256 of every other file in it.

Equal contents give equal bytes (with one version of zlib): files in the order of their names, without times.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Self

from pydantic import ConfigDict, StrictInt, TypeAdapter, ValidationError

from creamtea.document.strict_json import parse_json
from creamtea.errors import InputError
from creamtea.replacing import replacing
from creamtea.unzip import UNREADABLE

FORMAT = "creamtea bundle 1"
MANIFEST = "manifest.json"
MAX_FILES = 100_000
MAX_BYTES = 4 << 30  # unpacked
MAX_MANIFEST = 64 << 20
FIRST_DATE = (1980, 1, 1, 0, 0, 0)  # of ZIP
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
    """What manifest.json says. `versions`: of what computes; `left_out`: settings that were emptied."""

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


def listed(files: Mapping[str, bytes]) -> dict[str, PackedFile]:
    """The files as a manifest lists them."""
    return {name: PackedFile(sha256(content), len(content)) for name, content in sorted(files.items())}


def write_archive(files: Mapping[str, bytes], path: Path) -> None:
    """`files`: with their manifest. InputError where the archive cannot be written, or would be too large to
    be read; nothing of it is left then."""
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
    """An archive whose files are those of its manifest. Nothing is unpacked to a path that it names.

    InputError for what is no such archive: truncated, too large, with a path that leaves it, with a file
    that the manifest does not list, lacks or gives another SHA-256.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._asked: set[str] = set()
        try:
            self._zip = zipfile.ZipFile(path)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}; give a bundle that can be read") from None
        except UNREADABLE as error:
            raise InputError(
                f"{path}: not a whole ZIP archive ({error}); was it copied completely? Get it again"
            ) from None
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
        """The files of the manifest that nobody has asked for."""
        return [name for name in self.names() if name not in self._asked]

    def read(self, name: str) -> bytes:
        """A file of the manifest. InputError for one that is not there, or damaged."""
        self._asked.add(name)
        try:
            return self._zip.read(name)
        except KeyError:
            raise InputError(f"{self.path}: {name} is missing: this bundle is not whole") from None
        except (*UNREADABLE, OSError) as error:  # OSError: of bzip2, too
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
                raise InputError(f"{self.path}: {entry.filename} is there twice")
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
        there = set(self._zip.namelist()) - {MANIFEST}
        for name in sorted(there ^ files.keys()):
            why = "the manifest does not list it" if name in there else "it is missing"
            raise InputError(f"{self.path}: {name}: {why}; the bundle was changed after it was packed")
        for name, facts in files.items():
            content = self.read(name)
            if (sha256(content), len(content)) != (facts.sha256, facts.bytes):
                raise InputError(
                    f"{self.path}: {name} is not the file that was packed (its SHA-256 is "
                    f"{sha256(content)}, the manifest's {facts.sha256})"
                )


def parse_lines(content: bytes, place: str) -> list[Any]:
    """The values of JSON Lines. InputError with the line."""
    lines = content.split(b"\n")
    if not lines[-1]:  # behind the last line's end; all there is of an empty file
        lines.pop()
    return [parse_json(line, f"{place}, line {number}") for number, line in enumerate(lines, start=1)]
