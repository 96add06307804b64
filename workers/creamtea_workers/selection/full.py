"""No selection: every sentence may use the whole vocabulary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from creamtea.contract.step import StepContext
from creamtea.methods.selections import FullVocabulary
from creamtea.steps.systems import RecallParams
from creamtea_workers.models.interface import Memory
from creamtea_workers.selection.base import SelectionResources
from creamtea_workers.selection.recall import Counts, Material


class FullSelector:
    def select(self, sources: Sequence[Sequence[int]], memory: Memory) -> None:
        return None


def build(spec: FullVocabulary, resources: SelectionResources) -> FullSelector:
    return FullSelector()


def count(
    spec: FullVocabulary, context: StepContext[RecallParams], settings: Sequence[float], material: Material
) -> list[Counts]:
    """Of each segment: everything is reached, at the size of the vocabulary."""
    size = material.subwords.size
    return [np.array([[size, *reference.possible()]]) for reference in material.references]
