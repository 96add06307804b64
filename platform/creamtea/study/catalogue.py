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
        StepKind("ibm3", 1, "count IBM-3 tables"),
        StepKind("train", 3, "train a variant"),
        StepKind("decode", 1, "translate a test set"),
        StepKind("score", 1, "score with a metric"),
        StepKind("compare", 2, "compare with the baseline"),
        StepKind("recall", 2, "recall of the selected vocabulary"),
        StepKind("beam_sizes", 1, "analyse beam sizes"),
        StepKind("search_errors", 1, "analyse search errors"),
        StepKind("empty_string", 1, "analyse the empty string"),
        StepKind("depth_limited", 1, "analyse short hypotheses"),
        StepKind("support_density", 1, "analyse the support's density"),
        StepKind("calibration", 1, "analyse calibration"),
        StepKind("recall_at_size", 1, "analyse recall at equal size"),
        StepKind("nvs_context", 1, "analyse NVS without context"),
        StepKind("latency", 2, "measure latency", exclusive=True),
    )
}
