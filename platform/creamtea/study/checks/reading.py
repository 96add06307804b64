"""Reading a raw document of which any part may be malformed, and mistakes that several checks make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from creamtea.document.mistakes import KeyPath, Mistake, one_of, shown

T = TypeVar("T")
Groups = dict[str, dict[str, list[str]]]  # the members of grids: section, grid (`creamtea.study.grid`)

WHAT = {
    "corpora": "a corpus",
    "subwords": "subwords",
    "variants": "a variant",
    "systems": "a system",
    "test_sets": "a test set",
}


def blocks(data: dict[str, Any], section: str) -> Iterator[tuple[str, dict[str, Any]]]:
    entries = data.get(section)
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        if isinstance(entry, dict):
            yield name, entry


def named(data: dict[str, Any], section: str, name: Any) -> dict[str, Any] | None:
    return dict(blocks(data, section)).get(name) if isinstance(name, str) else None


def kind_of(block: Any) -> str:
    """The `kind` of a block; empty for what is malformed."""
    kind = block.get("kind") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


def parsed(kind: type[T] | Any, value: Any) -> T | None:
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return None


def known(
    data: dict[str, Any],
    groups: Groups,
    path: tuple[str, ...],
    entry: dict[str, Any],
    key: str,
    section: str,
) -> Iterator[Mistake]:
    """A mistake where `entry[key]` names nothing in the section."""
    yield from known_name(data, groups, (*path, key), entry.get(key), section)


def known_name(
    data: dict[str, Any], groups: Groups, path: KeyPath, value: Any, section: str
) -> Iterator[Mistake]:
    """A mistake at `path` where `value` names nothing in the section."""
    names = data.get(section)
    if not isinstance(value, str) or not isinstance(names, dict) or value in names:
        return
    grids = groups.get(section, {})
    if members := grids.get(value):
        yield Mistake(path, f"{shown(value)}, a grid", one_of(members, what="one of its members"))
    else:
        yield Mistake(path, shown(value), one_of(written_names(names, grids), value, WHAT[section]))


def known_names(
    data: dict[str, Any], groups: Groups, path: KeyPath, values: Any, section: str
) -> Iterator[Mistake]:
    """The same for a list of names, each once and at least one."""
    if not isinstance(values, list):
        return
    yield from repeated(values, path)
    for index, value in enumerate(values):
        yield from known_name(data, groups, (*path, index), value, section)
    if not values:
        yield Mistake(path, "an empty list", f"names ({WHAT[section]} each), or no list for all of them")


def written_names(names: Iterable[str], grids: dict[str, list[str]]) -> list[str]:
    """The names as in the file: a grid by its own name, not by those of its members."""
    grid_of = {member: grid for grid, members in grids.items() for member in members}
    return list(dict.fromkeys(grid_of.get(name, name) for name in names))


def repeated(values: Any, path: KeyPath) -> Iterator[Mistake]:
    for index, value in enumerate(values if isinstance(values, list) else []):
        if any(value == other and type(value) is type(other) for other in values[:index]):
            yield Mistake((*path, index), f"{shown(value)} twice", "each once")
