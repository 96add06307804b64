"""What selects the vocabulary that a sentence may use."""

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
    """What a selection may be built from."""

    model: TranslationModel
    lexicon: Path | None = None  # of an align step
    subwords: SubwordTexts | None = None  # which tell where a word begins


class Selector(Protocol):
    def select(self, sources: Sequence[Sequence[int]], memory: Memory) -> list[Tensor] | None:
        """Select the ids that each sentence may use; None for the full vocabulary.

        `sources`: the subwords of B sentences, without </s>; `memory`: their encoding. A sentence gets a
        tensor of sorted unique ids, </s> always among them, on the memory's device. It depends on that
        sentence only.
        """


@runtime_checkable
class LimitedSelector(Selector, Protocol):
    """A selector that can say what it would take to allow a subword."""

    def limits(self, source: Sequence[int], memory: Memory, ids: Sequence[int]) -> list[float | None]:
        """Return for each of the ids the limit of the setting that would allow it for this one source.

        A threshold must be below it, a rank k not below it. None: no setting allows it. `Selection.allowing`
        has the words.
        """
