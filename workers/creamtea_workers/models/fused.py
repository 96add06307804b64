"""Triton kernels for a Transformer's layers: training on packed sentences (both passes), and decoding.

- Residual connection, dropout and layer normalisation in one kernel:

      y = x + m ⊙ h / (1 - p),   n = w ⊙ (y - mean(y)) / √(var(y) + ε) + b

  The mask m is not stored: it is a hash of (seed, site, position), which the backward pass recomputes. As in
  `layers.Dropout`, a byte is compared with a threshold, and p is a multiple of 1/256.
- Attention of short sentences: a program holds all queries and keys of one head of one sentence. It stores
  nothing for the backward pass, and no two programs write to the same place.
- Attention of a decoding step, without gradients: a program serves one head of one sentence, and reads each
  key and value once for all of the sentence's k rows.

Shapes: N rows (N_q queries, N_s keys), B sentences, H heads, D width, E = D / H.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

TILE = 2048  # numbers that a program holds at a time
KEYS = 64  # keys that a program holds at a time, in a decoding step's attention
MIN_ROWS = 16  # fewest rows of a product in tensor cores
WIDTHS = (16, 32, 64, 128)  # values of E that a decoding step's attention supports
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
        if grad_normed is None:  # nothing depends on the value
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
    """Return 0 or 1 / (1 - p) for each place, by a hash keyed by the seed and the site."""
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


class ShortAttention(torch.autograd.Function):
    """q (N_q, H, E), k and v (N_s, H, E) → (N_q, H, E). k and v have equal strides.

    `starts`: first row of each sentence, for queries and keys (B + 1,). `longest`: longest sentence of each.
    """

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        starts: tuple[Tensor, Tensor],
        longest: tuple[int, int],
        causal: bool,
    ) -> Tensor:
        out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
        ctx.launch = _launch(q, k, starts, longest, causal)
        grid, sizes, options = ctx.launch
        _attend[grid](q, k, v, out, *starts, *sizes, **options)
        ctx.save_for_backward(q, k, v, *starts)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> Any:
        q, k, v, *starts = ctx.saved_tensors
        grid, sizes, options = ctx.launch
        slopes = [torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v)]
        _attend_backwards[grid](q, k, v, slope.contiguous(), *slopes, *starts, *sizes, **options)
        return *slopes, None, None, None


def _launch(
    q: Tensor, k: Tensor, starts: tuple[Tensor, Tensor], longest: tuple[int, int], causal: bool
) -> tuple[tuple[int, int], tuple[Any, ...], dict[str, Any]]:
    """Return grid, sizes and options for both kernels."""
    _, heads, width = q.shape
    blocks = [max(16, triton.next_power_of_2(length)) for length in longest]
    sizes = (q.stride(0), k.stride(0), heads, width**-0.5)
    options = {"CAUSAL": causal, "WIDTH": width, "BLOCK_Q": blocks[0], "BLOCK_K": blocks[1]}
    return (len(starts[0]) - 1, heads), sizes, {**options, "num_warps": 4 if max(blocks) > 32 else 2}


@triton.jit  # type: ignore[untyped-decorator]
def _weights(  # type: ignore[no-untyped-def]
    queries, keys, rows_q, rows_k, scale, CAUSAL: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr
):
    """Return the attention weights (BLOCK_Q, BLOCK_K), zero beyond the queries and keys."""
    row, column = tl.arange(0, BLOCK_Q)[:, None], tl.arange(0, BLOCK_K)[None, :]
    visible = (row < rows_q) & (column < rows_k)
    if CAUSAL:
        visible = visible & (column <= row)
    scores = tl.where(visible, tl.dot(queries, tl.trans(keys), input_precision="ieee") * scale, -1e30)
    weights = tl.where(visible, tl.exp(scores - tl.max(scores, 1)[:, None]), 0.0)
    total = tl.sum(weights, 1)[:, None]
    return weights / tl.where(total > 0, total, 1.0)


@triton.jit  # type: ignore[untyped-decorator]
def _attend(  # type: ignore[no-untyped-def]
    q, k, v, out, starts_q, starts_k, stride_q, stride_k, heads, scale,
    CAUSAL: tl.constexpr, WIDTH: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    sentence, head = tl.program_id(0), tl.program_id(1)
    first_q, first_k = tl.load(starts_q + sentence), tl.load(starts_k + sentence)
    rows_q, rows_k = tl.load(starts_q + sentence + 1) - first_q, tl.load(starts_k + sentence + 1) - first_k
    if rows_q > 0:
        row_q, row_k = tl.arange(0, BLOCK_Q)[:, None], tl.arange(0, BLOCK_K)[:, None]
        column = head * WIDTH + tl.arange(0, WIDTH)[None, :]
        place_k = (first_k + row_k) * stride_k + column
        queries = tl.load(q + (first_q + row_q) * stride_q + column, row_q < rows_q, 0.0)
        keys = tl.load(k + place_k, row_k < rows_k, 0.0)
        values = tl.load(v + place_k, row_k < rows_k, 0.0)
        weights = _weights(queries, keys, rows_q, rows_k, scale, CAUSAL, BLOCK_Q, BLOCK_K)
        attended = tl.dot(weights.to(values.dtype), values, input_precision="ieee")
        place = (first_q + row_q) * heads * WIDTH + column
        tl.store(out + place, attended.to(out.dtype.element_ty), row_q < rows_q)


@triton.jit  # type: ignore[untyped-decorator]
def _attend_backwards(  # type: ignore[no-untyped-def]
    q, k, v, slope, slope_q, slope_k, slope_v, starts_q, starts_k, stride_q, stride_k, heads, scale,
    CAUSAL: tl.constexpr, WIDTH: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """With weights P and slope G: ∂V = Pᵀ G, ∂P = G Vᵀ, ∂S = P ⊙ (∂P - Σ P ⊙ ∂P), ∂Q = ∂S K."""
    sentence, head = tl.program_id(0), tl.program_id(1)
    first_q, first_k = tl.load(starts_q + sentence), tl.load(starts_k + sentence)
    rows_q, rows_k = tl.load(starts_q + sentence + 1) - first_q, tl.load(starts_k + sentence + 1) - first_k
    if rows_q + rows_k > 0:
        row_q, row_k = tl.arange(0, BLOCK_Q)[:, None], tl.arange(0, BLOCK_K)[:, None]
        column = head * WIDTH + tl.arange(0, WIDTH)[None, :]
        place_k = (first_k + row_k) * stride_k + column
        queries = tl.load(q + (first_q + row_q) * stride_q + column, row_q < rows_q, 0.0)
        keys = tl.load(k + place_k, row_k < rows_k, 0.0)
        values = tl.load(v + place_k, row_k < rows_k, 0.0)
        to_q, to_k = (first_q + row_q) * heads * WIDTH + column, (first_k + row_k) * heads * WIDTH + column
        given = tl.load(slope + to_q, row_q < rows_q, 0.0)
        weights = _weights(queries, keys, rows_q, rows_k, scale, CAUSAL, BLOCK_Q, BLOCK_K)
        of_values = tl.dot(tl.trans(weights.to(given.dtype)), given, input_precision="ieee")
        tl.store(slope_v + to_k, of_values.to(slope_v.dtype.element_ty), row_k < rows_k)
        of_weights = tl.dot(given, tl.trans(values), input_precision="ieee")
        of_scores = weights * (of_weights - tl.sum(weights * of_weights, 1)[:, None]) * scale
        of_scores = of_scores.to(keys.dtype)
        of_queries = tl.dot(of_scores, keys, input_precision="ieee")
        tl.store(slope_q + to_q, of_queries.to(slope_q.dtype.element_ty), row_q < rows_q)
        of_keys = tl.dot(tl.trans(of_scores), queries, input_precision="ieee")
        tl.store(slope_k + to_k, of_keys.to(slope_k.dtype.element_ty), row_k < rows_k)


# Attention from the few queries of a decoding step to keys and values in one block of memory.


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Attend with a few queries.

    Queries (B, H, k, E), keys and values (B, H, N, E), additive mask (B, 1, k or 1, N) → (B, k, D). Each
    query needs a key that is not masked."""
    sentences, heads, rows, width = query.shape
    attended = query.new_empty(sentences, rows, heads, width)
    assert key.stride() == value.stride()
    assert query.stride(3) == key.stride(3) == mask.stride(3) == 1
    by_row = mask.stride(2) if mask.shape[2] > 1 else 0
    _attend_few[(sentences * heads,)](
        query, key, value, mask, attended, width**-0.5, key.shape[2],
        *query.stride()[:3], *key.stride()[:3], mask.stride(0), by_row,
        heads, rows, width, max(MIN_ROWS, triton.next_power_of_2(rows)), KEYS,
        num_stages=1,  # there are few tiles: memory to prefetch them would leave room for fewer programs
    )  # fmt: skip
    return attended.flatten(2)


@triton.jit(do_not_specialize=["length"])  # type: ignore[untyped-decorator]
def _attend_few(  # type: ignore[no-untyped-def]
    query, key, value, mask, attended, scale, length,
    query_sentence, query_head, query_row, key_sentence, key_head, key_place, mask_sentence, mask_row,
    HEADS: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    sentence = (tl.program_id(0) // HEADS).to(tl.int64)
    head = tl.program_id(0) % HEADS
    row = tl.arange(0, TILE)
    column = tl.arange(0, WIDTH)
    real = (row < ROWS)[:, None]
    start = query + sentence * query_sentence + head * query_head
    q = tl.load(start + row[:, None] * query_row + column[None, :], real, 0.0)
    first = sentence * key_sentence + head * key_head
    highest = tl.full((TILE,), -1e30, tl.float32)  # not -inf: -inf minus -inf is NaN
    total = tl.zeros((TILE,), tl.float32)
    sums = tl.zeros((TILE, WIDTH), tl.float32)
    for begin in range(0, length, KEYS):
        place = begin + tl.arange(0, KEYS)
        inside = place < length
        offset = first + place[:, None] * key_place + column[None, :]
        k = tl.load(key + offset, inside[:, None], 0.0)
        bias = tl.load(
            mask + sentence * mask_sentence + row[:, None] * mask_row + place[None, :],
            real & inside[None, :],
            0.0,
        ).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(inside[None, :], scores + bias, float("-inf"))
        higher = tl.maximum(highest, tl.max(scores, 1))
        shrink = tl.exp(highest - higher)
        p = tl.exp(scores - higher[:, None])
        v = tl.load(value + offset, inside[:, None], 0.0)
        total = total * shrink + tl.sum(p, 1)
        sums = sums * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        highest = higher
    sums = sums / total[:, None]
    out = attended + ((sentence * ROWS + row[:, None]) * HEADS + head) * WIDTH + column[None, :]
    tl.store(out, sums.to(attended.dtype.element_ty), real)
