"""The study spec: what a researcher may write, as strict models.

Data only: no import paths, no shell. Unknown keys are refused. The models describe a study *after* its
grids are expanded (`creamtea.study.loader`), so every parameter here is a single value.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from creamtea.contract.resources import StepResources
from creamtea.document.values import Name, Positive, Seed, Strict
from creamtea.methods.analysis import Analysis
from creamtea.methods.architectures import Architecture, Nvs, TransformerArchitecture
from creamtea.methods.corpora import Corpus
from creamtea.methods.measuring import Latency, Recall, Significance
from creamtea.methods.metrics import Bleu, Chrf, Metric
from creamtea.methods.objectives import Objective
from creamtea.methods.precisions import Precision
from creamtea.methods.searches import Greedy, Search
from creamtea.methods.selections import FullVocabulary, Selection
from creamtea.methods.test_sets import TestSet
from creamtea.methods.texts import Alignment, Languages, Subwords
from creamtea.methods.training import Training


class Variant(Strict):
    """What is trained. `start_from` names another variant whose trained weights (of the same seed) this one
    is fine-tuned from, with its subwords: adaptation to another corpus. `alignment_corpus`: what its lexicon
    is aligned on, None for its own corpus (NVS paper, Appendix A: the general corpus with the in-domain text
    up-sampled)."""

    corpus: Name
    subwords: Name
    objective: Objective
    architecture: Architecture = TransformerArchitecture()
    nvs: Nvs | None = None
    training: Training = Training()
    start_from: Name | None = None
    alignment_corpus: Name | None = None
    seeds: Annotated[list[Seed], Field(min_length=1)] = [1]
    # by step kind: what its steps need other than the study's `resources` say
    resources: dict[str, StepResources] = Field(default={}, exclude_if=lambda resources: not resources)


class System(Strict):
    """What translates: a variant that the study trains; or, from anywhere, `outputs`, text files by test set
    with a line for each segment; or `reference`, the number of a human reference of its test sets (1 is their
    `target`), which is rated like a system and scored against the others. `test_sets`: what it translates,
    None for all of the study's. `baseline`: what it is compared with, None for the study's."""

    # for editors; `creamtea.study.checks.outputs` says which of the three is wrong
    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": [key]} for key in ("variant", "outputs", "reference")]}
    )
    variant: Name = Field(default="", exclude_if=lambda name: not name)
    outputs: dict[Name, str] = Field(default={}, exclude_if=lambda files: not files)
    reference: Positive | None = Field(default=None, exclude_if=lambda number: number is None)
    selection: Selection = FullVocabulary()
    search: Search = Greedy()
    precision: Precision = "fp32"
    # the variant's models of all seeds as one: the mean of their probabilities at each step
    ensemble: bool = Field(default=False, exclude_if=lambda ensemble: not ensemble)
    # sentences; changes speed, and no output in fp32 and int8. In bf16 and fp16 a product may be rounded
    # differently in a batch of another shape, which decides between words that are nearly equal
    batch_size: Positive = 32
    test_sets: Annotated[list[Name], Field(min_length=1)] | None = None
    baseline: Name | None = None

    @property
    def runs(self) -> bool:
        """Whether a model of the study makes its outputs: there is something to search and to time."""
        return bool(self.variant)


class Study(Strict):
    """Every system translates every test set unless it names its own. Without a system that is trained here
    there are no corpora, subwords and variants."""

    name: Name
    description: str = ""
    languages: Languages
    corpora: dict[Name, Corpus] = {}
    subwords: dict[Name, Subwords] = {}
    variants: dict[Name, Variant] = {}
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
        spec = self.systems[system]
        return list(spec.outputs) or spec.test_sets or list(self.test_sets)

    def systems_on(self, test_set: str) -> list[str]:
        """The systems that translate a test set, in the study's order."""
        return [name for name in self.systems if test_set in self.test_sets_of(name)]

    def timed(self) -> list[str]:
        """The systems that the latency run times, in its order."""
        named = self.latency.systems if self.latency else []
        return [name for name, system in self.systems.items() if system.runs] if named is None else named

    def compared(self, system: str) -> bool:
        """Whether metrics compare it with its baseline. A human reference has fewer to be scored against."""
        return system != self.baseline_of(system) and self.systems[system].reference is None

    def baseline_of(self, system: str) -> str:
        """What a system is compared with; a baseline is its own."""
        return self.systems[system].baseline or self.baseline
