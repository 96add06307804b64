"""The key of a step: equal work, equal key, on every machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from creamtea.document.canonical import digest


def step_key(kind: str, version: int, params: Mapping[str, Any], inputs: Mapping[str, Sequence[str]]) -> str:
    """`inputs`: the keys of the input steps by role, in the plan's order."""
    return digest({"kind": kind, "version": version, "params": params, "inputs": inputs})
