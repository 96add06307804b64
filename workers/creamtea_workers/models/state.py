"""What a decoder keeps of N rows from step to step; `State` of `creamtea_workers.models.interface`.

Shapes: N decoder rows, S source positions, T positions so far, H heads, D width, E = D / H,
F numbers of a recurrent state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Part = tuple[Tensor, Tensor, Tensor]  # keys (N, S, D), values (N, S, 2D), mask (N, S) of an attention


class DecoderState:
    """What all decoders need: the keys and values of the encoder's output in every layer.

    `sentences` (N,) is the sentence of each row. A reordering that keeps it (beams move within their
    sentence) does not copy these keys and values, and the rows of a single sentence share one copy: it stays
    in the processor's cache.
    """

    own_mask = None  # every row sees all of its positions
    keeps_attention = False  # see `interface.AttentiveState`
    attention: Tensor | None = None  # of the last layer, the mean over its heads

    def __init__(self, cross: Tensor, mask: Tensor | None) -> None:
        self.cross = cross  # (layers, 2, N, H, S, E): keys, values; 1 for N where all rows share them
        self.mask = mask  # (N, 1, 1, S), or None where nothing is padded
        self.sentences = torch.arange(cross.shape[2], device=cross.device)
        self.length = 0  # positions done

    def memory(self, layer: int) -> tuple[Tensor, Tensor]:
        """Return keys and values (N, H, S, E) of the encoder's output."""
        cross = self.cross[layer]
        if cross.shape[1] == 1:
            cross = cross.expand(-1, len(self.sentences), -1, -1, -1)
        keys, values = cross.unbind(0)
        return keys, values

    def reorder(self, rows: Tensor) -> None:
        sentences = self.sentences[rows]
        if self.cross.shape[2] > 1 and not torch.equal(sentences, self.sentences):
            self.cross = self.cross.index_select(2, rows)
            self.mask = None if self.mask is None else self.mask[rows]
        self.sentences = sentences


class AttentionState(DecoderState):
    """For self-attention: key-value caches that grow by doubling, up to `max_length`."""

    def __init__(self, cross: Tensor, mask: Tensor | None, max_length: int) -> None:
        super().__init__(cross, mask)
        layers, _, rows, heads, _, width = cross.shape
        self.max_length = max_length
        self.cache = cross.new_empty(layers, 2, rows, heads, min(max_length, 16), width)

    def reorder(self, rows: Tensor) -> None:
        self.cache = self.cache.index_select(2, rows)
        super().reorder(rows)

    def append(self, layer: int, entries: Tensor) -> tuple[Tensor, Tensor]:
        """Put keys and values (2, N, H, 1, E) at the current position; return all of the layer's
        (N, H, T, E). ValueError beyond `max_length`."""
        if self.length == self.cache.shape[4]:
            self._grow()
        used = self.cache[layer, :, :, :, : self.length + 1]
        used[:, :, :, self.length] = entries[:, :, :, 0]
        return used[0], used[1]

    def _grow(self) -> None:
        room = self.cache.shape[4]
        if room == self.max_length:
            raise ValueError(f"a state of max_length {self.max_length} has no room for another position")
        larger = min(2 * room, self.max_length)
        cache = self.cache.new_empty(*self.cache.shape[:4], larger, self.cache.shape[5])
        cache[:, :, :, :, :room] = self.cache
        self.cache = cache


class RecurrentState(DecoderState):
    """For SSRUs: one cell per layer, however long the prefix is; fp32 or wider."""

    def __init__(self, cross: Tensor, mask: Tensor | None) -> None:
        super().__init__(cross, mask)
        layers, _, rows, heads, _, width = cross.shape
        dtype = torch.promote_types(cross.dtype, torch.float32)
        empty = cross.new_zeros(rows, 1, heads * width, dtype=dtype)
        self.cells = [empty] * layers  # (N, 1, D) each; replaced, never written to

    def reorder(self, rows: Tensor) -> None:
        self.cells = [cell.index_select(0, rows) for cell in self.cells]
        super().reorder(rows)

    def cell(self, layer: int) -> Tensor:
        """Return the layer's cells (N, 1, D)."""
        return self.cells[layer]

    def set_cell(self, layer: int, cell: Tensor) -> None:
        self.cells[layer] = cell


@dataclass(frozen=True)
class Source:
    """What the attentions of an LSTM decoder read: one part for each encoder."""

    parts: Sequence[Part]

    def select(self, rows: Tensor) -> Source:
        return Source([tuple(tensor.index_select(0, rows) for tensor in part) for part in self.parts])  # type: ignore[misc]


class RnnState:
    """State of an LSTM decoder: an `AttentiveState` of `creamtea_workers.models.interface`."""

    keeps_attention = False
    attention: Tensor | None = None  # of a gated model: those to lemma and tags, one behind the other

    def __init__(self, rows: Tensor, source: Source) -> None:
        self.rows, self.source = rows, source  # (N, F)
        self.sentences = torch.arange(len(rows), device=rows.device)  # (N,)

    def reorder(self, rows: Tensor) -> None:
        """Reorder the rows; within the sentences (beams), nothing of the source is copied."""
        self.rows = self.rows.index_select(0, rows)
        sentences = self.sentences[rows]
        if not torch.equal(sentences, self.sentences):
            self.source = self.source.select(rows)
        self.sentences = sentences
