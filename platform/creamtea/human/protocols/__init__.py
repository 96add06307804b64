"""Rating protocols by name: creamtea's own and plug-ins' (entry points of creamtea.protocols).

Each protocol is one object; `base` has its interface.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import creamtea
from creamtea.errors import InputError
from creamtea.human.protocols.base import PointsFormat as PointsFormat
from creamtea.human.protocols.base import Protocol as Protocol
from creamtea.human.protocols.base import Scale as Scale
from creamtea.human.protocols.base import ScoredAnswer as ScoredAnswer
from creamtea.human.protocols.base import Selection as Selection
from creamtea.human.protocols.scores import ContrastiveDa, Da, DaSqm, PostEdit, Preference, SegmentScores
from creamtea.human.protocols.spans import ContrastiveEsa, Esa, Mqm
from creamtea.plugins import Plugin, Registry


def _check_board(protocol: Protocol) -> None:
    """Raise an error for a script or style that is missing: no board could be served."""
    for path in (*protocol.scripts, *protocol.styles):
        if not path.is_file():
            raise FileNotFoundError(f"{path} of its board is missing: it was not packaged")


BUILT_IN: dict[str, Protocol] = {
    protocol.name: protocol
    for protocol in (
        *(ContrastiveDa(), Da(), DaSqm(), Preference(), PostEdit()),
        *(Esa(), ContrastiveEsa(), Mqm(), SegmentScores()),
    )
}
PROTOCOLS = Registry("creamtea.protocols", Protocol, BUILT_IN, _check_board)


def protocol_names(rated_here: bool = False) -> tuple[str, ...]:
    """Return all names; with `rated_here`, without creamtea's protocols that are only imported."""
    imported = {name for name, protocol in BUILT_IN.items() if not protocol.rated_here}
    return tuple(name for name in PROTOCOLS.names() if not (rated_here and name in imported))


def find_protocol(name: str, settings: Mapping[str, Any] | None = None) -> Protocol:
    """Return the protocol of this name, bound to a campaign's `settings` if they are given.

    InputError for a name that is unknown or that two distributions have, for a protocol that cannot be
    loaded, and for invalid settings.
    """
    protocol = PROTOCOLS.find(name, f"protocol {name!r}")
    return protocol if settings is None else protocol.with_settings(settings)


def usable_protocols() -> list[Protocol]:
    """Return all protocols except those of broken plug-ins."""
    return list(PROTOCOLS.usable().values())


def protocol_title(name: str) -> str:
    """Return the protocol's title, or its name if it is unavailable."""
    try:
        return find_protocol(name).title
    except InputError:
        return name


def origin_of(name: str) -> Plugin:
    """Return the distribution that has the protocol. InputError as in `find_protocol`."""
    find_protocol(name)
    return Plugin("creamtea", creamtea.__version__) if name in BUILT_IN else PROTOCOLS.added().plugins[name]
