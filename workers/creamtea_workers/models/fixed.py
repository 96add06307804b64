"""Decoder states whose tensors neither move nor grow, so that a GPU can replay a step as one CUDA graph.

Each sentence is decoded in k rows (a beam's slots, or samples). Its self-attention has k queries and k
entries (keys and values) per position, one per row; a mask selects the entries of each row's prefix.
Reordering a beam reorders the mask, and no key or value moves. Keys and values of the source exist once per
sentence.

Shapes: B sentences, k rows per sentence, S source positions, T target positions, L layers, H heads, D width,
E = D / H, F width of a recurrent state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Protocol

import torch
from torch import Tensor

from creamtea_workers.models.graphs import New
from creamtea_workers.models.interface import Memory
from creamtea_workers.models.state import Source

Sizes = tuple[int, int, int, int, int, int]  # L, B, k, H, S, E
Project = Callable[[Tensor], Iterable[Tensor]]  # (B, S, D) → keys and values (2, B, H, S, E) in each layer


class FixedState(Protocol):
    """What a model keeps for B × k rows between steps."""

    def load(self, memory: Memory) -> None:
        """Load the encoder's output of at most B sentences of at most S positions."""

    def begin(self) -> None:
        """Start decoding the loaded sentences from their beginning."""

    def reorder(self, parents: Tensor) -> None:
        """Make row j of sentence b a copy of its row parents[b, j]; parents (B, k)."""


class FixedDecoderState:
    """State of a Transformer decoder: keys and values of the encoder's output, and the position.

    `mask` is added to the scores of attention to the source, `own_mask` to those of self-attention.
    """

    own_mask: Tensor | None = None

    def __init__(self, new: New, sizes: Sizes, positions: Tensor, project: Project) -> None:
        """`positions` (T, D): embeddings of all positions."""
        dtype = positions.dtype
        layers, sentences, _, heads, source, width = sizes
        self.hidden = new((sentences, source, heads * width), dtype)
        self.real = new((sentences, source), torch.bool)
        self.cross = new((layers, 2, sentences, heads, source, width), dtype)
        self.mask = new((sentences, 1, 1, source), dtype)
        self.position = new((1,), torch.long)
        self.positions, self.project = positions, project

    def load(self, memory: Memory) -> None:
        sentences, source = memory.mask.shape
        if self.real.shape != memory.mask.shape:
            self.hidden.zero_()
            self.real.zero_()
            self.real[sentences:].fill_(True)  # unused: attention to no position at all would be NaN
        self.hidden[:sentences, :source].copy_(memory.hidden)
        self.real[:sentences, :source].copy_(memory.mask)

    def begin(self) -> None:
        for cached, entries in zip(self.cross, self.project(self.hidden), strict=True):
            cached.copy_(entries)
        self.mask.fill_(-torch.inf).masked_fill_(self.real[:, None, None], 0.0)
        self.position.zero_()

    def memory(self, layer: int) -> tuple[Tensor, Tensor]:
        """Return keys and values (B, H, S, E) of the encoder's output."""
        keys, values = self.cross[layer].unbind(0)
        return keys, values

    def enter(self) -> Tensor:
        """Begin a step; return the embedding of its position (1, D)."""
        return self.positions.index_select(0, self.position)

    def leave(self) -> None:
        self.position.add_(1)


class FixedAttentionState(FixedDecoderState):
    """State of a decoder with self-attention."""

    own_mask: Tensor

    def __init__(self, new: New, sizes: Sizes, positions: Tensor, project: Project) -> None:
        super().__init__(new, sizes, positions, project)
        layers, sentences, rows, heads, _, width = sizes
        entries = len(positions) * rows
        dtype = positions.dtype
        self.cache = new((layers, 2, sentences, heads, entries, width), dtype)
        self.own_mask = new((sentences, 1, rows, entries), dtype)
        self.places = new((rows,), torch.long)  # indices of the current position's entries
        self.slots = torch.arange(rows, device=positions.device)
        square = torch.full((rows, rows), -torch.inf, dtype=dtype, device=positions.device)
        # each row sees its own new entry
        self.new_mask = square.fill_diagonal_(0.0).expand(sentences, 1, rows, rows)

    def begin(self) -> None:
        super().begin()
        self.cache.zero_()
        self.own_mask.fill_(-torch.inf)

    def enter(self) -> Tensor:
        torch.add(self.slots, self.position, alpha=len(self.slots), out=self.places)
        self.own_mask.index_copy_(3, self.places, self.new_mask)
        return super().enter()

    def append(self, layer: int, entries: Tensor) -> tuple[Tensor, Tensor]:
        """Store keys and values (2, B, H, k, E) of the current position; return those of all positions, each
        (B, H, T·k, E)."""
        keys, values = self.cache[layer].index_copy_(3, self.places, entries).unbind(0)
        return keys, values

    def reorder(self, parents: Tensor) -> None:
        index = parents[:, None, :, None].expand_as(self.own_mask)
        self.own_mask.copy_(self.own_mask.gather(2, index))


class FixedCellState(FixedDecoderState):
    """State of a decoder with SSRUs: one cell per layer and row, fp32 or wider."""

    def __init__(self, new: New, sizes: Sizes, positions: Tensor, project: Project) -> None:
        super().__init__(new, sizes, positions, project)
        layers, sentences, rows, heads, _, width = sizes
        precise = torch.promote_types(positions.dtype, torch.float32)
        self.cells = new((layers, sentences, rows, heads * width), precise)

    def begin(self) -> None:
        super().begin()
        self.cells.zero_()

    def cell(self, layer: int) -> Tensor:
        """Return the layer's cells (B, k, D)."""
        return self.cells[layer]

    def set_cell(self, layer: int, cell: Tensor) -> None:
        self.cells[layer].copy_(cell)

    def reorder(self, parents: Tensor) -> None:
        self.cells.copy_(self.cells.gather(2, parents[None, :, :, None].expand_as(self.cells)))


class FixedRnnState:
    """State of LSTMs with attention. Each row has its own copy of the source: a word is short."""

    def __init__(
        self,
        new: New,
        dtype: torch.dtype,
        sizes: tuple[int, int, int, int],
        state: int,
        parts: int,
        look: Callable[[Memory], tuple[Tensor, Source]],
    ) -> None:
        """`sizes`: B, k, S, D; `state`: F; `parts`: the number of attentions; `look` returns the states
        (B, F) of empty prefixes, and the sources that they attend to."""
        self.look = look
        sentences, self.beams, source, width = sizes
        count = sentences * self.beams
        self.rows = new((count, state), dtype)
        self.source = Source(
            [
                (
                    new((count, source, width), dtype),
                    new((count, source, 2 * width), dtype),
                    new((count, source), torch.bool),
                )
                for _ in range(parts)
            ]
        )

    def load(self, memory: Memory) -> None:
        rows, source = self.look(memory)
        fixed = [self.rows, *chain(*self.source.parts)]
        for kept, first in zip(fixed, [rows, *chain(*source.parts)], strict=True):
            repeated = first.repeat_interleave(self.beams, 0)
            kept.zero_()
            kept[tuple(slice(size) for size in repeated.shape)].copy_(repeated)

    def begin(self) -> None:
        pass  # `load` has written the first states

    def reorder(self, parents: Tensor) -> None:
        rows = self.rows.unflatten(0, (-1, self.beams))
        rows.copy_(rows.gather(1, parents.unsqueeze(2).expand_as(rows)))
