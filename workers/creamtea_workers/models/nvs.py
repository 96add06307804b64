"""Neural vocabulary selection (Domhan, Hasler, Tran, Trenous, Byrne and Hieber 2022, section 3)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from creamtea_workers.models.interface import BOS, PAD, Memory

# logits (sentences × positions × vocabulary) that exist at the same time
CHUNK, CHUNK_ON_GPU = 2**22, 2**27
# padding's vote: nearly the lowest of fp16; -inf would become NaN with a position in its lower bits
LOWEST = -6e4


class NvsHead(nn.Module):
    """z = σ(maxpool(W H + b)), Eq. 3, as logits: the maximum of logits is the logit of the maximum.

    Every source position votes, EOS included and padding excluded. With `detach` gradients stop before the
    encoder (section 4.1).
    """

    product: Callable[[Tensor], Tensor] | None = None  # replaces `weight` (`models.inference`)

    def __init__(self, vocabulary_size: int, width: int, detach: bool = True) -> None:
        super().__init__()
        self.detach = detach
        self.weight = nn.Parameter(torch.empty(vocabulary_size, width))
        self.bias = nn.Parameter(torch.zeros(vocabulary_size))
        # a separate generator, so that the model's weights and dropout are the same as without a head
        generator = torch.Generator().manual_seed((torch.initial_seed() + 1) % 2**63)
        nn.init.normal_(self.weight, std=width**-0.5, generator=generator)

    def forward(self, memory: Memory) -> Tensor:
        """Return logits (B, V) in fp32 (fp64 for an fp64 model)."""
        if torch.is_grad_enabled():
            hidden = memory.hidden.detach() if self.detach else memory.hidden
            return MaxVote.apply(hidden, memory.mask, self.weight, self.bias)  # type: ignore[no-untyped-call]
        hidden, on_cpu = memory.hidden, memory.hidden.device.type == "cpu"
        rows = max(1, (CHUNK if on_cpu else CHUNK_ON_GPU) // (hidden.shape[1] * len(self.bias)))
        padding = None if on_cpu and bool(memory.mask.all()) else ~memory.mask.unsqueeze(2)
        best = []
        for first in range(0, len(hidden), rows):
            part = hidden[first : first + rows]
            votes = F.linear(part, self.weight) if self.product is None else self.product(part)  # (b, S, V)
            if padding is not None:
                votes.masked_fill_(padding[first : first + rows], LOWEST)
            best.append(votes.amax(1).to(torch.promote_types(votes.dtype, torch.float32)))
        return torch.cat(best).add_(self.bias)


class MaxVote(torch.autograd.Function):
    """The maximum over positions s of (W h_s + b), without storing all of the logits.

    Logits are computed for a few sentences at a time, and only the winning position is kept, so that memory
    is B × V, not B × S × V. The backward pass uses an embedding bag over the encoder's rows:

        ∂/∂W_v = Σ_b g_bv · h_{b, winner(b, v)},   ∂/∂h_bs = Σ_v g_bv [winner(b, v) = s] W_v
    """

    @staticmethod
    def forward(ctx, hidden, mask, weight, bias):  # type: ignore[no-untyped-def]
        batch, length, _ = hidden.shape
        device = hidden.device.type
        precise = torch.promote_types(hidden.dtype, torch.float32)
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        rows, matrix = hidden.to(dtype), weight.to(dtype)
        best = torch.empty(batch, weight.shape[0], dtype=precise, device=hidden.device)
        winner = torch.empty(batch, weight.shape[0], dtype=torch.int64, device=hidden.device)
        chunk = max(1, CHUNK // (length * weight.shape[0]))
        for first in range(0, batch, chunk):
            part = slice(first, first + chunk)
            votes = F.linear(rows[part], matrix)  # (b, S, V)
            votes.masked_fill_(~mask[part, :, None], LOWEST)
            best[part], winner[part] = maximum_and_place(votes)
        ctx.save_for_backward(hidden, winner, weight)
        return best + bias.to(precise)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        hidden, winner, weight = ctx.saved_tensors
        batch, length, width = hidden.shape
        rows = winner + torch.arange(batch, device=hidden.device)[:, None] * length  # (B, V) into B·S
        table = hidden.reshape(-1, width).to(weight.dtype)
        share = gradient.to(weight.dtype).t().contiguous()
        grad_weight = F.embedding_bag(rows.t().contiguous(), table, mode="sum", per_sample_weights=share)
        grad_hidden = None
        if ctx.needs_input_grad[0]:
            grad_hidden = torch.empty_like(hidden)
            chunk = max(1, CHUNK // (length * weight.shape[0]))
            for first in range(0, batch, chunk):
                part = slice(first, first + chunk)
                votes = weight.new_zeros(len(winner[part]), length, weight.shape[0])  # (b, S, V)
                votes.scatter_(1, winner[part, None], gradient[part, None].to(weight.dtype))
                grad_hidden[part] = votes @ weight
        return grad_hidden, None, grad_weight, gradient.sum(0).to(weight.dtype)


def maximum_and_place(votes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the maximum of votes (b, S, V) over S and its position, (b, V) each.

    bf16 fills half of an fp32 number; the position goes into the other half, and a plain maximum finds both:
    faster on a CPU than a maximum that also returns its position.
    """
    if votes.dtype != torch.bfloat16:
        top, place = votes.max(1)
        return top, place
    positions = torch.arange(votes.shape[1], dtype=torch.int32, device=votes.device)
    packed = votes.float().view(torch.int32).bitwise_or_(positions[:, None])
    top = packed.view(torch.float32).amax(1).view(torch.int32)
    return (top & ~0xFFFF).view(torch.float32), top & 0xFFFF


def nvs_loss(
    logits: Tensor, target: Tensor, positive_weight: float, auto_weight: float | None = None
) -> Tensor:
    """Return the binary cross-entropy against the bag of target words, averaged over sentences.

    It is the paper's L_NVS (where the minus sign is missing):

        L = -1/Z Σ_v [λ_p y_v log σ(z_v) + (1 - y_v) log(1 - σ(z_v))],   Z = V + (λ_p - 1) n_p

    y marks the unique target words that the decoder emits: with EOS, without padding and BOS. n_p = Σ_v y_v
    is computed per sentence. λ_p is `positive_weight`; with `auto_weight` x it is x · (V - n_p) / n_p, per
    sentence (Appendix B). logits (B, V), target (B, T) ids padded with PAD.
    """
    present = torch.zeros(logits.shape, dtype=torch.bool, device=logits.device)
    present.scatter_(1, target, True)
    present[:, PAD] = False
    present[:, BOS] = False
    words = present.sum(1, keepdim=True).to(logits.dtype)  # (B, 1), at least 1: EOS
    vocabulary = logits.shape[1]
    weight = positive_weight if auto_weight is None else auto_weight * (vocabulary - words) / words
    weights = torch.where(present, weight, torch.ones_like(logits))
    losses = F.softplus(torch.where(present, -logits, logits)) * weights
    size = vocabulary + (weight - 1) * words
    return (losses.sum(1, keepdim=True) / size).mean()
