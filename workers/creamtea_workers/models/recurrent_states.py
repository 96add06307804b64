"""What a recurrent decoder keeps: states of rows, and of the nodes of search trees.

Shapes: B sentences, N rows or new nodes, M places, F numbers of a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from creamtea_workers.models.tree import Nodes

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


class RnnTree(Nodes):
    """`Tree` of `creamtea_workers.models.interface`. Its table: the state after each node's last token."""

    def __init__(self, rows: Tensor, source: Source, max_length: int) -> None:
        super().__init__(len(rows), max_length, [rows.clone()])
        self.source = source
