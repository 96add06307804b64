"""The columns of an export: the values of each, and their form in a CSV cell and in JSON.

The dataclasses of `human.record` and `rating_rows` have types with the allowed values, and `columns_of` makes
columns of their fields.

Text in a CSV cell never becomes a spreadsheet's formula (`creamtea.printable`). JSON does not need the added
apostrophes.

Files are UTF-8 (a byte order mark before a CSV is read, but not written). A record of a CSV ends with CR LF
(RFC 4180) and may have line ends inside quotes; a record of JSON Lines is one line. Columns may come in any
order; unknown, missing and repeated columns are refused, not guessed.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError

from creamtea.document.mistakes import one_of
from creamtea.document.values import parse_json
from creamtea.errors import InputError
from creamtea.files import decode, lines_of
from creamtea.printable import text_from_cell, text_to_cell
from creamtea.wording import counted, file_name

_NUMBER = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SHOWN = 60  # characters of a wrong value in a message


# ---------------------------------------------------------------- columns
class Column:
    """Reads and writes the values of a type; None, if the type allows it, is null or an empty cell."""

    def __init__(self, annotation: Any) -> None:
        self._optional = type(None) in get_args(annotation)
        value, *metadata = get_args(get_args(annotation)[0] if self._optional else annotation)
        self._python = get_origin(value) or value
        self._adapter = TypeAdapter[Any](annotation)
        (allowed,) = [text for text in metadata if isinstance(text, str)]
        self.allowed = f"{allowed}, or none" if self._optional else allowed

    def decode(self, written: Any, place: str) -> Any:
        """Return the value that JSON holds; InputError with `place`, what was found and is allowed."""
        return self._checked(written, written, place)

    def decode_cell(self, cell: str, place: str) -> Any:
        written = None if cell == "" and self._optional else _from_cell(self._python, cell)
        return self._checked(written, cell, place)

    def encode(self, value: Any, place: str) -> Any:
        """Return a value for JSON; InputError if it could not be stored and read back (a NUL, say)."""
        if isinstance(value, datetime):
            value = value.astimezone(UTC).isoformat()
        elif isinstance(value, tuple):
            value = list(value)
        self.decode(value, place)
        return value

    def encode_cell(self, value: Any, place: str) -> str:
        match self.encode(value, place):
            case None:
                return ""
            case bool() as written:
                return "true" if written else "false"
            case int() | float() as written:
                return repr(written)
            case str() as written:
                # a number, such as -5.0, is not a formula: it stays a number for every reader
                return written if _NUMBER.fullmatch(written) else text_to_cell(written)
            case written:
                return text_to_cell(json.dumps(written, ensure_ascii=False, allow_nan=False))

    def _checked(self, written: Any, found: Any, place: str) -> Any:
        try:
            return self._adapter.validate_python(written)
        except ValidationError as error:
            reason = str(error.errors()[0].get("ctx", {}).get("error", ""))
        shown = repr(found)
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
        raise InputError(
            f"{place}: found {shown}{', ' if reason else ''}{reason}; allowed: {self.allowed}"
        ) from None


def columns_of(rows: type, leave_out: Sequence[str] = ()) -> dict[str, Column]:
    """Return a column for each field of a dataclass, in their order."""
    hints = get_type_hints(rows, include_extras=True)
    return {name: Column(hint) for name, hint in hints.items() if name not in leave_out}


# ---------------------------------------------------------------- cells


def _from_cell(python: type, cell: str) -> Any:
    """Return the JSON value of a cell of this Python type; else the cell itself."""
    if python is bool:
        return {"true": True, "false": False}.get(cell.lower(), cell)  # a spreadsheet writes TRUE
    if python is int:
        return int(cell) if re.fullmatch(r"-?[0-9]{1,10}", cell) else cell
    try:
        if python is float:
            return float(cell) if _NUMBER.fullmatch(cell) else cell
        return json.loads(text_from_cell(cell)) if python is dict else text_from_cell(cell)
    except (ValueError, RecursionError):
        return cell


def moment_of(seconds: str | float) -> datetime:
    """Return the moment this many seconds after the beginning of 1970. ValueError if there is none."""
    try:
        return datetime.fromtimestamp(float(seconds), UTC)
    except (OverflowError, OSError):
        raise ValueError from None


Model = TypeVar("Model", bound=BaseModel)
MAX_CELL = 2**27  # characters; the csv module's own limit is 2**17, less than a text may have


@dataclass(frozen=True)
class Place:
    """A line of a file (the first of several), for messages."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}"

    def column(self, name: str) -> str:
        return f"{self}, column {name}"

    def refuse(self, column: str, found: Any, allowed: str) -> InputError:
        """Return an InputError about the value of a column."""
        shown = "nothing" if found is None else repr(found)
        return InputError(f"{self.column(column)}: found {shown}; allowed: {allowed}")

    def read(self, model: type[Model], value: Any, what: str) -> Model:
        """Parse a JSON value as a model; InputError with the place and the key."""
        try:
            return model.model_validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in (what, *first["loc"]) if part not in ("int", "str"))
            why = first["msg"].removeprefix("Value error, ") or "not an allowed value"
            raise InputError(f"{self}: {where}: found {repr(first['input'])[:60]}; {why}") from None


@dataclass(frozen=True)
class CheckedLine:
    """The checked values of a line, by column."""

    place: Place
    values: dict[str, Any]


# ---------------------------------------------------------------- writing
def csv_text(columns: Mapping[str, Column], rows: Iterable[object], file: str) -> str:
    """Return rows as CSV; a row is an object with an attribute for each column."""
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


def encoded(columns: Mapping[str, Column], row: object, place: str) -> dict[str, Any]:
    """Return the JSON values of these columns; InputError for a value that no file can hold."""
    return {
        name: column.encode(getattr(row, name), f"{place}, column {name}") for name, column in columns.items()
    }


# ---------------------------------------------------------------- reading
def read_text(path: Path) -> str:
    """Read a file's text (`creamtea.files.decode`). InputError: no such file, not text, not UTF-8."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{file_name(path)}: {error.strerror or error}; give a file that can be read"
        ) from None
    return decode(content, path.name, "save it as UTF-8 (iconv -t UTF-8)")


def text_lines(path: Path) -> list[str]:
    """Return the lines of a text file without their ends; InputError as in `read_text`."""
    return lines_of(read_text(path), path.name)


def read_records(
    path: Path, kind: str, columns: Mapping[str, Column], required: Collection[str]
) -> list[CheckedLine]:
    """Read every record of a file; `kind` is csv or jsonl.

    `required` names the columns that must be present. InputError with file, line, column, what was found and
    what is allowed.
    """
    return (_read_csv if kind == "csv" else _read_jsonl)(path, columns, required)


def _read_csv(path: Path, columns: Mapping[str, Column], required: Collection[str]) -> list[CheckedLine]:
    records = csv_records(path)
    try:
        line, header = next(records)
    except StopIteration:
        raise InputError(f"{path.name}: an empty file; its first line names the columns") from None
    if (wrong := other_separator(header, columns)) is not None:
        raise InputError(f"{path.name}, line {line}: {wrong}")
    header = [name if (name := column_name(cell)) in columns else cell for cell in header]
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
        read.append(CheckedLine(place, values))
    return read


def column_name(cell: str) -> str:
    """Return the name of a column in this module's form, without blanks and in lower case."""
    return cell.strip(' "').lower()


def other_separator(cells: list[str], allowed: Collection[object]) -> str | None:
    """Return a message if another character than a comma separates a line's cells; None otherwise.

    `allowed`: names of columns, or numbers of cells.
    """
    for separator, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        parts = separator.join(cells).split(separator)  # a comma may be a decimal comma
        known = (
            len(cells) == 1 or len(parts) in allowed or any(column_name(part) in allowed for part in parts)
        )
        if len(parts) > len(cells) and known:
            return (
                f"{name} between the cells; save the file with commas (in a spreadsheet: save as CSV, and "
                "choose the comma as field separator; decimal numbers have a point)"
            )
    return None


def csv_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of a CSV without checking its columns.

    Additions of spreadsheets are skipped: a first line that names the separator (sep=,), and empty lines and
    empty last columns.
    """
    csv.field_size_limit(MAX_CELL)
    text = read_text(path)
    reader = csv.reader(io.StringIO(text, newline="\n"), strict=True)
    records, first_line = [], 1
    try:
        for cells in reader:
            if any(cells):
                records.append((first_line, cells))
            first_line = reader.line_num + 1
    except csv.Error as error:
        why = f"not CSV: {error}; put the cell into quotes, and double those in it"
        if "\r" in text.replace("\r\n", ""):
            why = (
                "a carriage return (CR) that ends a line, or stands in a cell without quotes: lines of a CSV "
                "end with LF or CR LF; save the file anew, as CSV with Unix or Windows line ends"
            )
        raise InputError(f"{path.name}, line {first_line}: {why}") from None
    if records and is_separator_line(",".join(records[0][1])):
        del records[0]
    width = max((at for _, cells in records for at, cell in enumerate(cells, start=1) if cell), default=0)
    yield from ((line, cells[:width]) for line, cells in records)


def is_separator_line(line: str) -> bool:
    """Return True for a line that tells spreadsheets the separator of the other lines: sep=;"""
    return re.fullmatch(r'"?sep=.?"?', line.strip()) is not None


def _read_jsonl(path: Path, columns: Mapping[str, Column], required: Collection[str]) -> list[CheckedLine]:
    lines = ((Place(path.name, number), line) for number, line in enumerate(text_lines(path), start=1))
    objects = [(place, parse_json(line, str(place))) for place, line in lines if line.strip()]
    if len(objects) == 1 and isinstance(objects[0][1], list):  # pandas writes records so, by default
        entries = enumerate(objects[0][1], start=1)
        objects = [(Place(f"{path.name}, entry {number}", 1), value) for number, value in entries]
    return [CheckedLine(place, decoded(str(place), value, columns, required)) for place, value in objects]


def read_json(path: Path, columns: Mapping[str, Column]) -> dict[str, Any]:
    """Read a file that is one JSON object with these keys; InputError as in `read_records`."""
    return decoded(path.name, parse_json(read_text(path), path.name), columns)


def decoded(
    place: str, values: Any, columns: Mapping[str, Column], required: Collection[str] | None = None
) -> dict[str, Any]:
    """Return the values of a JSON object with these columns; InputError as in `read_records`.

    By default all columns are required.
    """
    if not isinstance(values, dict):
        raise InputError(
            f"{place}: found no JSON object; allowed: an object with the keys {', '.join(columns)}"
        )
    _check_names(place, list(values), columns, columns if required is None else required)
    return {name: columns[name].decode(value, f"{place}, column {name}") for name, value in values.items()}


def _check_names(
    place: str, names: list[str], columns: Mapping[str, Column], required: Collection[str]
) -> None:
    for name in names:
        if name not in columns:
            if len(required) == len(columns):
                allowed = f"allowed: {one_of(columns, name)}"
            else:
                like = get_close_matches(name, columns, n=1, cutoff=0.75)
                allowed = f"needed: {', '.join(required)} and a score (value, step or payload)"
                allowed += f"; did you mean {like[0]}?" if like else "; docs/exchange.md has the others"
            called = f"column {name}" if name.strip() else f"column {names.index(name) + 1}, without a name"
            raise InputError(f"{place}, {called}: found an unknown column; {allowed}")
        if names.count(name) > 1:
            raise InputError(f"{place}, column {name}: found twice; allowed: each column once")
    for name in required:
        if name not in names:
            raise InputError(f"{place}, column {name}: missing; needed: {', '.join(required)}")
