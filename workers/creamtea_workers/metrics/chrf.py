"""chrF and chrF++ (Popović 2015, 2017) as sacreBLEU computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sacrebleu.metrics import CHRF

from creamtea.contract.step import StepContext
from creamtea.methods.metrics import Chrf
from creamtea.methods.texts import Languages
from creamtea_workers.metrics.base import Array
from creamtea_workers.metrics.sacrebleu_statistics import SacreBleuMetric

BETA = 2  # recall weighs beta² times as much as precision


class ChrfMetric(SacreBleuMetric):
    """Corpus chrF2. Statistics (n, 3 · orders): hypothesis, reference and matched n-grams of each order.

    Sentence chrF omits orders that either side is too short for (effective order).
    """

    name = "chrf"

    def __init__(self, spec: Chrf) -> None:
        self.scorer = CHRF(word_order=spec.word_order, beta=BETA)

    def score(self, sums: Array) -> Array:
        return chrf_from_sums(sums)


def chrf_from_sums(sums: Array) -> Array:
    """Compute chrF (...,) from 0 to 100 of summed statistics (..., 3 · orders).

    The F-score of precision and recall, each averaged over the orders that both sides have.
    """
    sums = np.asarray(sums, dtype=np.float64)
    counts = sums.reshape(*sums.shape[:-1], -1, 3)
    hypothesis, reference, matched = counts[..., 0], counts[..., 1], counts[..., 2]
    effective = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(effective.sum(axis=-1), 1)
    precision = np.divide(matched, hypothesis, out=np.zeros_like(matched), where=effective).sum(-1) / orders
    recall = np.divide(matched, reference, out=np.zeros_like(matched), where=effective).sum(-1) / orders
    denominator = BETA**2 * precision + recall
    product = (1 + BETA**2) * precision * recall
    return 100.0 * np.divide(product, denominator, out=np.zeros_like(product), where=denominator > 0)


def build(spec: Chrf, languages: Languages, context: StepContext[Any]) -> ChrfMetric:
    return ChrfMetric(spec)
