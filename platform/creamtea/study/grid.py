"""Grids: a list instead of a single value in a variant or system makes one entry per value.

    variants:
      scones:
        objective: {kind: scones, alpha: [0.2, 0.5]}      # scones+alpha=0.2 and scones+alpha=0.5
    systems:
      scones-beam:
        variant: scones                                   # both of them, times the two widths
        search: {kind: beam, width: [4, 8]}               # scones-beam+alpha=0.2+width=4, …

Several lists make the cartesian product, in the order of the file, the last list varying fastest. Grids are
expanded in the raw document, before validation; `Expansion.origin` maps a place in the expanded document to
the place in the file.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from creamtea.document.mistakes import KeyPath, Mistake, shown

GRID_KEYS = {
    "variants": ("objective", "architecture", "nvs", "training"),
    "systems": ("selection", "search", "precision"),
}
# lists of names in `systems`, `latency`, `analyses` and `campaigns`, and the sections of these names
NAME_LISTS = {
    "systems": "systems",
    "baselines": "systems",
    "more_baselines": "systems",
    "variants": "variants",
    "baseline_variants": "variants",
}
MAX_MEMBERS = 1000


@dataclass(frozen=True)
class Axis:
    path: KeyPath  # inside the variant or system: ("objective", "alpha")
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Choice:
    """One value of an axis."""

    path: KeyPath
    index: int
    value: Any


@dataclass(frozen=True)
class Member:
    """One combination of a grid. An entry without lists is the only member, with its own name."""

    name: str
    value: Any
    choices: tuple[Choice, ...]  # from its own lists, without its variant's


@dataclass
class Expansion:
    """A raw document with its grids expanded.

    `groups["variants"]["scones"]` lists the members of a grid; entries without lists are not in `groups`.
    """

    data: dict[str, Any]
    groups: dict[str, dict[str, list[str]]] = field(default_factory=lambda: {"variants": {}, "systems": {}})
    choices: dict[str, tuple[Choice, ...]] = field(default_factory=dict)  # by variant
    moved: dict[KeyPath, KeyPath] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)  # with paths in the document as written

    def origin(self, path: KeyPath) -> KeyPath:
        """Return where the value at `path` of the expanded document stands in the file."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.moved:
                return self.moved[path[:length]] + path[length:]
        return path


def expand(data: dict[str, Any]) -> Expansion:
    """Expand the grids of a raw document; malformed parts are left for the validation to report."""
    result = Expansion(dict(data))
    for section in GRID_KEYS:
        if isinstance(data.get(section), dict):
            result.data[section] = {}
            for name, entry in data[section].items():
                for member in _members(result, section, name, entry):
                    _add(result, section, name, member)
    _expand_names(result)
    return result


def _add(result: Expansion, section: str, written: str, member: Member) -> None:
    """Put a member of the entry `written` into the expanded document."""
    if member.name in result.data[section]:
        found = f"{written}, which makes a second {member.name}"
        result.mistakes.append(Mistake((section, written), found, "each name once"))
        return
    result.data[section][member.name] = member.value
    if member.name != written:
        result.groups[section].setdefault(written, []).append(member.name)
        result.moved[(section, member.name)] = (section, written)
    for choice in member.choices:
        moved = (section, written, *choice.path, choice.index)
        result.moved[(section, member.name, *choice.path)] = moved
    if section == "variants":
        result.choices[member.name] = member.choices


def _members(result: Expansion, section: str, name: str, entry: Any) -> Iterator[Member]:
    if not isinstance(entry, dict):
        yield Member(name, entry, ())
        return
    axes: list[Axis] = []
    for axis in _axes(entry, [key for key in entry if key in GRID_KEYS[section]]):
        if mistake := _axis_mistake((section, name), axis):
            result.mistakes.append(mistake)
            entry = _with(entry, axis.path, next(iter(axis.values), None))  # so that the rest can be checked
        else:
            axes.append(axis)
    variant = entry.get("variant") if section == "systems" else None
    grid = result.groups["variants"].get(variant) if isinstance(variant, str) else None
    variants: list[Any] = [variant] if grid is None else list(grid)
    count = len(variants) * math.prod(len(axis.values) for axis in axes)
    if count > MAX_MEMBERS:
        found = f"a grid of {count:,}"
        result.mistakes.append(Mistake((section, name), found, f"at most {MAX_MEMBERS:,} members"))
        axes, variants = [Axis(axis.path, axis.values[:1]) for axis in axes], variants[:1]
    for chosen in variants:
        inherited = () if grid is None else result.choices[chosen]
        for indices in itertools.product(*(range(len(axis.values)) for axis in axes)):
            choices = tuple(
                Choice(axis.path, i, axis.values[i]) for axis, i in zip(axes, indices, strict=True)
            )
            value = entry if grid is None else {**entry, "variant": chosen}
            for choice in choices:
                value = _with(value, choice.path, choice.value)
            yield Member(name + _label([*inherited, *choices]), value, choices)


def _axes(value: Any, keys: Sequence[str], path: KeyPath = ()) -> Iterator[Axis]:
    for key in keys:
        inner = value.get(key)
        if isinstance(inner, list):
            yield Axis((*path, key), tuple(inner))
        elif isinstance(inner, dict):
            yield from _axes(inner, list(inner), (*path, key))


def _axis_mistake(entry: KeyPath, axis: Axis) -> Mistake | None:
    path = (*entry, *axis.path)
    if not axis.values:
        return Mistake(path, "an empty list", "one value, or a list of values", settled=True)
    seen = set()
    for value in axis.values:
        if isinstance(value, (dict, list)):
            allowed = "single values in a list; write one entry for each block"
            return Mistake(path, f"{shown(value)} in a list", allowed, settled=True)
        typed = (type(value), value)  # True is not 1
        if typed in seen:
            return Mistake(path, f"{shown(value)} twice in a list", "each value once")
        seen.add(typed)
    return None


def _with(entry: dict[str, Any], path: KeyPath, value: Any) -> dict[str, Any]:
    """Copy the entry with one value replaced; shared parts are never changed."""
    head, rest = path[0], path[1:]
    assert isinstance(head, str)
    return {**entry, head: _with(entry[head], rest, value) if rest else value}


def _label(choices: Sequence[Choice]) -> str:
    """Return `+alpha=0.2+width=4`; if two axes have the same name, blocks are added (`+search.width=4`)."""
    names = Counter(choice.path[-1] for choice in choices)
    label = ""
    for choice in choices:
        name = str(choice.path[-1])
        if names[name] > 1:
            name = ".".join(str(part) for part in choice.path)
        value = "none" if choice.value is None else str(choice.value)
        value = value.lower() if isinstance(choice.value, bool) else value
        label += f"+{name}={re.sub(r'[^A-Za-z0-9._-]', '_', value)[:40]}"
    return label


def _expand_names(result: Expansion) -> None:
    """Replace the name of a grid in a list of names by the names of its members."""
    latency = result.data.get("latency")
    if isinstance(latency, dict):
        result.data["latency"] = _with_members(result, ("latency",), latency)
    for section in ("systems", "analyses", "campaigns"):
        entries = result.data.get(section)
        if isinstance(entries, dict):
            result.data[section] = {
                name: _with_members(result, (section, name), entry) if isinstance(entry, dict) else entry
                for name, entry in entries.items()
            }


def _with_members(result: Expansion, path: KeyPath, block: dict[str, Any]) -> dict[str, Any]:
    """Return `block`, which stands at `path`, with grids in its lists replaced by their members."""
    written = result.origin(path)
    for key, section in NAME_LISTS.items():
        if not isinstance(block.get(key), list):
            continue
        names: list[Any] = []
        for index, name in enumerate(block[key]):
            members = result.groups[section].get(name, [name]) if isinstance(name, str) else [name]
            for member in members:
                result.moved[(*path, key, len(names))] = (*written, key, index)
                names.append(member)
        block = {**block, key: names}
    return block
