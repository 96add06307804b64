"""Search: from the encoder's output to hypotheses. One file per method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from creamtea.study.spec import Greedy, Search
from creamtea_workers.models.interface import Memory, TranslationModel
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.greedy import GreedySearch
from creamtea_workers.search.hypothesis import Hypothesis, length_limit
from creamtea_workers.search.output import OutputLayer, output_layer
from creamtea_workers.search.scorer import score_hypotheses

__all__ = [
    "BeamSearch",
    "GreedySearch",
    "Hypothesis",
    "OutputLayer",
    "SearchMethod",
    "build_search",
    "length_limit",
    "output_layer",
    "score_hypotheses",
]


class SearchMethod(Protocol):
    """What decodes a batch."""

    @property
    def width(self) -> int:
        """Decoder rows a sentence."""

    @property
    def max_length_ratio(self) -> float:
        """See `length_limit`."""

    def __call__(
        self,
        model: TranslationModel,
        objective: Objective,
        memory: Memory,
        output: OutputLayer,
        limits: Sequence[int],
        with_scores: bool = True,
    ) -> list[Hypothesis]:
        """One hypothesis a sentence of `memory`; `limits`: the most tokens of each, </s> included."""


def build_search(spec: Search) -> SearchMethod:
    if isinstance(spec, Greedy):
        return GreedySearch(max_length_ratio=spec.max_length_ratio)
    return BeamSearch(
        width=spec.width,
        length_normalization=spec.length_normalization,
        max_length_ratio=spec.max_length_ratio,
    )
