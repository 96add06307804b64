"""Triton kernels for the losses on a GPU: one program per token turns its logits into their gradient.

A program reads a row of the output layer's product, adds the bias, computes the loss and writes the gradient
over the product. Formulas and papers are in the objectives' classes (`softmax`, `scones`, `entmax`) and in
`objectives.threshold`; the tests compare the two. Nothing is read back, so that a CUDA graph can hold each
launch, and every sum has a fixed order.

A row of up to MAX_BLOCK words stays in registers; a longer one is read again in each pass, from the cache.
With TRITON_INTERPRET=1, which has to be set before the import, the same code runs on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from creamtea_workers.objectives.base import LabelSmoothing
from creamtea_workers.objectives.entmax import MARGIN as BELOW
from creamtea_workers.objectives.entmax import MAX_ITERATIONS, NEAR_SOFTMAX

MAX_BLOCK = 4096  # words of a row that a program holds at a time
WORDS_PER_WARP = 256
ITERATIONS, MARGIN = tl.constexpr(MAX_ITERATIONS), tl.constexpr(BELOW)

jit: Callable[[Callable[..., Any]], Any] = triton.jit


# The functions that objectives call. Each overwrites `product` (n, V), the logits without the `bias` (V,), by
# the gradient, and returns the losses (n,) of the `targets` (n,).


def softmax_(product: Tensor, bias: Tensor, targets: Tensor, smoothing: LabelSmoothing) -> Tensor:
    """Compute the loss log Σ exp z - q·z of each row."""
    losses = bias.new_empty(len(product))
    launch(softmax_kernel, product, bias, targets, losses, **smoothed(smoothing, product, bias))
    return losses


def scones_(product: Tensor, bias: Tensor, targets: Tensor, alpha: float, label_smoothing: float) -> Tensor:
    losses = bias.new_empty(len(product))
    terms = 17 if bias.dtype == torch.float64 else 7  # the series has ratio at most 1/9
    launch(scones_kernel, product, bias, targets, losses, ALPHA=alpha, EPSILON=label_smoothing, TERMS=terms)
    return losses


def entmax_(
    product: Tensor, bias: Tensor, targets: Tensor, alpha: float, smoothing: LabelSmoothing
) -> Tensor:
    """Compute the loss Ω*(z) - q·z of each row."""
    losses = bias.new_empty(len(product))
    options = {"ALPHA": alpha, "TYPE": working_type(alpha, bias), **smoothed(smoothing, product, bias)}
    launch(entmax_kernel, product, bias, targets, losses, **options)
    return losses


def entmax_log_scores(logits: Tensor, alpha: float) -> Tensor:
    """Compute log p (…, V) in fp32, -inf off the support."""
    rows = logits.reshape(-1, logits.shape[-1]).contiguous()
    scores = rows.new_empty(rows.shape, dtype=torch.float32)
    if len(rows):
        launch(entmax_scores_kernel, rows, scores, ALPHA=alpha, TYPE=working_type(alpha, scores))
    return scores.reshape(logits.shape)


def working_type(alpha: float, like: Tensor) -> tl.dtype:
    """Return fp64 if α needs it (`objectives.entmax`) or the logits have it; else fp32."""
    return tl.float64 if alpha < NEAR_SOFTMAX or alpha > 2 or like.dtype == torch.float64 else tl.float32


def smoothed(smoothing: LabelSmoothing, product: Tensor, bias: Tensor) -> dict[str, Any]:
    """Return the kernels' arguments for `smooth_of`."""
    epsilon, words = smoothing.epsilon, product.shape[1]
    if epsilon and smoothing.kind == "unigram":
        return {
            "frequencies": smoothing.frequencies(bias.expand_as(product)),
            "EPSILON": epsilon,
            "EACH": 0.0,
        }
    return {"frequencies": None, "EPSILON": epsilon, "EACH": epsilon / words}


def launch(kernel: Any, rows: Tensor, *arguments: Tensor, **options: Any) -> None:
    """Run a program for each of `rows` (n, V)."""
    words = rows.shape[1]
    block = min(MAX_BLOCK, triton.next_power_of_2(words))
    span = -(-words // block) * block  # of whole blocks
    warps = max(4, block // WORDS_PER_WARP)
    kernel[(len(rows),)](rows, *arguments, words, BLOCK=block, SPAN=span, num_warps=warps, **options)


# Below, each program processes one row of V words. `words` are the numbers of a block's words; `first` is the
# logits of the first block, which is the whole row if it fits.


@jit
def logits_of(product, bias, words, V):
    """Load z of a block in the bias's type (fp32 without a bias); -inf beyond the row's end."""
    inside = words < V
    z = tl.load(product + words, inside, other=-float("inf"))
    if bias is None:
        z = z.to(tl.float32)
    else:
        offset = tl.load(bias + words, inside, other=0.0)
        z = z.to(offset.dtype) + offset
    return z


@jit
def block_of(first, product, bias, words, V, SPAN: tl.constexpr):
    return first if first.shape[0] == SPAN else logits_of(product, bias, words, V)


@jit
def maxima_of(first, product, bias, V, SPAN: tl.constexpr):
    """Find the largest logit of each lane, which takes one word of every block."""
    largest, lanes = first, tl.arange(0, first.shape[0])
    for start in range(first.shape[0], SPAN, first.shape[0]):
        largest = tl.maximum(largest, logits_of(product, bias, start + lanes, V))
    return largest


@jit
def smooth_of(words, V, frequencies, EPSILON: tl.constexpr, EACH: tl.constexpr, TYPE: tl.constexpr):
    """Load ε r of a block, 0 beyond the row's end: `frequencies` are r, or r is uniform and EACH is ε / V."""
    inside = words < V
    if frequencies is None:
        share = inside.to(TYPE) * EACH
    else:
        share = tl.load(frequencies + words, inside, other=0.0).to(TYPE) * EPSILON
    return share


@jit
def raised(x, EXPONENT: tl.constexpr):
    """Raise x ≥ 0 to EXPONENT, with 0⁰ = 0."""
    if EXPONENT == 0:
        return (x > 0).to(x.dtype)
    elif EXPONENT == 1:
        return x
    elif EXPONENT == 2:
        return x * x
    elif EXPONENT == 0.5:
        return tl.sqrt(x)
    else:
        return tl.exp2(tl.log2(x) * EXPONENT)


@jit
def softmax_kernel(
    product, bias, targets, losses, V, frequencies,
    EPSILON: tl.constexpr, EACH: tl.constexpr, BLOCK: tl.constexpr, SPAN: tl.constexpr,
):  # fmt: skip
    row, lanes = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    product += row * V
    gold = tl.load(targets + row)
    of_gold = logits_of(product, bias, gold, V)
    first = logits_of(product, bias, lanes, V)
    top = tl.max(maxima_of(first, product, bias, V, SPAN), 0)
    wanted = (of_gold - top) * (1 - EPSILON)
    total, smooth = tl.zeros_like(first), tl.zeros_like(first)
    for start in range(0, SPAN, BLOCK):
        z = block_of(first, product, bias, start + lanes, V, SPAN) - top
        total += tl.exp(z)
        if EPSILON > 0:
            q = smooth_of(start + lanes, V, frequencies, EPSILON, EACH, z.dtype)
            smooth += tl.where(q > 0, q * z, 0.0)
    partition = tl.log(tl.sum(total, 0))
    tl.store(losses + row, partition - wanted - tl.sum(smooth, 0))
    for start in range(0, SPAN, BLOCK):
        words = start + lanes
        p = tl.exp(block_of(first, product, bias, words, V, SPAN) - top - partition)
        q = smooth_of(words, V, frequencies, EPSILON, EACH, p.dtype)
        q += (words == gold).to(p.dtype) * (1 - EPSILON)
        tl.store(product + words, p - q, words < V)


@jit
def scones_kernel(
    product, bias, targets, losses, V,
    ALPHA: tl.constexpr, EPSILON: tl.constexpr, TERMS: tl.constexpr, BLOCK: tl.constexpr, SPAN: tl.constexpr,
):  # fmt: skip
    row, lanes = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    product += row * V
    gold = tl.load(targets + row)
    first = logits_of(product, bias, lanes, V)
    value = tl.zeros_like(first)
    for start in range(0, SPAN, BLOCK):
        words = start + lanes
        z = block_of(first, product, bias, words, V, SPAN)
        # e = exp -|z|; log(1 + e) = 2 artanh t with t = e / (2 + e) ≤ 1/3 keeps the digits of a small e
        e = tl.exp(-tl.abs(z))
        inverse = 1 / ((1 + e) * (2 + e))
        t = e * (1 + e) * inverse
        series = tl.zeros_like(z)
        for k in tl.static_range(TERMS):
            series = series * (t * t) + 1 / (2 * (TERMS - k) - 1)
        log = 2 * t * series
        large, small = (2 + e) * inverse, e * (2 + e) * inverse  # σ(|z|), σ(-|z|)
        positive, negative = tl.where(z < 0, small, large), tl.where(z < 0, large, small)
        of_gold = tl.maximum(-z, 0.0) + log + EPSILON * z
        of_other = ALPHA * (tl.maximum(z, 0.0) + log - EPSILON * z)
        value += tl.where(words == gold, of_gold, tl.where(words < V, of_other, 0.0))
        gradient = tl.where(words == gold, EPSILON - negative, ALPHA * (positive - EPSILON))
        tl.store(product + words, gradient, words < V)
    tl.store(losses + row, tl.sum(value, 0))


@jit
def scores_of(
    first, product, bias, words, V, top, ALPHA: tl.constexpr, TYPE: tl.constexpr, SPAN: tl.constexpr
):
    """Return s = (α - 1)(z - max z) of a block, rounded as on a CPU.

    For α > 2 a last digit of s can change p arbitrarily.
    """
    z = block_of(first, product, bias, words, V, SPAN) - top
    if ALPHA > 2:
        return (z * (ALPHA - 1)).to(TYPE)
    else:
        return z.to(TYPE) * (ALPHA - 1)


@jit
def threshold_of(first, product, bias, V, ALPHA: tl.constexpr, TYPE: tl.constexpr, SPAN: tl.constexpr):
    """Find the largest logit of a row, and τ.

    For α > 2 also the number above τ, and the point between the two at which Σ p = 1, as a share.
    """
    BETA: tl.constexpr = 1 / (ALPHA - 1)
    largest = maxima_of(first, product, bias, V, SPAN)
    top = tl.max(largest, 0)
    if ALPHA <= 2:
        tau = tl.full((), -1.0, TYPE)
        if first.shape[0] < SPAN:  # the threshold of some words is a lower bound (`objectives.entmax`)
            tau = newton(largest, product, bias, V, top, tau, ALPHA, TYPE, first.shape[0])
            tau = tl.maximum(tau - MARGIN, -1.0)
        tau = newton(first, product, bias, V, top, tau, ALPHA, TYPE, SPAN)
        return top, tau, tau, tau
    else:  # `entmax.bisection` and `between`
        low, high = -tl.log(tl.full((), 1.0, TYPE) * V), tl.full((), 0.0, TYPE)
        for _ in range(ITERATIONS):
            middle = (low + high) / 2
            excess = sum_of_roots(first, product, bias, V, top, -tl.exp(middle / BETA), ALPHA, TYPE, SPAN)
            high, low = tl.where(excess >= 0, middle, high), tl.where(excess >= 0, low, middle)
        tau, above = -tl.exp(high / BETA), -tl.exp(low / BETA)
        excess = sum_of_roots(first, product, bias, V, top, tau, ALPHA, TYPE, SPAN)
        lack = sum_of_roots(first, product, bias, V, top, above, ALPHA, TYPE, SPAN)
        share = tl.where(excess > lack, -lack / (excess - lack), 1.0)
        return top, tau, above, tl.minimum(tl.maximum(share, 0.0), 1.0)


@jit
def newton(first, product, bias, V, top, tau, ALPHA: tl.constexpr, TYPE: tl.constexpr, SPAN: tl.constexpr):
    """Find τ of a row from the bound `tau`, as `entmax.newton` does, to the same tolerance, 8 · eps."""
    BETA: tl.constexpr = 1 / (ALPHA - 1)
    lanes = tl.arange(0, first.shape[0])
    step, count = tl.full((), 1.0, TYPE), 0
    while (step > (2.0**-20 if tl.float32 == TYPE else 2.0**-49)) & (count < ITERATIONS):
        powers, slopes = tl.zeros(first.shape, TYPE), tl.zeros(first.shape, TYPE)
        for start in range(0, SPAN, first.shape[0]):
            s = scores_of(first, product, bias, start + lanes, V, top, ALPHA, TYPE, SPAN)
            rest = tl.maximum(s - tau, 0.0)
            slope = raised(rest, BETA - 1)
            slopes += slope
            powers += rest * slope
        norm = raised(tl.sum(powers, 0), 1 / BETA)
        step = (norm - 1) * raised(norm, BETA - 1) / tl.sum(slopes, 0)
        tau += step
        count += 1
    return tau


@jit
def sum_of_roots(
    first, product, bias, V, top, tau, ALPHA: tl.constexpr, TYPE: tl.constexpr, SPAN: tl.constexpr
):
    """Return Σ [s - τ]₊^β - 1."""
    BETA: tl.constexpr = 1 / (ALPHA - 1)
    total, lanes = tl.zeros(first.shape, TYPE), tl.arange(0, first.shape[0])
    for start in range(0, SPAN, first.shape[0]):
        s = scores_of(first, product, bias, start + lanes, V, top, ALPHA, TYPE, SPAN)
        total += raised(tl.maximum(s - tau, 0.0), BETA)
    return tl.sum(total, 0) - 1


@jit
def probability_of(s, tau, above, share, ALPHA: tl.constexpr):
    """Return p and p^(α - 1) = [s - τ]₊ of a block."""
    BETA: tl.constexpr = 1 / (ALPHA - 1)
    rest = tl.maximum(s - tau, 0.0)
    p = raised(rest, BETA)
    if ALPHA > 2:
        less = raised(tl.maximum(s - above, 0.0), BETA)
        p = less + (p - less) * share
        rest = raised(p, ALPHA - 1)
    return p, rest


@jit
def entmax_kernel(
    product, bias, targets, losses, V, frequencies, ALPHA: tl.constexpr, TYPE: tl.constexpr,
    EPSILON: tl.constexpr, EACH: tl.constexpr, BLOCK: tl.constexpr, SPAN: tl.constexpr,
):  # fmt: skip
    row, lanes = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    product += row * V
    gold = tl.load(targets + row)
    of_gold = logits_of(product, bias, gold, V)  # now, before another warp writes there
    first = logits_of(product, bias, lanes, V)
    top, tau, above, share = threshold_of(first, product, bias, V, ALPHA, TYPE, SPAN)
    wanted = (of_gold - top).to(TYPE) * (1 - EPSILON)
    powers, smooth = tl.zeros((BLOCK,), TYPE), tl.zeros((BLOCK,), TYPE)
    for start in range(0, SPAN, BLOCK):
        words = start + lanes
        s = scores_of(first, product, bias, words, V, top, ALPHA, TYPE, SPAN)
        p, rest = probability_of(s, tau, above, share, ALPHA)
        powers += p * rest
        q = smooth_of(words, V, frequencies, EPSILON, EACH, TYPE)
        if EPSILON > 0:
            smooth += tl.where(q > 0, q * s, 0.0)
        q += (words == gold).to(TYPE) * (1 - EPSILON)
        tl.store(product + words, (p - q).to(first.dtype), words < V)
    power_sum = tl.sum(powers, 0)  # Ω*(z) = p·z - Ω(p): see `EntmaxObjective.conjugate`
    conjugate = (power_sum + tau - tl.sum(smooth, 0)) / (ALPHA - 1) - (power_sum - 1) / (ALPHA * (ALPHA - 1))
    tl.store(losses + row, (conjugate - wanted).to(first.dtype))


@jit
def entmax_scores_kernel(
    logits, scores, V, ALPHA: tl.constexpr, TYPE: tl.constexpr, BLOCK: tl.constexpr, SPAN: tl.constexpr
):
    row, lanes = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    logits += row * V
    scores += row * V
    first = logits_of(logits, None, lanes, V)
    top, tau, above, share = threshold_of(first, logits, None, V, ALPHA, TYPE, SPAN)
    for start in range(0, SPAN, BLOCK):
        s = scores_of(first, logits, None, start + lanes, V, top, ALPHA, TYPE, SPAN)
        rest = probability_of(s, tau, above, share, ALPHA)[1]
        log = tl.log(tl.minimum(rest, 1.0)) / (ALPHA - 1)
        tl.store(scores + start + lanes, log.to(tl.float32), start + lanes < V)
