"""A mean over items with its standard error; items may have different weights.

Every statistic of human ratings here is a mean over items (of differences, of residuals, of deviations); this
is the one place that turns it into an interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its Student's t in scipy.special; scipy.stats, the same functions, takes a second to import
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

# Scores closer than this, relative to the largest, count as equal: 3.4 - 3.2 and 2.4 - 2.2 differ in the
# last digit.
ROUNDING = 1e-10
OUTWEIGHED = "one item or document weighs more than all others together: no spread to judge by"
# of differences of two systems within documents, before there are ratings: 0.33 in the ESA campaign on WMT
# 2023 English-German (71 documents of 2.9 segments; the median over pairs is 0.29), 0.06 in TED talks of 106
# segments (MQM)
USUAL_INTRACLASS = 0.3
_MIN_EFFECTIVE_ITEMS = 1.5  # items of equal weight with the same information: two of weights 1 and 0.5


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval; where either is None, `reason` says why."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class MeanEstimate(Estimate):
    """A weighted mean (unit of the values) with its standard error and the degrees of freedom of its t, both
    None where there is no spread to judge by."""

    standard_error: float | None = None
    df: float | None = None

    def interval(self, confidence: float) -> tuple[float, float] | None:
        """The t interval at a level (0.9 for two one-sided tests); None where there is no spread."""
        if self.value is None or self.standard_error is None or self.df is None:
            return None
        half = float(scipy.special.stdtrit(self.df, 0.5 + confidence / 2)) * self.standard_error
        return self.value - half, self.value + half

    def t_test(self) -> float | None:
        """The two-sided p-value of a mean of 0; None where there is no spread."""
        if self.value is None or self.standard_error is None or self.df is None:
            return None
        return float(2 * scipy.special.stdtr(self.df, -abs(self.value) / self.standard_error))


def mean_estimate(
    values: ArrayLike,
    weights: ArrayLike | None = None,
    scale: float = 0.0,
    clusters: ArrayLike | None = None,
    cluster: str = "document",
) -> MeanEstimate:
    """The mean of values (n,) with its t interval; without weights the textbook's (scipy's `ttest_1samp`).

    With weights w (n,), all positive, `variance_of_mean` has the formulas. With `clusters` (n,), labels of
    what goes together (the documents of segments), the mean stays and its spread is that of the clusters'
    means (`cluster_means`); `cluster` is what one is called in a reason. `scale` is the size of the scores
    that the values are differences of: a spread below its rounding error counts as none. ValueError for
    values that are not finite or weights that are not positive: callers leave those out.
    """
    x = np.asarray(values, dtype=np.float64)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    if x.shape != w.shape or not np.isfinite(x).all() or not (np.isfinite(w) & (w > 0)).all():
        raise ValueError("a mean needs finite values and as many finite, positive weights")
    if len(x) == 0:
        return MeanEstimate(reason="no items")
    what, spread = "item", None
    if clusters is not None and len(np.unique(clusters)) < len(x):
        x, w, spread = cluster_means(x, w, clusters)
        what = cluster
    w = w / w.max()  # keeps squares and fourth powers in range
    mean = float((w * x).sum() / w.sum())
    if len(x) == 1:
        return MeanEstimate(mean, reason=f"only one {what}: no spread to judge by")
    if float(np.ptp(x)) <= ROUNDING * max(scale, float(np.abs(x).max())):
        reason = f"the same value on all {len(x)} {what}s: no spread to judge by"
        return MeanEstimate(0.0 if abs(mean) <= ROUNDING * scale else mean, reason=reason)
    if outweighed(w):
        return MeanEstimate(mean, reason=OUTWEIGHED)
    variance, df = variance_of_mean(x, w, spread)
    error = math.sqrt(variance)
    half = float(scipy.special.stdtrit(df, 0.975)) * error
    return MeanEstimate(mean, mean - half, mean + half, standard_error=error, df=df)


def positive_estimate(estimate: Estimate) -> Estimate:
    """The interval of something above 0, as a time or a ratio of times, on the scale of logarithms.

    v ± h becomes [v·exp(−h/v), v·exp(h/v)], since log v has the standard error se/v (delta method): it is
    never below 0, has v inside, and hardly differs where h is small beside v. In simulations
    (`tests/stats/test_positive_estimate.py`) it covers the true mean as often as v ± h or more often, most so
    with skewed values, which v ± h leaves out on the upper side. ValueError for a value that is not above 0.
    """
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return estimate
    if estimate.value <= 0:
        raise ValueError(f"an interval on the scale of logarithms for {estimate.value}, which is not above 0")
    factor = math.exp((estimate.high - estimate.low) / 2 / estimate.value)
    return Estimate(estimate.value, estimate.value / factor, estimate.value * factor)


def cluster_means(values: Array, weights: Array, clusters: ArrayLike) -> tuple[Array, Array, Array]:
    """The weighted mean of each cluster (clusters,), its weight, and how its variance compares with others'.

    The weighted mean of these is that of the values, Σ_g W_g x̄_g / Σ_g W_g = Σwx/Σw, and e_g = W_g(x̄_g − m)
    is the sum of a cluster's w(x − m): the variance of clusters' means is the cluster-robust variance of a
    mean (Liang and Zeger 1986, "Longitudinal data analysis using generalized linear models"), whatever goes
    on within a cluster. Long documents' means vary less: ρ + (1 − ρ)/n, n the effective number of values and
    ρ = 0.3 (`stats.documents`). That only corrects for few clusters; were ρ another, little would change.
    """
    _, number = np.unique(clusters, return_inverse=True)
    total = np.bincount(number, weights)
    means: Array = np.bincount(number, weights * values) / total
    size = total**2 / np.bincount(number, weights**2)
    spread: Array = USUAL_INTRACLASS + (1 - USUAL_INTRACLASS) / size
    return means, total.astype(np.float64), spread


def outweighed(weights: Array) -> bool:
    """Whether one of the weights (n,) is so large that the others say nothing about the spread."""
    squares = weights**2
    return float(squares.sum()) ** 2 < _MIN_EFFECTIVE_ITEMS * float((squares**2).sum())


def variance_of_mean(values: Array, weights: Array, spread: Array | None = None) -> tuple[float, float]:
    """se² of m = Σwx/Σw for independent values x (n,), and its degrees of freedom.

    With weights that sum to 1, Σw²(x − m)² is the linearised variance of a ratio (Cochran 1977, ch. 6), a
    quadratic form xᵀMx, M = (I − w1ᵀ)D(I − 1wᵀ), D = diag(w²). It is made unbiased where the values'
    variances are in the proportion of `spread` v (n,), by default equal: times Σw²v / tr(MV), V = diag(v),
    which is n/(n − 1) for equal weights. df = (tr MV)²/tr(MVMV) are Satterthwaite's (as in Bell and McCaffrey
    2002, "Bias reduction in standard errors for linear regression with multi-stage samples"): n − 1 for equal
    weights, 1 for two values whatever their weights.
    """
    w = weights / weights.sum()
    v = np.ones(len(w)) if spread is None else spread
    m = float((w * values).sum())
    a = w**2
    u, b = w * np.sqrt(v), a * np.sqrt(v)  # V^½MV^½ = diag(av) − ubᵀ − buᵀ + s·uuᵀ
    s, uu, ub, bb = float(a.sum()), float(u @ u), float(u @ b), float(b @ b)
    trace = uu - 2 * ub + s * uu
    of_square = float(((a * v) ** 2).sum()) + 2 * float((a * v) @ (s * u**2 - 2 * u * b))
    of_square += 2 * uu * bb + 2 * ub**2 - 4 * s * uu * ub + (s * uu) ** 2
    return float((a * (values - m) ** 2).sum()) * uu / trace, trace**2 / of_square


def without_rounding(values: Array, scale: float) -> Array:
    """The values, but those closer than ROUNDING · scale to each other become the smallest of them in size.

    Those next to 0 become 0; signs and NaN are kept, and other values do not change.
    """
    flat = values.ravel()
    known = np.flatnonzero(~np.isnan(flat))
    order = known[np.argsort(np.abs(flat[known]), kind="stable")]
    size = np.concatenate([[0.0], np.abs(flat[order])])
    first = np.diff(size, prepend=-np.inf) > ROUNDING * scale
    merged = flat.copy()
    merged[order] = np.copysign(size[first][np.cumsum(first) - 1][1:], flat[order])
    return merged.reshape(values.shape)


def aligned(*vectors: ArrayLike) -> list[Array]:
    """The vectors as float64 (n,). ValueError where they do not share one length or hold infinity."""
    arrays = [np.asarray(vector, dtype=np.float64) for vector in vectors]
    if len({array.shape for array in arrays}) != 1 or arrays[0].ndim != 1:
        raise ValueError(f"vectors of shapes {[array.shape for array in arrays]} cannot be aligned")
    if any(np.isinf(array).any() for array in arrays):
        raise ValueError("scores must be finite, or NaN where missing")
    return arrays


def complete(vectors: Sequence[Array], weights: ArrayLike | None) -> tuple[list[Array], Array]:
    """The vectors and weights where nothing is missing and the weight is above 0."""
    weighing = np.ones(len(vectors[0])) if weights is None else np.asarray(weights, dtype=np.float64)
    if weighing.shape != vectors[0].shape:
        raise ValueError(f"{weighing.shape} weights for {vectors[0].shape} items")
    if not (np.isfinite(weighing) & (weighing >= 0)).all():
        raise ValueError("weights must be finite and not negative")
    kept = weighing > 0
    for vector in vectors:
        kept &= ~np.isnan(vector)
    return [vector[kept] for vector in vectors], weighing[kept]
