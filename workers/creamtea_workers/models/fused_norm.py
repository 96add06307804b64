"""Residual connection, dropout and layer normalisation in one Triton kernel, forwards and backwards.

    y = x + m ⊙ h / (1 - p),   n = w ⊙ (y - mean(y)) / √(var(y) + ε) + b

The mask m is not kept. It is a hash of (seed, site, position), which the backward pass computes again; as in
`layers.Dropout`, a byte is compared with a threshold, and p is a multiple of 1/256.

Shapes: N rows, D width.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

TILE = 2048  # numbers that a program holds at a time
STEPS = 8  # tiles over which a program of the backward pass sums the gradients of w and b


class AddAndNormalise(torch.autograd.Function):
    """x (N, D) in fp32 or None, h (N, D) → y (N, D) in fp32, n (N, D) in `dtype`."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor | None,
        added: Tensor,
        weight: Tensor,
        bias: Tensor,
        seed: Tensor,
        site: int,
        threshold: int,
        epsilon: float,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        added = added.contiguous()
        rows, width = added.shape
        total = torch.empty(rows, width, dtype=torch.float32, device=added.device)
        normed = torch.empty(rows, width, dtype=dtype, device=added.device)
        statistics = torch.empty(2, rows, dtype=torch.float32, device=added.device)  # mean, 1 / deviation
        block = triton.next_power_of_2(width)
        tile = max(1, TILE // block)
        _forwards[(triton.cdiv(rows, tile),)](
            total if x is None else x.contiguous(), added, weight, bias, seed, total, normed, statistics,
            rows, width, site, epsilon, x is not None, threshold, tile, block,
        )  # fmt: skip
        ctx.save_for_backward(total, statistics, weight, seed)
        ctx.site, ctx.threshold, ctx.dtype = site, threshold, added.dtype
        ctx.set_materialize_grads(False)
        return total, normed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_total: Tensor | None, grad_normed: Tensor | None) -> Any:
        total, statistics, weight, seed = ctx.saved_tensors
        if grad_normed is None:  # of a value that nothing depends on
            grad_normed = torch.zeros_like(total)
        rows, width = total.shape
        block = triton.next_power_of_2(width)
        tile = max(1, TILE // block)
        programs = triton.cdiv(rows, tile * STEPS)
        grad_x = torch.empty_like(total)
        grad_added = torch.empty_like(total, dtype=ctx.dtype)
        partial = torch.empty(2, programs, width, dtype=torch.float32, device=total.device)
        _backwards[(programs,)](
            total, statistics, weight, seed, grad_normed.contiguous(),
            grad_x if grad_total is None else grad_total.contiguous(), grad_x, grad_added, partial,
            rows, width, ctx.site, programs, grad_total is not None, ctx.threshold, tile, block, STEPS,
        )  # fmt: skip
        grad_weight, grad_bias = partial.sum(1)
        needs_x = grad_x if ctx.needs_input_grad[0] else None
        return needs_x, grad_added, grad_weight, grad_bias, None, None, None, None, None


@triton.jit  # type: ignore[untyped-decorator]
def _kept(seed_place, site, place, THRESHOLD: tl.constexpr):  # type: ignore[no-untyped-def]
    """Return 0 or 1 / (1 - p) for each place: a hash whose two keys are those of the seed and the site."""
    seed = tl.load(seed_place)
    first = seed.to(tl.uint32) + site * 0x27D4EB2F
    second = (seed >> 32).to(tl.uint32) ^ (first * 0x2545F491)
    number = (place.to(tl.uint32) * 0x165667B1) ^ first
    number = (number ^ (number >> 15)) * 0x2C1B3C6D + second
    number = (number ^ (number >> 12)) * 0x297A2D39
    number = number ^ (number >> 15)
    return tl.where((number & 255) >= THRESHOLD, 256.0 / (256 - THRESHOLD), 0.0)


@triton.jit(do_not_specialize=["rows", "site"])  # type: ignore[untyped-decorator]
def _forwards(  # type: ignore[no-untyped-def]
    x, added, weight, bias, seed, total, normed, statistics,
    rows, width, site, epsilon,
    HAS_X: tl.constexpr, THRESHOLD: tl.constexpr, TILE_ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * TILE_ROWS + tl.arange(0, TILE_ROWS)
    column = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (column < width)[None, :]
    place = row[:, None] * width + column[None, :]
    y = tl.load(added + place, inside, 0.0).to(tl.float32)
    if THRESHOLD > 0:
        y *= _kept(seed, site, place, THRESHOLD)
    if HAS_X:
        y += tl.load(x + place, inside, 0.0)
    tl.store(total + place, y, inside)
    mean = tl.sum(y, 1) / width
    centred = tl.where((column < width)[None, :], y - mean[:, None], 0.0)
    inverse = 1.0 / tl.sqrt(tl.sum(centred * centred, 1) / width + epsilon)
    tl.store(statistics + row, mean, row < rows)
    tl.store(statistics + rows + row, inverse, row < rows)
    w = tl.load(weight + column, column < width, 0.0)[None, :]
    b = tl.load(bias + column, column < width, 0.0)[None, :]
    n = centred * inverse[:, None] * w + b
    tl.store(normed + place, n.to(normed.dtype.element_ty), inside)


@triton.jit(do_not_specialize=["rows", "site", "programs"])  # type: ignore[untyped-decorator]
def _backwards(  # type: ignore[no-untyped-def]
    total, statistics, weight, seed, grad_normed, grad_total, grad_x, grad_added, partial,
    rows, width, site, programs,
    HAS_TOTAL: tl.constexpr, THRESHOLD: tl.constexpr, TILE_ROWS: tl.constexpr, BLOCK: tl.constexpr,
    STEPS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    w = tl.load(weight + column, column < width, 0.0)[None, :]
    of_weight = tl.zeros((BLOCK,), tl.float32)
    of_bias = tl.zeros((BLOCK,), tl.float32)
    for step in range(STEPS):
        row = (program * STEPS + step) * TILE_ROWS + tl.arange(0, TILE_ROWS)
        inside = (row < rows)[:, None] & (column < width)[None, :]
        place = row[:, None] * width + column[None, :]
        mean = tl.load(statistics + row, row < rows, 0.0)[:, None]
        inverse = tl.load(statistics + rows + row, row < rows, 0.0)[:, None]
        y = tl.load(total + place, inside, 0.0)
        gradient = tl.load(grad_normed + place, inside, 0.0).to(tl.float32)
        scaled = tl.where(inside, (y - mean) * inverse, 0.0)
        of_weight += tl.sum(gradient * scaled, 0)
        of_bias += tl.sum(gradient, 0)
        slope = gradient * w
        along = (tl.sum(slope * scaled, 1) / width)[:, None]
        slope = (slope - (tl.sum(slope, 1) / width)[:, None] - scaled * along) * inverse
        if HAS_TOTAL:
            slope += tl.load(grad_total + place, inside, 0.0).to(tl.float32)
        tl.store(grad_x + place, slope, inside)
        if THRESHOLD > 0:
            slope *= _kept(seed, site, place, THRESHOLD)
        tl.store(grad_added + place, slope.to(grad_added.dtype.element_ty), inside)
    tl.store(partial + program * width + column, of_weight, column < width)
    tl.store(partial + (programs + program) * width + column, of_bias, column < width)
