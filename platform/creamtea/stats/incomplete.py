"""Means, differences and ranks of systems if each page shows only some of them.

A page (one rater's work on a segment, say) compares the systems on it; the difficulty of its segment and the
severity of its rater cancel out. If a page shows 3 of 30 systems, two systems seldom meet, but each
difference follows from chains of pages. The model of a score is y_ps = page + τ_s + error, fitted by least
squares over the pairs of scores within pages,

    min Σ_p Σ_{a<b on p} w_p/(m_p π_ab) · (y_pa − y_pb − τ_a − e_a + τ_b + e_b)²

where page p has m_p scores and the weight w_p, π_ab is the probability that the design gave a page this pair,
and e is an additive effect (a rater's severity, if a page has scores of several raters). Without weights and
effects this is ordinary least squares with an effect for each page: the intra-block estimate of incomplete
blocks (Yates 1936). With inverse probabilities each pair counts as if all pairs had been shown equally often.

In a balanced design all π are equal. In an adaptive design they depend on earlier pages, and documents come
in random order: the expected difference within a page does not depend on what was shown before, so weights
that depend on earlier pages leave the equations unbiased. √π instead of π then makes their terms equally
variable, so that a martingale central limit theorem holds, and leaves a small bias (Hadad, Hirshberg, Zhan,
Wager and Athey 2021, "Confidence intervals for policy evaluation in adaptive experiments", PNAS 118).

The error of a difference is estimated over clusters: documents with all their pages. Each cluster's score is
adjusted for its leverage (CR2: Bell and McCaffrey 2002). Raters are a second sample: each rater's view of
each system adds to the error over documents (Cameron, Gelbach and Miller 2011: the variance over clusters by
rater, less the variance over clusters by rater and document). A single pair says too little about that part:
with few raters it misses much, and cut at 0 it adds something even if raters agree. So the variance of
raters' views is assumed to be the same for all systems and is estimated from all pairs by least squares,
because the design determines what a variance of 1 adds to each pair. It is at least 0. This part of the error
has the raters' degrees of freedom, as in `stats.paired`, and the critical value is Cochran and Cox's.

If all scores vary equally, a squared error is estimated by V = Σ_c λ_c·χ²₁ over clusters c, Σ_c λ_c = 1. Some
clusters weigh much and most little, so V is seldom far below 1. Student's t with the degrees of freedom of
V's variance (Satterthwaite's) then has too heavy tails at the level that all pairs require. McCaffrey and
Bell (2006, "Improved hypothesis testing for coefficients in generalized estimating equations with small
samples of clusters", Stat. Med. 25) use a saddlepoint of the tail. Here t has the degrees of freedom ν that
give it this tail at the normal critical value x. The tail is (Craig 1991)

    P(|z|/√V > x) = 2/π ∫_0^{π/2} E exp(−x²V/(2 sin²φ)) dφ,   E exp(−x²V/2) = Π_c (1 + λ_c·x²)^(−1/2)

and ν solves E exp(−x²V/2) = (1 + x²/ν)^(−ν/2). For x → 0 this ν is Satterthwaite's.

The family-wise error over all pairs of systems is 5 %: the two-sided level of one difference is chosen so
that the largest of normal statistics with these correlations exceeds its bound in 5 % of draws (a generalised
Tukey test; Hothorn, Bretz and Westfall 2008). If correlations of many systems are estimated from few
clusters, they span too few dimensions, and their largest statistic is too small; the one of independent
errors is used if it is larger. Ranks follow from these simultaneous intervals: a system's best rank is one
more than the number of systems that are better, its worst the number of systems that it does not beat. With
95 % probability all ranks lie in their intervals at once (Mohamad, van Zwet, Solari and Goeman 2021). A
cluster ends where every system so far is better than every one below.

Looking at results several times makes errors more frequent. An adaptive design is looked at after the shares
t of its documents in `LOOKS`, and look l may be the first that errs with probability 5 % · (t_l³ − t_{l−1}³)
(the power family of error spending: Kim and DeMets 1987). The intervals and ranks of a look therefore err
with more than this probability: part of it falls on campaigns in which an earlier look has erred. How much
more follows from draws of equally precise systems whose estimates improve by independent increments (the
joint distribution of sequential estimates: Jennison and Turnbull 2000, chapter 11). Pages are not shown
equally often, so bench/some_systems.py measures how often adaptive designs err at any look.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy  # scipy.special is slow to import, and so is imported where it is first used
from numpy.typing import ArrayLike, NDArray

from creamtea.stats.estimate import ROUNDING, Array, numbered
from creamtea.stats.paired import SIGNIFICANT
from creamtea.stats.resampling import SEED
from creamtea.stats.wmt import cluster_numbers

Integers = NDArray[np.int64]
DRAWS = 10_000
LOOKS = (0.4, 0.6, 0.8, 1.0)  # shares of an adaptive design's documents after which it is looked at
_ALL = 1 - 1e-9  # of the information on a difference: above, the difference depends on one cluster
_STEPS = 30  # of bisection
_AT_ONCE = 20_000  # pairs in memory at once


@dataclass(frozen=True)
class SystemEstimates:
    """Estimates of systems (systems,) and of differences, first − second (systems, systems), in points.

    `low` and `high` are the 95 % interval of a system's distance from the mean of all systems, centred on the
    system's mean. If `reason` says why the spread is unknown, intervals and p-values are NaN, and ranks open.
    """

    mean: Array
    low: Array
    high: Array
    error: Array  # standard error of a difference
    half: Array  # half-width of a difference's simultaneous 95 % interval
    p_value: Array  # of a difference, family-wise
    rank_low: Integers
    rank_high: Integers
    cluster: Integers
    scores: Integers  # (systems,): on pages that show several systems
    pages: int
    shared: Integers  # (systems, systems): pairs of scores of both from one page
    clusters: int
    raters: int  # in the sample of raters; 0: intervals are about these raters only
    reason: str | None = None

    @property
    def difference(self) -> Array:
        differences: Array = self.mean[:, None] - self.mean[None, :]
        return differences


def estimate_systems(
    page: ArrayLike,
    system: ArrayLike,
    value: ArrayLike,
    systems: int,
    *,
    cluster: ArrayLike | None = None,
    rater: ArrayLike | None = None,
    effect: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    chance: Array | None = None,
    alpha: float = SIGNIFICANT,
    seed: int = SEED,
) -> SystemEstimates:
    """Estimate systems, numbered from 0, from columns of scores, (scores,) each.

    `cluster`: labels of clusters, made of whole pages (default: pages). `rater`: labels of raters as a
    sample, if each page has one rater. `effect`: labels of an additive effect within pages. `weight`: the
    page's weight. `chance` (scores, systems): the probability that the design shows a score's system together
    with each other system. `alpha`: how often simultaneous intervals and ranks may err; p-values are scaled
    so that values below 5 % reject. ValueError for arrays of different lengths, invalid scores or weights,
    and systems that no chain of pages connects.
    """
    y, of_system = np.asarray(value, dtype=np.float64), np.asarray(system, dtype=np.int64)
    on_page = numbered(page)
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    if not len(y) == len(of_system) == len(on_page) == len(w):
        raise ValueError("page, system, value and weight must have one length")
    if not np.isfinite(y).all() or not (np.isfinite(w) & (w > 0)).all():
        raise ValueError("scores must be finite, weights finite and above 0")
    first, second = _pairs(on_page)
    w = w[first] / np.bincount(on_page)[on_page[first]]
    if chance is not None:
        w = w / chance[first, of_system[second]]
    columns = [of_system] if effect is None else [of_system, systems + numbered(effect)]
    width = 1 + max(int(column.max(initial=-1)) for column in columns)

    def design(rows: Integers) -> Array:
        """Return the design matrix (rows, parameters) of pairs: the first score's row less the second's."""
        x, number = np.zeros((len(rows), width)), np.arange(len(rows))
        for column in columns:
            x[number, column[first[rows]]] += 1.0
            x[number, column[second[rows]]] -= 1.0
        return x

    d = y[first] - y[second]
    normal, right = np.zeros((width, width)), np.zeros(width)
    for rows in np.array_split(np.arange(len(d)), 1 + len(d) // _AT_ONCE):
        x = design(rows)
        normal += x.T @ (w[rows, None] * x)
        right += x.T @ (w[rows] * d[rows])
    half, theta = _solve(normal, right, systems)
    theta[:systems] -= theta[:systems].mean()
    fitted: Array = np.sum([theta[column] for column in columns], axis=0)
    used = np.unique([first, second])
    mean = theta[:systems] + float((y - fitted)[used].mean())
    residual = d - fitted[first] + fitted[second]

    def parts(labels: Integers) -> tuple[Array, Array, list[Array], bool]:
        return _clustered(numbered(labels[first]), design, w, residual, half, systems)

    of_cluster = on_page if cluster is None else numbered(cluster)
    variance, views, reaches, alone = parts(of_cluster)
    spread = _of_pairs(variance)
    share, rater_reaches, raters = np.zeros_like(spread), reaches, 0
    if rater is not None and (of_rater := numbered(rater)).max() > 0:
        raters = int(of_rater.max()) + 1
        by_rater, rater_views, rater_reaches, _ = parts(of_rater)
        each = numbered(of_cluster * raters + of_rater)
        nested = each.max() == of_cluster.max()  # each cluster has one rater
        both, both_views = (variance, views) if nested else parts(each)[:2]
        of_views = _of_pairs(rater_views) - _of_pairs(both_views)  # added if views have variance 1
        observed = (_of_pairs(by_rater) - _of_pairs(both))[:systems, :systems]
        x = of_views[:systems, :systems]
        variance_of_views = max(0.0, float((x * observed).sum()) / max(float((x * x).sum()), 1e-300))
        added = np.maximum(0.0, variance_of_views * of_views)
        spread = spread + added
        share = np.divide(added, spread, out=share, where=spread > 0)
    error = np.sqrt(spread)
    n = systems
    shared = np.zeros((n, n), dtype=np.int64)
    apart = of_system[first] != of_system[second]
    np.add.at(shared, (of_system[first][apart], of_system[second][apart]), 1)
    others, reason = ~np.eye(n, dtype=bool), None
    own, halves, p_value = np.full(n, np.nan), np.full((n, n), np.nan), np.full((n, n), np.nan)
    if alone:
        reason = "some difference depends on one document or segment"
    elif (error[:n, :n][others] <= ROUNDING * np.abs(y).max()).any():
        reason = "no spread to judge by"
    else:
        independent = (half @ half)[:n, :n]
        largest = np.maximum(_largest(variance[:n, :n], seed), _largest(independent, seed))
        normal_value = float(np.quantile(largest, 1 - alpha))
        at = np.full_like(error, normal_value)
        at[:, n] = -scipy.special.ndtri(SIGNIFICANT / 2)
        df = _freedom(reaches, at)
        raters_df = _freedom(rater_reaches, at) if raters else df

        def critical(alpha: Array | float) -> Array:
            t = -scipy.special.stdtrit(np.stack([raters_df, df]), np.asarray(alpha) / 2)
            value: Array = share * t[0] + (1 - share) * t[1]
            return value

        halves = (critical(2 * float(scipy.special.ndtr(-normal_value))) * error)[:n, :n]
        np.fill_diagonal(halves, 0.0)
        own = (critical(SIGNIFICANT) * error)[:n, n]
        p_value = np.ones((n, n))
        p_value[others] = _family_wise(mean, error, critical, largest)[others]
        p_value = np.minimum(1.0, p_value * (SIGNIFICANT / alpha))
    better = mean[:, None] - mean[None, :] > halves  # nowhere without intervals: all ranks are open
    order, cluster = np.argsort(-mean, kind="stable"), np.ones(n, np.int64)
    cluster[order] = cluster_numbers(better[np.ix_(order, order)])
    return SystemEstimates(
        mean=mean,
        low=mean - own,
        high=mean + own,
        error=error[:n, :n],
        half=halves,
        p_value=p_value,
        rank_low=1 + better.sum(axis=0),
        rank_high=n - better.sum(axis=1),
        cluster=cluster,
        scores=np.bincount(of_system[used], minlength=n),
        pages=len(np.unique(on_page[first])),
        shared=shared + shared.T,
        clusters=len(np.unique(of_cluster[first])),
        raters=raters,
        reason=reason,
    )


def last_look(finished: int, planned: int, systems: int) -> tuple[int, float] | None:
    """Return the last look at an adaptive design once `finished` of `planned` documents are rated.

    A look is its number of documents and the probability with which it may err. None before the first look.
    """
    at = sum(finished >= math.ceil(part * planned) for part in LOOKS) - 1
    return None if at < 0 else (math.ceil(LOOKS[at] * planned), levels_of_looks(systems)[at])


@lru_cache(maxsize=64)
def levels_of_looks(systems: int) -> tuple[float, ...]:
    """Return the probability with which each look may err, so that some look errs with 5 %."""
    draws, rng = 100_000, np.random.default_rng(SEED)
    shares = np.array(LOOKS)[:, None]
    increments = np.sqrt(np.diff(shares, axis=0, prepend=0.0))
    low, high = np.full((2, len(LOOKS), draws), [[[np.inf]], [[-np.inf]]])
    for _ in range(systems):
        score = (increments * rng.standard_normal((len(LOOKS), draws))).cumsum(axis=0) / np.sqrt(shares)
        low, high = np.minimum(low, score), np.maximum(high, score)
    levels, right, spent = [], np.ones(draws, dtype=bool), 0.0
    for largest, share in zip(high - low, LOOKS, strict=True):
        bound = np.quantile(largest[right], 1 - SIGNIFICANT * (share**3 - spent**3) / right.mean())
        levels.append(float((largest > bound).mean()))
        right &= largest <= bound
        spent = share
    return tuple(levels)


def open_systems(estimates: SystemEstimates, delta: float, at_least: int) -> list[int]:
    """Return the systems that are worth comparing further.

    They belong to a pair whose interval neither excludes 0 nor lies within ±`delta`. If they are fewer than
    `at_least`, the systems closest to them are added. All systems if the spread is unknown.
    """
    n = len(estimates.mean)
    if estimates.reason is not None:
        return list(range(n))
    size = np.abs(estimates.difference)
    undecided = ~np.eye(n, dtype=bool) & (size <= estimates.half) & (size + estimates.half >= delta)
    chosen = np.flatnonzero(undecided.any(axis=1))
    if not len(chosen):
        return []
    distance = size[:, chosen].min(axis=1)
    distance[chosen] = -1.0
    nearest = np.argsort(distance, kind="stable")[: max(at_least, len(chosen))]
    return sorted(nearest.tolist())


def _pairs(page: Integers) -> tuple[Integers, Integers]:
    """Return the positions of the two scores of every pair within a page."""
    order = np.argsort(page, kind="stable")
    sizes = np.bincount(page)
    starts = np.cumsum(sizes) - sizes
    pairs = [np.zeros((2, 0), dtype=np.int64)]
    for size in np.unique(sizes[sizes > 1]).tolist():
        rows = order[starts[sizes == size][:, None] + np.arange(size)]  # (pages, size)
        pairs.append(np.stack([rows[:, places].ravel() for places in np.triu_indices(size, 1)]))
    first, second = np.concatenate(pairs, axis=1)
    return first, second


def _solve(normal: Array, right: Array, systems: int) -> tuple[Array, Array]:
    """Return N^(−1/2) of the normal equations, and their solution.

    Raises ValueError unless all systems are connected.
    """
    values, vectors = np.linalg.eigh(normal)
    kept = values > 1e-9 * max(values.max(initial=0.0), 1e-300)
    known = vectors[:, kept]
    steps = np.eye(systems, len(normal)) - np.eye(systems, len(normal), 1)
    steps[-1] = np.eye(1, len(normal)) - np.eye(1, len(normal), systems - 1)
    if len(normal) < systems or np.abs(steps - steps @ known @ known.T).max() > 1e-6:
        raise ValueError("some systems share no page with the others, not even through others")
    half: Array = (known / np.sqrt(values[kept])) @ known.T
    return half, half @ half @ right


def _clustered(
    label: Integers,
    design: Callable[[Integers], Array],
    weight: Array,
    residual: Array,
    half: Array,
    systems: int,
) -> tuple[Array, Array, list[Array], bool]:
    """Estimate the errors of the systems' effects over clusters.

    Returns four values:
    - the covariances (systems + 1, systems + 1); the last row and column belong to the mean of all systems;
    - the covariances if only the clusters' views of each system varied, with variance 1;
    - for each cluster, a root (systems + 1, rank) of its part of the covariances if scores vary equally;
    - whether some difference depends on one cluster.
    """
    to_means = np.eye(systems + 1, len(half))
    to_means[systems, :systems] = 1 / systems
    reach = to_means @ half
    influence, reaches, alone = [], [], False
    views = np.zeros((systems + 1, systems + 1))
    order = np.argsort(label, kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(label))[:-1]):
        x = design(rows)
        used = np.flatnonzero(x.any(axis=0))  # few: the cluster's systems and effects
        weighted = weight[rows, None] * x[:, used]
        values, vectors = np.linalg.eigh(x[:, used].T @ weighted)
        kept = values > 1e-12 * values[-1]
        scaled = vectors[:, kept] * np.sqrt(values[kept])
        root = half[:, used] @ scaled  # leverage = root rootᵀ
        values, vectors = np.linalg.eigh(root.T @ root)
        alone = alone or bool(values[-1] > _ALL)
        # (I − leverage)^(−1/2) differs from I only in the span of the root
        basis = root @ vectors / np.sqrt(values)
        score = half[:, used] @ (weighted.T @ residual[rows])
        more = 1 / np.sqrt(np.maximum(1 - values, 1e-12)) - 1
        influence.append(reach @ (score + basis @ (more * (basis.T @ score))))
        reaches.append(reach @ root)
        of_views = reaches[-1] @ scaled[used < systems].T
        views += of_views @ of_views.T
    every = np.stack(influence)
    return every.T @ every, views, reaches, alone


def _freedom(reaches: list[Array], at: Array) -> Array:
    """Return the degrees of freedom that give Student's t each difference's tail beyond `at`.

    `reaches`: the clusters' roots from `_clustered`. `at` (systems + 1, systems + 1): normal critical values.
    """

    def sum_over_clusters(function: Callable[[Array], Array]) -> Array:
        result = np.zeros_like(at)
        for root in reaches:
            result += function(_of_pairs(root @ root.T))
        return result

    total = sum_over_clusters(lambda part: part)
    total[total <= 0] = 1.0
    effective = 1 / np.maximum(sum_over_clusters(lambda part: (part / total) ** 2), 1e-12)
    kept = np.maximum(effective - 1, 1.0) / effective  # share of each χ²: one degree goes to the mean
    wanted = kept * sum_over_clusters(lambda part: np.log1p(at**2 * part / (kept * total)))
    low, high = np.zeros_like(at), np.full_like(at, 20.0)  # log of the degrees of freedom
    for _ in range(_STEPS):
        middle = (low + high) / 2
        below = np.exp(middle) * np.log1p(at**2 * np.exp(-middle)) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    freedom: Array = np.exp(low)
    return freedom


def _of_pairs(covariance: Array) -> Array:
    """Return the variance of the difference between every two effects: (n, n) -> (n, n)."""
    own = np.diag(covariance)
    variance: Array = np.maximum(own[:, None] + own[None, :] - 2 * covariance, 0.0)
    return variance


def _largest(covariance: Array, seed: int) -> Array:
    """Draw the largest |z| over all pairs of normal effects with this covariance: (draws,), ascending."""
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T  # independent of the choice of vectors
    first, second = np.triu_indices(len(root), 1)
    error = np.sqrt(_of_pairs(covariance))[first, second]
    rng = np.random.default_rng(seed)
    largest = []
    for _ in range(0, DRAWS, 500):
        drawn = rng.standard_normal((500, len(root))) @ root.T
        largest.append((np.abs(drawn[:, first] - drawn[:, second]) / error).max(axis=1))
    return np.sort(np.concatenate(largest))


def _family_wise(mean: Array, error: Array, critical: Callable[[Array], Array], largest: Array) -> Array:
    """Return the family-wise p-values (systems, systems) of differences.

    They are the shares of `largest` |z|, and one more, that exceed the |z| of a difference's own p-value.
    """
    n = len(mean)
    size = np.ones_like(error)
    size[:n, :n] = np.abs(mean[:, None] - mean[None, :])
    t = np.divide(size, error, out=np.zeros_like(size), where=error > 0)
    low, high = np.full(t.shape, -50.0), np.zeros(t.shape)  # log10 of the p-value
    for _ in range(_STEPS):
        middle = (low + high) / 2
        above = critical(10**middle) > t
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    z = -scipy.special.ndtri(10**high / 2)
    p_value: Array = (1 + len(largest) - np.searchsorted(largest, z[:n, :n])) / (1 + len(largest))
    return p_value
