"""The interface of selectors, which select the vocabulary that a sentence may use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from torch import Tensor

from creamtea_workers.corpora.subwords import SubwordTexts
from creamtea_workers.models.interface import Memory, TranslationModel


@dataclass(frozen=True)
class SelectionResources:
    """Everything that a selector may be built from."""

    model: TranslationModel
    lexicon: Path | None = None  # from an align step
    subwords: SubwordTexts | None = None  # to find the beginnings of words


class Selector(Protocol):
    def select(self, sources: Sequence[Sequence[int]], memory: Memory) -> list[Tensor] | None:
        """Select the ids that each sentence may use; None for the full vocabulary.

        `sources`: the subwords of B sentences, without </s>; `memory`: their encoding. Returns for each
        sentence a tensor of sorted unique ids, always with </s>, on the memory's device. It depends only on
        this sentence.
        """


@runtime_checkable
class LimitedSelector(Selector, Protocol):
    """A selector that can tell which setting would allow a subword."""

    def limits(self, source: Sequence[int], memory: Memory, ids: Sequence[int]) -> list[float | None]:
        """Return, for each id, the limit of the setting that would allow it for this single source.

        A threshold must be below the limit; a k must be at least the limit. None: no setting allows the id.
        `Selection.allowing` puts a limit into words.
        """
