"""No selection: every sentence may use the whole vocabulary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from creamtea.contract.step import StepContext
from creamtea.methods.selections import FullVocabulary
from creamtea.steps.systems import RecallParams
from creamtea_workers.models.interface import Memory
from creamtea_workers.selection.base import SelectionResources
from creamtea_workers.selection.recall import Counts, RecallInputs


class FullSelector:
    def select(self, sources: Sequence[Sequence[int]], memory: Memory) -> None:
        return None


def build(spec: FullVocabulary, resources: SelectionResources) -> FullSelector:
    return FullSelector()


def count(
    spec: FullVocabulary, context: StepContext[RecallParams], settings: Sequence[float], inputs: RecallInputs
) -> list[Counts]:
    """Count for each segment: all subwords are reached, at the size of the vocabulary."""
    size = inputs.subwords.size
    return [np.array([[size, *reference.possible()]]) for reference in inputs.references]
