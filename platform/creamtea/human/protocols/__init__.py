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
    added_protocols,
    find_protocol,
    origin_of,
    protocol_names,
    protocol_title,
    usable_protocols,
)

__all__ = [
    "GROUP",
    "MAX_SYSTEMS",
    "OWN",
    "SELECTIONS",
    "PointsFormat",
    "Protocol",
    "ScoredAnswer",
    "Selection",
    "added_protocols",
    "find_protocol",
    "origin_of",
    "protocol_names",
    "protocol_title",
    "usable_protocols",
]
