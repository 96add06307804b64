"""What planning must know of a user's text file."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import zlib
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from creamtea.files import HEAD, open_regular, other_than_text, unpacked

BLOCK = 1 << 20  # bytes


class UnreadableFile(Exception):
    """Says what is there instead of a readable file."""


@dataclass(frozen=True)
class TextFacts:
    digest: str  # sha256 of the unpacked content, which a worker compares (`corpora.text.UserFile`)
    lines: int  # of the unpacked text, split on \n only; a last line without \n counts
    blank: bool  # nothing but white space
    invalid_line: int | None  # the first line (from 1) that is not UTF-8


def scan(path: Path) -> TextFacts:
    """Read a plain or gzip file, in constant memory. Raises UnreadableFile."""
    newlines, blank, last = 0, True, b"\n"
    invalid: int | None = None
    digest = hashlib.sha256()
    decoder = codecs.getincrementaldecoder("utf-8")()  # a character may end in the next block
    try:
        with open_regular(path) as file:
            text = unpacked(file)
            start = text.read(HEAD)
            if what := other_than_text(start)[0]:
                raise UnreadableFile(what)
            for block in chain([start], iter(lambda: text.read(BLOCK), b"")):
                digest.update(block)
                try:
                    decoder.decode(block)
                except UnicodeDecodeError as error:
                    if invalid is None:
                        invalid = newlines + error.object.count(b"\n", 0, error.start) + 1
                if block is start:
                    block = block.removeprefix(codecs.BOM_UTF8)  # which is no text
                newlines += block.count(b"\n")
                blank = blank and not block.strip()
                last = block[-1:] or last
    except FileNotFoundError:
        raise UnreadableFile("no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableFile(f"a damaged gzip file ({error})") from None
    except OSError as error:
        raise UnreadableFile(f"a file that cannot be read ({error.strerror})") from None
    lines = newlines + (last != b"\n")
    if invalid is None and decoder.getstate()[0]:  # the text ends inside a character
        invalid = lines
    return TextFacts(digest.hexdigest(), lines, blank, invalid)
