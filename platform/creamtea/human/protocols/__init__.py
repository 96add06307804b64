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
    OWN,
    PROTOCOLS,
    find_protocol,
    origin_of,
    protocol_names,
    protocol_title,
    usable_protocols,
)
from creamtea.human.protocols.scale import Scale

__all__ = [
    "MAX_SYSTEMS",
    "OWN",
    "PROTOCOLS",
    "SELECTIONS",
    "PointsFormat",
    "Protocol",
    "Scale",
    "ScoredAnswer",
    "Selection",
    "find_protocol",
    "origin_of",
    "protocol_names",
    "protocol_title",
    "usable_protocols",
]
