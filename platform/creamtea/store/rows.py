"""Read rows and their numbers, and check which values can be stored."""

from __future__ import annotations

import json
import math
import re
from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def from_row(kind: type[T], row: Any, **others: Any) -> T:
    """Make a dataclass from the row's columns of the same names; `others`: the fields without a column."""
    names = [field.name for field in fields(kind) if field.name not in others]  # type: ignore[arg-type]
    return kind(**{name: getattr(row, name) for name in names}, **others)


MAX_ID = 2**31 - 1  # the largest number in a column of ids


def row_id(text: str) -> int | None:
    """Read the number of a row; None if the text is not one."""
    if not (text.isascii() and text.isdigit() and len(text) < 11):
        return None
    return number if (number := int(text)) <= MAX_ID else None


# Both databases and every export format can hold a value that passes these checks.
MAX_PAYLOAD = 100_000  # characters of an answer as JSON


def check_text(text: str) -> str:
    """Return the text; ValueError if it has a NUL or half of a surrogate pair."""
    if "\0" in text:
        raise ValueError("with a NUL character")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("with half of a surrogate pair")
    return text


def check_address(text: str) -> str:
    """Return the text if it is empty or an https address; otherwise raise ValueError."""
    if text and not (len(text) <= 500 and text.isprintable() and re.fullmatch(r"https://[^\s/?#]+\S*", text)):
        raise ValueError("not an address with https://")
    return text


def check_json(value: Any) -> None:
    """Raise ValueError for a value that is not JSON, or that cannot be stored."""
    if isinstance(value, str):
        check_text(value)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("with a number that is not finite")
    elif isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str):
                raise ValueError(f"with the key {key!r}, which is not text")
            check_text(key)
            check_json(part)
    elif isinstance(value, list):
        for part in value:
            check_json(part)
    elif not (value is None or isinstance(value, bool | int)):
        raise ValueError(f"with a {type(value).__name__}, which is not JSON")


def check_size(value: Any) -> None:
    """Raise ValueError for an answer larger than MAX_PAYLOAD, or nested too deeply to be written."""
    try:
        check_json(value)
        size = len(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        raise ValueError("an answer is nested too deeply") from None
    if size > MAX_PAYLOAD:
        raise ValueError(f"an answer has {size:,} characters; at most {MAX_PAYLOAD:,} are allowed")
