"""CSV and JSON Lines with a place for every value: file, line and column.

Both are UTF-8 (a byte order mark before a CSV is taken, none is written). A record of a CSV ends with CR LF
(RFC 4180) and may hold line ends inside quotes; a record of JSON Lines is one line. Columns may come in any
order; unknown, missing and repeated ones are refused, not guessed.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from creamtea.document.mistakes import one_of
from creamtea.document.strict_json import parse_json
from creamtea.errors import InputError
from creamtea.human.formats.columns import Column
from creamtea.regular import decode, lines_of
from creamtea.wording import counted, file_name

Model = TypeVar("Model", bound=BaseModel)
MAX_CELL = 2**27  # characters; the csv module's own limit is 2**17, less than a text may have


@dataclass(frozen=True)
class Place:
    """Where something stands (of several lines the first), for messages."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}"

    def column(self, name: str) -> str:
        return f"{self}, column {name}"

    def refuse(self, column: str, found: Any, allowed: str) -> InputError:
        """What is wrong with the value of a column."""
        shown = "nothing" if found is None else repr(found)
        return InputError(f"{self.column(column)}: found {shown}; allowed: {allowed}")

    def read(self, model: type[Model], value: Any, what: str) -> Model:
        """A JSON value as a model has it."""
        try:
            return model.model_validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, (what, *first["loc"])))
            raise InputError(f"{self}: {where}: {first['msg']}") from None


@dataclass(frozen=True)
class Record:
    """The checked values of a line."""

    place: Place
    values: dict[str, Any]


# ---------------------------------------------------------------- writing


def csv_text(columns: Mapping[str, Column], rows: Iterable[object], file: str) -> str:
    """`rows`: with an attribute for each column."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(columns)
    for line, row in enumerate(rows, start=2):
        writer.writerow(
            column.encode_cell(getattr(row, name), f"{file}, record {line}, column {name}")
            for name, column in columns.items()
        )
    return out.getvalue()


def jsonl_text(columns: Mapping[str, Column], rows: Iterable[object], file: str) -> str:
    return "".join(
        f"{json.dumps(encoded(columns, row, f'{file}, line {line}'), ensure_ascii=False, allow_nan=False)}\n"
        for line, row in enumerate(rows, start=1)
    )


def json_text(columns: Mapping[str, Column], row: object, file: str) -> str:
    return json.dumps(encoded(columns, row, file), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def encoded(columns: Mapping[str, Column], row: object, place: str) -> dict[str, Any]:
    """The JSON values of these columns. InputError for what no file can hold."""
    return {
        name: column.encode(getattr(row, name), f"{place}, column {name}") for name, column in columns.items()
    }


# ---------------------------------------------------------------- reading


def read_text(path: Path) -> str:
    """Read a file's text as `regular.decode` does. InputError: no such file, not text, not UTF-8."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{file_name(path)}: {error.strerror or error}; give a file that can be read"
        ) from None
    return decode(content, path.name, "save it as UTF-8 (iconv -t UTF-8)")


def text_lines(path: Path) -> list[str]:
    """The lines of a text file without their ends. InputError as `read_text`."""
    return lines_of(read_text(path))


def read_records(
    path: Path, kind: str, columns: Mapping[str, Column], required: Collection[str] | None = None
) -> list[Record]:
    """Every record of a file, `kind` csv or jsonl. `required` (all by default) names the columns that must be
    there.

    Raises InputError with file, line, column, what was found and what is allowed.
    """
    return (_read_csv if kind == "csv" else _read_jsonl)(path, columns, required)


def _read_csv(path: Path, columns: Mapping[str, Column], required: Collection[str] | None) -> list[Record]:
    records = csv_records(path)
    try:
        line, header = next(records)
    except StopIteration:
        raise InputError(f"{path.name}: an empty file; its first line names the columns") from None
    if (wrong := other_separator(header, columns)) is not None:
        raise InputError(f"{path.name}, line {line}: {wrong}")
    _check_names(f"{path.name}, line {line}", header, columns, required)
    read = []
    for line, cells in records:
        if len(cells) != len(header):
            raise InputError(
                f"{path.name}, line {line}: found {counted(len(cells), 'cell')}; allowed: {len(header)}, as "
                "the first line has"
            )
        place = Place(path.name, line)
        values = {
            name: columns[name].decode_cell(cell, place.column(name))
            for name, cell in zip(header, cells, strict=True)
        }
        read.append(Record(place, values))
    return read


def other_separator(cells: list[str], allowed: Collection[object]) -> str | None:
    """Say that something else than commas separates a line's cells, if that is so; `allowed`: names of
    columns, or numbers of cells."""
    for separator, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        parts = separator.join(cells).split(separator)  # a comma may be the decimal one
        known = len(cells) == 1 or len(parts) in allowed or any(part.strip('" ') in allowed for part in parts)
        if len(parts) > len(cells) and known:
            return (
                f"{name} between the cells; save the file with commas (in a spreadsheet: save as CSV, and "
                "choose the comma as field separator; decimal numbers have a point)"
            )
    return None


def csv_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The cells of a CSV without the checks of columns: (line, cells); blank lines are left out."""
    csv.field_size_limit(MAX_CELL)
    text = read_text(path)
    reader = csv.reader(io.StringIO(text, newline="\n"), strict=True)
    while True:
        line = reader.line_num + 1  # where the record begins
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"{path.name}, line {line}: {_not_csv(text, error)}") from None
        if cells:
            yield line, cells


def _not_csv(text: str, error: csv.Error) -> str:
    """What is wrong with a text, and what to do."""
    if "\r" in text.replace("\r\n", ""):
        return (
            "a carriage return (CR) that ends a line, or stands in a cell without quotes: lines of a CSV end "
            "with LF or CR LF; save the file anew, as CSV with Unix or Windows line ends"
        )
    return f"not CSV: {error}; put the cell into quotes, and double those in it"


def _read_jsonl(path: Path, columns: Mapping[str, Column], required: Collection[str] | None) -> list[Record]:
    lines = ((Place(path.name, number), line) for number, line in enumerate(text_lines(path), start=1))
    return [Record(place, _decoded_json(str(place), line, columns, required)) for place, line in lines]


def read_json(path: Path, columns: Mapping[str, Column]) -> dict[str, Any]:
    """A file that is one JSON object with these keys; InputError as `read_records`."""
    return _decoded_json(path.name, read_text(path), columns)


def _decoded_json(
    place: str, text: str, columns: Mapping[str, Column], required: Collection[str] | None = None
) -> dict[str, Any]:
    values = parse_json(text, place)
    if not isinstance(values, dict):
        raise InputError(
            f"{place}: found no JSON object; allowed: an object with the keys {', '.join(columns)}"
        )
    return decoded(place, values, columns, required)


def decoded(
    place: str,
    values: Mapping[str, Any],
    columns: Mapping[str, Column],
    required: Collection[str] | None = None,
) -> dict[str, Any]:
    """The values of a JSON object with these columns. InputError as `read_records`."""
    _check_names(place, list(values), columns, required)
    return {name: columns[name].decode(value, f"{place}, column {name}") for name, value in values.items()}


def _check_names(
    place: str, names: list[str], columns: Mapping[str, Column], required: Collection[str] | None
) -> None:
    for name in names:
        if name not in columns:
            if required is None or len(required) == len(columns):
                allowed = f"allowed: {one_of(columns, name)}"
            else:
                like = get_close_matches(name, columns, n=1, cutoff=0.75)
                allowed = f"needed: {', '.join(required)} and a score (value, step or payload)"
                allowed += f"; did you mean {like[0]}?" if like else "; docs/exchange.md has the others"
            raise InputError(f"{place}, column {name}: found an unknown column; {allowed}")
        if names.count(name) > 1:
            raise InputError(f"{place}, column {name}: found twice; allowed: each column once")
    for name in columns if required is None else required:
        if name not in names:
            raise InputError(f"{place}, column {name}: missing; needed: {', '.join(required or columns)}")
