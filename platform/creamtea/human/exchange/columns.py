"""The kinds of values in an export: how each is written in a CSV cell and in JSON, and what is allowed.

Text in a CSV cell: a spreadsheet takes a cell that begins with = + - @ (or a tab or carriage return) for a
formula and may run it. Such a text is written with an apostrophe before it, and so is one that begins with
apostrophes and then one of these; reading takes one apostrophe away from exactly those. Every text comes back
as it was. JSON has no such trouble, and no apostrophes are added there.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from creamtea.errors import InputError
from creamtea.human.protocols import GROUP, protocol_names
from creamtea.human.storable import check_json, check_text

MAX_INTEGER = 2**31 - 1  # of an INTEGER column
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_APOSTROPHE = re.compile(r"'+[=+\-@\t\r]")
_SHOWN = 60  # characters of a wrong value in a message


@dataclass(frozen=True)
class Kind:
    """`from_json` gives the value or raises ValueError; `from_cell` makes a JSON value of a CSV cell."""

    allowed: str
    from_json: Callable[[Any], Any]
    from_cell: Callable[[str], Any]
    to_json: Callable[[Any], Any] = lambda value: value
    to_cell: Callable[[Any], str] = str
    optional: bool = False  # None is null in JSON and an empty cell in CSV

    def decode(self, written: Any, place: str) -> Any:
        """The value of what JSON holds. InputError with `place`, what was found and what is allowed."""
        if written is None and self.optional:
            return None
        try:
            return self.from_json(written)
        except ValueError as error:
            raise InputError(f"{place}: {_reason(error, written)}; allowed: {self.allowed}") from None

    def decode_cell(self, cell: str, place: str) -> Any:
        if cell == "" and self.optional:
            return None
        try:
            return self.from_json(self.from_cell(cell))
        except ValueError as error:
            raise InputError(f"{place}: {_reason(error, cell)}; allowed: {self.allowed}") from None

    def encode(self, value: Any, place: str) -> Any:
        """What JSON gets. InputError where the value cannot be stored and read back (a NUL, say)."""
        if value is None and self.optional:
            return None
        written = self.to_json(value)
        self.decode(written, place)
        return written

    def encode_cell(self, value: Any, place: str) -> str:
        written = self.encode(value, place)
        return "" if written is None else self.to_cell(written)


def _reason(error: ValueError, written: Any) -> str:
    shown = repr(written)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    return f"found {shown}{f', {error}' if str(error) else ''}"


# ---------------------------------------------------------------- text


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return check_text(value)


def _name(value: Any) -> str:
    if not _text(value).strip():
        raise ValueError
    return str(value)


def _protocol(value: Any) -> str:
    if value not in protocol_names():
        raise ValueError
    return str(value)


def text_to_cell(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) else text


def text_from_cell(cell: str) -> str:
    return cell[1:] if _APOSTROPHE.match(cell) else cell


def one_of(values: tuple[str, ...]) -> Kind:
    def check(value: Any) -> str:
        if value not in values:
            raise ValueError
        return str(value)

    return Kind(f"one of {', '.join(values)}", check, text_from_cell, to_cell=text_to_cell)


# ---------------------------------------------------------------- numbers, flags, moments


def _integer(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_INTEGER:
        raise ValueError
    return value


def _integer_cell(cell: str) -> Any:
    return int(cell) if re.fullmatch(r"[0-9]{1,10}", cell) else cell


def _long(value: Any) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise ValueError
    return value


def _weight(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    if not math.isfinite(value) or value < 0:
        raise ValueError
    return float(value)


def _weight_cell(cell: str) -> Any:
    try:
        return float(cell)
    except ValueError:
        return cell


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _flag_cell(cell: str) -> Any:
    return {"true": True, "false": False}.get(cell, cell)


def _moment(value: Any) -> datetime:
    if not isinstance(value, str):
        raise ValueError
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError from None


def _moment_json(value: datetime) -> str:
    return value.astimezone(UTC).isoformat()


# ---------------------------------------------------------------- lists and documents


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError
    return tuple(_text(text) for text in value)


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or len(set(map(str, value))) != len(value):
        raise ValueError
    return tuple(_name(name) for name in value)


def _document(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError
    check_json(value)
    return value


def _document_cell(cell: str) -> Any:
    try:
        return json.loads(text_from_cell(cell))
    except (ValueError, RecursionError):
        return cell


def _document_to_cell(value: dict[str, Any]) -> str:
    return text_to_cell(json.dumps(value, ensure_ascii=False, allow_nan=False))


def _no_cell(cell: str) -> Any:
    raise NotImplementedError("lists are written to JSON files only")


def optional(kind: Kind) -> Kind:
    return Kind(
        f"{kind.allowed}, or none", kind.from_json, kind.from_cell, kind.to_json, kind.to_cell, optional=True
    )


TEXT = Kind("text without NUL", _text, text_from_cell, to_cell=text_to_cell)
NAME = Kind("a name: text that is not blank", _name, text_from_cell, to_cell=text_to_cell)
PROTOCOL = Kind(
    f"a protocol of creamtea, or of a plug-in that is installed ({GROUP})",
    _protocol,
    text_from_cell,
    to_cell=text_to_cell,
)
INTEGER = Kind(f"a whole number from 0 to {MAX_INTEGER}", _integer, _integer_cell)
LONG = Kind("a whole number of 64 bits", _long, _no_cell)
WEIGHT = Kind("a finite number, 0 or more", _weight, _weight_cell, to_cell=repr)
FLAG = Kind("true or false", _flag, _flag_cell, to_cell=lambda value: "true" if value else "false")
MOMENT = Kind(
    "a moment with its offset, as 2026-03-01T09:30:00+00:00", _moment, lambda cell: cell, _moment_json
)
TEXTS = Kind("a list of texts without NUL", _texts, _no_cell, to_json=list)
NAMES = Kind("a list of different names, at least one", _names, _no_cell, to_json=list)
DOCUMENT = Kind(
    "a JSON object without NUL, NaN or infinity", _document, _document_cell, to_cell=_document_to_cell
)
