"""A study's raw document, any part of which may be malformed, and mistakes that several checks look for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from creamtea.document.mistakes import KeyPath, Mistake, one_of, shown

T = TypeVar("T")
Block = dict[str, Any]
Groups = dict[str, dict[str, list[str]]]  # the members of grids: section, grid (`creamtea.study.grid`)

NOUNS = {
    "corpora": "a corpus",
    "subwords": "subwords",
    "variants": "a variant",
    "systems": "a system",
    "test_sets": "a test set",
}


@dataclass(frozen=True)
class RawStudy:
    """A study as written, with its grids expanded.

    Checks read it rather than the validated study, so that they find their mistakes even if another part is
    malformed. A check skips what it cannot read: the validation reports that.
    """

    data: Block
    groups: Groups

    def blocks(self, section: str) -> Iterator[tuple[str, Block]]:
        """Yield the well-formed entries of a section, by name."""
        entries = self.data.get(section)
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            if isinstance(entry, dict):
                yield name, entry

    def named(self, section: str, name: Any) -> Block | None:
        entries = self.data.get(section)
        entry = entries.get(name) if isinstance(entries, dict) and isinstance(name, str) else None
        return entry if isinstance(entry, dict) else None

    def members(self, section: str, name: str) -> list[str]:
        """Return the members of the grid that `name` belongs to, or the name alone if there is no grid."""
        grids = self.groups.get(section, {}).values()
        return next((members for members in grids if name in members), [name])

    def chain(self, section: str, name: str, key: str, otherwise: Any = None) -> list[str]:
        """Follow `key` (or `otherwise`) from block to block; return the names passed, `name` first.

        The chain stops at a block without the key, or at the first name that occurs a second time, which is
        then the last of the list.
        """
        names, seen = [name], set[str]()
        while names[-1] not in seen:
            seen.add(names[-1])
            then = (self.named(section, names[-1]) or {}).get(key, otherwise)
            if not isinstance(then, str):
                break
            names.append(then)
        return names

    # ------------------------------------------------------------ mistakes

    def unknown_key(self, path: KeyPath, entry: Block, key: str, section: str) -> Iterator[Mistake]:
        """Yield a mistake if `entry[key]` names nothing in the section."""
        yield from self.unknown_name((*path, key), entry.get(key), section)

    def unknown_name(self, path: KeyPath, value: Any, section: str) -> Iterator[Mistake]:
        """Yield a mistake at `path` if `value` names nothing in the section."""
        names = self.data.get(section)
        if not isinstance(value, str) or not isinstance(names, dict) or value in names:
            return
        grids = self.groups.get(section, {})
        if members := grids.get(value):
            yield Mistake(path, f"{shown(value)}, a grid", one_of(members, what="one of its members"))
        else:
            # as in the file: a grid by its own name, not by those of its members
            grid_of = {member: grid for grid, listed in grids.items() for member in listed}
            written: dict[str, None] = dict.fromkeys(grid_of.get(str(name), str(name)) for name in names)
            yield Mistake(path, shown(value), one_of(written, value, NOUNS[section]))

    def unknown_names(self, path: KeyPath, values: Any, section: str) -> Iterator[Mistake]:
        """Check a list of names: each known, each once, at least one."""
        if not isinstance(values, list):
            return
        yield from repeated(values, path)
        for index, value in enumerate(values):
            yield from self.unknown_name((*path, index), value, section)
        if not values:
            allowed = f"names ({NOUNS[section]} each), or no list for all of them"
            yield Mistake(path, "an empty list", allowed)


def kind_of(block: Any) -> str:
    """Return the `kind` of a block, or "" if the block is malformed."""
    kind = block.get("kind") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


def parsed(model: type[T] | Any, value: Any) -> T | None:
    """Parse `value` as `model`, a type or a family of methods; return None if it is malformed."""
    try:
        result: T = _adapter(model).validate_python(value)
        return result
    except ValidationError:
        return None


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def target_language(study: RawStudy) -> str:
    """Return the code of the target language, or "" if the study does not state it."""
    languages = study.data.get("languages")
    code = languages.get("target") if isinstance(languages, dict) else ""
    return code if isinstance(code, str) else ""


def repeated(values: Any, path: KeyPath) -> Iterator[Mistake]:
    """Yield a mistake for each value of a list that occurs before it.

    Blocks and lists are skipped: they are malformed in the lists that this function checks.
    """
    seen = set()
    for index, value in enumerate(values if isinstance(values, list) else []):
        if isinstance(value, str | int | float | None):
            typed = (type(value), value)  # True is not 1
            if typed in seen:
                yield Mistake((*path, index), f"{shown(value)} twice", "each once")
            seen.add(typed)
