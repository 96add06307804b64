"""Values of rows: which ones can be stored, and how they are read and numbered."""

from __future__ import annotations

import json
import math
import re
from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def from_row(kind: type[T], row: Any, **others: Any) -> T:
    """A dataclass with the row's columns of its fields' names; `others` are the fields that have none."""
    names = [field.name for field in fields(kind) if field.name not in others]  # type: ignore[arg-type]
    return kind(**{name: getattr(row, name) for name in names}, **others)


# Numbers of rows, as people and addresses write them.


MAX_ID = 2**31 - 1  # the largest that a column of the database holds


def row_id(text: str) -> int | None:
    """The number of a row that is written there; None for what is none."""
    if not (text.isascii() and text.isdigit() and len(text) < 11):
        return None
    return number if (number := int(text)) <= MAX_ID else None


# What both databases and every export can hold: text and JSON without what one of them refuses.


MAX_PAYLOAD = 100_000  # characters of an answer as JSON


def check_text(text: str) -> str:
    """The text itself; ValueError for a NUL and for half of a surrogate pair."""
    if "\0" in text:
        raise ValueError("with a NUL character")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("with half of a surrogate pair")
    return text


def check_address(text: str) -> str:
    """The text if it is empty or an address with https://; ValueError."""
    if text and not (len(text) <= 500 and text.isprintable() and re.fullmatch(r"https://[^\s/?#]+\S*", text)):
        raise ValueError("not an address with https://")
    return text


def check_json(value: Any) -> None:
    """ValueError for what is not JSON, or has text or numbers in it that cannot be stored."""
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
    """ValueError for an answer that is larger than MAX_PAYLOAD, or nested too deeply to be written."""
    try:
        check_json(value)
        size = len(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        raise ValueError("an answer is nested too deeply") from None
    if size > MAX_PAYLOAD:
        raise ValueError(f"an answer has {size:,} characters; at most {MAX_PAYLOAD:,} are allowed")
