"""Softmax, SCONES, and the base of all objectives: output layer and loss in one autograd function.

An objective computes the loss of given logits and replaces the logits by their gradient. For each chunk of
tokens this module applies the output layer, calls the objective, and adds up the gradients of hidden states,
weight and bias: at any time only one chunk of the N × V logits exists, and the backward pass only multiplies
by a number.

A chunk has the size that suits matrix products (the weight and its gradient are read once per chunk). On a
CPU the loss processes it in tiles that fit into the cache; on a GPU one kernel computes all of its gradient.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from creamtea.methods.objectives import Scones, Softmax
from creamtea_workers.objectives.base import LabelSmoothing


class Sizes(NamedTuple):
    chunk: int  # logits that exist at the same time
    tile: int  # numbers of one elementwise pass: fits into a core's cache, or is worth a kernel launch


SIZES = {"cpu": Sizes(2**23, 2**20), "cuda": Sizes(2**28, 2**26)}


class LinearObjective(ABC):
    """Base class of creamtea's objectives (`creamtea_workers.objectives.base.Objective`)."""

    def loss(self, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        """Sum the losses of hidden (N, D) under weight (V, D), bias (V,), targets (N,).

        Matrix products use autocast's type if it is on; everything else is in fp32 (fp64 for fp64 weights).
        """
        device = hidden.device.type
        low = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        with torch.autocast(device, enabled=False):  # autocast would round the objectives' own products
            return LinearLoss.apply(self, low, torch.is_grad_enabled(), hidden, weight, bias, targets)  # type: ignore[no-untyped-call]

    @abstractmethod
    def loss_and_gradient(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sum of the token losses, a scalar, and its gradient (n, V).

        logits (n, V) in fp32 or fp64, may be overwritten; targets (n,).
        """

    def fused_(self, product: Tensor, bias: Tensor, targets: Tensor) -> Tensor | None:
        """Compute the losses (n,) by a kernel on a GPU; None if the objective has no kernel.

        Overwrites `product` (n, V), the logits without the bias, by their gradient.
        """
        return None

    def initial_bias(self, vocabulary_size: int) -> float:
        return 0.0


class LinearLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, objective, low, differentiate, hidden, weight, bias, targets):  # type: ignore[no-untyped-def]
        sizes = SIZES[hidden.device.type]
        precise = torch.promote_types(weight.dtype, torch.float32)
        matrix, rows, offset = weight.to(low), hidden.to(low), bias.to(precise)
        total = torch.zeros((), dtype=precise, device=hidden.device)
        grad_bias = torch.zeros_like(offset)
        if differentiate:
            grad_hidden = torch.empty_like(rows)
            grad_weight = torch.zeros_like(weight, dtype=precise)
        chunk = min(len(rows), max(16, sizes.chunk // len(weight)))
        buffer = rows.new_empty(chunk, len(weight))
        for first in range(0, len(rows), max(1, chunk)):
            part = slice(first, first + chunk)
            product = buffer[: len(rows[part])]  # (n, V): logits without the bias, then their gradient
            torch.mm(rows[part], matrix.t(), out=product)
            differentiate_(objective, product, targets[part], offset, total, grad_bias, sizes.tile)
            if differentiate:
                torch.mm(product, matrix, out=grad_hidden[part])
                add_product_(grad_weight, product, rows[part], sizes.tile)
        if differentiate:
            ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
            ctx.types = hidden.dtype, weight.dtype, bias.dtype
        return total

    @staticmethod
    def backward(ctx, scale):  # type: ignore[no-untyped-def]
        gradients = [
            (gradient * scale).to(dtype) for gradient, dtype in zip(ctx.saved_tensors, ctx.types, strict=True)
        ]
        return None, None, None, *gradients, None


def differentiate_(
    objective: LinearObjective,
    product: Tensor,
    targets: Tensor,
    offset: Tensor,
    total: Tensor,
    grad_bias: Tensor,
    tile: int,
) -> None:
    """Turn the product (n, V), the logits without the bias `offset`, into their gradient.

    Add the losses to `total` and the gradient of the bias to `grad_bias`.
    """
    losses = objective.fused_(product, offset, targets) if uses_kernels(product) else None
    if losses is not None:
        total += losses.sum()
        grad_bias += product.sum(0, dtype=offset.dtype)
        return
    tokens = max(1, tile // len(offset))
    for piece, gold in zip(product.split(tokens), targets.split(tokens), strict=True):
        value, gradient = objective.loss_and_gradient(piece.to(offset.dtype).add_(offset), gold)
        total += value
        grad_bias += gradient.sum(0)
        piece.copy_(gradient)  # no copy if it was computed in place


def add_product_(total: Tensor, gradient: Tensor, rows: Tensor, tile: int) -> None:
    """Add a product: total (V, D) += gradient (n, V)ᵀ · rows (n, D).

    cuBLAS adds a product of lower precision in fp32. On a CPU the product is added tile by tile: a whole
    product would pass through memory three more times.
    """
    if gradient.dtype == total.dtype:
        total.addmm_(gradient.t(), rows)
        return
    if total.is_cuda and total.dtype == torch.float32:
        torch.addmm(total, gradient.t(), rows, out_dtype=torch.float32, out=total)
        return
    words = max(1, tile // rows.shape[1])
    for block, part in zip(total.split(words), gradient.split(words, 1), strict=True):
        block += part.t() @ rows


def uses_kernels(tensor: Tensor) -> bool:
    """Return True if Triton's kernels process `tensor`, False for PyTorch's operations."""
    return tensor.is_cuda


@dataclass(frozen=True)
class SoftmaxObjective(LinearObjective):
    """Cross-entropy over the softmax.

    L = -Σ_w q_w log softmax(z)_w + Σ_w q_w log q_w, with q = (1 - ε) e_y + ε r.

    It is the cross-entropy of the papers and of `F.cross_entropy` plus the constant Ω(q), hence the
    Fenchel-Young loss Ω*(z) + Ω(q) - z·q, with Ω(p) = Σ p log p and Ω*(z) = log Σ exp z. The constant makes
    losses at different ε comparable, with minimum zero; it is 0 without smoothing. The gradient is
    softmax(z) - q.
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


@dataclass(frozen=True)
class SconesObjective(LinearObjective):
    """SCONES (Stahlberg and Kumar 2022): a binary classifier for each word of the vocabulary.

    Eqs. 6-8: L = -log σ(z_y) - α Σ_{w ≠ y} log(1 - σ(z_w)).

    With 1 - σ(z) = σ(-z) this is softplus(-z_y) + α (Σ_w softplus(z_w) - softplus(z_y)), exact for every
    logit; the listing in the paper's Appendix C takes the logarithm of a rounded, clipped difference
    (-69.08 instead of -20.0 at z = 20, without a gradient).

    Label smoothing λ applies to each binary label (Eqs. 11 and 12): the gold word's term becomes
    (1 - λ) softplus(-z_y) + λ softplus(z_y) = softplus(-z_y) + λ z_y, another word's softplus(z_w) - λ z_w.
    """

    alpha: float = 0.5
    label_smoothing: float = 0.0

    def loss_and_gradient(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        gold = targets[:, None]
        chosen = logits.gather(1, gold)
        # the gold term is excluded from the sum, not subtracted: a large one would swallow the others' digits
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

        At 0 the negative terms would sum to α V log 2, a thousand times the loss at the end of training.
        """
        return -math.log(vocabulary_size)


def build(spec: Softmax | Scones, unigram: Tensor | None) -> SoftmaxObjective | SconesObjective:
    if isinstance(spec, Softmax):
        return SoftmaxObjective(LabelSmoothing(spec.label_smoothing, spec.smoothing, unigram))
    return SconesObjective(spec.alpha, spec.label_smoothing)
