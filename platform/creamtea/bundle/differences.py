"""Where two JSON values differ: each place by the names that a reader knows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# what other processors and versions of NumPy may change in the last digits of a sum
RELATIVE, ABSOLUTE = 1e-9, 1e-12
CONTAINERS = ("sections", "blocks", "rows", "cells", "figures", "entries", "tables")
NAMES = ("key", "name", "label", "title")
NOTHING = "(not there)"


@dataclass(frozen=True)
class Difference:
    """`place`: file, then what of it. A value that is not there is NOTHING."""

    place: str
    stored: Any
    recomputed: Any


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def same(stored: Any, recomputed: Any) -> bool:
    if is_number(stored) and is_number(recomputed):
        return math.isclose(stored, recomputed, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return type(stored) is type(recomputed) and bool(stored == recomputed)


def differences(stored: Any, recomputed: Any, place: str) -> Iterator[Difference]:
    if isinstance(stored, dict) and isinstance(recomputed, dict):
        for name in [*stored, *(name for name in recomputed if name not in stored)]:
            inner = place if name in CONTAINERS else f"{place}/{name}"
            yield from differences(stored.get(name, NOTHING), recomputed.get(name, NOTHING), inner)
    elif isinstance(stored, list) and isinstance(recomputed, list):
        for number in range(max(len(stored), len(recomputed))):
            pair = [values[number] if number < len(values) else NOTHING for values in (stored, recomputed)]
            yield from differences(pair[0], pair[1], f"{place}/{_label(pair, number)}")
    elif not same(stored, recomputed):
        yield Difference(place, stored, recomputed)


def numbers(value: Any, place: str = "") -> dict[str, float]:
    """All numbers by their places. Elements of a list that have no name, or one that came before, are told
    apart by their number."""
    if is_number(value):
        return {place: value}
    inner: dict[str, Any] = dict(value) if isinstance(value, dict) else {}
    if isinstance(value, list):
        for number, item in enumerate(value):
            name = _label([item], number)
            inner[f"{name} ({number + 1})" if name in inner else name] = item
    found: dict[str, float] = {}
    for name, item in inner.items():
        found |= numbers(item, place if name in CONTAINERS else f"{place}/{name}".lstrip("/"))
    return found


def _label(pair: list[Any], number: int) -> str:
    """Of an element of a list: its name where it has one, else its number from 1."""
    return next(filter(None, map(_name, pair)), str(number + 1))


def _name(element: Any) -> str:
    for name in NAMES if isinstance(element, dict) else ():
        if isinstance(element.get(name), str) and element[name]:
            return " ".join(filter(None, [element[name], element.get("setting")]))
    return ""


def count_numbers(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(count_numbers, value.values()))
    if isinstance(value, list):
        return sum(map(count_numbers, value))
    return int(is_number(value))
