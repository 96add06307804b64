"""Cross-entropy over the softmax."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from creamtea_workers.objectives.linear import linear_loss


@dataclass(frozen=True)
class SoftmaxObjective:
    """L = -Σ_w q_w log softmax(z)_w with q = (1 - ε) e_y + ε/V: label smoothing mixes the gold label with
    the uniform distribution over all of V, the gold label included, as `F.cross_entropy` has it
    (other toolkits divide by V - 1 or V - 2).
    """

    label_smoothing: float = 0.0

    def loss(self, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        return linear_loss(self, hidden, weight, bias, targets)

    def loss_and_gradient(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        epsilon, size = self.label_smoothing, logits.shape[1]
        gold = targets[:, None]
        z = logits.sub_(logits.amax(1, keepdim=True))
        wanted = (1 - epsilon) * z.gather(1, gold).sum()  # Σ_tokens q · z
        if epsilon:
            wanted = wanted + epsilon / size * z.sum()
        p = z.exp_()
        mass = p.sum(1, keepdim=True)
        value = mass.log().sum() - wanted
        p.div_(mass)
        if epsilon:
            p.sub_(epsilon / size)
        return value, p.scatter_add_(1, gold, p.new_full(gold.shape, epsilon - 1))  # softmax(z) - q

    def log_scores(self, logits: Tensor) -> Tensor:
        return torch.log_softmax(logits.float(), -1)

    def initial_bias(self, vocabulary_size: int) -> float:
        return 0.0
