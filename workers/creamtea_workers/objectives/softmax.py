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
        wanted = (1 - epsilon) * logits.gather(1, gold).sum() + epsilon * logits.mean(1).sum()  # Σ q · z
        p = torch.softmax(logits, 1)
        partition = logits.amax(1) - p.amax(1).log()  # log Σ exp z, without a second pass of exponentials
        gradient = p.sub_(epsilon / size) if epsilon else p
        gradient.scatter_add_(1, gold, p.new_full(gold.shape, epsilon - 1))  # softmax(z) - q
        return partition.sum() - wanted, gradient

    def log_scores(self, logits: Tensor) -> Tensor:
        return torch.log_softmax(logits.float(), -1)

    def initial_bias(self, vocabulary_size: int) -> float:
        return 0.0
