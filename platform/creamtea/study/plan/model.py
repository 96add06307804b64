"""What a plan is: steps to run, and the places of the study that they fill."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from creamtea.contract.step import Resources
from creamtea.steps.catalogue import STEP_KINDS


@dataclass(frozen=True)
class PlannedStep:
    key: str
    kind: str
    version: int
    params: dict[str, Any]
    inputs: dict[str, list[str]]  # role: keys of steps
    resources: Resources
    locations: dict[str, str]  # a user's path as in the parameters -> where it is on this machine


@dataclass(frozen=True)
class PlannedNode:
    node: str  # unique in the study: "decode/softmax-beam4/1/test"
    key: str  # of the step that fills it
    labels: dict[str, Any]


@dataclass
class Plan:
    study: str
    steps: list[PlannedStep] = field(default_factory=list)
    nodes: list[PlannedNode] = field(default_factory=list)

    def kinds(self) -> dict[str, int]:
        """How many steps of each kind, in the catalogue's order."""
        counts = Counter(step.kind for step in self.steps)
        return {kind: counts[kind] for kind in STEP_KINDS if counts[kind]}
