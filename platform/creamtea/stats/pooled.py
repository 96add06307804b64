"""The median of values that come in groups, such as positions in sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from creamtea.stats.bootstrap import SAMPLES, SEED, Array, percentile_interval
from creamtea.stats.percentiles import MedianInterval


def pooled_median(groups: Sequence[Array], samples: int = SAMPLES, seed: int = SEED) -> MedianInterval:
    """The lower median of all values, with a 95 % bootstrap interval over groups: values of one sentence
    are not independent. ValueError for no values."""
    values = np.concatenate([np.asarray(group, dtype=np.float64) for group in groups] or [np.zeros(0)])
    if len(values) == 0:
        raise ValueError("no values to take a median of")
    order = np.argsort(values, kind="stable")
    values, owner = values[order], np.repeat(np.arange(len(groups)), [len(group) for group in groups])[order]
    rng = np.random.default_rng(seed)
    medians = [
        weighted_median(values, np.bincount(drawn, minlength=len(groups))[owner])
        for drawn in (rng.choice(len(groups), size=len(groups)) for _ in range(samples))
    ]
    # None: only empty groups were drawn
    low, high = percentile_interval(np.array([median for median in medians if median is not None]))
    middle = weighted_median(values, np.ones(len(values), dtype=np.int64))
    assert middle is not None
    return MedianInterval(middle, low, high)


def weighted_median(values: Array, times: np.typing.NDArray[np.int64]) -> float | None:
    """Of ascending values (n,), each counted `times` (n,); the lower of two in the middle. None where nothing
    is counted."""
    before = np.cumsum(times)
    if before[-1] == 0:
        return None
    return float(values[np.searchsorted(before, (before[-1] + 1) // 2)])
