"""The key of a step: equal work, equal key, on every machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from creamtea.document.canonical import digest


def step_key(
    kind: str,
    version: int,
    params: Mapping[str, Any],
    inputs: Mapping[str, Sequence[str]],
    plugins: Mapping[str, str] | None = None,
) -> str:
    """`inputs`: the keys of the input steps by role, in the plan's order. `plugins`: the versions of the
    distributions that the step's methods come from; creamtea's own methods have the version of their kind."""
    work: dict[str, Any] = {"kind": kind, "version": version, "params": params, "inputs": inputs}
    return digest(work | {"plugins": plugins} if plugins else work)
