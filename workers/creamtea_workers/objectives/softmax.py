"""Cross-entropy over the softmax."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from creamtea.methods.objectives import Softmax
from creamtea_workers.objectives.base import LabelSmoothing
from creamtea_workers.objectives.linear import LinearObjective


@dataclass(frozen=True)
class SoftmaxObjective(LinearObjective):
    """L = -Σ_w q_w log softmax(z)_w + Σ_w q_w log q_w, with q = (1 - ε) e_y + ε r.

    That is the cross-entropy of the papers and of `F.cross_entropy`, and the constant Ω(q) of the
    Fenchel-Young loss Ω*(z) + Ω(q) - z·q, with Ω(p) = Σ p log p and Ω*(z) = log Σ exp z: losses at different
    ε can be compared, and zero is the minimum. Without smoothing Ω(q) is 0. The gradient is softmax(z) - q.
    """

    smoothing: LabelSmoothing

    def loss_and_gradient(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        gold = targets[:, None]
        wanted = self.smoothing.expected(logits, gold)
        p = torch.softmax(logits, 1)
        partition = logits.amax(1) - p.amax(1).log()  # log Σ exp z, without a second pass of exponentials
        value = (partition - wanted).add_(self.smoothing.log_sum(gold, logits))
        return value.sum(), self.smoothing.subtract_from_(p, gold)

    def fused_(self, product: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        from creamtea_workers.objectives import kernels  # needs Triton, which PyTorch for CPUs does not bring

        constant = self.smoothing.log_sum(targets[:, None], bias.expand_as(product))
        return kernels.softmax_(product, bias, targets, self.smoothing).add_(constant)

    def log_scores(self, logits: Tensor) -> Tensor:
        return torch.log_softmax(logits.float(), -1)


def build(spec: Softmax, unigram: Tensor | None) -> SoftmaxObjective:
    return SoftmaxObjective(LabelSmoothing(spec.label_smoothing, spec.smoothing, unigram))
