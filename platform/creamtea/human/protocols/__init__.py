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
    all_protocols,
    find_protocol,
    origin_of,
    plug_in_protocols,
    protocol_names,
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
    "all_protocols",
    "find_protocol",
    "origin_of",
    "plug_in_protocols",
    "protocol_names",
]
