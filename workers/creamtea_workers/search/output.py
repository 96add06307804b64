"""The output layer of a batch in which every sentence has its own vocabulary.

Toolkits commonly use the union of a batch's selected vocabularies, so that an output depends on its batch
mates. Here a sentence is never scored with a token outside its own selection.

Shapes: B sentences, R rows per sentence (beam slots, or target positions), D width, V vocabulary, K the
largest selection of the batch. Vocabularies with fewer than K ids are padded at the end. Padding has the
logit `PADDED`, finite so that no objective meets an infinity (entmax sorts and sums its logits), and the
log-score -inf. `PADDED` is so low that every objective gives it exactly no mass: padding never changes a
score.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from creamtea_workers.models.ensemble import Ensemble, log_mean
from creamtea_workers.models.graphs import New
from creamtea_workers.models.inference import Int8Matrix, Int8Projection
from creamtea_workers.models.interface import EOS, PAD, TranslationModel, output_logits, raw_logits
from creamtea_workers.objectives.base import Objective

PADDED = -1e4

# Weight rows are gathered per sentence if they take at most this many times the full weight. Otherwise full
# logits are computed and gathered: one matrix product reads the weight once for all rows.
_GATHER_WEIGHTS_BELOW = 4


class OutputLayer(ABC):
    """The output layer of a batch. Positions index a sentence's own sorted ids: 0 … K-1."""

    fixable = True  # False: it cannot have tensors of fixed shape (`search.fixed`)

    def __init__(self, ids: Tensor, real: Tensor | None) -> None:
        self._ids = ids  # (B, K), sorted
        self._real = real  # (B, K) bool, or None: no padding

    @abstractmethod
    def logits(self, hidden: Tensor) -> Tensor:
        """Map hidden (B, R, D) -> logits (B, R, K) in fp32; the product is in the model's type."""

    @abstractmethod
    def keep(self, sentences: Tensor) -> OutputLayer:
        """Return the layer for these sentences only (positions in the batch)."""

    def best(self, hidden: Tensor) -> Tensor:
        """Find the highest logits: hidden (B, R, D) -> positions (B, R), the first among equals."""
        return self.logits(hidden).argmax(-1)

    def log_scores(self, objective: Objective, logits: Tensor) -> Tensor:
        """Map logits (B, R, K) -> log-scores (B, R, K) over each sentence's own vocabulary, ≤ 0."""
        scores = objective.log_scores(logits)
        return scores if self._real is None else scores.masked_fill(~self._real.unsqueeze(1), -torch.inf)

    def ids(self, positions: Tensor) -> Tensor:
        """Map positions (B, R) -> vocabulary ids (B, R)."""
        return self._ids.gather(1, positions)

    def ends(self, sentences: int) -> Tensor:
        """Return the positions of </s>: (B, 1) of B sentences."""
        # padding repeats the last id: if this is </s>, the first position is the real one
        return (self._ids == EOS).int().argmax(dim=1, keepdim=True)

    @property
    def size(self) -> int:
        """K"""
        return self._ids.shape[1]

    def fixed(self, new: New, sentences: int, size: int) -> OutputLayer:
        """Make a layer of this kind with B = `sentences`, K = `size` and its own tensors, for `load`."""
        raise NotImplementedError

    def load(self, other: Self) -> None:
        """Copy `other`, a layer of the same kind that is not larger, into a layer made by `fixed`.
        The rest is padding, without </s>."""
        assert self._real is not None
        sentences, size = other._ids.shape
        self._ids.fill_(PAD)
        self._ids[:sentences, :size].copy_(other._ids)
        self._real.zero_()
        own = self._real[:sentences, :size]
        own.fill_(True) if other._real is None else own.copy_(other._real)

    def _kept(self, sentences: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the ids of these sentences, and their mask of real (not padded) ids."""
        return self._ids[sentences], None if self._real is None else self._real[sentences]


def output_layer(model: TranslationModel, selection: Sequence[Tensor] | None) -> OutputLayer:
    """Make the output layer of a batch.

    `selection`: one sorted id tensor (EOS included) per sentence, None for the full vocabulary.
    """
    if selection is None:
        return FullOutput(model)
    if isinstance(model, Ensemble):
        return EnsembleOutput(model, [output_layer(member, selection) for member in model.models])
    ids, real = _pad(selection, model.vocabulary_size)
    if ids.numel() > _GATHER_WEIGHTS_BELOW * model.vocabulary_size:
        return GatheredLogits(model, ids, real)
    if isinstance(model.projection, Int8Projection):
        return GatheredInt8(ids, real, [model.projection.matrix.rows(own) for own in selection])
    return GatheredWeights.of(model, ids, real)


def _pad(selection: Sequence[Tensor], vocabulary_size: int) -> tuple[Tensor, Tensor | None]:
    """Return sorted ids (B, K), padded with the vocabulary's last id, and a mask (B, K) of the real ids.

    The mask is None if nothing is padded, which saves the masking.
    """
    sizes = [len(ids) for ids in selection]
    if len(set(sizes)) == 1:
        return torch.stack(list(selection)), None
    device = selection[0].device
    real = torch.arange(max(sizes), device=device) < torch.tensor(sizes, device=device).unsqueeze(1)
    ids = torch.full(real.shape, vocabulary_size - 1, device=device)
    return ids.masked_scatter_(real, torch.cat(list(selection))), real


class FullOutput(OutputLayer):
    """Every sentence may use the whole vocabulary: K = V, positions are ids."""

    _real = None

    def __init__(self, model: TranslationModel) -> None:
        self._model = model

    def logits(self, hidden: Tensor) -> Tensor:
        return output_logits(self._model, hidden)

    def best(self, hidden: Tensor) -> Tensor:
        return raw_logits(self._model, hidden).argmax(-1)

    def ids(self, positions: Tensor) -> Tensor:
        return positions

    def ends(self, sentences: int) -> Tensor:
        return torch.full((sentences, 1), EOS, device=self._model.output_weight.device)

    def keep(self, sentences: Tensor) -> FullOutput:
        return self

    @property
    def size(self) -> int:
        return self._model.vocabulary_size

    def fixed(self, new: New, sentences: int, size: int) -> FullOutput:
        return self

    def load(self, other: Self) -> None:
        """Do nothing: a full layer does not depend on the batch."""


class GatheredWeights(OutputLayer):
    """Weight rows gathered once per sentence, before the first step, which makes selection fast."""

    def __init__(self, ids: Tensor, real: Tensor | None, weight: Tensor, bias: Tensor) -> None:
        super().__init__(ids, real)
        self._weight = weight  # (B, D, K), a view of (B, K, D)
        self._bias = bias  # (B, 1, K)

    @classmethod
    def of(cls, model: TranslationModel, ids: Tensor, real: Tensor | None) -> GatheredWeights:
        weight = model.output_weight[ids]  # (B, K, D)
        bias = model.output_bias[ids]  # (B, K)
        if real is not None:
            weight.masked_fill_(~real.unsqueeze(2), 0.0)
            bias.masked_fill_(~real, PADDED)
        return cls(ids, real, weight.transpose(1, 2), bias.unsqueeze(1))

    def logits(self, hidden: Tensor) -> Tensor:
        return torch.baddbmm(self._bias, hidden, self._weight).float()

    def keep(self, sentences: Tensor) -> GatheredWeights:
        weight = self._weight.transpose(1, 2)[sentences].transpose(1, 2)
        return GatheredWeights(*self._kept(sentences), weight, self._bias[sentences])

    def fixed(self, new: New, sentences: int, size: int) -> GatheredWeights:
        weight = new((sentences, size, self._weight.shape[1]), self._weight.dtype).transpose(1, 2)
        bias = new((sentences, 1, size), self._bias.dtype)
        ids, real = new((sentences, size), torch.long), new((sentences, size), torch.bool)
        return GatheredWeights(ids, real, weight, bias)

    def load(self, other: Self) -> None:
        super().load(other)
        sentences, size = other._ids.shape
        self._weight.zero_()
        self._weight[:sentences, :, :size].copy_(other._weight)
        self._bias.fill_(PADDED)
        self._bias[:sentences, :, :size].copy_(other._bias)


class GatheredInt8(OutputLayer):
    """Gathered weights in int8: one product per sentence."""

    fixable = False

    def __init__(self, ids: Tensor, real: Tensor | None, matrices: Sequence[Int8Matrix]) -> None:
        super().__init__(ids, real)
        self._matrices = matrices  # (K_b, D) for each sentence b

    def logits(self, hidden: Tensor) -> Tensor:
        if self._real is None:
            return torch.stack([matrix(rows) for matrix, rows in zip(self._matrices, hidden, strict=True)])
        logits = hidden.new_full((*hidden.shape[:2], self._ids.shape[1]), PADDED)
        for own, matrix, rows in zip(logits, self._matrices, hidden, strict=True):
            own[:, : len(matrix.scale)] = matrix(rows)
        return logits

    def keep(self, sentences: Tensor) -> GatheredInt8:
        return GatheredInt8(*self._kept(sentences), [self._matrices[n] for n in sentences.tolist()])


class GatheredLogits(OutputLayer):
    """Full logits, from which each sentence gathers its own: for selections too large to gather weights."""

    def __init__(self, model: TranslationModel, ids: Tensor, real: Tensor | None) -> None:
        super().__init__(ids, real)
        self._model = model

    def logits(self, hidden: Tensor) -> Tensor:
        index = self._ids.unsqueeze(1).expand(-1, hidden.shape[1], -1)
        logits = raw_logits(self._model, hidden).gather(2, index).float()
        return logits if self._real is None else logits.masked_fill_(~self._real.unsqueeze(1), PADDED)

    def keep(self, sentences: Tensor) -> GatheredLogits:
        return GatheredLogits(self._model, *self._kept(sentences))

    def fixed(self, new: New, sentences: int, size: int) -> GatheredLogits:
        ids, real = new((sentences, size), torch.long), new((sentences, size), torch.bool)
        return GatheredLogits(self._model, ids, real)


class EnsembleOutput(OutputLayer):
    """Layers of an ensemble's members. Logits are the ensemble's log-scores over each sentence's own ids."""

    fixable = False

    def __init__(self, ensemble: Ensemble, layers: Sequence[OutputLayer]) -> None:
        super().__init__(layers[0]._ids, layers[0]._real)
        self._ensemble, self._layers = ensemble, layers

    def logits(self, hidden: Tensor) -> Tensor:
        parts = zip(self._layers, hidden.split(self._ensemble.widths, dim=-1), strict=True)
        objective = self._ensemble.objective
        return log_mean([layer.log_scores(objective, layer.logits(part)) for layer, part in parts])

    def keep(self, sentences: Tensor) -> EnsembleOutput:
        return EnsembleOutput(self._ensemble, [layer.keep(sentences) for layer in self._layers])
