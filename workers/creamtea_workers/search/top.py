"""The best of many candidates, in a well-defined order."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_SMALLEST_BLOCK = 32
_FEW = 1 << 15  # candidates in all: below it, one plain search takes less time than the operations for blocks


def top_candidates(ranks: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` best of ranks (n, C), C ≥ count: values and indices (n, count), best first, equal
    ones by index (`topk` alone does not define the order of equal values). Which of those at -inf fill the
    rest is undefined. On a GPU ranks are ≤ 0 and fp32.

    Many candidates are cut into blocks of neighbours. The best ones all lie in the `count` blocks with the
    highest maxima, of equal ones the first: a candidate of any other block has `count` others before it,
    the maxima of those. So one pass over all, and two searches in about √(C · count) values, are enough.
    """
    size = ranks.shape[1]
    block = 1 << round(math.log2(size / count) / 2)  # near the root; a power of two is reduced faster
    if block < _SMALLEST_BLOCK or ranks.numel() < _FEW:
        return _top(ranks, count)
    blocks = size // block
    maxima = ranks[:, : blocks * block].unflatten(1, (blocks, block)).amax(2)
    chosen = _top(maxima, count)[1].sort(dim=1).values  # in order of index, as their candidates then are
    inside = torch.arange(block, device=ranks.device)
    rest = torch.arange(blocks * block, size, device=ranks.device)
    indices = torch.cat(
        [(chosen.unsqueeze(2) * block + inside).flatten(1), rest.expand(len(ranks), -1)], dim=1
    )
    values, positions = _top(ranks.gather(1, indices), count)
    return values, indices.gather(1, positions)


def _top(ranks: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """What `top_candidates` does, in one search."""
    if ranks.is_cuda:  # asking whether there are equal ones would make the CPU wait
        return top_by_key(ranks, count)
    values, indices = ranks.topk(min(count + 1, ranks.shape[1]), dim=1)
    tied = ((values[:, 1:] == values[:, :-1]) & (values[:, 1:] > -math.inf)).any(dim=1)
    values, indices = values[:, :count], indices[:, :count]
    if bool(tied.any()):
        for n in tied.nonzero().squeeze(1).tolist():
            level = (ranks[n] >= values[n, -1]).nonzero().squeeze(1)  # in order of index
            order = ranks[n, level].sort(descending=True, stable=True).indices[:count]
            indices[n] = level[order]
    return values, indices


def top_by_key(ranks: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The same of ranks ≤ 0 in fp32 by keys that are all different: the bits of a number's magnitude, which
    are in the order of the magnitudes, and below them its index."""
    magnitudes = ranks.abs().view(torch.int32).long()
    keys = torch.add(torch.arange(ranks.shape[1], device=ranks.device), magnitudes, alpha=1 << 32)
    indices = keys.topk(count, dim=1, largest=False).indices
    return ranks.gather(1, indices), indices


def keep_top(scores: Tensor, count: int) -> Tensor:
    """scores (..., K) with -inf in place of all but the `count` best of each row."""
    rows = scores.flatten(0, -2)
    values, indices = top_candidates(rows, min(count, rows.shape[1]))
    return torch.full_like(rows, -torch.inf).scatter_(1, indices, values).view_as(scores)
