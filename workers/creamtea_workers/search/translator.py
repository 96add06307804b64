"""From source subwords to hypotheses: encode, select the vocabulary, search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from creamtea_workers.models.interface import EOS, PAD, Memory, TranslationModel
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search import Hypothesis, SearchMethod, length_limit, output_layer, score_hypotheses
from creamtea_workers.search.output import OutputLayer
from creamtea_workers.selection.base import Selector

Sources = Sequence[Sequence[int]]  # subwords of each sentence, without </s>


@dataclass(frozen=True)
class Translation:
    hypothesis: Hypothesis
    selected_size: int  # of the sentence's vocabulary; V where nothing is selected


@dataclass(frozen=True)
class Translator:
    """A system: model × selection × search. An output never depends on what else is in the batch."""

    model: TranslationModel
    objective: Objective
    selector: Selector
    search: SearchMethod

    @torch.inference_mode()
    def translate(self, sources: Sources, with_scores: bool = True) -> list[Translation]:
        """`with_scores` False saves greedy search the activation; the hypotheses are the same."""
        memory, output, sizes = self._prepare(sources)
        limits = [length_limit(self.search.max_length_ratio, len(source)) for source in sources]
        hypotheses = self.search(self.model, self.objective, memory, output, limits, with_scores)
        return [Translation(*pair) for pair in zip(hypotheses, sizes, strict=True)]

    @torch.inference_mode()
    def score(self, sources: Sources, hypotheses: Sequence[Hypothesis]) -> list[float]:
        """Force-decoding under the same selected vocabularies: what `translate` gave them."""
        memory, output, _ = self._prepare(sources)
        return score_hypotheses(self.model, self.objective, memory, output, hypotheses)

    def _prepare(self, sources: Sources) -> tuple[Memory, OutputLayer, list[int]]:
        memory = self.model.encode(source_batch(sources, self.model.output_weight.device))
        selection = self.selector.select(sources, memory)
        sizes = (
            [self.model.vocabulary_size] * len(sources) if selection is None else [len(i) for i in selection]
        )
        return memory, output_layer(self.model, selection), sizes


def source_batch(sources: Sources, device: torch.device) -> Tensor:
    """(B, S): subwords + </s>, then pads."""
    longest = max(map(len, sources))
    rows = [[*source, EOS] + [PAD] * (longest - len(source)) for source in sources]
    return torch.tensor(rows, device=device)
