"""1.5-entmax and its Fenchel-Young loss (Peters, Niculae and Martins 2019; Peters and Martins 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from creamtea_workers.objectives.linear import linear_loss

ALPHA = 1.5
FIRST_K = 32


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
        z = logits.sub_(logits.amax(1, keepdim=True))  # the loss does not change with a shift
        p = entmax15(z)
        chosen = z.gather(1, gold).sum()
        value = (p * z).sum() - negentropy(p).sum() - chosen  # Ω*(z) - z_y
        if epsilon:
            value = value + epsilon * (chosen - z.mean(1).sum())
            value = value + len(targets) * smoothing_constant(epsilon, size)
            p.sub_(epsilon / size)
        return value, p.scatter_add_(1, gold, p.new_full(gold.shape, epsilon - 1))

    def log_scores(self, logits: Tensor) -> Tensor:
        """Exactly -inf off the support."""
        rows = logits.float().reshape(-1, logits.shape[-1])
        return entmax15(rows).log_().clamp_(max=0.0).reshape(logits.shape)

    def initial_bias(self, vocabulary_size: int) -> float:
        return 0.0


def negentropy(p: Tensor) -> Tensor:
    """Tsallis' Ω(p) = (Σ p^1.5 - 1) / (1.5 · 0.5) over the last axis."""
    return ((p * p.sqrt()).sum(-1) - 1) / (ALPHA * (ALPHA - 1))


def smoothing_constant(epsilon: float, size: int) -> float:
    """C = Ω((1 - ε) e_y + ε/V) - Ω(e_y), of V = size words."""
    other = epsilon / size
    mass: float = (1 - epsilon + other) ** ALPHA + (size - 1) * other**ALPHA
    return (mass - 1) / (ALPHA * (ALPHA - 1))


def entmax15(logits: Tensor) -> Tensor:
    """Exact 1.5-entmax of the rows of (n, V): p = [z/2 - τ]₊², Σ p = 1.

    τ needs only the sorted support. The largest k logits suffice when fewer than k of them are in it;
    the rows for which they do not are done again with four times as many.
    """
    half = logits / 2
    threshold = torch.empty_like(half[:, :1])
    rows = torch.arange(half.shape[0], device=half.device)
    k = min(FIRST_K, half.shape[1])
    while True:
        every = len(rows) == half.shape[0]
        top = (half if every else half[rows]).topk(k, 1).values
        tau, support = solve(top)
        threshold[rows] = tau
        rows = rows[support == k] if k < half.shape[1] else rows[:0]
        if len(rows) == 0:
            return half.sub_(threshold).clamp_(min=0.0).square_()
        k = min(4 * k, half.shape[1])


def solve(top: Tensor) -> tuple[Tensor, Tensor]:
    """τ (n, 1) and the size of the support (n,) of rows (n, k) of z/2, sorted downwards.

    With the j largest in the support, τ_j = mean - √((1 - j·variance) / j) (Peters et al. 2019,
    Algorithm 2); the support is the largest j with τ_j ≤ top_j. The rows are shifted by their maximum
    first, which keeps the variance's digits."""
    shift = top[:, :1]
    x = top - shift
    count = torch.arange(1, top.shape[1] + 1, dtype=top.dtype, device=top.device)
    mean = x.cumsum(1) / count
    scatter = (x * x).cumsum(1) - count * mean * mean  # j · variance
    tau = mean - ((1 - scatter) / count).clamp(min=0.0).sqrt()
    support = (tau <= x).sum(1)
    return tau.gather(1, support[:, None] - 1) + shift, support
