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
    facts = {"count": count, "of": of, "interval": "Wilson", **detail}
    return MetricRow(name, count / of, *wilson_interval(count, of), subject=subject, detail=facts)


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
    interval = bootstrap_interval(statistics, score or ratio)
    facts = {"segments": len(statistics), "bootstrap": BOOTSTRAP, **detail}
    return MetricRow(
        name, interval.value, interval.low, interval.high, subject=subject, note=note, detail=facts
    )


def mean_row(name: str, values: Sequence[float], none: str, detail: Mapping[str, Any]) -> MetricRow:
    """The mean of one value per segment with its bootstrap interval; the detail has the sample deviation
    (null for a single value). Without values the note is `none`."""
    if not values:
        return MetricRow(name, None, note=none, detail=detail)
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    statistics = np.column_stack([values, np.ones(len(values))])
    return ratio_row(name, statistics, detail={"deviation": deviation, **detail})


def ratio(sums: Array) -> Array:
    """(..., 2) -> (...). A resample whose divisor is 0 counts as one with a divisor of 1."""
    quotient: Array = sums[..., 0] / np.maximum(sums[..., 1], 1.0)
    return quotient
