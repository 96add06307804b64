"""Rows of the report with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from creamtea.contract.step import MetricRow
from creamtea.stats.bootstrap import SAMPLES, SEED, Array, ScoreFunction, bootstrap_interval
from creamtea.stats.proportion import wilson_interval
from creamtea_workers.metrics.base import mean_statistics, ratio

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
    score: ScoreFunction = ratio,
    subject: str = "",
    note: str = "",
    detail: Mapping[str, Any] = NO_DETAIL,
) -> MetricRow:
    """`score` of the summed statistics (segments, F), the first column over the second unless given, with its
    bootstrap interval over segments; where there is none, the note also says why."""
    interval = bootstrap_interval(statistics, score)
    facts = {"segments": len(statistics), "bootstrap": BOOTSTRAP, **detail}
    notes = "; ".join(filter(None, [note, interval.reason]))
    return MetricRow(
        name, interval.value, interval.low, interval.high, subject=subject, note=notes, detail=facts
    )


def mean_row(
    name: str, values: Sequence[float], none: str = "", detail: Mapping[str, Any] = NO_DETAIL
) -> MetricRow:
    """The mean of one value per segment with its bootstrap interval; the detail has the sample deviation
    (null for a single value). Without values the note is `none`."""
    if not values:
        return MetricRow(name, None, note=none, detail=detail)
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return ratio_row(name, mean_statistics(values), detail={"deviation": deviation, **detail})
