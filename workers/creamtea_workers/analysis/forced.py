"""A model's token distributions at the references: teacher-forced, in fp32, </s> included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from creamtea.contract.step import StepContext
from creamtea.stats.resampling import Array
from creamtea_workers.corpora.batches import Batch, Pairs, parts
from creamtea_workers.corpora.segments import EncodedTestSet
from creamtea_workers.models.interface import output_logits
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.translator import TrainedModel

_POSITIONS = 1 << 12  # positions of a batch, padding included: B × T
_CELLS = 1 << 22  # log-scores held at once: 16 MB

# log-scores (n, V) and targets (n,) of n positions -> (n, F) numbers of each
Statistic = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class References:
    """A trained model, and the sentence pairs at which its distributions are measured."""

    trained: TrainedModel
    pairs: Pairs

    @classmethod
    def load(cls, context: StepContext[Any]) -> References:
        """Load them for a step with the inputs test_set, subwords and train."""
        prepare_torch(context.cpus)
        test_set = EncodedTestSet.of_step(context)
        references = test_set.subwords.encode_targets([row["reference"] for row in test_set.segments])
        return cls(TrainedModel.of_step(context), Pairs(test_set.sources, references))

    def measure(self, statistic: Statistic, context: StepContext[Any]) -> list[Array]:
        """Return the statistics (T, F) of the T target positions of each pair."""
        lengths = self.pairs.target_lengths
        measured: dict[int, Tensor] = {}
        sources = self.pairs.source_lengths
        for members in (part for batch in batches(lengths.tolist()) for part in parts(batch, sources)):
            context.progress(len(measured), len(lengths), "sentences")
            numbers = self._measure(self.pairs.batch(np.array(members)), statistic)
            measured.update(zip(members, numbers.split(lengths[members].tolist()), strict=True))
        context.progress(len(measured), len(lengths), "sentences")
        return [measured[n].numpy() for n in range(len(lengths))]

    @torch.inference_mode()
    def _measure(self, batch: Batch, statistic: Statistic) -> Tensor:
        """Measure the batch's N target positions, sentence after sentence: (N, F)."""
        model = self.trained.model
        batch = batch.to(model.output_weight.device)
        hidden, targets = batch.real(model.decode(model.encode(batch.source), batch.target_in))
        size = max(1, _CELLS // model.vocabulary_size)
        parts = []
        for rows, wanted in zip(hidden.split(size), targets.split(size), strict=True):  # (n, D), (n,)
            log_scores = self.trained.objective.log_scores(output_logits(model, rows))
            parts.append(statistic(log_scores, wanted).double().cpu())
        return torch.cat(parts)


def batches(lengths: Sequence[int]) -> list[list[int]]:
    """Group the positions of all sentences by similar length, the longest first."""
    grouped: list[list[int]] = []
    for n in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
        if not grouped or (len(grouped[-1]) + 1) * lengths[grouped[-1][0]] > _POSITIONS:
            grouped.append([])
        grouped[-1].append(n)
    return grouped
