"""α-entmax and its Fenchel-Young loss (Peters, Niculae and Martins 2019; Peters and Martins 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from creamtea.methods.objectives import Entmax
from creamtea_workers.objectives.base import LabelSmoothing
from creamtea_workers.objectives.linear import LinearObjective, uses_kernels
from creamtea_workers.objectives.threshold import precise, support


@dataclass(frozen=True)
class EntmaxObjective(LinearObjective):
    """L_ε(z; y) = Ω*(z) + Ω(q) - z·q with q = (1 - ε) e_y + ε r and Ω(p) = (Σ p^α - 1) / (α (α - 1)).

    That is L + ε (z_y - r·z) + C (Peters and Martins 2021, Proposition 1 and Appendix A); C = Ω(q) - Ω(e_y)
    is kept, so that losses at different ε can be compared and zero is the minimum. The gradient is p̂ - q.
    """

    alpha: float  # 1.000001 … 50 (`threshold`); 2 is sparsemax
    smoothing: LabelSmoothing

    def loss_and_gradient(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        gold, logits = targets[:, None], precise(logits, self.alpha)
        logits.sub_(logits.amax(1, keepdim=True))  # the loss does not change with the shift
        value = self.entropy(self.smoothing.power_sum(self.alpha, gold, logits))
        value -= self.smoothing.expected(logits, gold)
        candidates, rest, tau = support(logits.mul_(self.alpha - 1), self.alpha)
        p = rest.pow(1 / (self.alpha - 1))
        value += self.conjugate(p, rest, tau)
        return value.sum(), self.smoothing.subtract_from_(candidates.put_(p, logits, 0.0), gold)

    def fused_(self, product: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        from creamtea_workers.objectives import kernels  # needs Triton, which PyTorch for CPUs does not bring

        powers = self.smoothing.power_sum(self.alpha, targets[:, None], bias.expand_as(product))
        losses = kernels.entmax_(product, bias, targets, self.alpha, self.smoothing)
        return losses.add_(self.entropy(powers))

    def conjugate(self, p: Tensor, rest: Tensor, tau: Tensor) -> Tensor:
        """Return Ω*(z) = p·z - Ω(p) (n,), for z with its maximum at 0.

        `rest` is (α - 1) z - τ (n, K) on the support of p and 0 elsewhere, so that (α - 1) p·z = p·rest + τ,
        and Σ p^α = p·rest.
        """
        powers = (p * rest).sum(1)
        return (powers + tau[:, 0]) / (self.alpha - 1) - self.entropy(powers)

    def entropy(self, power_sum: Tensor) -> Tensor:
        """Return Ω of distributions whose Σ p^α is `power_sum`."""
        return (power_sum - 1) / (self.alpha * (self.alpha - 1))

    def log_scores(self, logits: Tensor) -> Tensor:
        """Return log p, exactly -inf off the support."""
        if uses_kernels(logits):
            from creamtea_workers.objectives import kernels

            return kernels.entmax_log_scores(logits, self.alpha)
        rows = precise(logits.float(), self.alpha).reshape(-1, logits.shape[-1])
        rows = (rows - rows.amax(1, keepdim=True)).mul_(self.alpha - 1)
        candidates, rest, _ = support(rows, self.alpha)
        scores = rest.clamp_(max=1.0).log_().div_(self.alpha - 1)
        return candidates.put_(scores, rows, -math.inf).reshape(logits.shape).float()


def build(spec: Entmax, unigram: Tensor | None) -> EntmaxObjective:
    return EntmaxObjective(spec.alpha, LabelSmoothing(spec.label_smoothing, spec.smoothing, unigram))
