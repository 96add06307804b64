"""What planning must know of a user's text file, in one streaming pass."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

BLOCK = 1 << 20  # bytes
GZIP_MAGIC = b"\x1f\x8b"


class UnreadableFile(Exception):
    """Says what is there instead of a readable file."""


@dataclass(frozen=True)
class TextFacts:
    digest: str  # sha256 of the file as it lies there, packed or not
    lines: int  # of the unpacked text, split on \n only; a last line without \n counts
    blank: bool  # nothing but white space
    invalid_line: int | None  # the first line (from 1) that is not UTF-8


class _HashingReader:
    """Passes on what it reads, and hashes it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self.sha256.update(block)
        return block


def scan(path: Path) -> TextFacts:
    """Read a plain or gzip file once, in constant memory. Raises UnreadableFile."""
    lines = _LineCounter()
    try:
        with path.open("rb") as file:
            is_gzip = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
            file.seek(0)
            reader = _HashingReader(file)
            for block in _blocks(reader, is_gzip):
                lines.add(block)
    except FileNotFoundError:
        raise UnreadableFile("no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableFile(f"a damaged gzip file ({error})") from None
    except OSError as error:
        raise UnreadableFile(f"a file that cannot be read ({error.strerror})") from None
    return lines.facts(reader.sha256.hexdigest())


def _blocks(reader: _HashingReader, is_gzip: bool) -> Iterator[bytes]:
    if not is_gzip:
        while block := reader.read(BLOCK):
            yield block
        return
    with gzip.GzipFile(fileobj=cast(IO[bytes], reader), mode="rb") as unpacked:
        while block := unpacked.read(BLOCK):
            yield block


class _LineCounter:
    """Takes a text in blocks; a character may begin in one block and end in the next."""

    def __init__(self) -> None:
        self._newlines = 0
        self._last = b"\n"
        self._blank = True
        self._invalid_line: int | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def add(self, block: bytes) -> None:
        if self._invalid_line is None:
            self._decode(block)
        self._newlines += block.count(b"\n")
        self._last = block[-1:]
        self._blank = self._blank and not block.strip()

    def _decode(self, block: bytes) -> None:
        held = self._decoder.getstate()[0]  # the head of a character; it holds no \n
        try:
            self._decoder.decode(block)
        except UnicodeDecodeError as error:
            self._invalid_line = self._newlines + (held + block).count(b"\n", 0, error.start) + 1

    def facts(self, digest: str) -> TextFacts:
        lines = self._newlines + (self._last != b"\n")
        ends_inside = self._invalid_line is None and bool(self._decoder.getstate()[0])
        return TextFacts(digest, lines, self._blank, lines if ends_inside else self._invalid_line)
