"""The user's text as one clean line per sentence.

Input is plain or gzip files (distinguished by their first bytes, not their names) in strict UTF-8, with lines
ended by `\\n` or `\\r\\n` only (real corpora have U+0085 and U+2028 inside lines, which `str.splitlines`
takes for line ends). Training text and the input of models are normalised (`creamtea.words.normalise`); texts
to score stay as they are (`creamtea.words.plain`).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from creamtea.errors import StepError
from creamtea.files import unpacked
from creamtea.methods.texts import in_column
from creamtea.words import main_language
from creamtea.words import normalise as normalise
from creamtea.words import plain as plain

if TYPE_CHECKING:
    from sacremoses import MosesDetokenizer

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PART = 1 << 20  # bytes
_CHARACTER = 4  # largest number of bytes of a character


def move_span(line: str, span: tuple[int, int]) -> tuple[int, int]:
    """Return where the characters [from, to) of `line` are in `normalise(line)`."""
    start, end = span
    # a letter after the prefix keeps the blank before the span, which `normalise` would strip
    return len(normalise(line[:start] + "x")) - 1, len(normalise(line[:end]))


def move_span_back(line: str, span: tuple[int, int]) -> tuple[int, int]:
    """Return where the characters [from, to) of `normalise(line)` are in `line`, which is plain."""
    if line == normalise(line):
        return span
    moved = [move_span(line, (start, start))[0] for start in range(len(line) + 1)]
    start, end = (max(n for n, place in enumerate(moved) if place <= wanted) for wanted in span)
    return start, end


def plain_line(text: str, name: str, number: int) -> str:
    """Return the plain text of a line. Raise StepError for a NUL character, which no database can store."""
    if "\0" in text:
        raise StepError(f"{name}, line {number}: the line has a NUL character (U+0000); remove it")
    return plain(text)


@dataclass(frozen=True)
class UserFile:
    """A file of the user.

    `name`: as in the study. `path`: on this machine. `digest`: sha256 of the unpacked content when the study
    was planned.
    """

    name: str
    path: Path
    digest: str

    @classmethod
    def find(cls, name: str, locations: Mapping[str, str], digests: Mapping[str, str]) -> UserFile:
        return cls(name=name, path=Path(locations[name]), digest=digests[name])

    def parts(self) -> Iterator[bytes]:
        """Yield the unpacked content part by part, for files too large for memory.

        Raises StepError if the file cannot be read, and after the last part if it has changed since planning.
        """
        digest = hashlib.sha256()
        try:
            with self.path.open("rb") as raw:
                file = unpacked(raw)
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

    def lines(self, column: int | None = None) -> Iterator[str]:
        """Yield each line, or the text in a column of each line, as it is, without the line end.

        Raises StepError at a line that is not UTF-8 or lacks the column.
        """
        for number, row in enumerate(self.rows(), start=1):
            yield self._text(_cells(row, column), number, column)

    def lines_within(self, longest: int, column: int | None = None) -> Iterator[str | None]:
        """Yield the texts as `lines` does, but None for a text of more than `longest` characters.

        Long texts are never in memory as a whole.
        """
        for number, row in enumerate(self.rows(longest, column), start=1):
            cells = _cells(row, column)
            too_long = [at for at, cell in enumerate(cells, start=1) if len(cell) > _CHARACTER * longest]
            if (column or 1) in too_long:
                yield None
                continue
            for at in too_long:  # other columns, perhaps cut within a character
                cells[at - 1] = b"-"
            text = self._text(cells, number, column, is_cut=bool(too_long))
            yield None if len(text) > longest else text

    def rows(self, longest: int | None = None, column: int | None = None) -> Iterator[bytes]:
        """Yield the lines as bytes, without LF or CR LF.

        With `longest`, texts with more bytes than so many characters can have are cut, and of columns after
        `column` anything may be missing.
        """
        rest, before = b"", _BYTE_ORDER_MARK
        for part in self.parts():
            *rows, rest = (rest + part).split(b"\n")
            for row in rows:
                yield row.removeprefix(before).removesuffix(b"\r")
                before = b""
            if longest is not None:
                most = len(before) + _CHARACTER * longest + len(b"x\r")
                cut = [cell[:most] for cell in _cells(rest, column)]
                ended = column is not None and rest.count(b"\t") >= column
                rest = b"\t".join(cut) + b"\t" * ended
        if rest := rest.removeprefix(before):
            yield rest.removesuffix(b"\r")  # text after the last line end is a line, unless it is empty

    def _text(self, cells: list[bytes], number: int, column: int | None, is_cut: bool = False) -> str:
        try:
            return in_column(b"\t".join(cells).decode("utf-8"), column)
        except UnicodeDecodeError as error:
            place = "" if is_cut else f" (byte {error.start + 1} of the line)"
            found = f"not valid UTF-8{place}; convert the file to UTF-8"
            raise StepError(f"{self.name}, line {number}: {found}") from error
        except ValueError as error:
            raise StepError(f"{self.name}, line {number}: {error}") from None


def _cells(row: bytes, column: int | None) -> list[bytes]:
    """Return the columns of a line up to `column`, or the whole line."""
    return [row] if column is None else row.split(b"\t", column)[:column]


def write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def iterate_lines(path: Path) -> Iterator[str]:
    """Yield the lines that `write_lines` wrote."""
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line[:-1]


def read_lines(path: Path) -> list[str]:
    """Read all lines at once, for text that is known to be small."""
    return list(iterate_lines(path))


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Read the objects of another step's JSON Lines file. Raise StepError if the file is missing.

    Lines end in `\\n` only: a text may hold other line breaks.
    """
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    except FileNotFoundError:
        raise StepError(f"{path.name} is missing from the outputs of an earlier step") from None


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))


# Moses' tokens and escapes, undone.
#
# Corpora of the WMT tradition come tokenised by Moses: punctuation and contractions stand apart (`don
# &apos;t`), and the characters that Moses' formats use are escaped: `&apos; &quot; &#91; &#93; &#124; &lt;
# &gt; &amp;`. Metrics and subwords need the original text. sacremoses has Moses' rules, which differ between
# languages, with their gaps: guillemets stay apart, and a currency sign is joined to the next word, as if to
# its number (`5 € oder` becomes `5 €oder`).


def detokenise(line: str, language: str) -> str:
    """Return the text of a line of Moses' tokens.

    `language` is a code such as `de` or `pt-BR`. Some languages have special rules (English contractions,
    French and Italian elisions, Czech, Finnish); the others share the general rules.
    """
    return _detokeniser(main_language(language)).detokenize(line.split())


@cache
def _detokeniser(language: str) -> MosesDetokenizer:
    from sacremoses import MosesDetokenizer  # slow to import, and most text has no such tokens

    return MosesDetokenizer(lang=language)
