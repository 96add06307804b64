"""Latency percentiles with intervals over repetitions.

A repetition times every sentence once. Its percentile is taken over the sentences; the repetitions'
percentiles are then summarised by their median (a machine's disturbances are outliers, always on one side),
with a percentile bootstrap over repetitions. The interval says how well the percentile *of these
sentences on this machine* is known, as in Domhan et al. 2022 (Table 5), not how fast other sentences would
be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from creamtea.stats.bootstrap import SEED, Array

RESAMPLES = 2000


@dataclass(frozen=True)
class MedianInterval:
    value: float
    low: float  # 95 %
    high: float


def repetition_percentiles(seconds: Array, percent: float) -> Array:
    """seconds (repetitions, sentences) -> (repetitions,), interpolated linearly between sentences."""
    percentiles: Array = np.percentile(seconds, percent, axis=1)
    return percentiles


def median_interval(values: Array, resamples: int = RESAMPLES, seed: int = SEED) -> MedianInterval:
    """The median of values (n,) with its 95 % bootstrap interval. ValueError for no values."""
    if len(values) == 0:
        raise ValueError("no repetitions to summarise")
    drawn = np.random.default_rng(seed).choice(values, size=(resamples, len(values)), replace=True)
    low, high = np.percentile(np.median(drawn, axis=1), [2.5, 97.5])
    return MedianInterval(float(np.median(values)), float(low), float(high))
