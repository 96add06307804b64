"""The catalogue: every step kind, its code version, and where the workers keep it.

A step's key holds its kind's version: raise it when a change of the code changes what the step
produces, and every study recomputes that step and what stands on it. `creamtea_workers.steps.<kind>`
holds `run(context) -> StepResult`; a test asserts that the folder and this table agree.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepKind:
    name: str
    version: int
    what: str  # shown in progress and status
    exclusive: bool = False  # started only when nothing else runs, and nothing starts beside it

    @property
    def entrypoint(self) -> str:
        return f"creamtea_workers.steps.{self.name}"


STEP_KINDS: dict[str, StepKind] = {
    kind.name: kind
    for kind in (
        StepKind("corpus", 1, "prepare corpus"),
        StepKind("test_set", 1, "prepare test set"),
        StepKind("subwords", 1, "train subwords"),
        StepKind("align", 1, "align and build the lexicon"),
        StepKind("train", 1, "train a variant"),
        StepKind("decode", 1, "translate a test set"),
        StepKind("score", 1, "score with a metric"),
        StepKind("compare", 1, "compare with the baseline"),
        StepKind("recall", 1, "recall of the selected vocabulary"),
        StepKind("latency", 1, "measure latency", exclusive=True),
    )
}
