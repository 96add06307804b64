"""Protocols by their names: creamtea's own and those of plug-ins (entry points of creamtea.protocols)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import creamtea
from creamtea.errors import InputError
from creamtea.human.protocols.base import Protocol
from creamtea.human.protocols.direct_assessment import ContrastiveDa, Da, DaSqm
from creamtea.human.protocols.post_edit import PostEdit
from creamtea.human.protocols.preference import Preference
from creamtea.human.protocols.segment_scores import SegmentScores
from creamtea.human.protocols.spans import ContrastiveEsa, Esa, Mqm
from creamtea.plugins import Additions, Plugin, additions, installed

GROUP = "creamtea.protocols"
OWN: dict[str, Protocol] = {
    protocol.name: protocol
    for protocol in (
        *(ContrastiveDa(), Da(), DaSqm(), Preference(), PostEdit()),
        *(Esa(), ContrastiveEsa(), Mqm(), SegmentScores()),
    )
}


def protocol_names(rated_here: bool = False) -> tuple[str, ...]:
    """creamtea's own first, in their order, then those of plug-ins, working or not. No plug-in is loaded for
    this. `rated_here`: without those whose ratings are only imported."""
    own = [name for name, protocol in OWN.items() if protocol.rated_here or not rated_here]
    return (*own, *sorted({point.name for point in installed(GROUP)} - set(OWN)))


def find_protocol(name: str, settings: Mapping[str, Any] | None = None) -> Protocol:
    """The protocol of this name; with the `settings` of a campaign as it is in that campaign.

    InputError for one that nobody knows, that two distributions have, or that cannot be loaded, and for
    settings that cannot be.
    """
    if settings is not None:
        return find_protocol(name).with_settings(settings)
    if name in OWN:
        return OWN[name]
    added = added_protocols()
    if name in added.kinds:
        return added.kinds[name]
    for broken in added.broken:
        if broken.kind == name:
            raise InputError(
                f"protocol {name!r} of {broken.plugin} cannot be used ({broken.reason}): update the plug-in "
                "or uninstall it"
            )
    raise InputError(
        f"there is no protocol {name!r}; protocols here: {', '.join(protocol_names())}. "
        f"A plug-in adds others: install the one that has it (entry-point group {GROUP})"
    )


def usable_protocols() -> list[Protocol]:
    """All but those of plug-ins that are broken."""
    return [*OWN.values(), *added_protocols().kinds.values()]


def protocol_title(name: str) -> str:
    """The protocol's title, or its name where it is unavailable."""
    try:
        return find_protocol(name).title
    except InputError:
        return name


def origin_of(name: str) -> Plugin:
    """Where the protocol comes from. InputError as of `find_protocol`."""
    find_protocol(name)
    return Plugin("creamtea", creamtea.__version__) if name in OWN else added_protocols().plugins[name]


def added_protocols() -> Additions[Protocol]:
    """What plug-ins add, and those of them that are broken."""
    return additions(GROUP, OWN, _checked)


def _checked(name: str, loaded: Any) -> Protocol:
    """An entry point leads to a protocol or its class. Raises an error if it does not, and for a script or
    style that is not there, without which no board could be served."""
    protocol = loaded() if isinstance(loaded, type) else loaded
    if not isinstance(protocol, Protocol) or protocol.name != name:
        raise TypeError(f"it is not the protocol {name!r}")
    for path in (*protocol.scripts, *protocol.styles):
        if not path.is_file():
            raise FileNotFoundError(f"{path} of its board is missing: it was not packaged")
    return protocol
