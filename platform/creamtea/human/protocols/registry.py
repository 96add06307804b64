"""Protocols by their names: creamtea's own and those of plug-ins (entry points of creamtea.protocols)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

import creamtea
from creamtea.errors import InputError
from creamtea.human.protocols.base import Protocol
from creamtea.human.protocols.contrastive_da import ContrastiveDa
from creamtea.human.protocols.da import Da
from creamtea.human.protocols.da_sqm import DaSqm
from creamtea.human.protocols.preference import Preference

GROUP = "creamtea.protocols"
OWN: dict[str, Protocol] = {
    protocol.name: protocol for protocol in (ContrastiveDa(), Da(), DaSqm(), Preference())
}


@dataclass(frozen=True)
class ProtocolOrigin:
    """The distribution that a protocol comes from, as a launch registers it."""

    distribution: str
    version: str


@dataclass(frozen=True)
class PlugInProtocol:
    """A protocol that a plug-in adds, for lists; `problem` says why it cannot be used, "" where it can."""

    name: str
    origin: ProtocolOrigin
    problem: str


def protocol_names() -> tuple[str, ...]:
    """creamtea's own first, in their order. No plug-in is loaded for this."""
    return (*OWN, *sorted({point.name for point in _plug_ins()} - set(OWN)))


def find_protocol(name: str) -> Protocol:
    """The protocol of this name.

    InputError for one that nobody knows, that two distributions have, or that cannot be loaded.
    """
    if name in OWN:
        return OWN[name]
    return _load(_entry_point(name))


def usable_protocols() -> list[Protocol]:
    """All but those of plug-ins that cannot be loaded, of which `plug_in_protocols` says why."""
    broken = {plug_in.name for plug_in in plug_in_protocols() if plug_in.problem} - set(OWN)
    return [find_protocol(name) for name in protocol_names() if name not in broken]


def protocol_title(name: str) -> str:
    """The protocol's title, or its name where it is unavailable."""
    try:
        return find_protocol(name).title
    except InputError:
        return name


def origin_of(name: str) -> ProtocolOrigin:
    """Where the protocol comes from. InputError as of `find_protocol`."""
    if name in OWN:
        return ProtocolOrigin("creamtea", creamtea.__version__)
    return ProtocolOrigin(*_distribution(_entry_point(name)))


def plug_in_protocols() -> list[PlugInProtocol]:
    """What plug-ins add, by name, with what is wrong with it."""
    listed = []
    for point in sorted(_plug_ins(), key=lambda point: point.name):
        problem = ""
        if point.name in OWN:
            problem = "creamtea has a protocol of this name, which is used"
        else:
            try:
                find_protocol(point.name)
            except InputError as error:
                problem = str(error)
        listed.append(PlugInProtocol(point.name, ProtocolOrigin(*_distribution(point)), problem))
    return listed


def _plug_ins() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def _entry_point(name: str) -> EntryPoint:
    points = [point for point in _plug_ins() if point.name == name]
    if not points:
        raise InputError(
            f"there is no protocol {name!r}; protocols here: {', '.join(protocol_names())}. "
            f"A plug-in adds others: install the one that has it (entry-point group {GROUP})"
        )
    if len(points) > 1:
        owners = " and ".join(_distribution(point)[0] for point in points)
        raise InputError(f"protocol {name!r} comes from {owners}: uninstall all but one")
    return points[0]


@cache
def _load(point: EntryPoint) -> Protocol:
    owner = " ".join(_distribution(point))
    try:
        loaded = point.load()
        protocol = loaded() if isinstance(loaded, type) else loaded
    except Exception as error:  # a plug-in may fail in any way
        raise InputError(
            f"protocol {point.name!r} of {owner} cannot be loaded ({type(error).__name__}: {error}): "
            "update the plug-in or uninstall it"
        ) from error
    if not isinstance(protocol, Protocol) or protocol.name != point.name:
        raise InputError(
            f"{point.value} of {owner} is not the protocol {point.name!r}: update the plug-in or uninstall it"
        )
    return protocol


def _distribution(point: EntryPoint) -> tuple[str, str]:
    """Name and version; entry points that are read from the environment have their distribution."""
    if point.dist is None:
        return point.value, "unknown"
    return point.dist.name, point.dist.version
