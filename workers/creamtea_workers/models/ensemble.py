"""Ensembles: several trained models as one, by the mean of their probabilities at each step.

An ensemble's hidden vector is the concatenation of its members' vectors, and its logits are already
log-scores: every search works on it as on a single model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from creamtea_workers.models.interface import Memory, Projection, State, TranslationModel, Tree, output_logits
from creamtea_workers.objectives.base import Objective


class EnsembleMemory(Memory):
    """The members' memories. `hidden` and `mask` are the first member's."""

    def __init__(self, members: Sequence[Memory]) -> None:
        super().__init__(members[0].hidden, members[0].mask)
        self.members = members

    def select(self, rows: Tensor) -> EnsembleMemory:
        return EnsembleMemory([memory.select(rows) for memory in self.members])


@dataclass
class EnsembleState:
    members: Sequence[State]

    def reorder(self, rows: Tensor) -> None:
        for state in self.members:
            state.reorder(rows)


@dataclass
class EnsembleTree:
    """The members' trees, which number nodes alike because they add and free the same nodes."""

    members: Sequence[Tree]

    def free(self, nodes: Sequence[int]) -> None:
        for tree in self.members:
            tree.free(nodes)


class Ensemble:
    """Models with one vocabulary as a `TranslationModel`: p = 1/k Σ p_k (SCONES: the mean of σ)."""

    def __init__(self, models: Sequence[TranslationModel], objective: Objective) -> None:
        self.models, self.objective = models, objective
        self.vocabulary_size, self.output_bias = models[0].vocabulary_size, models[0].output_bias
        self.kept = sum(model.kept for model in models)
        self.may_pad = all(model.may_pad for model in models)
        self.projection: Projection | None = self.log_mean
        self.widths = [model.output_weight.shape[1] for model in models]

    @property
    def output_weight(self) -> Tensor:
        """The first member's weight, which tells the device."""
        return self.models[0].output_weight

    def log_mean(self, hidden: Tensor) -> Tensor:
        """Return log 1/k Σ p_k (..., V), ≤ 0, of hidden (..., Σ D)."""
        parts = zip(self.models, hidden.split(self.widths, dim=-1), strict=True)
        return log_mean([self.objective.log_scores(output_logits(model, part)) for model, part in parts])

    def encode(self, source: Tensor) -> EnsembleMemory:
        return EnsembleMemory([model.encode(source) for model in self.models])

    def decode(self, memory: Memory, target_in: Tensor) -> Tensor:
        return torch.cat([model.decode(own, target_in) for model, own in self._pairs(memory)], dim=-1)

    def start(self, memory: Memory, max_length: int) -> EnsembleState:
        return EnsembleState([model.start(own, max_length) for model, own in self._pairs(memory)])

    def step(self, tokens: Tensor, state: State) -> Tensor:
        assert isinstance(state, EnsembleState)
        pairs = zip(self.models, state.members, strict=True)
        return torch.cat([model.step(tokens, own) for model, own in pairs], dim=-1)

    def start_tree(self, memory: Memory, max_length: int) -> EnsembleTree:
        return EnsembleTree([model.start_tree(own, max_length) for model, own in self._pairs(memory)])

    def step_tree(self, tokens: Tensor, parents: Tensor, tree: Tree) -> tuple[Tensor, list[int]]:
        assert isinstance(tree, EnsembleTree)
        pairs = zip(self.models, tree.members, strict=True)
        hidden, nodes = zip(*(model.step_tree(tokens, parents, own) for model, own in pairs), strict=True)
        assert all(others == nodes[0] for others in nodes)
        return torch.cat(hidden, dim=-1), nodes[0]

    def _pairs(self, memory: Memory) -> Iterator[tuple[TranslationModel, Memory]]:
        assert isinstance(memory, EnsembleMemory)
        return zip(self.models, memory.members, strict=True)

    def nvs_logits(self, memory: Memory) -> Tensor:
        raise ValueError("an ensemble has no NVS head")


def log_mean(scores: Sequence[Tensor]) -> Tensor:
    """Return log 1/k Σ p_k, ≤ 0, from k tensors of log-scores of the same shape."""
    return (torch.stack(list(scores)).logsumexp(dim=0) - math.log(len(scores))).clamp_(max=0.0)


class EnsembleObjective:
    """The objective of an ensemble, whose logits are log-scores."""

    def loss(self, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        raise NotImplementedError("an ensemble is not trained")

    def log_scores(self, logits: Tensor) -> Tensor:
        return logits

    def initial_bias(self, vocabulary_size: int) -> float:
        raise NotImplementedError("an ensemble is not trained")
