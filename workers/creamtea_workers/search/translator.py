"""From source subwords to hypotheses: encode, select the vocabulary, search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from creamtea_workers.models.interface import EOS, PAD, Memory, TranslationModel
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search import Hypothesis, SearchMethod, length_limit, output_layer, score_hypotheses
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
        memory, selection = self._encode(sources)
        output = output_layer(self.model, selection)
        limits = [length_limit(self.search.max_length_ratio, len(source)) for source in sources]
        hypotheses = self.search(self.model, self.objective, memory, output, limits, with_scores)
        sizes = self._sizes(selection, len(sources))
        return [Translation(*pair) for pair in zip(hypotheses, sizes, strict=True)]

    @torch.inference_mode()
    def score(self, sources: Sources, hypotheses: Sequence[Hypothesis]) -> list[float]:
        """Force-decoding under the same selected vocabularies: what `translate` gave them."""
        memory, selection = self._encode(sources)
        output = output_layer(self.model, selection)
        return score_hypotheses(self.model, self.objective, memory, output, hypotheses)

    @torch.inference_mode()
    def selected_sizes(self, sources: Sources) -> list[int]:
        """How many ids each sentence may use; V where nothing is selected."""
        return self._sizes(self._encode(sources)[1], len(sources))

    def _encode(self, sources: Sources) -> tuple[Memory, list[Tensor] | None]:
        memory = self.model.encode(source_batch(sources, self.model.output_weight.device))
        return memory, self.selector.select(sources, memory)

    def _sizes(self, selection: list[Tensor] | None, count: int) -> list[int]:
        return [self.model.vocabulary_size] * count if selection is None else [len(ids) for ids in selection]


def source_batch(sources: Sources, device: torch.device) -> Tensor:
    """(B, S): subwords + </s>, then pads."""
    longest = max(map(len, sources))
    rows = [[*source, EOS] + [PAD] * (longest - len(source)) for source in sources]
    return torch.tensor(rows, device=device)
