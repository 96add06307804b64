"""SCONES (Stahlberg and Kumar 2022): a binary classifier for each word of the vocabulary."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F

from creamtea.methods.objectives import Scones
from creamtea_workers.objectives.linear import LinearObjective


@dataclass(frozen=True)
class SconesObjective(LinearObjective):
    """Eqs. 6-8: L = -log σ(z_y) - α Σ_{w ≠ y} log(1 - σ(z_w)).

    With 1 - σ(z) = σ(-z) this is softplus(-z_y) + α (Σ_w softplus(z_w) - softplus(z_y)), exact for every
    logit; the listing in the paper's Appendix C takes the logarithm of a rounded, clipped difference
    (-69.08 in place of -20.0 at z = 20, with no gradient).

    Label smoothing λ is that of each binary label (Eqs. 11 and 12): the gold word's term becomes
    (1 - λ) softplus(-z_y) + λ softplus(z_y) = softplus(-z_y) + λ z_y, any other's softplus(z_w) - λ z_w.
    """

    alpha: float = 0.5
    label_smoothing: float = 0.0

    def loss_and_gradient(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        gold = targets[:, None]
        chosen = logits.gather(1, gold)
        # the gold term is left out of the sum, not subtracted: a large one would swallow the others' digits
        negative = F.softplus(logits).scatter_(1, gold, 0.0).sum(1)
        value = F.softplus(-chosen).sum() + self.alpha * negative.sum()
        if self.label_smoothing:
            others = (logits.sum() - chosen.sum()) * self.alpha
            value = value + self.label_smoothing * (chosen.sum() - others)
        gradient = logits.sigmoid_().sub_(self.label_smoothing).mul_(self.alpha)
        return value, gradient.scatter_(1, gold, self.label_smoothing - (-chosen).sigmoid())

    def fused_(self, product: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        from creamtea_workers.objectives import kernels  # needs Triton, which PyTorch for CPUs does not bring

        return kernels.scones_(product, bias, targets, self.alpha, self.label_smoothing)

    def log_scores(self, logits: Tensor) -> Tensor:
        return F.logsigmoid(logits.float())

    def initial_bias(self, vocabulary_size: int) -> float:
        """Return -log V: every word starts at about probability 1/V.

        At 0 the negative terms would sum to α V log 2, three orders of magnitude above where training ends.
        """
        return -math.log(vocabulary_size)


def build(spec: Scones, unigram: Tensor | None) -> SconesObjective:
    return SconesObjective(spec.alpha, spec.label_smoothing)
