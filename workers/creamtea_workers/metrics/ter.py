"""Translation edit rate (Snover et al. 2006) as sacreBLEU computes it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sacrebleu.metrics import TER

from creamtea.contract.step import StepContext
from creamtea.methods.metrics import Ter
from creamtea.methods.texts import Languages
from creamtea.words import THAI_TO_KHMER, UNSPACED, is_unspaced, looks_unspaced
from creamtea_workers.metrics.base import Array, Texts
from creamtea_workers.metrics.sacrebleu_statistics import SacreBleuMetric


class TerMetric(SacreBleuMetric):
    """Corpus TER; statistics (n, 2): fewest edits to any reference, mean length of the references."""

    name = "ter"

    def __init__(self, spec: Ter, languages: Languages) -> None:
        unspaced = is_unspaced(languages.target)
        self.scorer = TER(
            normalized=unspaced if spec.normalized is None else spec.normalized,
            asian_support=unspaced,  # acts on normalised text, and on Chinese and Japanese alone
            case_sensitive=spec.case_sensitive,
        )

    def statistics(self, texts: Texts) -> Array:
        splits = self.scorer.normalized and self.scorer.asian_support
        if looks_unspaced(texts.references, THAI_TO_KHMER if splits else UNSPACED):
            self.note = "TER counts each of these texts, which have no blanks, as few words; use chrf"
        return super().statistics(texts)

    def score(self, sums: Array) -> Array:
        """Score (..., 2) -> (...): edits per 100 words.

        Against empty references 100, or 0 without an edit.
        """
        edits, words = sums[..., 0], sums[..., 1]
        empty = np.where(edits > 0, 1.0, 0.0)
        return np.asarray(100.0 * np.divide(edits, words, out=empty, where=words > 0))


def build(spec: Ter, languages: Languages, context: StepContext[Any]) -> TerMetric:
    return TerMetric(spec, languages)
