"""Pre-norm Transformer (Vaswani et al. 2017; layer normalisation first, as in Xiong et al. 2020).

Source, target and output embeddings are one matrix; the output layer has a bias of its own. Dropout
falls on the embeddings and on the output of every sublayer, not on attention weights (fused attention
has no dropout on CPUs).
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from creamtea.study.spec import Architecture, Nvs
from creamtea_workers.models.interface import PAD, Memory, State
from creamtea_workers.models.layers import (
    CrossAttention,
    Dropout,
    FeedForward,
    PositionTable,
    SelfAttention,
)
from creamtea_workers.models.nvs import NvsHead


class EncoderLayer(nn.Module):
    def __init__(self, size: Architecture) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(size.width)
        self.attention = SelfAttention(size.width, size.heads)
        self.feed_norm = nn.LayerNorm(size.width)
        self.feed = FeedForward(size.width, size.feed_forward)
        self.dropout = Dropout(size.dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = x + self.dropout(self.attention(self.attention_norm(x), mask))
        return x + self.dropout(self.feed(self.feed_norm(x)))


class DecoderLayer(nn.Module):
    def __init__(self, size: Architecture) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(size.width)
        self.attention = SelfAttention(size.width, size.heads)
        self.cross_norm = nn.LayerNorm(size.width)
        self.cross = CrossAttention(size.width, size.heads)
        self.feed_norm = nn.LayerNorm(size.width)
        self.feed = FeedForward(size.width, size.feed_forward)
        self.dropout = Dropout(size.dropout)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """Causal: x (B, T, D) over memory (B, S, D)."""
        x = x + self.dropout(self.attention(self.attention_norm(x), causal=True))
        x = x + self.dropout(self.cross(self.cross_norm(x), *self.cross.project(memory), mask))
        return x + self.dropout(self.feed(self.feed_norm(x)))

    def step(self, x: Tensor, state: TransformerState, layer: int) -> Tensor:
        """One position: x (N, 1, D) is this layer's input, its keys and values join the state."""
        query, key, value = self.attention.project(self.attention_norm(x))
        keys, values = state.append(layer, key, value)
        x = x + self.attention.attend(query, keys, values)
        keys, values = state.cross[layer].unbind(0)
        x = x + self.cross(self.cross_norm(x), keys, values, state.mask)
        return x + self.feed(self.feed_norm(x))


class TransformerState:
    """Key-value caches of N rows. Those of self-attention grow by doubling, up to `max_length`.

    `sentences` (N,) names the sentence of each row: as long as a reordering keeps it (beams move within
    their sentence), the keys and values of the encoder's output stay where they are.
    """

    def __init__(self, cross: Tensor, mask: Tensor | None, max_length: int) -> None:
        layers, _, rows, heads, _, width = cross.shape
        self.cross = cross  # (layers, 2, N, H, S, E): keys, values
        self.mask = mask  # (N, 1, 1, S), or None where nothing is padded
        self.sentences = torch.arange(rows, device=cross.device)
        self.max_length = max_length
        self.length = 0
        self.cache = cross.new_empty(layers, 2, rows, heads, min(max_length, 16), width)

    def reorder(self, rows: Tensor) -> None:
        self.cache = self.cache.index_select(2, rows)
        sentences = self.sentences[rows]
        if not torch.equal(sentences, self.sentences):
            self.cross = self.cross.index_select(2, rows)
            self.mask = None if self.mask is None else self.mask[rows]
        self.sentences = sentences

    def append(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Put key, value (N, H, 1, E) at the current position; return all of the layer's (N, H, ·, E)."""
        used = self.cache[layer, :, :, :, : self.length + 1]
        used[0, :, :, self.length] = key[:, :, 0]
        used[1, :, :, self.length] = value[:, :, 0]
        return used[0], used[1]

    def make_room(self) -> None:
        """Room for one more position; ValueError beyond `max_length`."""
        room = self.cache.shape[4]
        if self.length < room:
            return
        if room >= self.max_length:
            raise ValueError(f"a state of max_length {self.max_length} has no room for another position")
        larger = min(2 * room, self.max_length)
        cache = self.cache.new_empty(*self.cache.shape[:4], larger, self.cache.shape[5])
        cache[:, :, :, :, :room] = self.cache
        self.cache = cache


class Transformer(nn.Module):
    """See `creamtea_workers.models.interface.TranslationModel`."""

    def __init__(self, vocabulary_size: int, size: Architecture, nvs: Nvs | None = None) -> None:
        super().__init__()
        self.vocabulary_size = vocabulary_size
        self.scale = math.sqrt(size.width)
        self.embedding = nn.Embedding(vocabulary_size, size.width)
        self.output_bias = nn.Parameter(torch.zeros(vocabulary_size))
        self.positions = PositionTable(size.width)
        self.dropout = Dropout(size.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(size) for _ in range(size.encoder_layers))
        self.encoder_norm = nn.LayerNorm(size.width)
        self.decoder = nn.ModuleList(DecoderLayer(size) for _ in range(size.decoder_layers))
        self.decoder_norm = nn.LayerNorm(size.width)
        self.nvs: NvsHead | None = None if nvs is None else NvsHead(vocabulary_size, size.width)
        self.initialise()

    def initialise(self) -> None:
        """Xavier for the linear layers; embeddings of variance 1/D, so that tied logits start like
        N(0, 1)."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        nn.init.normal_(self.embedding.weight, std=1 / self.scale)

    @property
    def output_weight(self) -> Tensor:
        return self.embedding.weight

    def embed(self, ids: Tensor, start: int = 0) -> Tensor:
        """ids (B, T) at positions start … → (B, T, D)."""
        vectors = F.embedding(ids, self.embedding.weight) * self.scale
        return self.dropout(vectors + self.positions(start, ids.shape[1]).to(vectors.dtype))

    def encode(self, source: Tensor) -> Memory:
        mask = source != PAD
        keys = key_mask(mask)
        x = self.embed(source)  # (B, S, D)
        for layer in self.encoder:
            x = layer(x, keys)
        return Memory(self.encoder_norm(x), mask)

    def decode(self, memory: Memory, target_in: Tensor) -> Tensor:
        keys = key_mask(memory.mask)
        x = self.embed(target_in)  # (B, T, D)
        for layer in self.decoder:
            x = layer(x, memory.hidden, keys)
        return self.decoder_norm(x)

    def start(self, memory: Memory, max_length: int) -> TransformerState:
        cross = [torch.stack(layer.cross.project(memory.hidden)) for layer in self.decoder_layers()]
        return TransformerState(torch.stack(cross), key_mask(memory.mask), max_length)

    def step(self, tokens: Tensor, state: State) -> Tensor:
        assert isinstance(state, TransformerState)
        state.make_room()
        x = self.embed(tokens[:, None], state.length)  # (N, 1, D)
        for index, layer in enumerate(self.decoder_layers()):
            x = layer.step(x, state, index)
        state.length += 1
        return self.decoder_norm(x)[:, 0]

    def decoder_layers(self) -> list[DecoderLayer]:
        return cast(list[DecoderLayer], list(self.decoder))

    def nvs_logits(self, memory: Memory) -> Tensor:
        if self.nvs is None:
            raise ValueError("this model was trained without an NVS head")
        return self.nvs(memory)


def key_mask(mask: Tensor) -> Tensor | None:
    """(B, S) → (B, 1, 1, S) for attention; None where nothing is padded, which attention does faster.

    Only looked up on a CPU: a GPU would have to wait for the answer.
    """
    if mask.device.type == "cpu" and bool(mask.all()):
        return None
    return mask[:, None, None, :]
