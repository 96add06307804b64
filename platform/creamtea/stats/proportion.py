"""The interval of a share: k of n, or of cases that come in clusters."""

from __future__ import annotations

import math

import numpy as np
import scipy  # scipy.special is slow to import, and so is imported where it is first used
from numpy.typing import ArrayLike

from creamtea.stats.clusters import effective_clusters, outweighing_share, variance_over_clusters

_MAX_CASES_PER_CLUSTER = 5.0  # effective ones, where a cluster outweighs the others

_MIN_EFFECTIVE_CASES = (
    1e-6  # with fewer the interval is that from 0 to 1 but for rounding, or for an underflow
)


def wilson_interval(count: int, of: int) -> tuple[float, float]:
    """The 95 % score interval of a binomial share (Wilson 1927). Unlike resampling it holds for few cases and
    for shares near 0 and 1. ValueError unless 0 ≤ count ≤ of and of > 0."""
    if not 0 <= count <= of or of == 0:
        raise ValueError(f"{count} of {of} is not a share")
    from scipy.stats import binomtest  # takes a second to import

    interval = binomtest(count, of).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def logit_interval(value: float, half: float) -> tuple[float, float]:
    """The interval v ± h of a mean of shares on the scale of log odds, between 0 and 1 like the shares.

    log(v/(1 − v)) has the standard error se/(v(1 − v)) (delta method). In simulations of the mean recall of 5
    to 68 idioms it covers 95 to 99 %; v ± h covers 90 % of a mean of 0.95, whose idioms mostly have 1.
    """
    odds, half = float(scipy.special.logit(value)), half / (value * (1 - value))
    return float(scipy.special.expit(odds - half)), float(scipy.special.expit(odds + half))


def clustered_interval(counts: ArrayLike, sizes: ArrayLike) -> tuple[float, float]:
    """The 95 % interval of a share whose cases come in clusters (the marked errors of a segment): counts[g]
    of sizes[g] cases of cluster g.

    Wilson's interval with an effective number of cases: that of a simple sample whose share has the variance
    of this ratio estimate (linearised over clusters), made smaller for few clusters by the squared ratio of
    the normal to Student's quantile (Korn and Graubard 1998, "Confidence intervals for proportions with small
    expected number of positive counts estimated from survey data"). Clusters of unequal size count as fewer
    (`effective_clusters`). A share of 0 or 1 has no such variance: each of these then counts as one case.

    Where one cluster outweighs the others, the variance is mostly that one's residual, and says little: each
    effective cluster then counts as five cases at most. In simulations with one idiom a third of the cases
    the interval so covers 94 to 100 %, where it was 63 to 99 %.

    From 0 to 1 where one cluster outweighs the others so far that nothing is known of another choice of them.
    ValueError without cases, or where a count exceeds its size.
    """
    count, size = np.asarray(counts, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    if len(size) == 0 or bool((size <= 0).any()) or bool((count < 0).any()) or bool((count > size).any()):
        raise ValueError("a share needs clusters, each with a count of at least one case")
    clusters, cases = len(size), float(size.sum())
    share = float(count.sum()) / cases
    if clusters == 1:
        return 0.0, 1.0
    simple = share * (1 - share)
    variance = variance_over_clusters(count, size)
    weighty = effective_clusters(size)
    effective = min(cases, simple / variance) if simple > 0 and variance > 0 else weighty
    if outweighing_share(size) is not None:
        effective = min(effective, _MAX_CASES_PER_CLUSTER * weighty)
    normal = float(scipy.special.ndtri(0.975))
    effective *= (normal / float(scipy.special.stdtrit(weighty - 1, 0.975))) ** 2
    if effective < _MIN_EFFECTIVE_CASES:
        return 0.0, 1.0
    scale = 1 + normal**2 / effective
    centre = (share + normal**2 / (2 * effective)) / scale
    half = normal / scale * math.sqrt(simple / effective + normal**2 / (4 * effective**2))
    return max(0.0, centre - half), min(1.0, centre + half)
