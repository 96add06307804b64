"""Plug-ins: installed distributions that add methods, rating protocols and formats by entry points."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Plugin:
    """The distribution that a kind comes from."""

    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}".rstrip()


@dataclass(frozen=True)
class BrokenPlugin:
    kind: str  # the name of its entry point
    plugin: Plugin
    reason: str


@dataclass(frozen=True)
class Additions(Generic[T]):
    """The kinds that plug-ins add to a group of entry points."""

    kinds: dict[str, T]
    plugins: dict[str, Plugin]
    broken: list[BrokenPlugin]


def installed(group: str) -> EntryPoints:
    """Return the entry points of `group`, read once per `sys.path`.

    A running process does not see a distribution that is installed meanwhile.
    """
    return _on_path(group, tuple(sys.path))


@lru_cache(maxsize=32)
def _on_path(group: str, path: tuple[str, ...]) -> EntryPoints:
    """Read the entry points; cached, as each look-up reads the metadata of all distributions."""
    return entry_points(group=group)


def additions(group: str, built_in: Collection[str], checked: Callable[[str, Any], T]) -> Additions[T]:
    """Load the kinds that entry points of `group` add; an entry point is named after its kind.

    `checked` returns what is kept for a kind and its entry point's object, or raises an error that says what
    is wrong with it. A kind that is built in, or that several plug-ins have, is broken too.
    """
    points = sorted(installed(group), key=lambda point: point.name)
    added: Additions[T] = Additions({}, {}, [])
    for point in points:
        plugin = plugin_of(point)
        try:
            if point.name in built_in:
                raise ValueError("creamtea itself has this kind, which is used")
            owners = [plugin_of(other).distribution for other in points if other.name == point.name]
            if len(owners) > 1:
                raise ValueError(f"it comes from {' and '.join(owners)}: uninstall all but one")
            added.kinds[point.name] = checked(point.name, point.load())
            added.plugins[point.name] = plugin
        except Exception as error:  # whatever a plug-in's import raises must not stop creamtea
            added.broken.append(BrokenPlugin(point.name, plugin, f"{type(error).__name__}: {error}"))
    return added


def plugin_of(point: EntryPoint) -> Plugin:
    if point.dist is None:  # one that was not read from the environment
        return Plugin(point.value, "")
    return Plugin(point.dist.name, point.dist.version)
