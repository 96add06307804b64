"""A model's token distributions at the references: teacher-forced, in fp32, </s> included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from creamtea.contract.step import StepContext
from creamtea.stats.bootstrap import Array
from creamtea_workers.corpora.segments import EncodedTestSet
from creamtea_workers.models.interface import BOS, EOS, PAD, TranslationModel
from creamtea_workers.objectives.base import Objective
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.output import output_layer
from creamtea_workers.search.systems import TrainedModel
from creamtea_workers.search.translator import source_batch

_POSITIONS = 1 << 12  # of a batch, padding counted: B × T
_CELLS = 1 << 22  # log-scores held at once: 16 MB

# log-scores (n, V) and targets (n,) of n positions -> (n, F) numbers of each
Statistic = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class References:
    """A trained model, and the sentence pairs at which its distributions are measured."""

    model: TranslationModel
    objective: Objective
    sources: list[list[int]]  # subwords, without </s>
    targets: list[list[int]]  # with </s>
    confidence_note: str  # of the objective's method

    @classmethod
    def load(cls, context: StepContext[Any]) -> References:
        """Of a step with the inputs test_set, subwords and train."""
        prepare_torch(context.cpus)
        test_set = EncodedTestSet.of_step(context)
        trained = TrainedModel.of_step(context)
        encode = test_set.subwords.encode
        return cls(
            trained.model,
            trained.objective,
            test_set.sources,
            [[*encode(segment["reference"]), EOS] for segment in test_set.segments],
            trained.confidence_note,
        )

    def measure(self, statistic: Statistic, context: StepContext[Any]) -> list[Array]:
        """For each pair the statistics (T, F) of its T target positions."""
        measured: dict[int, Array] = {}
        for batch in batches([len(target) for target in self.targets]):
            context.progress(len(measured), len(self.targets), "sentences")
            measured.update(zip(batch, self._measure(batch, statistic), strict=True))
        context.progress(len(measured), len(self.targets), "sentences")
        return [measured[n] for n in range(len(self.targets))]

    @torch.inference_mode()
    def _measure(self, batch: Sequence[int], statistic: Statistic) -> list[Array]:
        device = self.model.output_weight.device
        lengths = [len(self.targets[n]) for n in batch]
        rows = [[*self.targets[n], *[PAD] * (max(lengths) - len(self.targets[n]))] for n in batch]
        targets = torch.tensor(rows, device=device)  # (B, T)
        begin = torch.full_like(targets[:, :1], BOS)
        memory = self.model.encode(source_batch([self.sources[n] for n in batch], device))
        hidden = self.model.decode(memory, torch.cat([begin, targets[:, :-1]], dim=1))
        inside = torch.arange(max(lengths), device=device) < torch.tensor(lengths, device=device)[:, None]
        hidden, wanted = hidden[inside], targets[inside]  # (N, D), (N,): sentence after sentence
        output = output_layer(self.model, None)
        chunk = max(1, _CELLS // self.model.vocabulary_size)
        parts = []
        for start in range(0, len(wanted), chunk):
            logits = output.logits(hidden[None, start : start + chunk])  # (1, n, V)
            log_scores = output.log_scores(self.objective, logits)[0]
            parts.append(statistic(log_scores, wanted[start : start + chunk]).double().cpu())
        return [part.numpy() for part in torch.cat(parts).split(lengths)]


def batches(lengths: Sequence[int]) -> list[list[int]]:
    """Positions of all sentences, those of similar length together, the longest first."""
    grouped: list[list[int]] = []
    for n in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
        if not grouped or (len(grouped[-1]) + 1) * lengths[grouped[-1][0]] > _POSITIONS:
            grouped.append([])
        grouped[-1].append(n)
    return grouped
