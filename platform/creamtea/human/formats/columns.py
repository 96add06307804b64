"""The columns of an export: what each holds, and how it is written in a CSV cell and in JSON.

A column's type is an annotation of pydantic's with a text that says what is allowed. The dataclasses of
`content` and `rows` are made of these types, and `columns_of` makes columns of their fields.

Text in a CSV cell is no formula of a spreadsheet (`creamtea.spreadsheets`). JSON has no such trouble, and no
apostrophes are added there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, Field, PlainValidator, TypeAdapter, ValidationError

from creamtea.errors import InputError
from creamtea.human.media.files import check_entries
from creamtea.human.protocols import GROUP, protocol_names
from creamtea.human.protocols.registry import OWN
from creamtea.spreadsheets import text_from_cell, text_to_cell
from creamtea.store.item_kinds import ItemKind
from creamtea.store.storable import check_json, check_text
from creamtea.store.tables import CAMPAIGN_STATES

MAX_INTEGER = 2**31 - 1  # of an INTEGER column
_NUMBER = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SHOWN = 60  # characters of a wrong value in a message

# ---------------------------------------------------------------- types


def checked_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return check_text(value)


def checked_name(value: Any) -> str:
    if not checked_text(value).strip():
        raise ValueError
    return str(value)


def checked_whole(cell: str) -> int:
    """A whole number as other tools write it: digits."""
    if not re.fullmatch(r"[0-9]{1,10}", cell) or int(cell) > MAX_INTEGER:
        raise ValueError
    return int(cell)


def one_of(values: Callable[[], Sequence[str]]) -> PlainValidator:
    def check(value: Any) -> str:
        if value not in values():
            raise ValueError
        return str(value)

    return PlainValidator(check)


def _protocol(value: Any) -> str:
    # own names first: for those of plug-ins the metadata of every distribution is read, too slow for each row
    if not (isinstance(value, str) and (value in OWN or value in protocol_names())):
        raise ValueError
    return value


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


def _document(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError
    check_json(value)
    return value


def _media(entries: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    check_entries(entries)
    return entries


def _different(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) != len(names):
        raise ValueError
    return names


Text = Annotated[str, PlainValidator(checked_text), "text without NUL"]
Name = Annotated[str, PlainValidator(checked_name), "a name: text that is not blank"]
ProtocolName = Annotated[
    str, PlainValidator(_protocol), f"a protocol of creamtea, or of a plug-in that is installed ({GROUP})"
]
KindName = Annotated[str, one_of(lambda: tuple(ItemKind)), f"one of {', '.join(ItemKind)}"]
State = Annotated[str, one_of(lambda: CAMPAIGN_STATES), f"one of {', '.join(CAMPAIGN_STATES)}"]
Integer = Annotated[int, Field(strict=True, ge=0, le=MAX_INTEGER), f"a whole number from 0 to {MAX_INTEGER}"]
Segment = Annotated[
    int,
    Field(strict=True, ge=-1, le=MAX_INTEGER),
    f"a whole number from 0 to {MAX_INTEGER}, or -1 for practice and attention checks",
]
Long = Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63), "a whole number of 64 bits"]
Weight = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False), "a finite number, 0 or more"]
Flag = Annotated[bool, Field(strict=True), "true or false"]
Weights = Annotated[
    tuple[Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)], ...],
    "a list of finite numbers, 0 or more",
]
Flags = Annotated[tuple[Annotated[bool, Field(strict=True)], ...], "a list of true and false"]
Moment = Annotated[
    datetime, PlainValidator(_moment), "a moment with its offset, as 2026-03-01T09:30:00+00:00"
]
Texts = Annotated[tuple[Text, ...], "a list of texts without NUL"]
Names = Annotated[
    tuple[Name, ...],
    Field(min_length=1),
    AfterValidator(_different),
    "a list of different names, at least one",
]
MediaEntries = Annotated[
    tuple[dict[str, Any], ...],
    AfterValidator(_media),
    "a list of files beside the source: digest (SHA-256), type, description",
]
Document = Annotated[dict[str, Any], PlainValidator(_document), "a JSON object without NUL, NaN or infinity"]


# ---------------------------------------------------------------- columns


class Column:
    """Reads and writes the values of a type; where the type allows None, that is null or an empty cell."""

    def __init__(self, annotation: Any) -> None:
        self._optional = type(None) in get_args(annotation)
        value, *metadata = get_args(get_args(annotation)[0] if self._optional else annotation)
        self._python = get_origin(value) or value
        self._adapter = TypeAdapter[Any](annotation)
        (allowed,) = [text for text in metadata if isinstance(text, str)]
        self.allowed = f"{allowed}, or none" if self._optional else allowed

    def decode(self, written: Any, place: str) -> Any:
        """The value of what JSON holds. InputError with `place`, what was found and what is allowed."""
        return self._checked(written, written, place)

    def decode_cell(self, cell: str, place: str) -> Any:
        written = None if cell == "" and self._optional else _from_cell(self._python, cell)
        return self._checked(written, cell, place)

    def encode(self, value: Any, place: str) -> Any:
        """What JSON gets. InputError where the value cannot be stored and read back (a NUL, say)."""
        if isinstance(value, datetime):
            value = value.astimezone(UTC).isoformat()
        elif isinstance(value, tuple):
            value = list(value)
        self.decode(value, place)
        return value

    def encode_cell(self, value: Any, place: str) -> str:
        return _to_cell(self.encode(value, place))

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
    """A column for each field of a dataclass, in their order."""
    hints = get_type_hints(rows, include_extras=True)
    return {name: Column(hint) for name, hint in hints.items() if name not in leave_out}


# ---------------------------------------------------------------- cells


def _to_cell(written: Any) -> str:
    """The cell of a JSON value."""
    match written:
        case None:
            return ""
        case bool():
            return "true" if written else "false"
        case int() | float():
            return repr(written)
        case str():
            return text_to_cell(written)
    return text_to_cell(json.dumps(written, ensure_ascii=False, allow_nan=False))


def _from_cell(python: type, cell: str) -> Any:
    """The JSON value that a cell of this Python type holds; the cell itself where it holds none."""
    if python is bool:
        return {"true": True, "false": False}.get(cell, cell)
    if python is int:
        return int(cell) if re.fullmatch(r"-?[0-9]{1,10}", cell) else cell
    try:
        if python is float:
            return float(cell) if _NUMBER.fullmatch(cell) else cell
        return json.loads(text_from_cell(cell)) if python is dict else text_from_cell(cell)
    except (ValueError, RecursionError):
        return cell
