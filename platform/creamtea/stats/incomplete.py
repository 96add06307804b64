"""Systems rated on pages of which each shows some of them: means, differences, ranks.

A page (one rater's work on a segment, say) says how the systems on it compare; how hard its segment is and
how severe its rater cancel out. With a page of 3 of 30 systems two given ones seldom meet, but each
difference follows from chains of pages. The model is a score y_ps = page + τ_s + error, by least squares over
the pairs of scores within pages,

    min Σ_p Σ_{a<b on p} w_p/(m_p π_ab) · (y_pa − y_pb − τ_a − e_a + τ_b + e_b)²

with m_p scores on page p, its weight w_p, the probability π_ab that the design gave a page this pair, and e
an additive effect (a rater's severity, where a page has scores of several). Without weights and effects that
is ordinary least squares with an effect for each page: the intra-block estimate of incomplete blocks (Yates
1936). With inverse probabilities each pair counts as if all pairs had been shown equally often.

In a balanced design all π are equal. In an adaptive one they follow from earlier pages, and documents come in
random order: the expected difference within a page is that of its systems whatever was shown before, and any
weights that follow from earlier pages leave the equations unbiased. √π in place of π then makes their terms
equally variable (`stats.sequential.weights_at_the_end`).

The error of a difference is by clusters: documents, whose pages go together. Each cluster's score is adjusted
for its leverage (CR2: Bell and McCaffrey 2002). Raters are a sample, too: what each thinks of each system
adds to the error of documents (Cameron, Gelbach and Miller 2011: raters' clusters, less those of raters
within documents). A single pair says too little about that: with few raters it misses much, and cut at 0 it
adds something where raters agree. So the variance of raters' views is taken to be the same for all systems,
and is estimated from all pairs by least squares: the design says what a variance of 1 adds to each pair. It
is at least 0. Its part of the error has the degrees of freedom of raters, as in `stats.paired`, and the
critical value is Cochran and Cox's.

If all scores vary equally, a squared error is estimated by V = Σ_c λ_c·χ²₁ over clusters c, Σ_c λ_c = 1. Some
clusters weigh much and most little, so V is seldom far below 1. Student's t with the degrees of freedom of
V's variance (Satterthwaite's) then has too heavy tails at the level that all pairs require. McCaffrey and
Bell (2006, "Improved hypothesis testing for coefficients in generalized estimating equations with small
samples of clusters", Stat. Med. 25) take a saddlepoint of the tail. Here t has the degrees of freedom ν that
give it this tail at the normal critical value x. The tail is (Craig 1991)

    P(|z|/√V > x) = 2/π ∫_0^{π/2} E exp(−x²V/(2 sin²φ)) dφ,   E exp(−x²V/2) = Π_c (1 + λ_c·x²)^(−1/2)

and ν solves E exp(−x²V/2) = (1 + x²/ν)^(−ν/2). For x → 0 that ν is Satterthwaite's.

Over all pairs of systems the family-wise error is 5 %: the two-sided level of one difference is the one at
which the largest of normal statistics with these correlations errs in 5 % of draws (a generalised Tukey test;
Hothorn, Bretz and Westfall 2008). Correlations that few clusters tell of many systems lie in too few
dimensions, and their largest statistic is too small; so that of independent errors counts where it is larger.
From these simultaneous intervals follow ranks: a system's runs from one
more than the systems that are better than it, to all less those that it is better than; with 95 % probability
all ranks lie in their intervals at once (Mohamad, van Zwet, Solari and Goeman 2021). A cluster ends where
every system so far is better than every one below.

Whoever looks several times at results errs more often. An adaptive design is looked at after the parts t
of its documents in `LOOKS`, and look l may err with probability 5 % · (t_l³ − t_{l−1}³)
(the power family of error spending: Kim and DeMets 1987). These sum to 5 %, so by Boole's
inequality all intervals and ranks of all looks are right at once with 95 % probability, however they depend
on each other and on what was shown because of them (measured by bench/some_systems.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # scipy.special is slow to import, and so is imported where it is first used
from numpy.typing import ArrayLike, NDArray

from creamtea.stats.estimate import ROUNDING, Array, numbered
from creamtea.stats.paired import SIGNIFICANT
from creamtea.stats.resampling import SEED
from creamtea.stats.sequential import GIVE_UP
from creamtea.stats.wmt import cluster_numbers

Integers = NDArray[np.int64]
DRAWS = 10_000
LOOKS = (0.4, 0.6, 0.8, 1.0)  # at an adaptive design: after these parts of its documents
_ALL = 1 - 1e-9  # of what is known of some difference: above, it hangs on one cluster
_STEPS = 30  # of halving, for p-values
_AT_ONCE = 20_000  # pairs


@dataclass(frozen=True)
class SystemEstimates:
    """Systems in their order; of pairs (systems, systems) the first less the second, in points.

    `low` and `high` are the 95 % interval of a system's distance from the mean of all systems, put at its
    mean. `error` is a difference's standard error, `half` is the half-width of a difference's simultaneous 95
    % interval and `p_value` the family-wise p-value. Where `reason` says why nothing is known of the spread,
    these are NaN and ranks open.
    """

    mean: Array
    low: Array
    high: Array
    error: Array
    half: Array
    p_value: Array
    rank_low: Integers
    rank_high: Integers
    cluster: Integers
    scores: Integers  # (systems,): on pages with others
    pages: int
    shared: Integers  # (systems, systems): pages that show both
    clusters: int
    raters: int  # that are a sample; 0: intervals are about these raters
    reason: str | None = None

    @property
    def difference(self) -> Array:
        found: Array = self.mean[:, None] - self.mean[None, :]
        return found


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
    """Estimate `systems` numbered from 0 from scores by columns, (scores,) each.

    `cluster`: labels of what goes together, made of whole pages (default: pages); `rater`: labels of raters
    as a sample, where each page is one rater's; `effect`: labels of an additive effect within pages;
    `weight`: of the page. `chance` (scores, systems): of a score's system being drawn with each other one.
    `alpha`: how often intervals and ranks may err; p-values are adjusted, so that those below 5 % reject.
    ValueError for arrays of different lengths, scores or weights that cannot be, and systems that no chain of
    pages connects.
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
        """Return the design (rows, parameters) of some pairs: the first score's row less the second's."""
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
    share, rater_reaches, raters = np.zeros_like(variance), reaches, 0
    if rater is not None:
        of_rater = numbered(rater)
        raters = int(of_rater.max()) + 1
        if raters > 1:
            by_rater, rater_views, rater_reaches, _ = parts(of_rater)
            each = numbered(of_cluster * raters + of_rater)
            nested = each.max() == of_cluster.max()  # each cluster is one rater's
            both, both_views = (variance, views) if nested else parts(each)[:2]
            of_views = _of_pairs(rater_views) - _of_pairs(both_views)  # added by views of variance 1
            x, more = (part[:systems, :systems] for part in (of_views, _of_pairs(by_rater) - _of_pairs(both)))
            variance_of_views = max(0.0, float((x * more).sum()) / max(float((x * x).sum()), 1e-300))
            added = np.maximum(0.0, variance_of_views * of_views)
        else:
            raters = 0
    spread = _of_pairs(variance)
    if raters:
        total = spread + added
        share = np.divide(added, total, out=share, where=total > 0)
        spread = total
    error = np.sqrt(spread)
    n = systems
    shared = np.zeros((n, n), dtype=np.int64)
    apart = of_system[first] != of_system[second]
    np.add.at(shared, (of_system[first][apart], of_system[second][apart]), 1)
    facts: dict[str, Any] = {
        "mean": mean,
        "error": error[:n, :n],
        "scores": np.bincount(of_system[used], minlength=n),
        "pages": len(np.unique(on_page[first])),
        "shared": shared + shared.T,
        "clusters": len(np.unique(of_cluster[first])),
        "raters": raters,
    }
    others = ~np.eye(n, dtype=bool)
    if alone or (error[:n, :n][others] <= ROUNDING * np.abs(y).max()).any():
        reason = "some difference hangs on one document or segment" if alone else "no spread to judge by"
        none, open_ = np.full(n, np.nan), np.full((n, n), np.nan)
        ranks: dict[str, Any] = {
            "rank_low": np.ones(n, np.int64),
            "rank_high": np.full(n, n),
            "cluster": np.ones(n, np.int64),
        }
        return SystemEstimates(
            low=none, high=none, half=open_, p_value=open_, reason=reason, **ranks, **facts
        )

    independent = (half @ half)[:n, :n]
    largest = np.maximum(_largest(variance[:n, :n], seed), _largest(independent, seed))
    normal_value = float(np.quantile(largest, 1 - alpha))
    at = np.full_like(error, normal_value)
    at[:, n] = -scipy.special.ndtri(alpha / 2)
    df = _freedom(reaches, at)
    raters_df = _freedom(rater_reaches, at) if raters else df

    def critical(alpha: Array | float) -> Array:
        t = -scipy.special.stdtrit(np.stack([raters_df, df]), np.asarray(alpha) / 2)
        found: Array = share * t[0] + (1 - share) * t[1]
        return found

    level = 2 * float(scipy.special.ndtr(-normal_value))
    halves = (critical(level) * error)[:n, :n]
    np.fill_diagonal(halves, 0.0)
    own = (critical(alpha) * error)[:n, n]
    p_value = np.ones((n, n))
    p_value[others] = _family_wise(mean, error, critical, largest)[others]
    p_value = np.minimum(1.0, p_value * (SIGNIFICANT / alpha))
    better = mean[:, None] - mean[None, :] > halves
    order, cluster = np.argsort(-mean, kind="stable"), np.ones(n, np.int64)
    cluster[order] = cluster_numbers(better[np.ix_(order, order)])
    return SystemEstimates(
        low=mean - own,
        high=mean + own,
        half=halves,
        p_value=p_value,
        rank_low=1 + better.sum(axis=0),
        rank_high=n - better.sum(axis=1),
        cluster=cluster,
        **facts,
    )


def last_look(finished: int, planned: int) -> tuple[int, float] | None:
    """Return the last look at an adaptive design of `planned` documents, of which some are `finished`.

    It is how many documents the look is over, and with what probability it may err. None before the first
    look.
    """
    at = sum(finished >= math.ceil(part * planned) for part in LOOKS) - 1
    if at < 0:
        return None
    before = LOOKS[at - 1] if at else 0.0
    return math.ceil(LOOKS[at] * planned), SIGNIFICANT * (LOOKS[at] ** 3 - before**3)


def open_systems(found: SystemEstimates, delta: float, seen: float, at_least: int) -> list[int]:
    """Return the systems that are worth comparing further, after a share `seen` of all pages.

    Of some pair of theirs the interval neither lies beside 0 nor within ±`delta`, and as many more pages like
    these would change that with a probability of at least GIVE_UP · (1 − seen)² (predictive power, as in
    `stats.sequential`). If these are fewer than `at_least`, those closest to them come along. All systems
    where nothing is known of the spread.
    """
    n = len(found.mean)
    if found.reason is not None:
        return list(range(n))
    size, others = np.abs(found.difference), ~np.eye(n, dtype=bool)
    error = np.where(others, found.error, 1.0)
    apart = error * np.sqrt(1 - seen) + ROUNDING
    half = found.half * np.sqrt(seen)  # at the end
    z = scipy.special.ndtr
    decided = z((size - half) / apart) + z((-half - size) / apart)
    inside = np.maximum(delta - half, 0.0)
    decided += z((inside - size) / apart) - z((-inside - size) / apart)
    left = others & (size <= found.half) & (size + found.half >= delta)
    pairs = left & (decided >= GIVE_UP * (1 - seen) ** 2)
    chosen = np.flatnonzero(pairs.any(axis=1))
    if not len(chosen):
        return []
    distance = size[:, chosen].min(axis=1)
    distance[chosen] = -1.0
    nearest = np.argsort(distance, kind="stable")[: max(at_least, len(chosen))]
    return sorted(nearest.tolist())


def _pairs(page: Integers) -> tuple[Integers, Integers]:
    """Return the places of the two scores of every pair on one page."""
    order = np.argsort(page, kind="stable")
    sizes = np.bincount(page)
    starts = np.cumsum(sizes) - sizes
    found = [np.zeros((2, 0), dtype=np.int64)]
    for size in np.unique(sizes[sizes > 1]).tolist():
        rows = order[starts[sizes == size][:, None] + np.arange(size)]  # (pages, size)
        found.append(np.stack([rows[:, places].ravel() for places in np.triu_indices(size, 1)]))
    first, second = np.concatenate(found, axis=1)
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

    Returns their covariances (systems + 1, …), of which the last is their mean's; the covariances if each
    cluster had a view of variance 1 of each system and nothing else varied; of each cluster a root (systems +
    1, rank) of what it adds to covariances if scores vary equally; whether some difference depends on one
    cluster.
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
    """Return the degrees of freedom with which Student's t has the tails of each difference beyond `at`.

    `reaches`: of each cluster as `_clustered` returns it; `at` (systems + 1, …): normal critical values.
    """

    def sum_over_clusters(function: Callable[[Array], Array]) -> Array:
        found = np.zeros_like(at)
        for own in reaches:
            found += function(_of_pairs(own @ own.T))
        return found

    total = sum_over_clusters(lambda part: part)
    total[total <= 0] = 1.0
    effective = 1 / np.maximum(sum_over_clusters(lambda part: (part / total) ** 2), 1e-12)
    kept = np.maximum(effective - 1, 1.0) / effective  # of each χ²: clusters are compared with their mean
    wanted = kept * sum_over_clusters(lambda part: np.log1p(at**2 * part / (kept * total)))
    low, high = np.zeros_like(at), np.full_like(at, 20.0)  # log of the degrees of freedom
    for _ in range(_STEPS):
        middle = (low + high) / 2
        below = np.exp(middle) * np.log1p(at**2 * np.exp(-middle)) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    found: Array = np.exp(low)
    return found


def _of_pairs(covariance: Array) -> Array:
    own = np.diag(covariance)
    found: Array = np.maximum(own[:, None] + own[None, :] - 2 * covariance, 0.0)
    return found


def _largest(covariance: Array, seed: int) -> Array:
    """Draw the largest |z| over all pairs of normal effects with this covariance: (draws,), ascending."""
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T  # the same however vectors are turned
    one, other = np.triu_indices(len(root), 1)
    error = np.sqrt(_of_pairs(covariance))[one, other]
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(0, DRAWS, 500):
        drawn = rng.standard_normal((500, len(root))) @ root.T
        found.append((np.abs(drawn[:, one] - drawn[:, other]) / error).max(axis=1))
    return np.sort(np.concatenate(found))


def _family_wise(mean: Array, error: Array, critical: Callable[[Array], Array], largest: Array) -> Array:
    """Return how often the largest |z| exceeds that of a difference's own p-value: (systems, systems)."""
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
    beyond = np.searchsorted(largest, z[:n, :n])
    found: Array = 1 - beyond / len(largest)
    return found
