"""Idioms with subwords that a selection misses, or that only the context selects (NVS paper, Figures 1 and
5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MAX_LISTED = 100


def most_first(name: str, idioms: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Those with subwords under `name`, the most first, equals in their order, at most MAX_LISTED; and how
    many of how many there are."""
    affected = sorted((idiom for idiom in idioms if idiom[name]), key=lambda idiom: -len(idiom[name]))
    return {"count": len(affected), "of": len(idioms), "idioms": affected[:MAX_LISTED]}
