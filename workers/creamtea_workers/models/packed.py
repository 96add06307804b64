"""Sentences packed one behind the other, without padding between them: how a GPU trains Transformers.

Every product and elementwise kernel works on real subwords only, and attention has kernels that know where
sentences begin. Batches of few different sizes are left, so that kernels can be replayed (`recorded`).

Shapes: B sentences, N subwords of all of them (N_q queries, N_s keys), H heads, D width, E = D / H.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SHORT = 64  # positions of a sentence; attention to more has faster kernels than `fused.ShortAttention`


@dataclass(frozen=True)
class Lengths:
    """Sentence b is rows starts[b] to starts[b + 1], of which no sentence has more than `longest`."""

    starts: Tensor  # (B + 1,) int32
    longest: int

    def sentences(self, rows: int) -> Tensor:
        """Return the sentence of each row: (N,)."""
        places = torch.arange(rows, device=self.starts.device, dtype=torch.int32)
        return torch.bucketize(places, self.starts, right=True)


@dataclass(frozen=True)
class Spans:
    """The sentences of queries, and those of the keys that each of them attends to."""

    queries: Lengths
    keys: Lengths

    def attend(self, query: Tensor, key: Tensor, value: Tensor, dropout: float, causal: bool) -> Tensor:
        """Return the attention (N_q, D) of query (N_q, H, E) over key and value (N_s, H, E)."""
        starts, longest = (self.queries.starts, self.keys.starts), (self.queries.longest, self.keys.longest)
        if not query.is_cuda:
            attended = self._attend_masked(query, key, value, dropout, causal)
        elif (
            query.dtype != torch.float32
            and not dropout
            and max(longest) <= SHORT
            and query.shape[2] in (16, 32, 64)
        ):
            from creamtea_workers.models.fused import ShortAttention

            attended = ShortAttention.apply(query, key, value, starts, longest, causal)  # type: ignore[no-untyped-call]
        elif query.dtype == torch.float32:
            # the 1: a query attends to keys up to its own position
            attended = torch.ops.aten._efficient_attention_forward(
                *(x[None] for x in (query, key, value)), None, *starts, *longest, dropout, int(causal), True
            )[0][0]
        else:
            attended = torch.ops.aten._flash_attention_forward(
                query, key, value, *starts, *longest, dropout, causal, False
            )[0]
        return attended.flatten(1)

    def _attend_masked(
        self, query: Tensor, key: Tensor, value: Tensor, dropout: float, causal: bool
    ) -> Tensor:
        """Attend under a mask (N_q, N_s): the same on a device without kernels for packed sentences."""
        mask = self.queries.sentences(len(query))[:, None] == self.keys.sentences(len(key))
        if causal:
            mask = mask.tril()
        q, k, v = (x.transpose(0, 1) for x in (query, key, value))  # (H, N, E)
        return F.scaled_dot_product_attention(q, k, v, mask, dropout_p=dropout).transpose(0, 1)


@dataclass
class Packing:
    """How a batch is packed, and what its dropout follows from."""

    source: Lengths
    target: Lengths
    dtype: torch.dtype  # of matrix products
    seed: Tensor  # () int64, of the fused kernels' dropout
    sites: Iterator[int] = field(default_factory=count)  # places of dropout in the model, as they come


def add_and_normalise(
    x: Tensor | None, added: Tensor, dropout: nn.Module, norm: nn.Module, packing: Packing | None
) -> tuple[Tensor, Tensor]:
    """Return x + dropout(added), and the layer normalisation of that. No `x` is zero. On a GPU one kernel
    does it, in packed batches and where nothing is trained: the sum is then in fp32."""
    if added.is_cuda and (packing is not None or not (dropout.training or torch.is_grad_enabled())):
        from creamtea_workers.models.fused import AddAndNormalise

        assert isinstance(norm, nn.LayerNorm)
        threshold = dropout.threshold if dropout.training else 0
        if packing is None:
            seed: Tensor = norm.weight  # not read without dropout
            site, dtype = 0, norm.weight.dtype
        else:
            seed, site, dtype = packing.seed, next(packing.sites), packing.dtype
        rows = None if x is None else x.flatten(0, -2)
        total, normed = AddAndNormalise.apply(  # type: ignore[no-untyped-call]
            rows, added.flatten(0, -2), norm.weight, norm.bias, seed, site, threshold, norm.eps, dtype
        )
        return total.view(added.shape), normed.view(added.shape)
    if dropout.training:
        added = dropout(added)
    total = added if x is None else x + added
    normed = norm(total)
    return (total, normed) if packing is None else (total, normed.to(packing.dtype))
