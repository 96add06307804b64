"""The study: all of its parts together."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from creamtea.document.values import Name, Positive, Strict
from creamtea.study.spec.analyses import Analysis
from creamtea.study.spec.data import Alignment, Corpus, Subwords, TestSet
from creamtea.study.spec.measuring import Bleu, Chrf, Latency, Metric, Recall, Significance
from creamtea.study.spec.systems import System
from creamtea.study.spec.variants import Variant


class StepResources(Strict):
    cpus: Positive = 1
    gpus: Annotated[float, Field(ge=0.0)] = 0.0
    memory_gb: Annotated[float, Field(gt=0.0)] | None = None
    timeout_minutes: Annotated[float, Field(gt=0.0)] | None = None
    max_attempts: Positive = 4  # after infrastructure failures; deterministic ones are final


class Languages(Strict):
    source: Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]
    target: Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]


class Study(Strict):
    """Every system translates every test set unless it names its own."""

    name: Name
    description: str = ""
    languages: Languages
    corpora: Annotated[dict[Name, Corpus], Field(min_length=1)]
    subwords: Annotated[dict[Name, Subwords], Field(min_length=1)]
    variants: Annotated[dict[Name, Variant], Field(min_length=1)]
    systems: Annotated[dict[Name, System], Field(min_length=1)]
    test_sets: Annotated[dict[Name, TestSet], Field(min_length=1)]
    baseline: Name
    alignment: Alignment = Alignment()
    metrics: list[Metric] = [Bleu(kind="bleu"), Chrf(kind="chrf")]
    significance: Significance = Significance()
    recall: Recall = Recall()
    latency: Latency | None = None
    analyses: dict[Name, Analysis] = {}
    resources: dict[str, StepResources] = {}  # by step kind

    def test_sets_of(self, system: str) -> list[str]:
        return self.systems[system].test_sets or list(self.test_sets)

    def systems_on(self, test_set: str) -> list[str]:
        """The systems that translate a test set, in the study's order."""
        return [name for name in self.systems if test_set in self.test_sets_of(name)]

    def baseline_of(self, system: str) -> str:
        """What a system is compared with; a baseline is its own."""
        return self.systems[system].baseline or self.baseline
