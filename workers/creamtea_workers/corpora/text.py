"""The user's text as one clean line per sentence.

Input is plain or gzip files (distinguished by their first bytes, not their names) in strict UTF-8, with lines
ended by `\\n` only (real corpora have U+0085 and U+2028 inside lines, which `str.splitlines` takes for line
ends). Output is described at `normalise`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from creamtea.errors import StepError

_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PART = 1 << 20  # bytes
_ALSO_WHITE = str.maketrans("\0\u2581", "  ")


def normalise(line: str) -> str:
    """NFC, and white space made plain: every run of Unicode white space (tab, carriage return, no-break and
    ideographic space, U+0085, U+2028 …) becomes one blank, and is removed at the ends. NUL (which PostgreSQL
    cannot store) and U+2581 (with which SentencePiece marks blanks) count as white space. Idempotent."""
    return unicodedata.normalize("NFC", " ".join(line.translate(_ALSO_WHITE).split()))


def move_span(line: str, span: tuple[int, int]) -> tuple[int, int]:
    """Where the characters [from, to) of `line` are in `normalise(line)`."""
    start, end = span
    # a letter after the prefix keeps the blank before the span, which `normalise` would strip
    return len(normalise(line[:start] + "x")) - 1, len(normalise(line[:end]))


@dataclass(frozen=True)
class UserFile:
    """A file of the user: `name` as the study gives it, `path` on this machine, and the sha256 that its
    unpacked content had when the study was planned."""

    name: str
    path: Path
    digest: str

    @classmethod
    def find(cls, name: str, locations: Mapping[str, str], digests: Mapping[str, str]) -> UserFile:
        return cls(name=name, path=Path(locations[name]), digest=digests[name])

    def parts(self) -> Iterator[bytes]:
        """The content, unpacked, part by part, for files too large for memory. StepError if it cannot be
        read; and, after the last part, if it has changed since planning."""
        digest = hashlib.sha256()
        try:
            with self.path.open("rb") as raw:
                packed = raw.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
                raw.seek(0)
                file = gzip.GzipFile(fileobj=raw) if packed else raw
                while part := file.read(_PART):
                    digest.update(part)
                    yield part
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise StepError(f"{self.name} is a damaged gzip file ({error}): copy it again") from error
        except OSError as error:
            raise StepError(
                f"{self.name} cannot be read ({error.strerror}): the data folder must be visible, under the "
                "same path, to every machine that runs steps"
            ) from error
        if digest.hexdigest() != self.digest:
            raise StepError(
                f"{self.name} has changed since the study was planned: run the study again, "
                "so that it is planned with the new file"
            )

    def lines(self) -> list[str]:
        """The lines as they are, without line ends. StepError names a line that is not UTF-8."""
        rows = b"".join(self.parts()).removeprefix(_BYTE_ORDER_MARK).split(b"\n")
        if rows[-1] == b"":
            rows.pop()  # what follows the last line end is not a line
        lines = []
        for number, row in enumerate(rows, start=1):
            try:
                lines.append(row.decode("utf-8"))
            except UnicodeDecodeError as error:
                raise StepError(
                    f"{self.name}, line {number}: not valid UTF-8 (byte {error.start + 1} of the line); "
                    "convert the file to UTF-8"
                ) from error
        return lines


def write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def read_lines(path: Path) -> list[str]:
    """Lines that `write_lines` wrote."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def read_split(corpus: Path, split: Literal["train", "dev"]) -> tuple[list[str], list[str]]:
    """The source and target sides that a corpus step left."""
    return read_lines(corpus / f"{split}.src"), read_lines(corpus / f"{split}.tgt")


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON Lines file of another step. Lines end in `\\n` only: a text may hold other line
    breaks. StepError where the file is missing."""
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    except FileNotFoundError:
        raise StepError(f"{path.name} is missing from the outputs of an earlier step") from None


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))
