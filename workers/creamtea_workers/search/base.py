"""What decodes a batch, and what a search may leave beside its hypotheses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from creamtea.contract.step import MetricRow
from creamtea_workers.models.interface import Memory, TranslationModel
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.hypothesis import Hypothesis
from creamtea_workers.search.output import OutputLayer

Detokenize = Callable[[Sequence[int]], str]  # subwords of a hypothesis -> text


@dataclass(frozen=True)
class Findings:
    """What a search says of its hypotheses beyond what all searches have: files of JSON Lines by name, and
    metrics, as its class in `creamtea.methods.searches` declares them."""

    files: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    metrics: Sequence[MetricRow] = ()


class SearchMethod(ABC):
    max_length_ratio: float  # see `length_limit`

    @property
    def rows(self) -> int:
        """Decoder rows per sentence."""
        return 1

    @property
    def min_selection(self) -> int:
        """The fewest subwords that a sentence's selected vocabulary must leave it."""
        return 1

    @abstractmethod
    def __call__(
        self,
        model: TranslationModel,
        objective: Objective,
        memory: Memory,
        output: OutputLayer,
        limits: Sequence[int],
        with_scores: bool = True,
        sources: Sequence[Sequence[int]] = (),
    ) -> list[Hypothesis]:
        """One hypothesis for each sentence of `memory`; `limits`: the most tokens of each, </s> included;
        `sources`: the subwords of each, which only what draws at random needs: they seed it."""

    def rounds(
        self,
        model: TranslationModel,
        objective: Objective,
        memory: Memory,
        output: OutputLayer,
        limits: Sequence[int],
        sources: Sequence[Sequence[int]] = (),
    ) -> Iterator[Sequence[tuple[int, Hypothesis]]]:
        """The hypotheses by sentence, as they are found: a search that may take an hour says often, with
        nothing new, that it is at work."""
        yield list(enumerate(self(model, objective, memory, output, limits, sources=sources)))

    def findings(self, indices: Sequence[int], hypotheses: Sequence[Hypothesis]) -> Findings:
        """Of all hypotheses of a test set; `indices` are the segments' numbers."""
        return Findings()
