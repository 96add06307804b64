"""What training and search know of a model, and nothing more. Models never see the search.

Shapes: B sentences, S source and T target positions, N decoder rows (B × beam), D width, V vocabulary,
K selected vocabulary. Ids: pad 0, unk 1, bos 2, eos 3. A source row is subwords + eos, then pads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

PAD, UNK, BOS, EOS = 0, 1, 2, 3


@dataclass
class Memory:
    """The encoder's output."""

    hidden: Tensor  # (B, S, D)
    mask: Tensor  # (B, S) bool, True at real positions

    def select(self, rows: Tensor) -> Memory:
        return Memory(self.hidden[rows], self.mask[rows])


class State(Protocol):
    """A decoder's incremental state for N rows: key-value caches or recurrent cells."""

    def reorder(self, rows: Tensor) -> None:
        """Row n becomes a copy of the old row rows[n]; the number of rows may change."""


class Tree(Protocol):
    """Decoder states of prefixes that share their beginnings, for searches that go back: a node is a prefix
    with its last token, and may be continued in any order, at any time, until it is freed. Nodes 0 … B-1
    stand for the empty prefixes of the B sentences, before bos."""

    def free(self, nodes: Sequence[int]) -> None:
        """Their places may be used again; no node below them is stepped or continued any more."""


class TranslationModel(Protocol):
    vocabulary_size: int
    may_pad: bool  # False: rounding, which padding changes, could change an output (int8)

    @property
    def output_weight(self) -> Tensor:
        """(V, D)"""

    @property
    def output_bias(self) -> Tensor:
        """(V,)"""

    def encode(self, source: Tensor) -> Memory:
        """source (B, S) ids."""

    def decode(self, memory: Memory, target_in: Tensor) -> Tensor:
        """Teacher-forced: target_in (B, T) = bos + subwords; returns hidden (B, T, D)."""

    def start(self, memory: Memory, max_length: int) -> State:
        """An empty state, one row for each of the B sentences (`reorder` makes beams of it)."""

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """tokens (N,), the last of each row (bos at first); returns hidden (N, D), advances the state."""

    def start_tree(self, memory: Memory, max_length: int) -> Tree:
        """A tree of the B empty prefixes, for at most `max_length` tokens a prefix (bos counted)."""

    def step_tree(self, tokens: Tensor, parents: Tensor, tree: Tree) -> tuple[Tensor, list[int]]:
        """Continue each of the nodes `parents` (N,), which may be of different sentences and depths and may
        repeat, by one of tokens (N,); returns hidden (N, D) and the new nodes."""

    def nvs_logits(self, memory: Memory) -> Tensor:
        """(B, V) maximum over source positions of the NVS head's logits; ValueError without a head."""


def output_logits(model: TranslationModel, hidden: Tensor) -> Tensor:
    """Full-vocabulary logits of hidden (..., D): (..., V), in fp32 for what follows; the product is in the
    model's type, so that of bf16 they have its eight bits. A model may have its own way to make them
    (`models.inference`)."""
    projection = getattr(model, "projection", None)
    if projection is not None:
        logits: Tensor = projection(hidden)
        return logits
    return torch.nn.functional.linear(hidden, model.output_weight, model.output_bias).float()
