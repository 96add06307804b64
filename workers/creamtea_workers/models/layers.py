"""Building blocks of the Transformer: attention, feed-forward, dropout, positions.

Shapes: B sentences, N decoder rows, S keys, T queries, H heads, D width, E = D / H.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import entmax
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from creamtea.errors import StepError
from creamtea_workers.models.packed import Lengths, Spans
from creamtea_workers.models.state import AttentionState, TreeStep


class Dropout(nn.Module):
    """Inverted dropout whose mask compares random bytes with a threshold.

    One random byte per element is faster on a CPU than `nn.Dropout`'s Bernoulli draws. The share is therefore
    rounded to a multiple of 1/256 (on a GPU too), at most 255/256 (0.1 becomes 26/256); the scale
    uses the rounded share, so that the expectation is exact.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.threshold = min(round(share * 256), 255)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.threshold == 0:
            return x
        if x.is_cuda:  # one kernel instead of five
            return F.dropout(x, self.threshold / 256)
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64, device=x.device)
        words.random_(-(2**63), None)  # all 64 bits
        bytes_ = words.view(torch.uint8)[: x.numel()].view(x.shape)
        keep = bytes_.ge_(self.threshold).to(x.dtype)  # a comparison to bool takes longer
        return x * keep.mul_(256 / (256 - self.threshold))


class PositionTable(nn.Module):
    """Sinusoidal positions (Vaswani et al. 2017, section 3.5), grown on demand."""

    table: Tensor

    def __init__(self, width: int, kind: str = "sinusoidal") -> None:
        super().__init__()
        self.width, self.kind = width, kind
        self.register_buffer("table", sinusoids(256, width, kind), persistent=False)

    def forward(self, start: int, length: int) -> Tensor:
        """Return rows start … start + length - 1: (length, D)."""
        if start + length > self.table.shape[0]:
            with torch.inference_mode(False):  # a table made in inference serves training too
                self.table = sinusoids(2 * (start + length), self.width, self.kind).to(self.table)
        return self.table[start : start + length]


class LearnedPositions(nn.Module):
    """One learned vector for each of `count` positions. Raises StepError beyond them."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(count, width))
        nn.init.normal_(self.weight, std=width**-0.5)

    def forward(self, start: int, length: int) -> Tensor:
        if start + length > len(self.weight):
            raise StepError(
                f"a text of {start + length:,} subwords or more is too long for a model that has learned "
                f"{len(self.weight):,} positions: raise architecture.max_positions and train anew, leave the "
                "text out, or lower the search's max_length_ratio"
            )
        return self.weight[start : start + length]


def sinusoids(length: int, width: int, kind: str = "sinusoidal") -> Tensor:
    """Make a table of sinusoidal positions (length, D).

    `kind`: sine and cosine of each rate side by side (`sinusoidal`); all sines before all cosines (`halves`);
    or halves with Marian's rates, whose lowest is exactly 1/10000 (`marian`; marian-dev,
    src/tensors/cpu/tensor_operators.cpp).
    """
    steps = max(width - 2, 1) if kind == "marian" else width
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / steps))
    angle = torch.arange(length)[:, None] * rate  # (length, D/2)
    if kind != "sinusoidal":
        return torch.cat([angle.sin(), angle.cos()[:, : width // 2]], dim=1)
    table = torch.empty(length, width)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : width // 2]
    return table


def split_heads(x: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    """Split (B, T, parts·D) → `parts` tensors (B, H, T, E), or packed (N, parts·D) → (N, H, E)."""
    if x.ndim == 2:
        return x.view(len(x), parts, heads, -1).unbind(1)
    batch, length, _ = x.shape
    return x.view(batch, length, parts, heads, -1).permute(2, 0, 3, 1, 4).unbind(0)


def join_heads(x: Tensor) -> Tensor:
    """Join (B, H, T, E) → (B, T, D)."""
    return x.transpose(1, 2).flatten(2)


MASKED = -1e4  # not -inf, with which the entmax package gives NaN; the weight is 0 with either
WEIGHTS: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": lambda scores: scores.softmax(dim=-1),
    "entmax": lambda scores: entmax.entmax15(scores, dim=-1),
    "sparsemax": lambda scores: entmax.sparsemax(scores, dim=-1),
}


class Attention(nn.Module):
    """Scaled dot-product attention (Vaswani et al. 2017, Eq. 1).

    The weights are softmax's, entmax's with α = 1.5, or sparsemax's (Peters et al. 2019; Correia et al.
    2019); in training `dropout` applies to them. A mask is True where a key may be attended, or is added to
    scores; it broadcasts to (B, H, T, S). Packed sentences have spans instead.
    """

    def __init__(self, heads: int, dropout: float, weights: str = "softmax") -> None:
        super().__init__()
        self.heads, self.dropout, self.weights = heads, dropout, weights

    def weigh(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | Spans | None, causal: bool = False
    ) -> Tensor:
        """Return attended values: queries (B, H, T, E), keys and values (B, H, S, E) → (B, T, D)."""
        share = self.dropout if self.training else 0.0
        if self.weights != "softmax":
            assert not isinstance(mask, Spans)  # `training.packing.can_pack`
            weights = F.dropout(self.weights_of(query, key, mask, causal), share)
            return join_heads(weights.to(value.dtype) @ value)
        if isinstance(mask, Spans):
            return mask.attend(query, key, value, share, causal)
        if mask is not None and mask.is_cuda and mask.is_floating_point():  # a step of fixed shape
            from creamtea_workers.models.fused import WIDTHS, attend

            if query.shape[3] in WIDTHS:
                return attend(query, key, value, mask)
        attended = F.scaled_dot_product_attention(query, key, value, mask, dropout_p=share, is_causal=causal)
        return join_heads(attended)

    def weights_of(self, query: Tensor, key: Tensor, mask: Tensor | None, causal: bool = False) -> Tensor:
        """Return attention weights (B, H, T, S) in fp32: queries (B, H, T, E), keys (B, H, S, E)."""
        scores = (query @ key.transpose(2, 3)).float() / math.sqrt(query.shape[3])
        if causal:
            mask = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device).tril()
        if mask is not None:  # a key may be attended where it is True, or 0 if the mask is additive
            scores = scores.where(mask if mask.dtype == torch.bool else mask == 0, MASKED)
        return WEIGHTS[self.weights](scores)


class SelfAttention(Attention):
    def __init__(self, width: int, heads: int, dropout: float = 0.0, weights: str = "softmax") -> None:
        super().__init__(heads, dropout, weights)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | Spans | None = None, causal: bool = False) -> Tensor:
        """Attend within x (B, T, D) → (B, T, D); `mask` (B, 1, 1, T) is True where a key may be attended."""
        query, key, value = split_heads(self.qkv(x), 3, self.heads)  # (B, H, T, E)
        return self.out(self.weigh(query, key, value, mask, causal))

    def over_prefix(self, x: Tensor, packed: Lengths | None = None) -> Tensor:
        """Let each position attend to itself and to the positions before it."""
        return self.forward(x, None if packed is None else Spans(packed, packed), causal=True)

    def step(self, x: Tensor, state: AttentionState | TreeStep, layer: int) -> Tensor:
        """Attend from one more position x (N, 1, D); its keys and values join the state."""
        heads = self.qkv(x).view(*x.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # (3, N, H, 1, E)
        keys, values = state.append(layer, heads[1:])
        return self.out(self.weigh(heads[0], keys, values, state.own_mask))


class CrossAttention(Attention):
    def __init__(self, width: int, heads: int, dropout: float = 0.0, weights: str = "softmax") -> None:
        super().__init__(heads, dropout, weights)
        self.query = nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def project(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Project memory (B, S, D) to keys and values (B, H, S, E)."""
        key, value = split_heads(self.kv(memory), 2, self.heads)
        return key, value

    def forward(self, x: Tensor, key: Tensor, value: Tensor, mask: Tensor | Spans | None) -> Tensor:
        (query,) = split_heads(self.query(x), 1, self.heads)
        return self.out(self.weigh(query, key, value, mask))

    def mean_weights(self, x: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
        """Return the attention weights of `forward`, averaged over heads: (B, T, S) in fp32."""
        (query,) = split_heads(self.query(x), 1, self.heads)
        return self.weights_of(query, key, mask).mean(1)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


class FeedForward(nn.Module):
    def __init__(self, width: int, inner: int, activation: str = "relu") -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.inner = nn.Linear(width, inner)
        self.out = nn.Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        fusible = x.is_cuda and self.activation is F.relu
        if fusible and not (torch.is_grad_enabled() or torch.is_autocast_enabled("cuda")):
            rows, inner = x.flatten(0, -2), self.inner  # one kernel instead of two
            product = torch._addmm_activation(inner.bias, rows, inner.weight.t())
            return self.out(product.unflatten(0, x.shape[:-1]))
        return self.out(self.activation(self.inner(x)))
