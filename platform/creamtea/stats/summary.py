"""A few numbers for one quantity measured with several training seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """Mean over seeds; `deviation` is the sample standard deviation (n - 1), None for one seed."""

    mean: float
    deviation: float | None
    count: int


def summarise(values: Sequence[float]) -> Summary:
    """Mean ± sample deviation. Raises ValueError for no values or a value that is not finite."""
    if not values:
        raise ValueError("nothing to summarise")
    if not all(math.isfinite(value) for value in values):
        raise ValueError(f"values must be finite: {list(values)}")
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return Summary(statistics.fmean(values), deviation, len(values))
