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
        """`sources`: the subwords of B sentences, without </s>; `memory`: their encoding.

        One tensor of sorted unique ids per sentence, </s> always among them, on the memory's device; None
        for the full vocabulary. What a sentence gets depends on that sentence only.
        """


@runtime_checkable
class LimitedSelector(Selector, Protocol):
    """A selector that can say what it would take to allow a subword."""

    def limits(self, source: Sequence[int], memory: Memory, ids: Sequence[int]) -> list[float | None]:
        """For each of the ids the limit of the setting that would allow it for this one source: a threshold
        must be below it, a rank k not below it. None: no setting allows it. `Selection.allowing` has the
        words."""
