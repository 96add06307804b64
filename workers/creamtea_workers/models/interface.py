"""The interface of models to training and search. Models know nothing about the search.

Shapes: B sentences, S source and T target positions, N decoder rows (B × beam), D width, V vocabulary,
K selected vocabulary. The special ids are the subwords' own. A source row is subwords + eos, then pads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from creamtea_workers.corpora.subwords import BOS, EOS, PAD, UNK, SourceVocabulary

__all__ = ["BOS", "EOS", "PAD", "UNK", "SourceVocabulary"]

Projection = Callable[[Tensor], Tensor]  # hidden (..., D) → logits (..., V)


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
        """Make row n a copy of the old row rows[n]; the number of rows may change."""


@runtime_checkable
class AttentiveState(State, Protocol):
    """A state that can keep the last step's attention to the source."""

    keeps_attention: bool  # False at first; a search that reads `attention` sets it
    attention: Tensor | None  # (N, S), 0 on padding; None before a step


class Tree(Protocol):
    """Decoder states of prefixes with shared beginnings, for searches that go back.

    A node is a prefix. Nodes may be continued in any order, at any time, until they are freed. Nodes 0 … B-1
    are the empty prefixes of the B sentences, before bos.
    """

    def free(self, nodes: Sequence[int]) -> None:
        """Free the places of nodes for reuse. Nodes below them may not be continued any more."""


class TranslationModel(Protocol):
    """A model as search and analyses see it."""

    vocabulary_size: int
    output_bias: Tensor  # (V,)
    projection: Projection | None  # replaces the product with `output_weight` (`models.inference`)
    kept: int  # most numbers that a decoder row stores per position of source and target
    may_pad: bool  # False: padding could change an output by rounding (int8); batches have one length

    @property
    def output_weight(self) -> Tensor:
        """(V, D)"""

    def encode(self, source: Tensor) -> Memory:
        """Encode source (B, S) ids."""

    def decode(self, memory: Memory, target_in: Tensor) -> Tensor:
        """Decode teacher-forced: target_in (B, T) = bos + subwords → hidden (B, T, D)."""

    def start(self, memory: Memory, max_length: int) -> State:
        """Make an empty state with one row per sentence (`reorder` expands rows to beams)."""

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """Advance the state by each row's last token (N,) (at first bos); return hidden (N, D)."""

    def start_tree(self, memory: Memory, max_length: int) -> Tree:
        """Make a tree of the B empty prefixes, for at most `max_length` tokens per prefix (bos counted)."""

    def step_tree(self, tokens: Tensor, parents: Tensor, tree: Tree) -> tuple[Tensor, list[int]]:
        """Continue each node in `parents` (N,) by a token (N,); return hidden (N, D) and the new nodes.

        Parents may belong to different sentences and depths, and may repeat.
        """

    def nvs_logits(self, memory: Memory) -> Tensor:
        """Return the NVS head's logits, the maximum over source positions (B, V).

        Raises ValueError if the model has no head.
        """


def output_logits(model: TranslationModel, hidden: Tensor) -> Tensor:
    """Return the full-vocabulary logits (..., V) of hidden (..., D) in fp32.

    The product is computed in the model's type: in bf16 a logit has eight significant bits.
    """
    return raw_logits(model, hidden).float()


def raw_logits(model: TranslationModel, hidden: Tensor) -> Tensor:
    """Return the full-vocabulary logits of hidden (..., D) in the model's type."""
    if model.projection is not None:
        return model.projection(hidden)
    return torch.nn.functional.linear(hidden, model.output_weight, model.output_bias)
