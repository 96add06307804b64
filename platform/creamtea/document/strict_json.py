"""JSON in two strict forms: read as RFC 8259 has it, and written canonically for digests.

Reading refuses NaN, infinity and repeated keys, of which the last would win unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NoReturn

from creamtea.errors import InputError


def parse_json(text: str | bytes, place: str) -> Any:
    """Parse a text; InputError with `place` if it is not JSON, or bytes are not UTF-8."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_without_repeated_keys)
    except RecursionError:
        raise InputError(f"{place}: not JSON: nested too deeply") from None
    except ValueError as error:  # not JSON, or a whole number of more digits than Python converts
        raise InputError(f"{place}: not JSON: {error}") from None


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key is there twice")
    return values


def canonical(value: Any) -> str:
    """Write JSON with sorted keys, no spaces, plain UTF-8 and floats by `repr`.

    Equal content gives equal text on every machine. ValueError for NaN and infinity.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """Return the sha256 of the canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()
