"""What a metric is to the steps that use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from creamtea_workers.metrics.texts import Texts

Array = NDArray[np.float64]


class Metric(Protocol):
    """A corpus metric as a function of summed statistics of the segments.

    That one shape serves the corpus value, the bootstrap and the paired test alike
    (`creamtea.stats.bootstrap`). Scores are on the scale that the metric's authors print.
    """

    name: str  # the row's name in the report: "bleu", "chrf", "comet"
    note: str  # what a reader of the score must know; empty for nothing

    @property
    def facts(self) -> Mapping[str, Any]:
        """What it ran with, for people: versions, device; known once `statistics` has run."""

    def statistics(self, texts: Texts) -> Array:
        """(n, F) sufficient statistics of n segments."""

    def score(self, sums: Array) -> Array:
        """Corpus scores (...,) of summed statistics (..., F)."""

    def segment_scores(self, statistics: Array) -> Array:
        """(n,) scores of single segments from their statistics (n, F)."""

    def signature(self) -> str:
        """Every choice that the score depends on; known once `statistics` has run."""


def mean_statistics(values: Sequence[float]) -> Array:
    """(n, 2) statistics whose summed ratio is the mean."""
    return np.column_stack([values, np.ones(len(values))])


def ratio(sums: Array) -> Array:
    """(..., 2) -> (...). A resample whose divisor is 0 counts as one with a divisor of 1."""
    return np.asarray(sums[..., 0] / np.maximum(sums[..., 1], 1.0))
