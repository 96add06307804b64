"""JSON as RFC 8259 has it: no NaN, no infinity; and no key twice, of which the last would win unnoticed."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from creamtea.errors import InputError


def parse_json(text: str | bytes, place: str) -> Any:
    """The value in a text. InputError with `place`, for bytes that are not UTF-8 too."""
    try:
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=_different)
    except RecursionError:
        raise InputError(f"{place}: not JSON: nested too deeply") from None
    except ValueError as error:  # not JSON, or a whole number of more digits than Python converts
        raise InputError(f"{place}: not JSON: {error}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _different(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key is there twice")
    return values
