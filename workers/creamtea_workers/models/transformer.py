"""Transformer (Vaswani et al. 2017); by default layer normalisation comes first, as in Xiong et al. (2020).

Source, target and output embeddings are one matrix, unless `tied_embeddings` says otherwise or the source has
a separate vocabulary. The output layer has a bias. The decoder looks back by self-attention or by SSRUs
(`Layered.recurrent`); both get positions. Dropout applies to the embeddings, to the output of every sublayer,
and to attention weights if `attention_dropout` is above 0.

Shapes: B sentences, N decoder rows, S source and T target positions, D width, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from creamtea.errors import StepError
from creamtea.methods.architectures import Layered, Nvs
from creamtea_workers.models.graphs import (
    FixedAttentionState,
    FixedCellState,
    FixedDecoderState,
    FixedState,
    New,
)
from creamtea_workers.models.interface import PAD, Memory, SourceVocabulary, State, Tree
from creamtea_workers.models.layers import (
    CrossAttention,
    Dropout,
    FeedForward,
    LearnedPositions,
    PositionTable,
    SelfAttention,
)
from creamtea_workers.models.model import Model
from creamtea_workers.models.nvs import NvsHead
from creamtea_workers.models.packed import Lengths, Packing, Spans, add_and_normalise
from creamtea_workers.models.state import AttentionState, DecoderState, DecoderTree, RecurrentState, TreeStep

# x (B, T, D), or packed (N, D), and its layer normalisation; with post-norm x is normalised and occurs twice
Stream = tuple[Tensor, Tensor]


class PrefixLayer(Protocol):
    """The part of a decoder layer that looks back at the prefix. Each kind has its own kind of state."""

    def over_prefix(self, x: Tensor, packed: Lengths | None = None) -> Tensor:
        """Map x (B, T, D) → (B, T, D), or packed (N, D) → (N, D), from each position and earlier ones."""

    def step(self, x: Tensor, state: Any, layer: int) -> Tensor:
        """Map one more position (N, 1, D), and store it in the state for later positions."""


class ResidualLayer(nn.Module):
    """Sublayers with residual connections."""

    def __init__(self, size: Layered) -> None:
        super().__init__()
        self.post_norm = size.norm == "post"
        self.dropout = Dropout(size.dropout)

    def add(
        self,
        stream: Stream,
        added: Tensor,
        own: nn.Module,
        following: nn.Module | None,
        packing: Packing | None = None,
    ) -> Stream:
        """Add a sublayer's output to its input.

        `own`: the sublayer's normalisation; `following`: the next sublayer's.
        """
        norm = own if self.post_norm else following
        assert norm is not None
        x, normed = add_and_normalise(stream[0], added, self.dropout, norm, packing)
        return (normed if self.post_norm else x), normed


class EncoderLayer(ResidualLayer):
    def __init__(self, size: Layered) -> None:
        super().__init__(size)
        self.attention_norm = nn.LayerNorm(size.width)
        self.attention = SelfAttention(size.width, size.heads, size.attention_dropout, size.attention)
        self.feed_norm = nn.LayerNorm(size.width)
        self.feed = FeedForward(size.width, size.feed_forward, size.activation)

    def forward(
        self,
        stream: Stream,
        mask: Tensor | Spans | None,
        following: nn.Module | None,
        packing: Packing | None,
    ) -> Stream:
        """Apply the layer; `following` is the normalisation that comes after it."""
        added = self.attention(stream[1], mask)
        stream = self.add(stream, added, self.attention_norm, self.feed_norm, packing)
        return self.add(stream, self.feed(stream[1]), self.feed_norm, following, packing)


class DecoderLayer(ResidualLayer):
    """`attention` looks back at the prefix: self-attention, or an SSRU in its place."""

    def __init__(self, size: Layered) -> None:
        super().__init__(size)
        self.attention_norm = nn.LayerNorm(size.width)
        self.attention: PrefixLayer = (
            Ssru(size.width)
            if size.recurrent
            else SelfAttention(size.width, size.heads, size.attention_dropout, size.attention)
        )
        self.cross_norm = nn.LayerNorm(size.width)
        self.cross = CrossAttention(size.width, size.heads, size.attention_dropout, size.attention)
        self.feed_norm = nn.LayerNorm(size.width)
        self.feed = FeedForward(size.width, size.feed_forward, size.activation)

    def forward(
        self,
        stream: Stream,
        memory: Tensor,
        mask: Tensor | Spans | None,
        following: nn.Module | None,
        packing: Packing | None,
    ) -> Stream:
        """Apply the layer causally to x (B, T, D) over memory (B, S, D)."""
        added = self.attention.over_prefix(stream[1], None if packing is None else packing.target)
        stream = self.add(stream, added, self.attention_norm, self.cross_norm, packing)
        added = self.cross(stream[1], *self.cross.project(memory), mask)
        stream = self.add(stream, added, self.cross_norm, self.feed_norm, packing)
        return self.add(stream, self.feed(stream[1]), self.feed_norm, following, packing)

    def step(
        self,
        stream: Stream,
        state: DecoderState | TreeStep | FixedDecoderState,
        layer: int,
        following: nn.Module | None,
    ) -> Stream:
        """Apply the layer to one position, (N, 1, D) or (B, k, D), and add it to the state's prefix."""
        added = self.attention.step(stream[1], state, layer)
        stream = self.add(stream, added, self.attention_norm, self.cross_norm)
        if isinstance(state, DecoderState) and state.keeps_attention:  # the last layer overwrites the others
            state.attention = self.cross.mean_weights(stream[1], state.memory(layer)[0], state.mask)[:, 0]
        added = self.cross(stream[1], *state.memory(layer), state.mask)
        stream = self.add(stream, added, self.cross_norm, self.feed_norm)
        return self.add(stream, self.feed(stream[1]), self.feed_norm, following)


class Transformer(Model):
    """See `creamtea_workers.models.interface.TranslationModel`."""

    fixed_encoder = True

    def __init__(
        self,
        vocabulary_size: int,
        size: Layered,
        nvs: Nvs | None = None,
        source: SourceVocabulary | None = None,
    ) -> None:
        super().__init__()
        self.vocabulary_size = vocabulary_size
        self.kept = 2 * size.decoder_layers * size.width  # keys and values
        self.size = size
        self.scale = math.sqrt(size.width) if size.scale_embeddings else 1.0
        self.heads, self.recurrent = size.heads, size.recurrent
        self.embedding = nn.Embedding(vocabulary_size, size.width)
        own_source = vocabulary_size if size.tied_embeddings != "all" else 0
        source_size = own_source if source is None else source.size
        self.source_embedding = nn.Embedding(source_size, size.width) if source_size else None
        untied = size.tied_embeddings == "none"
        self.output_embedding = nn.Embedding(vocabulary_size, size.width) if untied else None
        self.output_bias = nn.Parameter(torch.zeros(vocabulary_size))
        self.positions = (
            LearnedPositions(size.width, size.max_positions)
            if size.positions == "learned"
            else PositionTable(size.width, size.positions)
        )
        self.dropout = Dropout(size.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(size) for _ in range(size.encoder_layers))
        self.encoder_norm = nn.LayerNorm(size.width) if size.norm == "pre" else None
        self.decoder = nn.ModuleList(DecoderLayer(size) for _ in range(size.decoder_layers))
        self.decoder_norm = nn.LayerNorm(size.width) if size.norm == "pre" else None
        self.nvs = None if nvs is None else NvsHead(vocabulary_size, size.width, nvs.detach)
        self.initialise()

    def initialise(self) -> None:
        """Initialise linear layers by Xavier, embeddings with variance 1/D: tied logits start as N(0, 1)."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for table in (self.embedding, self.source_embedding, self.output_embedding):
            if table is not None:
                nn.init.normal_(table.weight, std=1 / math.sqrt(self.size.width))

    def scale_logits(self, factor: float) -> None:
        """Scale the last normalisation's gain, not the embeddings, which are also the decoder's input."""
        last: Any = self.decoder_norm or self.decoder_layers()[-1].feed_norm
        nn.init.constant_(last.weight, factor)

    @torch.no_grad()
    def change_logits(self, factor: float, shift: float) -> None:
        last: Any = self.decoder_norm or self.decoder_layers()[-1].feed_norm
        for weight in (last.weight, last.bias, self.output_bias):
            weight.mul_(factor)
        self.output_bias.add_(shift)

    @property
    def output_weight(self) -> Tensor:
        return (self.output_embedding or self.embedding).weight

    def embed(self, ids: Tensor, start: int = 0, table: nn.Embedding | None = None) -> Tensor:
        """Embed ids (B, T) at positions start … → (B, T, D). `table`: separate source embeddings."""
        vectors = F.embedding(ids, (table or self.embedding).weight) * self.scale
        return vectors + self.positions(start, ids.shape[1]).to(vectors.dtype)

    def encode(self, source: Tensor) -> Memory:
        mask = source != PAD
        vectors = self.embed(source, table=self.source_embedding)  # (B, S, D)
        return Memory(self.through(self.encoder, vectors, key_mask(mask)), mask)

    def decode(self, memory: Memory, target_in: Tensor) -> Tensor:
        return self.through(self.decoder, self.embed(target_in), memory.hidden, key_mask(memory.mask))

    def run_packed(
        self, source: Tensor, target_in: Tensor, places: Tensor, table: Tensor, packing: Packing
    ) -> tuple[Tensor, Tensor]:
        """Encode and decode packed sentences; return hidden vectors of both sides, (N, D).

        Ids are (N_s,) and (N_t,); `places` (N_s + N_t,) are the positions in their sentences, and rows of the
        position embeddings `table`.
        """
        sizes = [len(source), len(target_in)]
        if self.source_embedding is None:
            vectors = F.embedding(torch.cat([source, target_in]), self.embedding.weight)
        else:
            tables = self.source_embedding.weight, self.embedding.weight
            vectors = torch.cat([F.embedding(source, tables[0]), F.embedding(target_in, tables[1])])
        of_source, of_target = (vectors * self.scale + table[places]).split(sizes)
        spans = Spans(packing.source, packing.source), Spans(packing.target, packing.source)
        memory = self.through(self.encoder, of_source, spans[0], packing=packing)
        return memory, self.through(self.decoder, of_target, memory, spans[1], packing=packing)

    def through(
        self,
        layers: nn.ModuleList,
        vectors: Tensor,
        *attended: Tensor | Spans | None,
        packing: Packing | None = None,
    ) -> Tensor:
        """Pass embedded subwords through the encoder's or decoder's layers, called with `attended`."""
        norms = self.norms(layers)
        stream = self.enter(vectors, norms[0], packing)
        for layer, following in zip(layers, norms[1:], strict=True):
            stream = layer(stream, *attended, following, packing)
        return stream[1]

    def norms(self, layers: nn.ModuleList) -> list[nn.Module | None]:
        """Return the first normalisation of each layer, and the normalisation after the last layer."""
        last = self.encoder_norm if layers is self.encoder else self.decoder_norm
        return [*(cast(Any, layer).attention_norm for layer in layers), last]

    def enter(self, vectors: Tensor, norm: nn.Module | None, packing: Packing | None = None) -> Stream:
        """Return the input of the first layer, whose first normalisation is `norm`."""
        if self.size.norm == "post":
            vectors = self.dropout(vectors)
            return vectors, vectors
        assert norm is not None
        return add_and_normalise(None, vectors, self.dropout, norm, packing)

    def start(self, memory: Memory, max_length: int) -> DecoderState:
        cross, mask = torch.stack(list(self.project(memory.hidden))), key_mask(memory.mask)
        return RecurrentState(cross, mask) if self.recurrent else AttentionState(cross, mask, max_length)

    def step(self, tokens: Tensor, state: State) -> Tensor:
        assert isinstance(state, DecoderState)
        hidden = self.step_layers(self.embed(tokens[:, None], state.length), state)  # (N, 1, D)
        state.length += 1
        return hidden[:, 0]

    def step_layers(self, vectors: Tensor, state: DecoderState | TreeStep | FixedDecoderState) -> Tensor:
        """Pass embedded tokens (N, 1, D) or (B, k, D) through the decoder's layers."""
        norms = self.norms(self.decoder)
        stream = self.enter(vectors, norms[0])
        for index, (layer, following) in enumerate(zip(self.decoder_layers(), norms[1:], strict=True)):
            stream = layer.step(stream, state, index, following)
        return stream[1]

    def start_fixed(
        self, new: New, sentences: int, rows: int, source: int, max_length: int
    ) -> FixedAttentionState | FixedCellState:
        weight = self.output_weight
        sizes = (len(self.decoder), sentences, rows, self.heads, source, weight.shape[1] // self.heads)
        positions = self.positions(0, max_length).to(weight.dtype)
        kind = FixedCellState if self.recurrent else FixedAttentionState
        return kind(new, sizes, positions, self.project)

    def step_fixed(self, tokens: Tensor, state: FixedState) -> Tensor:
        assert isinstance(state, FixedDecoderState)
        vectors = F.embedding(tokens, self.embedding.weight)  # (B, k, D)
        hidden = self.step_layers(torch.add(state.enter(), vectors, alpha=self.scale), state)
        state.leave()
        return hidden

    def start_tree(self, memory: Memory, max_length: int) -> DecoderTree:
        return DecoderTree(memory, max_length, list(self.project(memory.hidden)), self.heads, self.recurrent)

    def step_tree(self, tokens: Tensor, parents: Tensor, tree: Tree) -> tuple[Tensor, list[int]]:
        assert isinstance(tree, DecoderTree)
        state = tree.add(parents)
        vectors = F.embedding(tokens, self.embedding.weight) * self.scale  # (N, D)
        positions = self.positions(0, state.paths.shape[1])[state.positions]
        hidden = self.step_layers((vectors + positions.to(vectors.dtype))[:, None], state)  # (N, 1, D)
        return hidden[:, 0], state.places.tolist()

    def project(self, hidden: Tensor) -> Iterator[Tensor]:
        """Yield the keys and values (2, B, H, S, E) of the encoder's output in each decoder layer."""
        products = (layer.cross.kv(hidden) for layer in self.decoder_layers())  # (B, S, 2D)
        return (x.unflatten(2, (2, self.heads, -1)).permute(2, 0, 3, 1, 4) for x in products)

    def decoder_layers(self) -> list[DecoderLayer]:
        return cast(list[DecoderLayer], list(self.decoder))


def build(
    spec: Layered, vocabulary_size: int, nvs: Nvs | None, source: SourceVocabulary | None = None
) -> Transformer:
    if spec.width % spec.heads:
        raise StepError(
            f"architecture.width {spec.width} is not a multiple of architecture.heads {spec.heads}: "
            "change one of them"
        )
    return Transformer(vocabulary_size, spec, nvs, source)


def key_mask(mask: Tensor) -> Tensor | None:
    """Reshape (B, S) → (B, 1, 1, S) for attention; None if nothing is padded: attention is then faster.

    Checked only on a CPU: a GPU would have to wait for the answer.
    """
    if mask.device.type == "cpu" and bool(mask.all()):
        return None
    return mask[:, None, None, :]


class Ssru(nn.Module):
    """Replaces the self-attention of a decoder layer; a step costs the same at every position.

    Simpler simple recurrent unit (Kim, Junczys-Dowmunt, Hassan, Aji, Heafield, Grundkiewicz and Bogoychev
    2019, "From Research to Production and Back: Ludicrously Fast Neural Machine Translation"):

        f[t] = σ(W_f x[t] + b_f)
        c[t] = f[t] ⊙ c[t-1] + (1 - f[t]) ⊙ W x[t],   c[-1] = 0
        h[t] = relu(c[t])

    Only the recurrence, which is elementwise, runs position by position. Gates and cells are in fp32 or
    wider: in bf16 a gate above 0.996 would be 1, and the cell would never change again.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.forget = nn.Linear(width, width)
        self.candidate = nn.Linear(width, width, bias=False)

    def over_prefix(self, x: Tensor, packed: Lengths | None = None) -> Tensor:
        """Compute x (B, T, D) → h (B, T, D); packed sentences are not supported."""
        assert packed is None
        return F.relu(Recurrence.apply(*self.gates(x))).to(x.dtype)  # type: ignore[no-untyped-call]

    def step(self, x: Tensor, state: RecurrentState | TreeStep, layer: int) -> Tensor:
        """Compute one more position, x (N, 1, D) → h (N, 1, D); update the state's cell."""
        forget, candidate = self.gates(x)
        cell = torch.lerp(candidate, state.cell(layer), forget)
        state.set_cell(layer, cell)
        return F.relu(cell).to(x.dtype)

    def gates(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the forget gates f and the candidates W x for x (..., D)."""
        precise = torch.promote_types(x.dtype, torch.float32)
        return self.forget(x).to(precise).sigmoid(), self.candidate(x).to(precise)


class Recurrence(torch.autograd.Function):
    """f, W x → c, all (B, T, D), by one elementwise operation per position in each direction.

    Autograd of the plain loop would compute and keep several.

    Backward, with C[t] the total gradient of c[t]:

        C[t] = ∂c[t] + f[t+1] ⊙ C[t+1],   ∂f[t] = C[t] ⊙ (c[t-1] - W x[t]),   ∂(W x[t]) = C[t] ⊙ (1 - f[t])
    """

    @staticmethod
    def forward(ctx: Any, forget: Tensor, candidate: Tensor) -> Tensor:
        cells = torch.empty_like(candidate)
        before = torch.zeros_like(candidate[:, 0])
        for f, g, cell in zip(forget.unbind(1), candidate.unbind(1), cells.unbind(1), strict=True):
            before = torch.lerp(g, before, f, out=cell)
        ctx.save_for_backward(forget, candidate, cells)
        return cells

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        forget, candidate, cells = ctx.saved_tensors
        whole = gradient.clone()
        steps, gates = whole.unbind(1), forget.unbind(1)
        for t in range(len(steps) - 2, -1, -1):
            steps[t].addcmul_(gates[t + 1], steps[t + 1])
        change = candidate.neg()
        change[:, 1:] += cells[:, :-1]
        return change.mul_(whole), torch.addcmul(whole, whole, forget, value=-1)
