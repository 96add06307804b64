"""What a search is to the rest: a batch of encoded sentences in, a hypothesis for each out."""

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
class SearchInput:
    """B encoded sentences, and all that is needed to find and to score their translations."""

    model: TranslationModel
    objective: Objective
    memory: Memory  # of the B sentences
    output: OutputLayer  # the vocabulary of each sentence
    limits: Sequence[int]  # the maximum number of tokens of each hypothesis, </s> included
    sources: Sequence[Sequence[int]] = ()  # subwords of each sentence, which seed its random draws
    with_scores: bool = True  # False: greedy search may leave its scores at NaN, which is faster


@dataclass(frozen=True)
class Findings:
    """What a search reports about its hypotheses beyond what every search does: files of JSON Lines by name,
    and metrics, as its class in `creamtea.methods.searches` declares them."""

    files: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    metrics: Sequence[MetricRow] = ()


class SearchMethod(ABC):
    max_length_ratio: float  # see `length_limit`

    @property
    def rows(self) -> int:
        """Decoder rows per sentence."""
        return 1

    @property
    def beam(self) -> int:
        """Width of the beam; 1 where there is none. A sentence whose vocabulary offers fewer hypotheses
        fills less of it."""
        return 1

    @abstractmethod
    def __call__(self, batch: SearchInput) -> list[Hypothesis]:
        """One hypothesis per sentence."""

    def best(self, batch: SearchInput, count: int) -> list[list[Hypothesis]]:
        """For each sentence at most `count` distinct hypotheses, best first; the first is what `__call__`
        finds. `count`: at most the `most_hypotheses` of its class in `creamtea.methods.searches`."""
        if count > 1:
            raise ValueError(f"{type(self).__name__} finds one hypothesis per sentence, not {count}")
        return [[hypothesis] for hypothesis in self(batch)]

    def rounds(self, batch: SearchInput) -> Iterator[Sequence[tuple[int, Hypothesis]]]:
        """The hypotheses with their sentences' positions, as soon as they are found. Empty rounds let the
        caller report progress and stop."""
        yield list(enumerate(self(batch)))

    def findings(self, indices: Sequence[int], hypotheses: Sequence[Hypothesis]) -> Findings:
        """About all hypotheses of a test set; `indices` are the segments' numbers."""
        return Findings()
