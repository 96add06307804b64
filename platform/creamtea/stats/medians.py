"""Medians with 95 % bootstrap intervals.

Latency: a repetition times every sentence once. Its percentile is taken over the sentences, interpolated
linearly; the repetitions' percentiles are then summarised by their median (a machine's disturbances are
outliers, always on one side), with a percentile bootstrap over repetitions. The interval says how well the
percentile *of these sentences on this machine* is known, as in Domhan et al. 2022 (Table 5), not how fast
other sentences would be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from creamtea.stats.bootstrap import SAMPLES, SEED, Array, percentile_interval

RESAMPLES = 2000  # of repetitions
MIN_VALUES = 5  # the bootstrap interval of a median of two covers 52 %, of three 73 %, of five 94 %
FEW_VALUES = f"no interval of the median of fewer than {MIN_VALUES}"


@dataclass(frozen=True)
class MedianInterval:
    value: float
    low: float | None = None  # 95 %; none of too few values
    high: float | None = None


def median_interval(values: Array, resamples: int = RESAMPLES) -> MedianInterval:
    """The median of values (n,) with its 95 % bootstrap interval; none of fewer than `MIN_VALUES`, whose
    resamples hardly reach beyond them. ValueError for no values."""
    if len(values) == 0:
        raise ValueError("no repetitions to summarise")
    if len(values) < MIN_VALUES:
        return MedianInterval(float(np.median(values)))
    drawn = np.random.default_rng(SEED).choice(values, size=(resamples, len(values)), replace=True)
    low, high = np.percentile(np.median(drawn, axis=1), [2.5, 97.5])
    return MedianInterval(float(np.median(values)), float(low), float(high))


def pooled_median(groups: Sequence[Array], samples: int = SAMPLES, seed: int = SEED) -> MedianInterval:
    """The lower median of all values, with a 95 % bootstrap interval over groups: values of one sentence
    are not independent. No interval of fewer than `MIN_VALUES` groups. ValueError for no values."""
    values = np.concatenate([np.asarray(group, dtype=np.float64) for group in groups] or [np.zeros(0)])
    if len(values) == 0:
        raise ValueError("no values to take a median of")
    order = np.argsort(values, kind="stable")
    middle = weighted_median(values[order], np.ones(len(values), dtype=np.int64))
    assert middle is not None
    if len(groups) < MIN_VALUES:
        return MedianInterval(middle)
    values, owner = values[order], np.repeat(np.arange(len(groups)), [len(group) for group in groups])[order]
    rng = np.random.default_rng(seed)
    medians = [
        weighted_median(values, np.bincount(drawn, minlength=len(groups))[owner])
        for drawn in (rng.choice(len(groups), size=len(groups)) for _ in range(samples))
    ]
    # None: only empty groups were drawn
    low, high = percentile_interval(np.array([median for median in medians if median is not None]))
    return MedianInterval(middle, low, high)


def weighted_median(values: Array, times: np.typing.NDArray[np.int64]) -> float | None:
    """Of ascending values (n,), each counted `times` (n,); the lower of two in the middle. None where nothing
    is counted."""
    before = np.cumsum(times)
    if before[-1] == 0:
        return None
    return float(values[np.searchsorted(before, (before[-1] + 1) // 2)])
