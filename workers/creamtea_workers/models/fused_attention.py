"""Attention of a few queries over keys and values that lie in one block of memory, in one Triton kernel.

PyTorch's kernels are made for many queries: for those of one decoding step they read keys and values at a
quarter of the memory's speed. One program here serves a sentence's head: it reads each key and value once for
all of the sentence's rows.

Shapes: B sentences, H heads, k queries, N keys, E = D / H.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

KEYS = 64  # that a program holds at a time
MIN_ROWS = 16  # of a product in tensor cores
WIDTHS = (16, 32, 64, 128)  # E for which the kernel is made


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Queries (B, H, k, E), keys and values (B, H, N, E), mask (B, 1, k or 1, N), which is added to scores
    → (B, k, D). At least one key of each query is not masked."""
    sentences, heads, rows, width = query.shape
    attended = query.new_empty(sentences, rows, heads, width)
    assert key.stride() == value.stride()
    assert query.stride(3) == key.stride(3) == mask.stride(3) == 1
    by_row = mask.stride(2) if mask.shape[2] > 1 else 0
    _attend[(sentences * heads,)](
        query, key, value, mask, attended, width**-0.5, key.shape[2],
        *query.stride()[:3], *key.stride()[:3], mask.stride(0), by_row,
        heads, rows, width, max(MIN_ROWS, triton.next_power_of_2(rows)), KEYS,
        num_stages=1,  # one tile or a few: memory for the next one would leave room for fewer programs
    )  # fmt: skip
    return attended.flatten(2)


@triton.jit(do_not_specialize=["length"])  # type: ignore[untyped-decorator]
def _attend(  # type: ignore[no-untyped-def]
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
    highest = tl.full((TILE,), -1e30, tl.float32)  # not -inf, whose difference with itself is NaN
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
