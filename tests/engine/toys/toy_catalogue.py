"""Step kinds of the tests: `register` puts them into the catalogue of this process.

It is also what Ray's workers call when they start, so this folder must be on their path.
"""

from __future__ import annotations

from dataclasses import dataclass

from creamtea.contract.kind import StepKind
from creamtea.steps.catalogue import STEP_KINDS


@dataclass(frozen=True)
class ToyKind(StepKind):
    @property
    def entrypoint(self) -> str:
        return "toy_steps"


TOY = ToyKind("toy", 1, "play")


def register() -> None:
    STEP_KINDS["toy"] = TOY
