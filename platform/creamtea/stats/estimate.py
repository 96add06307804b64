"""Means, shares and ratios over items, with their standard errors and intervals.

Every statistic of human ratings is a mean over items (of differences, of residuals, of deviations). Only this
module turns such a mean into an interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import variance

import numpy as np
import scipy  # its Student's t in scipy.special; scipy.stats, the same functions, takes a second to import
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

# Scores closer than this, relative to the largest, count as equal: 3.4 - 3.2 and 2.4 - 2.2 differ by
# rounding.
ROUNDING = 1e-10
OUTWEIGHED = "one item or document weighs more than all others together: no spread to judge by"
# Assumed correlation of two systems' differences within a document, before there are ratings: 0.33 in the ESA
# campaign on WMT 2023 English-German (71 documents of 2.9 segments; the median over pairs is 0.29), 0.06 in
# TED talks of 106 segments (MQM).
USUAL_INTRACLASS = 0.3
_MIN_EFFECTIVE_ITEMS = 1.5  # effective number of items


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval; if either is None, `reason` says why."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class MeanEstimate(Estimate):
    """A weighted mean, its standard error and its t's degrees of freedom; None without spread."""

    standard_error: float | None = None
    df: float | None = None

    def interval(self, confidence: float) -> tuple[float, float] | None:
        """Return the t interval at a level (0.9 for two one-sided tests); None without spread."""
        if self.value is None or self.standard_error is None or self.df is None:
            return None
        half = float(scipy.special.stdtrit(self.df, 0.5 + confidence / 2)) * self.standard_error
        return self.value - half, self.value + half

    def t_test(self) -> float | None:
        """Return the two-sided p-value of a mean of 0; None without spread."""
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
    """Estimate the mean of values (n,) with its t interval.

    Without weights the interval is scipy's `ttest_1samp`. `variance_of_mean` has the formulas for weights
    w (n,), all positive. With `clusters` (n,), labels of documents, say, the mean is the same, but its spread
    is estimated from the clusters' means (`cluster_means`); reasons call a cluster `cluster`.

    `scale`: the size of the scores, if the values are differences of scores; a spread below its rounding
    error counts as none. ValueError for values that are not finite and weights that are not positive: callers
    leave these out.
    """
    x = np.asarray(values, dtype=np.float64)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    if x.shape != w.shape or not np.isfinite(x).all() or not (np.isfinite(w) & (w > 0)).all():
        raise ValueError("a mean needs finite values and as many finite, positive weights")
    if len(x) == 0:
        return MeanEstimate(reason="no items")
    unit, spread = "item", None
    if clusters is not None and len(np.unique(clusters)) < len(x):
        x, w, spread = cluster_means(x, w, clusters)
        unit = cluster
    w = w / w.max()  # keeps squares and fourth powers in range
    mean = float((w * x).sum() / w.sum())
    if len(x) == 1:
        return MeanEstimate(mean, reason=f"only one {unit}: no spread to judge by")
    if float(np.ptp(x)) <= ROUNDING * max(scale, float(np.abs(x).max())):
        reason = f"the same value on all {len(x)} {unit}s: no spread to judge by"
        return MeanEstimate(0.0 if abs(mean) <= ROUNDING * scale else mean, reason=reason)
    if outweighed(w):
        return MeanEstimate(mean, reason=OUTWEIGHED)
    variance, df = variance_of_mean(x, w, spread)
    error = math.sqrt(variance)
    half = float(scipy.special.stdtrit(df, 0.975)) * error
    return MeanEstimate(mean, mean - half, mean + half, standard_error=error, df=df)


def positive_estimate(estimate: Estimate) -> Estimate:
    """Put the interval of a positive value (a time, a ratio of times) on a logarithmic scale.

    v ± h becomes [v·exp(−h/v), v·exp(h/v)], since log v has the standard error se/v (delta method). The
    interval stays above 0, contains v, and hardly differs from v ± h if h is small beside v. In simulations
    (`tests/stats/test_estimate.py`) it covers the true mean at least as often as v ± h, and more often for
    skewed values, where v ± h often ends too low. ValueError for a value that is not above 0.
    """
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return estimate
    if estimate.value <= 0:
        raise ValueError(f"an interval on the scale of logarithms for {estimate.value}, which is not above 0")
    factor = math.exp((estimate.high - estimate.low) / 2 / estimate.value)
    return Estimate(estimate.value, estimate.value / factor, estimate.value * factor)


def cluster_means(values: Array, weights: Array, clusters: ArrayLike) -> tuple[Array, Array, Array]:
    """Return the weighted mean of each cluster (clusters,), its weight, and its relative variance.

    The weighted mean of the clusters' means equals the mean of the values, Σ_g W_g x̄_g / Σ_g W_g = Σwx/Σw,
    and e_g = W_g(x̄_g − m) is the sum of a cluster's w(x − m). So the variance of the clusters' means is the
    cluster-robust variance of the mean (Liang and Zeger 1986, "Longitudinal data analysis using generalized
    linear models"), whatever the dependence within a cluster.

    Means of long documents vary less: by ρ + (1 − ρ)/n, where n is the effective number of values and
    ρ = `USUAL_INTRACLASS`. This only corrects for few clusters; another ρ would change little.
    """
    _, number = np.unique(clusters, return_inverse=True)
    total = np.bincount(number, weights)
    means: Array = np.bincount(number, weights * values) / total
    size = total**2 / np.bincount(number, weights**2)
    spread: Array = USUAL_INTRACLASS + (1 - USUAL_INTRACLASS) / size
    return means, total.astype(np.float64), spread


def outweighed(weights: Array) -> bool:
    """Return True if one weight (n,) is so large that the others say nothing about the spread."""
    squares = weights**2
    return float(squares.sum()) ** 2 < _MIN_EFFECTIVE_ITEMS * float((squares**2).sum())


def variance_of_mean(values: Array, weights: Array, spread: Array | None = None) -> tuple[float, float]:
    """Estimate se² of m = Σwx/Σw for independent values x (n,), and its degrees of freedom.

    With weights that sum to 1, Σw²(x − m)² is the linearised variance of a ratio (Cochran 1977, ch. 6), a
    quadratic form xᵀMx, M = (I − w1ᵀ)D(I − 1wᵀ), D = diag(w²). The factor Σw²v / tr(MV), V = diag(v), makes
    it unbiased if the values' variances are proportional to `spread` v (n,), by default equal; for equal
    weights the factor is n/(n − 1).

    df = (tr MV)²/tr(MVMV) are Satterthwaite's (as in Bell and McCaffrey 2002, "Bias reduction in standard
    errors for linear regression with multi-stage samples"): n − 1 for equal weights, 1 for two values of any
    weights.
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
    """Make values equal that differ only by rounding: by less than ROUNDING · scale.

    Each gets the smallest absolute value among them; values next to 0 become 0. Signs, NaN and other values
    do not change.
    """
    flat = values.ravel()
    known = np.flatnonzero(~np.isnan(flat))
    order = known[np.argsort(np.abs(flat[known]), kind="stable")]
    size = np.concatenate([[0.0], np.abs(flat[order])])
    first = np.diff(size, prepend=-np.inf) > ROUNDING * scale
    merged = flat.copy()
    merged[order] = np.copysign(size[first][np.cumsum(first) - 1][1:], flat[order])
    return merged.reshape(values.shape)


def numbered(labels: ArrayLike) -> NDArray[np.int64]:
    """Number the labels (m,) from 0, in ascending order: equal numbers for equal labels."""
    numbers: NDArray[np.int64] = np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.int64)
    return numbers


def sums_of(numbers: NDArray[np.int64], values: ArrayLike, size: int = 0) -> Array:
    """Sum values by number, as float64 even if there are none: (size,), or as many as there are numbers."""
    return np.bincount(numbers, np.asarray(values, dtype=np.float64), minlength=size).astype(np.float64)


def rows_of(owner: NDArray[np.int64], wanted: Sequence[int]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each of the wanted owners of rows (n,), with its rows in their order."""
    order = np.argsort(owner, kind="stable")
    asked = np.asarray(wanted, dtype=np.int64)
    bounds = [np.searchsorted(owner[order], asked, side) for side in ("left", "right")]
    for number, first, last in zip(wanted, *bounds, strict=True):
        yield number, order[first:last]


def aligned(*vectors: ArrayLike) -> list[Array]:
    """Return the vectors as float64 (n,). ValueError if their lengths differ or they hold infinity."""
    arrays = [np.asarray(vector, dtype=np.float64) for vector in vectors]
    if len({array.shape for array in arrays}) != 1 or arrays[0].ndim != 1:
        raise ValueError(f"vectors of shapes {[array.shape for array in arrays]} cannot be aligned")
    if any(np.isinf(array).any() for array in arrays):
        raise ValueError("scores must be finite, or NaN where missing")
    return arrays


def complete(vectors: Sequence[Array], weights: ArrayLike | None) -> tuple[list[Array], Array]:
    """Return the vectors and weights where no value is missing and the weight is above 0."""
    weighing = np.ones(len(vectors[0])) if weights is None else np.asarray(weights, dtype=np.float64)
    if weighing.shape != vectors[0].shape:
        raise ValueError(f"{weighing.shape} weights for {vectors[0].shape} items")
    if not (np.isfinite(weighing) & (weighing >= 0)).all():
        raise ValueError("weights must be finite and not negative")
    kept = weighing > 0
    for vector in vectors:
        kept &= ~np.isnan(vector)
    return [vector[kept] for vector in vectors], weighing[kept]


# Means over cases that come in clusters of unequal size: the occurrences of an idiom, say.
#
# Two occurrences of an idiom are hardly two observations, and one idiom may be a third of a test set. Only
# the differences between clusters show what other clusters would give.


@dataclass(frozen=True)
class ClusterMean:
    """Σ totals / Σ sizes with the 95 % t interval over clusters, or the `reason` why there is none."""

    value: float
    low: float | None = None
    high: float | None = None
    p_value: float | None = None  # two-sided, of a value of 0
    reason: str = ""


def effective_clusters(sizes: ArrayLike) -> float:
    """Return the effective number of clusters, (Σ size)² / Σ size² (Kish 1965)."""
    size = np.asarray(sizes, dtype=np.float64)
    return float(size.sum()) ** 2 / float(size @ size)


def outweighing_share(sizes: ArrayLike) -> float | None:
    """Return the largest cluster's share of all cases if it outweighs the others; None otherwise.

    It outweighs them with more than a fifth of the cases and more than 1.5 times the mean cluster's.
    """
    size = np.asarray(sizes, dtype=np.float64)
    share = float(size.max() / size.sum())
    return share if share > max(0.2, 1.5 / len(size)) else None


def variance_over_clusters(totals: ArrayLike, sizes: ArrayLike) -> float:
    """Estimate the variance of Σ totals / Σ sizes, linearised over two clusters or more.

    It is the variance of a ratio estimate (Cochran 1977, "Sampling Techniques", chapter 6). A large cluster
    draws the ratio towards its own, so each residual is adjusted for its leverage (CR2: Bell and McCaffrey
    2002, "Bias reduction in standard errors for linear regression with multi-stage samples").
    """
    total, size = np.asarray(totals, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    cases = float(size.sum())
    residuals = (total - total.sum() / cases * size) / cases
    return float((residuals**2 / (1 - size / cases)).sum())


def cluster_mean(totals: ArrayLike, sizes: ArrayLike, cluster: str = "cluster") -> ClusterMean:
    """Estimate Σ totals / Σ sizes with a 95 % interval over clusters.

    `totals[g]`: the sum over cluster g, such as the subwords that only one of two selections reaches.
    `sizes[g]`: its number of cases, > 0. `cluster`: what reasons call a cluster.

    The degrees of freedom are the effective number of clusters − 1. A single cluster, and clusters of equal
    means, have no interval. ValueError without clusters.
    """
    total, size = np.asarray(totals, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    if len(size) == 0 or len(size) != len(total) or bool((size <= 0).any()):
        raise ValueError("a mean over clusters needs clusters, each with cases")
    clusters = len(size)
    value = float(total.sum() / size.sum())
    if clusters == 1:
        return ClusterMean(value, reason=f"only one {cluster}: no spread to judge by")
    error = math.sqrt(variance_over_clusters(total, size))
    if error <= ROUNDING * float(np.abs(total / size).max()):
        return ClusterMean(
            value, reason=f"all {clusters} {cluster}s have the same value: no spread to judge by"
        )
    freedom = effective_clusters(size) - 1
    half = float(scipy.special.stdtrit(freedom, 0.975)) * error
    p_value = 2 * float(scipy.special.stdtr(freedom, -abs(value) / error))
    return ClusterMean(value, value - half, value + half, p_value)


# The interval of a share: k of n, or of cases that come in clusters.


_MAX_CASES_PER_CLUSTER = 5.0  # effective cases per effective cluster, if one cluster outweighs the others
_MIN_EFFECTIVE_CASES = 1e-6  # with fewer, the interval is (0, 1) up to rounding


def wilson_interval(count: int, of: int) -> tuple[float, float]:
    """Return the 95 % score interval of a binomial share (Wilson 1927).

    Unlike resampling it holds for few cases and for shares near 0 and 1. ValueError unless 0 ≤ count ≤ of and
    of > 0.
    """
    if not 0 <= count <= of or of == 0:
        raise ValueError(f"{count} of {of} is not a share")
    # the digits of scipy.stats.binomtest, which takes a second to import, and longer for each interval
    share, normal = count / of, float(scipy.special.ndtri(0.975))
    scale = 2 * (of + normal**2)
    centre = (2 * of * share + normal**2) / scale
    half = normal / scale * math.sqrt(4 * of * share * (1 - share) + normal**2)
    return centre - half if count else 0.0, centre + half if count < of else 1.0


def logit_interval(value: float, half: float) -> tuple[float, float]:
    """Put the interval v ± h of a mean of shares on the log-odds scale, so that it stays within 0 and 1.

    log(v/(1 − v)) has the standard error se/(v(1 − v)) (delta method). In simulations of the mean recall of 5
    to 68 idioms it covers 95 to 100 %; v ± h covers 90 % for a mean of 0.95, with most idioms' recall at 1.
    ValueError for a mean of 0 or 1, which has no log odds.
    """
    if not 0 < value < 1:
        raise ValueError(f"a mean of {value} has no log odds")
    odds, half = float(scipy.special.logit(value)), half / (value * (1 - value))
    return float(scipy.special.expit(odds - half)), float(scipy.special.expit(odds + half))


def clustered_interval(counts: ArrayLike, sizes: ArrayLike) -> tuple[float, float]:
    """Return the 95 % interval of a share whose cases come in clusters (the marked errors of a segment).

    In cluster g, counts[g] of sizes[g] cases have the property. The interval is Wilson's with the effective
    number of cases: a simple sample of this size would have the variance of this ratio estimate (linearised
    over clusters). For few clusters the number is reduced by the squared ratio of the normal to Student's
    quantile (Korn and Graubard 1998, "Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data"). Clusters of unequal size count as fewer
    (`effective_clusters`). A share of 0 or 1 has no variance: each effective cluster then counts as one case.

    If one cluster outweighs the others, the variance is mostly its residual and says little: each effective
    cluster then counts as five cases at most. In simulations with one idiom a third of the cases, the
    interval covers 97 to 100 %; without this rule it covered 81 to 86 %.

    Returns (0, 1) if a single cluster dominates: the sample then says nothing about other clusters.
    ValueError without cases, or if a count exceeds its size.
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
    of_clusters = effective_clusters(size)
    effective = min(cases, simple / variance) if simple > 0 and variance > 0 else of_clusters
    if outweighing_share(size) is not None:
        effective = min(effective, _MAX_CASES_PER_CLUSTER * of_clusters)
    normal = float(scipy.special.ndtri(0.975))
    effective *= (normal / float(scipy.special.stdtrit(of_clusters - 1, 0.975))) ** 2
    if effective < _MIN_EFFECTIVE_CASES:
        return 0.0, 1.0
    scale = 1 + normal**2 / effective
    centre = (share + normal**2 / (2 * effective)) / scale
    half = normal / scale * math.sqrt(simple / effective + normal**2 / (4 * effective**2))
    return max(0.0, centre - half), min(1.0, centre + half)


# Baseline = 100 %: a system's mean rating in per cent of the baseline's (Domhan et al. 2022, Table 5).
#
# R = 100 · mean(x_s) / mean(x_b), with two 95 % intervals:
#
# - `paired_t`, the paper's: the paired-t interval of mean(x_s − x_b), times 100/mean(x_b). It treats the
#   denominator as known.
# - `delta`, the delta method's: half-width 100 · t · sd(e) / (√n · mean(x_b)), e_i = x_si − (R/100) · x_bi.
#   It treats the baseline's mean as an estimate, too.
#
# A ratio depends on the zero of the scale (1–6 renamed to 0–5 gives other percentages): show the raw means
# beside it.


@dataclass(frozen=True)
class Ratio:
    """A system's mean in per cent of the baseline's, over the items rated for both, by both intervals."""

    delta: Estimate
    paired_t: Estimate


def baseline_ratio(
    baseline: ArrayLike,
    system: ArrayLike,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
) -> Ratio:
    """Estimate the ratio of two systems' item means (n,), NaN where an item has no rating.

    Items missing on either side are left out. `clusters` (n,): the items' documents by number, if the sample
    is over documents. A baseline whose mean is not above 0 has no ratio, only a reason. ValueError as in
    `compare_paired`.
    """
    labels = np.arange(np.size(baseline)) if clusters is None else clusters
    (base, ours, groups), kept_weights = complete(aligned(baseline, system, labels), weights)
    if len(base) == 0:
        return _none("no items")
    base_mean = float(np.average(base, weights=kept_weights))
    our_mean = float(np.average(ours, weights=kept_weights))
    if base_mean <= 0:
        return _none("the baseline's mean is not above 0: no ratio to it")
    equal_weights = None if np.ptp(kept_weights) == 0 else kept_weights
    scale = float(np.abs([base, ours]).max())
    share = our_mean / base_mean
    points = mean_estimate(ours - base, equal_weights, scale, groups)
    residuals = mean_estimate(ours - share * base, equal_weights, scale, groups)  # their mean is 0
    percent = 100 * share
    delta, paired_t = (
        Estimate(percent, reason=estimate.reason)
        if estimate.low is None or estimate.high is None
        else Estimate(
            percent, centre + 100 * estimate.low / base_mean, centre + 100 * estimate.high / base_mean
        )
        for estimate, centre in ((residuals, percent), (points, 100.0))
    )
    return Ratio(delta, paired_t)


def _none(reason: str) -> Ratio:
    return Ratio(Estimate(reason=reason), Estimate(reason=reason))


Bounds = tuple[float, float]


# ---------------------------------------------------------------- training seeds


# The part of the uncertainty that comes from training seeds, beside the part from segments. Two seeds of one
# recipe may differ as much as two recipes do: a difference between the trained models need not be a
# difference between the recipes. The bootstrap over segments cannot show that.


@dataclass(frozen=True)
class Spread:
    """The error of a mean over seeds."""

    square: float  # the squared standard error
    freedom: float  # its degrees of freedom

    @property
    def half(self) -> float:
        """Half of the 95 % t interval."""
        return float(scipy.special.stdtrit(self.freedom, 0.975)) * math.sqrt(self.square)


def spread_of_difference(system: Mapping[str, float], baseline: Mapping[str, float]) -> Spread | None:
    """Return the spread over seeds of the difference between a system's and its baseline's mean score.

    Each side maps the models that translated to their scores; it is empty if no seed could change the
    outputs. None if neither side has several models, and for `one_against_several`.

    The spread is Welch's. If both translate with the same models (greedy and beam search, say), a lucky seed
    is lucky for both, and the spread is the paired differences'. Scores of two seeds also differ because each
    model errs on different segments, which the interval over segments already covers: with few segments
    `widened` is somewhat too wide.
    """
    parts = _independent(system, baseline)
    if not parts or min(map(len, parts)) < 2:
        return None
    spread = together([spread_of_mean(math.sqrt(variance(part)), len(part)) for part in parts])
    # with two seeds against more, Welch's t gives up to 12 % false alarms: the two may be close by chance
    return Spread(spread.square, 1) if min(map(len, parts)) == 2 < max(map(len, parts)) else spread


def one_against_several(system: Mapping[str, float], baseline: Mapping[str, float]) -> bool:
    """Return True if one side has a single model and the other several.

    How much the single model's recipe varies with its seed is then unknown. If it were assumed to vary as
    much as the other recipe but varied five times as much, 8 to 55 % of comparisons would be false alarms.
    """
    counts = [len(part) for part in _independent(system, baseline)]
    return bool(counts) and min(counts) == 1 < max(counts)


def _independent(system: Mapping[str, float], baseline: Mapping[str, float]) -> list[list[float]]:
    """Return the independent scores that vary with the seeds.

    If both sides have the same models, these are the differences by model, else the scores of each side that
    has models. Sides that share only some models count as if they shared none, which makes intervals too
    wide.
    """
    if system.keys() == baseline.keys():
        return [[system[model] - baseline[model] for model in system]] if system else []
    return [list(scores.values()) for scores in (system, baseline) if scores]


def spread_of_mean(deviation: float, seeds: int) -> Spread:
    """Return the spread of a mean over `seeds` ≥ 2 scores with this sample standard deviation."""
    return Spread(deviation**2 / seeds, seeds - 1)


def together(spreads: Sequence[Spread]) -> Spread:
    """Return the spread of a sum of independent means, with Satterthwaite's (for two, Welch's) df."""
    total = math.fsum(spread.square for spread in spreads)
    if not total:
        return Spread(0.0, min(spread.freedom for spread in spreads))
    return Spread(total, 1 / sum((spread.square / total) ** 2 / spread.freedom for spread in spreads))


def widened(value: float, low: float, high: float, seeds: Spread) -> Bounds:
    """Widen a 95 % interval over segments, low to high, to an interval over segments and seeds.

    Each side is √(d² + half²), where d is the distance of the limit from the value (Zou and Donner 2008,
    "Construction of confidence limits about effect measures"). With few seeds it keeps to 95 %
    (docs/results/data/intervals.yaml).
    """
    return value - math.hypot(value - low, seeds.half), value + math.hypot(high - value, seeds.half)


def p_with_seeds(value: float, low: float, high: float, seeds: Spread) -> float:
    """Return the two-sided p-value of no difference, consistent with the interval of `widened`.

    It is the level α at which the interval of 1 − α would just touch 0. The error over segments is assumed to
    be normal, with the 95 % interval low to high.
    """
    if not value:
        return 1.0
    error = abs(value - (low if value > 0 else high)) / -float(scipy.special.ndtri(0.025))

    def reaches(level: float) -> float:
        student = float(scipy.special.stdtrit(seeds.freedom, level / 2))
        return math.hypot(error * float(scipy.special.ndtri(level / 2)), math.sqrt(seeds.square) * student)

    least, most = 0.0, 1.0
    while most - least > 1e-9 + 1e-6 * most:
        middle = (least + most) / 2
        least, most = (middle, most) if reaches(middle) > abs(value) else (least, middle)
    return most
