"""What a recurrent decoder keeps: states of rows, and of the nodes of search trees.

Shapes: B sentences, N rows or new nodes, M places, F numbers of a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Part = tuple[Tensor, Tensor, Tensor]  # keys (N, S, D), values (N, S, 2D), mask (N, S) of an attention


@dataclass(frozen=True)
class Source:
    """What the attentions look at."""

    parts: Sequence[Part]

    def select(self, rows: Tensor) -> Source:
        return Source([tuple(tensor.index_select(0, rows) for tensor in part) for part in self.parts])  # type: ignore[misc]


class RnnState:
    """`AttentiveState` of `creamtea_workers.models.interface`."""

    keeps_attention = False
    attention: Tensor | None = None  # of a gated model: those to lemma and tags, one behind the other

    def __init__(self, rows: Tensor, source: Source) -> None:
        self.rows, self.source = rows, source  # (N, F)
        self.sentences = torch.arange(len(rows), device=rows.device)  # (N,)

    def reorder(self, rows: Tensor) -> None:
        """A reordering within the sentences (of beams) copies nothing of the source."""
        self.rows = self.rows.index_select(0, rows)
        sentences = self.sentences[rows]
        if not torch.equal(sentences, self.sentences):
            self.source = self.source.select(rows)
        self.sentences = sentences


class RnnTree:
    """`Tree` of `creamtea_workers.models.interface`: the state after each node's last token. The tables grow
    by doubling."""

    def __init__(self, rows: Tensor, source: Source, max_length: int) -> None:
        self.source, self.max_length = source, max_length
        self.rows = rows.clone()  # (M, F)
        self.sentences = torch.arange(len(rows), device=rows.device)  # (M,)
        self.depths = torch.zeros_like(self.sentences)  # (M,) tokens
        self._free: list[int] = []

    def free(self, nodes: Sequence[int]) -> None:
        self._free.extend(nodes)

    def add(self, parents: Tensor) -> tuple[list[int], Tensor]:
        """New nodes below `parents` (N,), and the same as a tensor; their rows are still to be written.
        ValueError beyond `max_length` tokens."""
        depths = self.depths[parents] + 1
        if int(depths.max()) > self.max_length:
            raise ValueError(f"a tree of max_length {self.max_length} has no room for another position")
        while len(self._free) < len(parents):
            used = len(self.rows)
            self._free.extend(range(2 * used - 1, used - 1, -1))  # the lowest place is used first
            self.rows, self.sentences, self.depths = (
                torch.cat([table, torch.zeros_like(table)])
                for table in (self.rows, self.sentences, self.depths)
            )
        nodes = [self._free.pop() for _ in range(len(parents))]
        places = torch.tensor(nodes, device=parents.device)
        self.sentences[places], self.depths[places] = self.sentences[parents], depths
        return nodes, places
