"""Rating protocols: one object each (`base` says what it knows), found by name through `registry`."""

from creamtea.human.protocols.base import (
    MAX_SYSTEMS,
    SELECTIONS,
    PointsFormat,
    Protocol,
    ScoredAnswer,
    Selection,
)
from creamtea.human.protocols.registry import (
    GROUP,
    OWN,
    PlugInProtocol,
    ProtocolOrigin,
    find_protocol,
    origin_of,
    plug_in_protocols,
    protocol_names,
    protocol_title,
    usable_protocols,
)

__all__ = [
    "GROUP",
    "MAX_SYSTEMS",
    "OWN",
    "SELECTIONS",
    "PlugInProtocol",
    "PointsFormat",
    "Protocol",
    "ProtocolOrigin",
    "ScoredAnswer",
    "Selection",
    "find_protocol",
    "origin_of",
    "plug_in_protocols",
    "protocol_names",
    "protocol_title",
    "usable_protocols",
]
