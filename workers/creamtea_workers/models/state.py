"""Incremental states of decoders: for rows from step to step, and for the nodes of search trees.

They implement `State` and `Tree` of `creamtea_workers.models.interface`.

Shapes: N decoder rows or new nodes, B sentences, S source positions, T positions so far (in a tree: the
longest path of a batch), L maximal tokens of a prefix, M places of nodes, H heads, D width, E = D / H, F
numbers of a recurrent state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from creamtea_workers.models.interface import Memory

Part = tuple[Tensor, Tensor, Tensor]  # keys (N, S, D), values (N, S, 2D), mask (N, S) of an attention


class DecoderState:
    """The state of every Transformer decoder: keys and values of the encoder's output in every layer.

    `sentences` (N,) is the sentence of each row. A reordering that keeps it (beams move within their
    sentence) does not copy the keys and values. If all rows belong to one sentence, they share one copy,
    which stays in the processor's cache.
    """

    own_mask = None  # every row sees all of its positions
    keeps_attention = False  # see `interface.AttentiveState`
    attention: Tensor | None = None  # weights of the last layer, averaged over its heads

    def __init__(self, cross: Tensor, mask: Tensor | None) -> None:
        self.cross = cross  # (layers, 2, N, H, S, E): keys, values; N is 1 if all rows share them
        self.mask = mask  # (N, 1, 1, S), or None if nothing is padded
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
    """State for self-attention: key-value caches that grow by doubling, up to `max_length`."""

    def __init__(self, cross: Tensor, mask: Tensor | None, max_length: int) -> None:
        super().__init__(cross, mask)
        layers, _, rows, heads, _, width = cross.shape
        self.max_length = max_length
        self.cache = cross.new_empty(layers, 2, rows, heads, min(max_length, 16), width)

    def reorder(self, rows: Tensor) -> None:
        self.cache = self.cache.index_select(2, rows)
        super().reorder(rows)

    def append(self, layer: int, entries: Tensor) -> tuple[Tensor, Tensor]:
        """Store keys and values (2, N, H, 1, E) of the current position; return the layer's keys and
        values of all positions, (N, H, T, E) each. Raise ValueError beyond `max_length`."""
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
    """State for SSRUs: one cell per layer, however long the prefix is; fp32 or wider."""

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
    """Keys, values and masks for the attentions of an LSTM decoder: one part per encoder."""

    parts: Sequence[Part]

    def select(self, rows: Tensor) -> Source:
        return Source([tuple(tensor.index_select(0, rows) for tensor in part) for part in self.parts])  # type: ignore[misc]


class RnnState:
    """State of an LSTM decoder: an `AttentiveState` of `creamtea_workers.models.interface`."""

    keeps_attention = False
    attention: Tensor | None = None  # weights; in a gated model over the lemma, then over the tags

    def __init__(self, rows: Tensor, source: Source) -> None:
        self.rows, self.source = rows, source  # (N, F)
        self.sentences = torch.arange(len(rows), device=rows.device)  # (N,)

    def reorder(self, rows: Tensor) -> None:
        """Reorder the rows. If rows stay in their sentence (beams), the source is not copied."""
        self.rows = self.rows.index_select(0, rows)
        sentences = self.sentences[rows]
        if not torch.equal(sentences, self.sentences):
            self.source = self.source.select(rows)
        self.sentences = sentences


# ---------------------------------------------------------------- search trees


# A node stores only the contribution of its last token to the decoder's state: keys and values in every
# layer, or the cell of an SSRU after the token. When a prefix is continued, its state is gathered from the
# nodes on its path (cells: from the parent). So nothing is copied when a search goes back, and the rows of a
# batch may be at any depth of any sentence's tree.


class Nodes:
    """The places of a tree's nodes, and tables with a row for each place, which grow by doubling."""

    def __init__(self, sentences: int, max_length: int, tables: Sequence[Tensor]) -> None:
        """`tables` (B, F): the rows of the empty prefixes."""
        self.max_length, self.tables = max_length, list(tables)  # (M, F) each
        self.sentences = torch.arange(sentences, device=tables[0].device)  # (M,)
        self.depths = torch.zeros_like(self.sentences)  # (M,) tokens
        self._free: list[int] = []

    def free(self, nodes: Sequence[int]) -> None:
        self._free.extend(nodes)

    def place(self, parents: Tensor) -> Tensor:
        """Make a new node below each of `parents` (N,); the caller writes the nodes' rows.

        Raises ValueError beyond `max_length` tokens.
        """
        depths = self.depths[parents] + 1
        if int(depths.max()) > self.max_length:
            raise ValueError(f"a tree of max_length {self.max_length} has no room for another position")
        while len(self._free) < len(parents):
            used = len(self.sentences)
            self._free.extend(range(2 * used - 1, used - 1, -1))  # the lowest place is used first
            self.tables = [_doubled(table) for table in self.tables]
            self.sentences, self.depths = _doubled(self.sentences), _doubled(self.depths)
        places = torch.tensor([self._free.pop() for _ in parents], device=parents.device)
        self.sentences[places], self.depths[places] = self.sentences[parents], depths
        return places


class DecoderTree(Nodes):
    """Nodes of a Transformer's search tree: a table per layer, and a last table of paths (M, L)."""

    def __init__(
        self, memory: Memory, max_length: int, cross: Sequence[Tensor], heads: int, recurrent: bool = False
    ) -> None:
        """`cross`: each layer's keys and values of the encoder's output (2, B, H, S, E); `recurrent`: the
        layers keep a cell (D, fp32 or wider) per token, not keys and values (2D)."""
        sentences, _, width = memory.hidden.shape
        self.heads, self.cross = heads, list(cross)
        self.mask = memory.mask if bool((~memory.mask).any()) else None  # (B, S)
        dtype = memory.hidden.dtype
        if recurrent:
            dtype = torch.promote_types(dtype, torch.float32)
        row = memory.hidden.new_zeros(sentences, width if recurrent else 2 * width, dtype=dtype)
        paths = torch.zeros(sentences, max_length, dtype=torch.long, device=row.device)
        # a table (M, 2D or D) per layer, with zeros for the empty prefixes
        super().__init__(sentences, max_length, [*(row.clone() for _ in cross), paths])

    def add(self, parents: Tensor) -> TreeStep:
        """Make a new node below each of `parents` (N,). Raise ValueError beyond `max_length` tokens."""
        places = self.place(parents)
        depths, sentences, paths = self.depths[parents], self.sentences[parents], self.tables[-1][parents]
        paths.scatter_(1, depths.unsqueeze(1), places.unsqueeze(1))
        self.tables[-1][places] = paths
        longest = int(depths.max()) + 1
        on_path = torch.arange(longest, device=depths.device) <= depths.unsqueeze(1)  # (N, T)
        return TreeStep(
            tree=self,
            places=places,
            parents=parents,
            paths=paths[:, :longest],
            positions=depths,
            sentences=sentences,
            own_mask=on_path[:, None, None, :],
            mask=None if self.mask is None else self.mask[sentences][:, None, None, :],
        )


@dataclass(frozen=True)
class TreeStep:
    """The state that the decoder's layers use while N nodes are added."""

    tree: DecoderTree
    places: Tensor  # (N,) places of the new nodes
    parents: Tensor  # (N,)
    paths: Tensor  # (N, T) places from the first token to the new one; the rest is masked
    positions: Tensor  # (N,)
    sentences: Tensor  # (N,)
    own_mask: Tensor  # (N, 1, 1, T) bool
    mask: Tensor | None  # (N, 1, 1, S) bool

    def append(self, layer: int, entries: Tensor) -> tuple[Tensor, Tensor]:
        """Store the new tokens' keys and values (2, N, H, 1, E); return their paths' (N, H, T, E) each."""
        table, (rows, length) = self.tree.tables[layer], self.paths.shape
        table[self.places] = entries.transpose(0, 1).flatten(1)
        whole = table.index_select(0, self.paths.flatten())
        keys, values = whole.view(rows, length, 2, self.tree.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        return keys, values

    def cell(self, layer: int) -> Tensor:
        """Return the parents' cells (N, 1, D)."""
        return self.tree.tables[layer].index_select(0, self.parents)[:, None]

    def set_cell(self, layer: int, cell: Tensor) -> None:
        """Store cell (N, 1, D) of the new tokens."""
        self.tree.tables[layer][self.places] = cell[:, 0]

    def memory(self, layer: int) -> tuple[Tensor, Tensor]:
        """Return keys and values (N, H, S, E) of the encoder's output."""
        keys, values = self.tree.cross[layer].index_select(1, self.sentences).unbind(0)
        return keys, values


class RnnTree(Nodes):
    """Nodes of an LSTM decoder: one table, with the state after each node's last token."""

    def __init__(self, rows: Tensor, source: Source, max_length: int) -> None:
        super().__init__(len(rows), max_length, [rows.clone()])
        self.source = source


def _doubled(table: Tensor) -> Tensor:
    return torch.cat([table, torch.zeros_like(table)])
