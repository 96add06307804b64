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
    kind: str  # the entry point's name
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

    A running process does not see distributions that are installed later.
    """
    return _select(tuple(sys.path))(group=group)


@lru_cache(maxsize=4)
def _select(path: tuple[str, ...]) -> Callable[..., EntryPoints]:
    """Return what selects entry points; cached, because it is made from the metadata of all distributions."""
    return entry_points().select


def additions(group: str, built_in: Collection[str], checked: Callable[[str, Any], T]) -> Additions[T]:
    """Load the kinds that entry points of `group` add; an entry point is named after its kind.

    `checked(kind, object)` returns the value to keep for an entry point's object, or raises an error that
    explains the mistake. A kind that is built in, or that several plug-ins have, is broken too.
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
    if point.dist is None:  # the entry point was not read from the environment
        return Plugin(point.value, "")
    return Plugin(point.dist.name, point.dist.version)


@dataclass(frozen=True)
class Registry(Generic[T]):
    """Objects of one class by name: creamtea's `built_in`, and those of plug-ins' entry points in `group`.

    An entry point leads to such an object, or to its class. `check` raises an error for a broken object.
    """

    group: str
    base: type[T]
    built_in: Mapping[str, T]
    check: Callable[[T], None] = lambda _: None

    def names(self) -> tuple[str, ...]:
        """Return creamtea's names, then the plug-ins' names, working or not. Loads no plug-in."""
        return (*self.built_in, *sorted({point.name for point in installed(self.group)} - set(self.built_in)))

    def added(self) -> Additions[T]:
        return additions(self.group, self.built_in, self._checked)

    def usable(self) -> dict[str, T]:
        """Return all objects by name, except those of broken plug-ins."""
        return {**self.built_in, **self.added().kinds}

    def find(self, name: str, called: str, about: str = "") -> T:
        """Return the object with this name.

        Raises InputError if it is unknown or its plug-in is broken; `called` names it in the message.
        """
        if name in self.built_in:
            return self.built_in[name]
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
        member = loaded() if isinstance(loaded, type) else loaded
        if not isinstance(member, self.base) or getattr(member, "name", None) != name:
            raise TypeError(f"it is not a {self.base.__name__} whose name is {name!r}")
        self.check(member)
        return member
