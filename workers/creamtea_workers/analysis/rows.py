"""Rows of the report with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from creamtea.contract.step import MetricRow
from creamtea.stats.bootstrap import SAMPLES, SEED, Array, ScoreFunction, bootstrap_interval
from creamtea.stats.proportion import wilson_interval

NO_SEGMENTS = "the test set has no segments"
NO_DETAIL: Mapping[str, Any] = {}
BOOTSTRAP = {"samples": SAMPLES, "seed": SEED}


def share_row(
    name: str, count: int, of: int, subject: str = "", detail: Mapping[str, Any] = NO_DETAIL
) -> MetricRow:
    """A share with its Wilson interval; `of` is not 0."""
    told = {"count": count, "of": of, "interval": "Wilson", **detail}
    return MetricRow(name, count / of, *wilson_interval(count, of), subject=subject, detail=told)


def ratio_row(
    name: str,
    statistics: Array,
    score: ScoreFunction | None = None,
    subject: str = "",
    note: str = "",
    detail: Mapping[str, Any] = NO_DETAIL,
) -> MetricRow:
    """`score` of the summed statistics (segments, F), the first column over the second unless given, with its
    bootstrap interval over segments."""
    found = bootstrap_interval(statistics, score or ratio)
    told = {"segments": len(statistics), "bootstrap": BOOTSTRAP, **detail}
    return MetricRow(name, found.value, found.low, found.high, subject=subject, note=note, detail=told)


def mean_row(name: str, values: Sequence[float], none: str, detail: Mapping[str, Any]) -> MetricRow:
    """The mean of a value a segment with its bootstrap interval; the detail has the sample deviation (null
    for a single value). Without values the note is `none`."""
    if not values:
        return MetricRow(name, None, note=none, detail=detail)
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    statistics = np.column_stack([values, np.ones(len(values))])
    return ratio_row(name, statistics, detail={"deviation": deviation, **detail})


def ratio(sums: Array) -> Array:
    """(..., 2) -> (...). A resample with nothing to divide by counts as one with a single unit of it."""
    quotient: Array = sums[..., 0] / np.maximum(sums[..., 1], 1.0)
    return quotient
