"""1.5-entmax and its Fenchel-Young loss (Peters, Niculae and Martins 2019; Peters and Martins 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from creamtea_workers.objectives.linear import linear_loss

ALPHA = 1.5
MOST_ITERATIONS = 60  # five to seven do; the limit is for rows that are not finite


@dataclass(frozen=True)
class EntmaxObjective:
    """L_ε(z; y) = Ω*(z) + Ω(q) - z·q with q = (1 - ε) e_y + ε/V and Ω(p) = (Σ p^α - 1) / (α (α - 1)).

    That is L + ε (z_y - z̄) + C (Peters and Martins 2021, Proposition 1); C = Ω(q) - Ω(e_y) is kept, so
    that losses at different ε can be compared and zero is the minimum. The gradient is p̂ - q.
    """

    label_smoothing: float = 0.0

    def loss(self, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        return linear_loss(self, hidden, weight, bias, targets)

    def loss_and_gradient(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        epsilon, size = self.label_smoothing, logits.shape[1]
        gold = targets[:, None]
        half = shift_and_halve_(logits)
        chosen = 2 * half.gather(1, gold).sum()  # the loss does not change with the shift
        value = -chosen
        if epsilon:
            value = value + epsilon * (chosen - 2 * half.mean(1).sum())
            value = value + len(targets) * smoothing_constant(epsilon, size)
        tau = threshold(half)
        root = half.sub_(tau).clamp_(min=0.0)  # √p
        value = value + conjugate(root, tau).sum()
        gradient = root.square_()
        if epsilon:
            gradient.sub_(epsilon / size)
        gradient.scatter_add_(1, gold, gradient.new_full(gold.shape, epsilon - 1))  # p - q
        return value, gradient

    def log_scores(self, logits: Tensor) -> Tensor:
        """Exactly -inf off the support."""
        rows = logits.float().reshape(-1, logits.shape[-1])
        return entmax15(rows).log_().clamp_(max=0.0).reshape(logits.shape)

    def initial_bias(self, vocabulary_size: int) -> float:
        return 0.0


def smoothing_constant(epsilon: float, size: int) -> float:
    """C = Ω((1 - ε) e_y + ε/V) - Ω(e_y), of V = size words."""
    other = epsilon / size
    mass: float = (1 - epsilon + other) ** ALPHA + (size - 1) * other**ALPHA
    return (mass - 1) / (ALPHA * (ALPHA - 1))


def entmax15(logits: Tensor) -> Tensor:
    """Exact 1.5-entmax of the rows of (n, V): p = [z/2 - τ]₊², Σ p = 1."""
    half = shift_and_halve_(logits.clone())
    return half.sub_(threshold(half)).clamp_(min=0.0).square_()


def shift_and_halve_(logits: Tensor) -> Tensor:
    """z/2 with the row's maximum at 0: the same entmax, and z/2 - τ keeps its digits."""
    return logits.sub_(logits.amax(1, keepdim=True)).mul_(0.5)


def threshold(half: Tensor) -> Tensor:
    """τ (n, 1) of the rows of half = z/2 (n, V), whose maximum is 0.

    Newton's method on g(τ) = ‖[half - τ]₊‖ - 1, which is convex and falls: from τ = -1, where g ≥ 0, it
    comes closer from the left without a step too far, and it ends at rounding error after five to seven
    passes over the row, however large the support. Sorting (Peters, Niculae and Martins 2019, Algorithm 2)
    takes twice as long for the 32 largest logits, and forty times as long for all of a row of 4,000.
    """
    tau = torch.full_like(half[:, :1], -1.0)
    tolerance = 8 * torch.finfo(half.dtype).eps
    for _ in range(MOST_ITERATIONS):
        root = (half - tau).clamp_(min=0.0)
        norm = torch.linalg.vector_norm(root, dim=1, keepdim=True)
        step = (norm - 1) * norm / root.sum(1, keepdim=True)
        tau += step
        if step.max().item() <= tolerance:
            break
    return tau


def conjugate(root: Tensor, tau: Tensor) -> Tensor:
    """Ω*(z) = p·z - Ω(p) (n,), for z with its maximum at 0: root = √p (n, V) and τ (n, 1).

    On the support z/2 = √p + τ, so that p·z = 2 Σ √p³ + 2τ, and Ω(p) = (Σ √p³ - 1) / 0.75.
    """
    cubes = (root * root * root).sum(1)
    return 2 * cubes + 2 * tau[:, 0] - (cubes - 1) / (ALPHA * (ALPHA - 1))
