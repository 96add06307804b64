"""Recurrent encoder and decoder: bidirectional LSTMs, and LSTMs with attention and input feeding (Luong, Pham
and Manning 2015), as Peters and Martins (2021, sections 4.1 and 4.2) have them.

    s[t] = LSTM([y[t-1]; h[t-1]], s[t-1]),   a = π(K s[t]),   c = Σ a_j v_j,   h[t] = tanh(W [s[t]; c])

v are the encoder's outputs, K = v Uᵀ ("general" scores), π is softmax or entmax; h gives the logits, and is
fed back. A gated model (GATEDATTN, Peters and Martins 2019) has two encoders with attentions, for the lemma
and for its tags, which give h_1 and h_2, and h = g_1 h_1 + g_2 h_2 with g = π(G [s; c_1; c_2]).

Shapes: B sentences, N decoder rows, S source positions, T target positions, D width, E embedding, F state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from creamtea.errors import StepError
from creamtea.methods.architectures import Nvs, RnnArchitecture
from creamtea_workers.models.graphs import FixedRnnState, FixedState, New
from creamtea_workers.models.interface import EOS, PAD, UNK, Memory, SourceVocabulary, State, Tree
from creamtea_workers.models.layers import MASKED, WEIGHTS, Dropout
from creamtea_workers.models.model import Model
from creamtea_workers.models.nvs import NvsHead
from creamtea_workers.models.packed import Recorder
from creamtea_workers.models.state import RnnState, RnnTree, Source

FIRST_BRACKETED = 4  # languages and tags have the first ids after the special ones
# lengths of source and target are padded to multiples of these, so that few recordings are needed
SOURCE_STEP, TARGET_STEP = 4, 2


@dataclass
class RnnMemory(Memory):
    """The concatenated outputs of the encoders, S = S_1 (+ S_2)."""

    first: int  # S_1

    def select(self, rows: Tensor) -> RnnMemory:
        return RnnMemory(self.hidden[rows], self.mask[rows], self.first)

    def padded(self, step: int) -> RnnMemory:
        """Pad each encoder's outputs to a multiple of `step`, so that there are fewer shapes."""
        sizes = [self.first, self.mask.shape[1] - self.first]
        hidden = [F.pad(part, (0, 0, 0, -part.shape[1] % step)) for part in self.hidden.split(sizes, 1)]
        mask = [F.pad(part, (0, -part.shape[1] % step)) for part in self.mask.split(sizes, 1)]
        return RnnMemory(torch.cat(hidden, 1), torch.cat(mask, 1), mask[0].shape[1])


class Attention(nn.Module):
    """One attention with its output layer."""

    def __init__(self, width: int, dropout: float, weights: str) -> None:
        super().__init__()
        self.keys = nn.Linear(2 * width, width, bias=False)
        self.out = nn.Linear(3 * width, width, bias=False)
        self.dropout = Dropout(dropout)
        self.weights = WEIGHTS[weights]

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Attend: query (N, D), keys (N, S, D), values (N, S, 2D), mask (N, S) → h (N, D), c (N, 2D)."""
        weights = self.weigh(query, keys, mask).to(values.dtype)
        context = torch.bmm(weights.unsqueeze(1), values).squeeze(1)  # (N, 2D)
        return torch.tanh(self.out(self.dropout(torch.cat([query, context], dim=1)))), context

    def weigh(self, query: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """Weigh the positions: query (N, D), keys (N, S, D), mask (N, S) → weights (N, S) in fp32."""
        scores = torch.bmm(keys, query.unsqueeze(2)).squeeze(2).float()
        return self.weights(scores.where(mask, MASKED))


class Rnn(Model):
    def __init__(
        self,
        vocabulary_size: int,
        size: RnnArchitecture,
        nvs: Nvs | None = None,
        source: SourceVocabulary | None = None,
    ) -> None:
        super().__init__()
        self.vocabulary_size, self.width, self.layers = vocabulary_size, size.width, size.layers
        self.kept = 3 * size.width * (2 if size.gated else 1)  # keys and values, of the source only
        self.bracketed = 0 if source is None else source.bracketed
        source_size = vocabulary_size if source is None else source.size
        self.source_embedding = nn.Embedding(source_size, size.embedding - size.language_embedding)
        self.language_embedding = (
            nn.Embedding(source_size, size.language_embedding) if size.language_embedding else None
        )
        self.embedding = nn.Embedding(vocabulary_size, size.embedding)
        self.dropout = Dropout(size.dropout)
        between = size.dropout if size.layers > 1 else 0.0
        encoders = [
            nn.LSTM(size.embedding, size.width, size.layers, True, True, between, bidirectional=True)
            for _ in range(2 if size.gated else 1)
        ]
        self.encoders = nn.ModuleList(encoders)
        self.bridge = nn.Linear(2 * size.width, size.width)
        inputs = [size.embedding + size.width, *[size.width] * (size.layers - 1)]
        self.decoder = nn.ModuleList(nn.LSTMCell(width, size.width) for width in inputs)
        self.attentions = nn.ModuleList(Attention(size.width, size.dropout, size.attention) for _ in encoders)
        self.gate = nn.Linear(5 * size.width, 2) if size.gated else None
        self.gate_weights = WEIGHTS[size.attention]
        self.output = nn.Parameter(torch.empty(vocabulary_size, size.width))
        self.output_bias = nn.Parameter(torch.zeros(vocabulary_size))
        self.nvs = None if nvs is None else NvsHead(vocabulary_size, 2 * size.width, nvs.detach)
        self.recorder = Recorder()
        self.initialise()

    def initialise(self) -> None:
        """Initialise matrices by Xavier, recurrent ones orthogonally; forget gates begin open (bias 1)."""
        for name, weight in self.named_parameters():
            if weight.ndim > 1 and not name.startswith("nvs."):
                recurrent = "weight_hh" in name
                for part in weight.data.chunk(4) if "weight_" in name else [weight.data]:
                    (nn.init.orthogonal_ if recurrent else nn.init.xavier_uniform_)(part)
            elif "bias" in name and name != "nvs.bias":
                nn.init.zeros_(weight)
                if "bias_ih" in name:
                    nn.init.ones_(weight.data.chunk(4)[1])  # input, forget, cell, output

    @property
    def output_weight(self) -> Tensor:
        return self.output

    # ------------------------------------------------------------ encoder

    def encode(self, source: Tensor) -> RnnMemory:
        with torch.autocast(source.device.type, enabled=False):  # autocast makes LSTMs slower on a CPU
            parts = self.parts(source)
            hidden = [
                self.encode_part(encoder, part, source[:, :1])
                for encoder, part in zip(self.encoders, parts, strict=True)
            ]
        mask = torch.cat(parts, dim=1) != PAD
        return RnnMemory(torch.cat(hidden, dim=1), mask, parts[0].shape[1])

    def parts(self, source: Tensor) -> list[Tensor]:
        """Split source (B, S) by encoder: the whole source, or (gated) language with lemma, and tags.

        Tags come last, so an unknown symbol after a tag is a tag that the training text does not have.
        """
        if len(self.encoders) == 1:
            return [source]
        tags = (source >= FIRST_BRACKETED) & (source < FIRST_BRACKETED + self.bracketed)
        tags[:, 0] = False  # the language
        tags |= (source == UNK) & (tags.cumsum(1) > 0)
        return [moved_up(source, (source != PAD) & ~tags), moved_up(source, tags | (source == EOS))]

    def encode_part(self, encoder: nn.Module, part: Tensor, language: Tensor) -> Tensor:
        """Encode part (B, S), language (B, 1) → (B, S, 2D), zeros at padding."""
        vectors = self.source_embedding(part)
        if self.language_embedding is not None:
            of_language = self.language_embedding(language).expand(-1, part.shape[1], -1)
            vectors = torch.cat([vectors, of_language], dim=2)
        lengths = (part != PAD).sum(1).cpu()
        packed = pack_padded_sequence(self.dropout(vectors), lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(encoder(packed)[0], True, total_length=part.shape[1])[0]

    # ------------------------------------------------------------ decoder

    def look(self, memory: Memory) -> tuple[Tensor, Source]:
        """Return the states of the empty prefixes (B, F), and the keys and values of the attentions.

        A state has the hidden vectors and cells of all layers, and h. Hidden vectors and cells start from the
        first encoder's last outputs in both directions, tanh(W [→v_S; ←v_1]); h starts from zero.
        """
        assert isinstance(memory, RnnMemory)
        forward, backward = memory.hidden.split(self.width, dim=2)
        last = memory.mask[:, : memory.first].sum(1) - 1  # (B,)
        last_forward = forward.gather(1, last[:, None, None].expand(-1, 1, self.width))[:, 0]
        bridged = torch.tanh(self.bridge(torch.cat([last_forward, backward[:, 0]], dim=1)))
        rows = torch.cat([*[bridged] * (2 * self.layers), torch.zeros_like(bridged)], dim=1)
        attentions = cast(list[Attention], list(self.attentions))
        places = [slice(0, memory.first), slice(memory.first, None)][: len(attentions)]
        hidden = [memory.hidden[:, place] for place in places]
        parts = [
            (attention.keys(values), values, memory.mask[:, place])
            for attention, values, place in zip(attentions, hidden, places, strict=True)
        ]
        return rows, Source(parts)

    def advance(self, vectors: Tensor, rows: Tensor, source: Source) -> Tensor:
        """Advance states (N, F) by embedded tokens (N, E); return the next states, which end with h."""
        return torch.cat(self.next_state(vectors, rows.split(self.width, dim=1), source), dim=1)

    def next_state(self, vectors: Tensor, state: Sequence[Tensor], source: Source) -> list[Tensor]:
        """Return each layer's hidden vectors and cells, and h: (N, D) each."""
        x, after = torch.cat([vectors, state[-1]], dim=1), []
        for layer, cell in enumerate(self.decoder):
            hidden, memory = cell(x, (state[2 * layer], state[2 * layer + 1]))
            after += [hidden, memory]
            x = self.dropout(hidden) if layer + 1 < self.layers else hidden
        return [*after, self.attend(x, source)]

    def attend(self, query: Tensor, source: Source) -> Tensor:
        """Attend to the source: query (N, D) → h (N, D)."""
        attended = [
            attention(query, *part) for attention, part in zip(self.attentions, source.parts, strict=True)
        ]
        if self.gate is None:
            return attended[0][0]
        scores = self.gate(torch.cat([query, *(context for _, context in attended)], dim=1))
        gates = self.gate_weights(scores.float()).to(query.dtype).unsqueeze(2)  # (N, 2, 1)
        return (gates * torch.stack([hidden for hidden, _ in attended], dim=1)).sum(1)

    def decode(self, memory: Memory, target_in: Tensor) -> Tensor:
        assert isinstance(memory, RnnMemory)
        with torch.autocast(target_in.device.type, enabled=False):
            vectors = self.dropout(self.embedding(target_in))  # (B, T, E)
            if not (self.training and vectors.is_cuda):
                return self.unrolled(memory, vectors)
            assert self.recorder is not None
            memory, length = memory.padded(SOURCE_STEP), vectors.shape[1]
            vectors = F.pad(vectors, (0, 0, 0, -length % TARGET_STEP))
            (hidden,) = self.recorder(
                lambda hidden, mask, vectors: (
                    self.unrolled(RnnMemory(hidden, mask, memory.first), vectors),
                ),
                self.decoder_weights(),
                *(memory.hidden, memory.mask, vectors),
                key=memory.first,
            )
            return hidden[:, :length]

    def unrolled(self, memory: RnnMemory, vectors: Tensor) -> Tensor:
        """Decode embedded target tokens (B, T, E) → h of all positions (B, T, D)."""
        rows, source = self.look(memory)
        state, hidden = rows.split(self.width, dim=1), []
        for position in vectors.unbind(1):
            state = self.next_state(position, state, source)
            hidden.append(state[-1])
        return torch.stack(hidden, dim=1)

    def decoder_weights(self) -> list[nn.Parameter]:
        """Return the weights that `unrolled` reads."""
        modules = [self.bridge, self.decoder, self.attentions, *([] if self.gate is None else [self.gate])]
        return [weight for module in modules for weight in module.parameters()]

    def start(self, memory: Memory, max_length: int) -> RnnState:
        return RnnState(*self.look(memory))

    def step(self, tokens: Tensor, state: State) -> Tensor:
        assert isinstance(state, RnnState)
        state.rows = self.advance(self.embedding(tokens), state.rows, state.source)
        if state.keeps_attention:
            query = state.rows[:, -3 * self.width : -2 * self.width]  # the last layer's hidden vectors
            parts = zip(cast(list[Attention], list(self.attentions)), state.source.parts, strict=True)
            weights = [attention.weigh(query, keys, mask) for attention, (keys, _, mask) in parts]
            state.attention = torch.cat(weights, dim=1)
        return state.rows[:, -self.width :]

    def start_fixed(self, new: New, sentences: int, rows: int, source: int, max_length: int) -> FixedRnnState:
        sizes = (sentences, rows, source, self.width)
        state = (2 * self.layers + 1) * self.width
        return FixedRnnState(new, self.output.dtype, sizes, state, len(self.attentions), self.look)

    def step_fixed(self, tokens: Tensor, state: FixedState) -> Tensor:
        assert isinstance(state, FixedRnnState)
        state.rows.copy_(self.advance(self.embedding(tokens.flatten()), state.rows, state.source))
        return state.rows[:, -self.width :].unflatten(0, tokens.shape)

    def start_tree(self, memory: Memory, max_length: int) -> RnnTree:
        return RnnTree(*self.look(memory), max_length)

    def step_tree(self, tokens: Tensor, parents: Tensor, tree: Tree) -> tuple[Tensor, list[int]]:
        assert isinstance(tree, RnnTree)
        places = tree.place(parents)
        source, (table,) = tree.source.select(tree.sentences[places]), tree.tables
        table[places] = self.advance(self.embedding(tokens), table[parents], source)
        return table[places, -self.width :], places.tolist()


def moved_up(source: Tensor, kept: Tensor) -> Tensor:
    """Move the kept ids of source (B, S) to the front, in order; pad to the longest row of kept ids."""
    order = (~kept).long().argsort(dim=1, stable=True)
    counts = kept.sum(1, keepdim=True)
    places = torch.arange(source.shape[1], device=source.device)
    rows = source.gather(1, order).masked_fill(places >= counts, PAD)
    return rows[:, : int(counts.max())]


def build(
    spec: RnnArchitecture, vocabulary_size: int, nvs: Nvs | None, source: SourceVocabulary | None = None
) -> Rnn:
    if spec.gated and source is None:
        raise StepError("architecture.gated: tags are told from letters by subwords of kind characters")
    return Rnn(vocabulary_size, spec, nvs, source)
