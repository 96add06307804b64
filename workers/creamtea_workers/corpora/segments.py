"""What preparing a corpus or a test set gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Segment(NamedTuple):
    source: str
    reference: str
    idioms: list[dict[str, Any]]  # {name, source: [from, to], target: [from, to]}; one name is one idiom


@dataclass(frozen=True)
class Prepared:
    """The segments of a test set, and counts that only its kind has."""

    segments: Sequence[Segment]
    counts: dict[str, int] = field(default_factory=dict)
