"""Plug-ins: installed distributions that add methods, rating protocols and formats by entry points."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any, Generic, TypeVar

from creamtea.errors import InputError

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
        except (Exception, SystemExit) as error:  # a plug-in's import must not stop creamtea
            added.broken.append(BrokenPlugin(point.name, plugin, f"{type(error).__name__}: {error}"))
    return added


def plugin_of(point: EntryPoint) -> Plugin:
    if point.dist is None:  # one that was not read from the environment
        return Plugin(point.value, "")
    return Plugin(point.dist.name, point.dist.version)


@dataclass(frozen=True)
class Registry(Generic[T]):
    """Objects of one class by their names: `own` of creamtea, and those that entry points of `group` lead to.

    An entry point leads to such an object, or to its class. `check` raises an error for one that is broken.
    """

    group: str
    base: type[T]
    own: Mapping[str, T]
    check: Callable[[T], None] = lambda _: None

    def names(self) -> tuple[str, ...]:
        """Return creamtea's names, then those of plug-ins, working or not. No plug-in is loaded."""
        return (*self.own, *sorted({point.name for point in installed(self.group)} - set(self.own)))

    def added(self) -> Additions[T]:
        return additions(self.group, self.own, self._checked)

    def usable(self) -> dict[str, T]:
        """Return all by their names, but for those of plug-ins that are broken."""
        return {**self.own, **self.added().kinds}

    def find(self, name: str, called: str, about: str = "") -> T:
        """Return the object of this name.

        InputError, in which `called` names what was asked for, if it is unknown or its plug-in is broken.
        """
        if name in self.own:
            return self.own[name]
        added = self.added()
        if name in added.kinds:
            return added.kinds[name]
        for broken in added.broken:
            if broken.kind == name:
                raise InputError(
                    f"{called} of {broken.plugin} cannot be used ({broken.reason}): update the plug-in or "
                    "uninstall it",
                    about=about,
                )
        raise InputError(
            f"{called}: it is one of {', '.join(self.names())}; a plug-in may add others (entry-point group "
            f"{self.group})",
            about=about,
        )

    def _checked(self, name: str, loaded: Any) -> T:
        found = loaded() if isinstance(loaded, type) else loaded
        if not isinstance(found, self.base) or getattr(found, "name", None) != name:
            raise TypeError(f"it is not a {self.base.__name__} whose name is {name!r}")
        self.check(found)
        return found
