"""What planning must know of a user's text file, in one streaming pass."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path

BLOCK = 1 << 20  # bytes
GZIP_MAGIC = b"\x1f\x8b"


class UnreadableFile(Exception):
    """Says what is wrong with the file and what to do."""


@dataclass(frozen=True)
class TextFacts:
    """Of the text, that is after decompression: so a text and its gzip have one digest."""

    digest: str  # sha256
    lines: int  # split on \n only; a last line without \n counts
    blank: bool  # nothing but white space
    invalid_line: int | None  # the first line (from 1) that is not UTF-8


def scan(path: Path) -> TextFacts:
    """Read a plain or gzip file once, in constant memory. Raises UnreadableFile."""
    sha256 = hashlib.sha256()
    decoder = codecs.getincrementaldecoder("utf-8")()
    newlines, size, last, blank = 0, 0, b"\n", True
    invalid_line: int | None = None
    decoded_newlines = 0  # up to what the decoder has not yet decided
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == GZIP_MAGIC
            raw.seek(0)
            with gzip.open(raw) if zipped else raw as file:
                while block := file.read(BLOCK):
                    sha256.update(block)
                    newlines += block.count(b"\n")
                    size += len(block)
                    last = block[-1:]
                    blank = blank and not block.strip()
                    if invalid_line is None:
                        invalid_line = _first_invalid_line(decoder, block, decoded_newlines)
                    decoded_newlines = newlines
    except FileNotFoundError:
        raise UnreadableFile("no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableFile(f"a broken gzip file ({error})") from None
    except OSError as error:
        raise UnreadableFile(f"a file that cannot be read ({error.strerror})") from None
    lines = newlines + (last != b"\n")
    if invalid_line is None and decoder.getstate()[0]:  # ends within a character
        invalid_line = lines
    return TextFacts(sha256.hexdigest(), lines, blank, invalid_line)


def _first_invalid_line(decoder: codecs.IncrementalDecoder, block: bytes, newlines: int) -> int | None:
    """Feed a block; the line of its first invalid byte, after `newlines` earlier ones."""
    held = decoder.getstate()[0]  # the head of a character that began in the block before
    assert isinstance(held, bytes)
    try:
        decoder.decode(block)
    except UnicodeDecodeError as error:
        return newlines + (held + block).count(b"\n", 0, error.start) + 1
    return None
