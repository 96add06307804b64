"""Output layer and loss in one autograd function, a few tokens at a time.

Every objective says what the loss of given logits is and turns the logits, in place, into the gradient.
Here the output layer is applied to a chunk of tokens, that is done, and the gradients of hidden states,
weight and bias are summed up at once: never more than a chunk of N × V logits exists, and the backward
pass is a multiplication by a number.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

CHUNK = {"cpu": 2**20, "cuda": 2**26}  # logits of a chunk: a CPU's cache, a GPU's launch overhead


class LogitLoss(Protocol):
    def loss_and_gradient(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """logits (n, V) in fp32 or fp64, which may be overwritten; targets (n,).
        The sum of the token losses, a scalar, and its gradient (n, V)."""


def linear_loss(loss: LogitLoss, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Sum of the losses of hidden (N, D) under weight (V, D), bias (V,), targets (N,).

    The matrix products run in autocast's type where it is on, all else in fp32 (fp64 of fp64)."""
    return LinearLoss.apply(loss, torch.is_grad_enabled(), hidden, weight, bias, targets)


class LinearLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, loss, differentiate, hidden, weight, bias, targets):  # type: ignore[no-untyped-def]
        device = hidden.device.type
        precise = torch.promote_types(weight.dtype, torch.float32)
        low = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        matrix, rows, offset = weight.to(low), hidden.to(low), bias.to(precise)
        total = torch.zeros((), dtype=precise, device=hidden.device)
        if differentiate:
            grad_hidden = torch.empty_like(rows)
            grad_weight = torch.zeros_like(weight, dtype=precise)
            grad_bias = torch.zeros_like(offset)
        some = max(16, CHUNK.get(device, 2**20) // weight.shape[0])
        for first in range(0, hidden.shape[0], some):
            part = slice(first, first + some)
            logits = (rows[part] @ matrix.t()).to(precise).add_(offset)  # (n, V)
            value, gradient = loss.loss_and_gradient(logits, targets[part])
            total += value
            if differentiate:
                grad_bias += gradient.sum(0)
                gradient = gradient.to(low)
                torch.mm(gradient, matrix, out=grad_hidden[part])
                grad_weight += gradient.t() @ rows[part]
        if differentiate:
            ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
            ctx.types = hidden.dtype, weight.dtype, bias.dtype
        return total

    @staticmethod
    def backward(ctx, scale):  # type: ignore[no-untyped-def]
        gradients = [
            (gradient * scale).to(dtype) for gradient, dtype in zip(ctx.saved_tensors, ctx.types, strict=True)
        ]
        return None, None, *gradients, None
