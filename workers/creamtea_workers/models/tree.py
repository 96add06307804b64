"""Decoder states in the nodes of search trees: see `creamtea_workers.models.interface.Tree`.

A node keeps only what its last token adds to the decoder's state: its keys and values in every layer, or the
cell that an SSRU has after it. The state of a prefix is gathered from the nodes on its path when the prefix
is continued (for cells, from the parent). So nothing is copied when a search goes back, and the rows of a
batch may be at any depth of any sentence's tree.

Shapes: B sentences, N new nodes, M places, L most tokens of a prefix, S source positions, T longest path
of a batch, H heads, D width, E = D / H, F numbers of a recurrent state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from creamtea_workers.models.interface import Memory
from creamtea_workers.models.state import Source


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
        """Make new nodes below `parents` (N,); their rows are still to be written.

        ValueError beyond `max_length` tokens.
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
    """Nodes of a Transformer's search tree: a table per layer, and last the paths (M, L)."""

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
        # per layer (M, 2D or D), zeros of an empty prefix
        super().__init__(sentences, max_length, [*(row.clone() for _ in cross), paths])

    def add(self, parents: Tensor) -> TreeStep:
        """Make one new node below each of `parents` (N,). ValueError beyond `max_length` tokens."""
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
    """What the decoder's layers use as their state while N nodes are added."""

    tree: DecoderTree
    places: Tensor  # (N,) of the nodes
    parents: Tensor  # (N,)
    paths: Tensor  # (N, T) places from the first token to the new one; what follows is masked
    positions: Tensor  # (N,)
    sentences: Tensor  # (N,)
    own_mask: Tensor  # (N, 1, 1, T) bool
    mask: Tensor | None  # (N, 1, 1, S) bool

    def append(self, layer: int, entries: Tensor) -> tuple[Tensor, Tensor]:
        """Store the new tokens' keys and values (2, N, H, 1, E); return those of their paths (N, H, T, E)."""
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
