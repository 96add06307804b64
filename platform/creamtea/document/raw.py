"""A study's raw document, of which any part may be malformed, and the mistakes that several checks find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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

    Checks read it rather than the validated study, so that they find their mistakes even where another part
    is malformed; what a check cannot read it skips, since the validation reports it.
    """

    data: Block
    groups: Groups

    def blocks(self, section: str) -> Iterator[tuple[str, Block]]:
        """The well-formed entries of a section, by name."""
        entries = self.data.get(section)
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            if isinstance(entry, dict):
                yield name, entry

    def named(self, section: str, name: Any) -> Block | None:
        entries = self.data.get(section)
        entry = entries.get(name) if isinstance(entries, dict) and isinstance(name, str) else None
        return entry if isinstance(entry, dict) else None

    def members(self, section: str, name: str) -> list[str]:
        """The names of the grid that `name` is a member of; the name alone where there is no grid."""
        grids = self.groups.get(section, {}).values()
        return next((members for members in grids if name in members), [name])

    def chain(self, section: str, name: str, key: str, otherwise: Any = None) -> list[str]:
        """The names from `name` on, each the `key` of the one before, or `otherwise`: to the end, or to
        the first that comes again, which is then the last."""
        names = [name]
        while names[-1] not in names[:-1]:
            then = (self.named(section, names[-1]) or {}).get(key, otherwise)
            if not isinstance(then, str):
                break
            names.append(then)
        return names

    # ------------------------------------------------------------ mistakes

    def unknown_key(self, path: KeyPath, entry: Block, key: str, section: str) -> Iterator[Mistake]:
        """A mistake if `entry[key]` names nothing in the section."""
        yield from self.unknown_name((*path, key), entry.get(key), section)

    def unknown_name(self, path: KeyPath, value: Any, section: str) -> Iterator[Mistake]:
        """A mistake at `path` if `value` names nothing in the section."""
        names = self.data.get(section)
        if not isinstance(value, str) or not isinstance(names, dict) or value in names:
            return
        grids = self.groups.get(section, {})
        if members := grids.get(value):
            yield Mistake(path, f"{shown(value)}, a grid", one_of(members, what="one of its members"))
        else:
            yield Mistake(path, shown(value), one_of(written_names(names, grids), value, NOUNS[section]))

    def unknown_names(self, path: KeyPath, values: Any, section: str) -> Iterator[Mistake]:
        """The same for a list of names, each once and at least one."""
        if not isinstance(values, list):
            return
        yield from repeated(values, path)
        for index, value in enumerate(values):
            yield from self.unknown_name((*path, index), value, section)
        if not values:
            allowed = f"names ({NOUNS[section]} each), or no list for all of them"
            yield Mistake(path, "an empty list", allowed)


def kind_of(block: Any) -> str:
    """The `kind` of a block; empty for what is malformed."""
    kind = block.get("kind") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


def parsed(model: type[T] | Any, value: Any) -> T | None:
    """The value as a model of that type or a kind of that family of methods; None if it is malformed."""
    try:
        result: T = _adapter(model).validate_python(value)
        return result
    except ValidationError:
        return None


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def written_names(names: Iterable[str], grids: dict[str, list[str]]) -> list[str]:
    """The names as in the file: a grid by its own name, not by those of its members."""
    grid_of = {member: grid for grid, members in grids.items() for member in members}
    return list(dict.fromkeys(grid_of.get(name, name) for name in names))


def target_language(study: RawStudy) -> str:
    """Its code; empty where the study does not say it."""
    languages = study.data.get("languages")
    code = languages.get("target") if isinstance(languages, dict) else ""
    return code if isinstance(code, str) else ""


def repeated(values: Any, path: KeyPath) -> Iterator[Mistake]:
    """Mistakes at the values of a list that are there before; not of blocks and lists, which are malformed
    where this is asked."""
    seen = set()
    for index, value in enumerate(values if isinstance(values, list) else []):
        if isinstance(value, str | int | float | None):
            if (one := (type(value), value)) in seen:
                yield Mistake((*path, index), f"{shown(value)} twice", "each once")
            seen.add(one)
