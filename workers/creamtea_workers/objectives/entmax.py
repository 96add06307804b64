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
        half = shift_and_halve_(logits)
        chosen = 2 * half.gather(1, gold).sum()  # the loss does not change with the shift
        value = -chosen
        if epsilon:
            value = value + epsilon * (chosen - 2 * half.mean(1).sum())
            value = value + len(targets) * smoothing_constant(epsilon, size)
        threshold, conjugate = solve(half)
        p = half.sub_(threshold).clamp_(min=0.0).square_()
        gradient = p.sub_(epsilon / size) if epsilon else p
        gradient.scatter_add_(1, gold, p.new_full(gold.shape, epsilon - 1))  # p - q
        return value + conjugate.sum(), gradient

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
    return half.sub_(solve(half)[0]).clamp_(min=0.0).square_()


def shift_and_halve_(logits: Tensor) -> Tensor:
    """z/2 with the row's maximum at 0: the same entmax, and z/2 - τ keeps its digits."""
    return logits.sub_(logits.amax(1, keepdim=True)).mul_(0.5)


def solve(half: Tensor) -> tuple[Tensor, Tensor]:
    """τ (n, 1) and the conjugate Ω*(z) = max_p p·z - Ω(p) (n,) of the rows of half = z/2 (n, V), whose
    maximum is 0.

    Both need the support alone. The largest k logits suffice when fewer than k of them are in it; the rows
    for which they do not are done again with four times as many.
    """
    threshold, conjugate = torch.empty_like(half[:, :1]), torch.empty_like(half[:, 0])
    rows, left = torch.arange(half.shape[0], device=half.device), half
    k = min(FIRST_K, half.shape[1])
    while True:
        tau, value, support = solve_sorted(left.topk(k, 1).values)
        threshold[rows], conjugate[rows] = tau, value
        unsure = (support == k).nonzero()[:, 0]
        if k == half.shape[1] or len(unsure) == 0:
            return threshold, conjugate
        rows = rows[unsure]
        left = half[rows]
        k = min(4 * k, half.shape[1])


def solve_sorted(top: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """τ (n, 1), Ω*(z) (n,) and the size of the support (n,) of rows z/2 (n, k), sorted downwards.

    With the j largest in the support, τ_j = mean - √((1 - j · variance) / j) (Peters, Niculae and Martins
    2019, Algorithm 2); the support is the largest j with τ_j ≤ top_j.
    """
    count = torch.arange(1, top.shape[1] + 1, dtype=top.dtype, device=top.device)
    mean = top.cumsum(1) / count
    scatter = (top * top).cumsum(1) - count * mean * mean  # j · variance
    candidates = mean - ((1 - scatter) / count).clamp(min=0.0).sqrt()
    support = (candidates <= top).sum(1)
    tau = candidates.gather(1, support[:, None] - 1)
    root = (top - tau).clamp(min=0.0)  # √p
    p = root * root
    negentropy = ((p * root).sum(1) - 1) / (ALPHA * (ALPHA - 1))
    return tau, 2 * (p * top).sum(1) - negentropy, support
