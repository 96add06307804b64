"""The interval of a share: k of n."""

from __future__ import annotations

from scipy.stats import binomtest


def wilson_interval(count: int, of: int) -> tuple[float, float]:
    """The 95 % score interval of a binomial share (Wilson 1927). Unlike resampling it holds for few cases and
    for shares near 0 and 1. ValueError unless 0 ≤ count ≤ of and of > 0."""
    if not 0 <= count <= of or of == 0:
        raise ValueError(f"{count} of {of} is not a share")
    interval = binomtest(count, of).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)
