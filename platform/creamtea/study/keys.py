"""Canonical JSON and the keys made of it: equal content, equal key, on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any


def canonical(value: Any) -> str:
    """JSON with sorted keys, no spaces, plain UTF-8, floats by `repr`; ValueError for NaN and infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def step_key(kind: str, version: int, params: Mapping[str, Any], inputs: Mapping[str, Sequence[str]]) -> str:
    """`inputs`: the keys of the input steps by role, in the plan's order."""
    return digest({"kind": kind, "version": version, "params": params, "inputs": inputs})
