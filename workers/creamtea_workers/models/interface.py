"""What training and search know about a model, and nothing more. Models know nothing about the search.

Shapes: B sentences, S source and T target positions, N decoder rows (B × beam), D width, V vocabulary,
K selected vocabulary. The special ids are those of the subwords. A source row is subwords + eos, then pads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from creamtea_workers.corpora.subwords import BOS as BOS
from creamtea_workers.corpora.subwords import EOS as EOS
from creamtea_workers.corpora.subwords import PAD as PAD
from creamtea_workers.corpora.subwords import UNK as UNK
from creamtea_workers.corpora.subwords import SourceVocabulary as SourceVocabulary

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
    """Decoder states of prefixes that share their beginnings, for searches that go back.

    A node is a prefix with its last token, and may be continued in any order, at any time, until it is freed.
    Nodes 0 … B-1 stand for the empty prefixes of the B sentences, before bos.
    """

    def free(self, nodes: Sequence[int]) -> None:
        """Free the places of nodes for reuse; no node below them is stepped or continued any more."""


class TranslationModel(Protocol):
    """What search and analyses need."""

    vocabulary_size: int
    output_bias: Tensor  # (V,)
    projection: Projection | None  # the output layer in another form (`models.inference`); None: a product
    kept: int  # numbers that a decoder row keeps for each place of the source and of the target, at most
    may_pad: bool  # False: padding could change an output by rounding, so batches are of one length (int8)

    @property
    def output_weight(self) -> Tensor:
        """(V, D)"""

    def encode(self, source: Tensor) -> Memory:
        """Encode source (B, S) ids."""

    def decode(self, memory: Memory, target_in: Tensor) -> Tensor:
        """Decode teacher-forced: target_in (B, T) = bos + subwords → hidden (B, T, D)."""

    def start(self, memory: Memory, max_length: int) -> State:
        """Make an empty state, one row for each of the B sentences (`reorder` makes beams of it)."""

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """Advance the state by tokens (N,), the last of each row (bos at first); return hidden (N, D)."""

    def start_tree(self, memory: Memory, max_length: int) -> Tree:
        """Make a tree of the B empty prefixes, for at most `max_length` tokens per prefix (bos counted)."""

    def step_tree(self, tokens: Tensor, parents: Tensor, tree: Tree) -> tuple[Tensor, list[int]]:
        """Continue each of the nodes `parents` (N,) by one of tokens (N,); return hidden (N, D), new nodes.

        The nodes may be of different sentences and depths and may repeat.
        """

    def nvs_logits(self, memory: Memory) -> Tensor:
        """Return the NVS head's logits, maximal over source positions (B, V). ValueError without a head."""


def output_logits(model: TranslationModel, hidden: Tensor) -> Tensor:
    """Return the full-vocabulary logits of hidden (..., D): (..., V) in fp32.

    The product is in the model's type: in bf16 a logit has eight significant bits.
    """
    return raw_logits(model, hidden).float()


def raw_logits(model: TranslationModel, hidden: Tensor) -> Tensor:
    """Return the full-vocabulary logits of hidden (..., D) in the model's type."""
    if model.projection is not None:
        return model.projection(hidden)
    return torch.nn.functional.linear(hidden, model.output_weight, model.output_bias)
