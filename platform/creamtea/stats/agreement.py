"""Agreement of raters: of all of them, of each with the others, and of each with themselves.

A matrix (units, raters) has a row per output (an item of one system), NaN where a rater did not rate it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy  # its Student's t in scipy.special; scipy.stats takes a second to import
from numpy.typing import ArrayLike, NDArray

from creamtea.stats.estimate import ROUNDING, Array, Estimate, MeanEstimate, mean_estimate, rows_of
from creamtea.wording import counted

MIN_GROUPS_ALPHA = 10  # with fewer groups, an interval of α covers less than 90 %


@dataclass(frozen=True)
class Alpha(Estimate):
    """Krippendorff's α: 1 is full agreement, 0 what chance gives, below 0 worse than chance."""

    units: int = 0  # with at least two ratings; others cannot be paired and are left out
    raters: int = 0  # with a rating on one of these units
    ratings: int = 0  # on these units


@dataclass(frozen=True)
class Icc:
    """Intraclass correlations by the names of Shrout and Fleiss 1979; None if undefined.

    `two_1` is two-way random, for one rating (absolute agreement: a rater's severity counts as error).
    `two_k` is the same for the mean of k ratings, k the harmonic mean of the ratings per unit. `three_1` is
    two-way mixed (consistency: severity does not count).
    """

    two_1: float | None = None
    two_k: float | None = None
    three_1: float | None = None
    reason: str | None = None


def krippendorff_alpha(matrix: ArrayLike, groups: ArrayLike | None = None) -> Alpha:
    """Compute α = 1 − D_o/D_e of a matrix (units, raters) by interval distances.

    Source: Krippendorff 2011, "Computing Krippendorff's alpha-reliability". D_o is the mean squared
    difference within units, where a unit of m ratings counts m/(m − 1) fold; D_e is the mean squared
    difference between all pairable ratings.

    The interval leaves out one group at a time. `groups` (units,) are the items that units belong to, because
    outputs for one source are not independent; the default is single units. It is a jackknife interval of
    log(1 − α) = log D_o − log D_e, with Student's t of groups − 1 degrees of freedom (Efron and Tibshirani
    1993, "An Introduction to the Bootstrap", ch. 11). It covers 90 to 92 % with `MIN_GROUPS_ALPHA` groups and
    94 % with a hundred; the bootstrap covered 60 % with three groups.
    """
    table = as_matrix(matrix)
    pairable = (~np.isnan(table)).sum(axis=1) >= 2
    table = table[pairable]
    known = ~np.isnan(table)
    if not len(table):
        return Alpha(reason="no unit has two ratings")
    ratings = int(known.sum())
    alpha = partial(Alpha, units=len(table), raters=int(known.any(axis=0).sum()), ratings=ratings)
    if float(np.ptp(table[known])) <= ROUNDING * float(np.abs(table[known]).max()):
        return alpha(reason=f"all {ratings} ratings are equal: no disagreement to expect by chance")

    # terms of each unit in the sums that determine α: (units, 4)
    filled = np.where(known, table - np.nanmean(table), 0.0)  # centred: keeps the digits of D_e
    many, total, squares = known.sum(axis=1).astype(np.float64), filled.sum(axis=1), (filled**2).sum(axis=1)
    within = 2 * (many * squares - total**2) / (many - 1)
    parts = np.stack([many, total, squares, within], axis=1)
    value = float(_interval_alpha(parts.sum(axis=0)))
    owner = np.arange(len(pairable)) if groups is None else np.asarray(groups)
    if owner.shape != pairable.shape:
        raise ValueError(f"{owner.shape} groups for {pairable.shape} units")
    _, owner = np.unique(owner[pairable], return_inverse=True)
    clusters = np.zeros((int(owner.max()) + 1, 4))
    np.add.at(clusters, owner, parts)
    count = len(clusters)
    if count < MIN_GROUPS_ALPHA:
        reason = f"no interval for outputs of fewer than {MIN_GROUPS_ALPHA} items or documents"
        return alpha(value, reason=reason)
    without = _interval_alpha(clusters.sum(axis=0) - clusters)
    if not (without < 1 - ROUNDING).all():  # NaN: all ratings are equal
        return alpha(value, reason="no interval: without one item or document there is no disagreement left")
    factor = float(np.exp(_jackknife_half(np.log(1 - without))))
    return alpha(value, 1 - (1 - value) * factor, 1 - (1 - value) / factor)


def _jackknife_half(without: Array) -> float:
    """Return half of the 95 % t interval of a statistic, given its values (n,) without one of n groups."""
    count = len(without)
    error = float(np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum()))
    return float(scipy.special.stdtrit(count - 1, 0.975)) * error


def _interval_alpha(sums: Array) -> Array:
    """Compute α from sums (…, 4) of count, total, squares and within; NaN if all ratings are equal."""
    n, total, squares, within = np.moveaxis(sums, -1, 0)
    spread = n * squares - total**2
    spread = np.where(spread > ROUNDING * n * squares, spread, np.nan)  # equal ratings leave only rounding
    expected = 2 * spread / (n * (n - 1))
    alpha: Array = 1 - within / n / expected
    return alpha


def intraclass(matrix: ArrayLike) -> Icc:
    """Compute intraclass correlations of a matrix (units, raters), complete or not.

    They come from the variance components of units σ_u², raters σ_r² and residuals σ_e² in x = μ + u + r + e.
    With missing cells the components are estimated by Henderson's method 3 (Searle, Casella and McCulloch
    1992, ch. 5: sums of squares of units adjusted for raters and of raters adjusted for units, set equal to
    their expectations). For a complete matrix the coefficients equal Shrout and Fleiss's.

    Units with one rating are left out. Negative components are kept: a coefficient below 0 means "no
    agreement". The coefficients are None if too few shared units separate raters from units.
    """
    table = as_matrix(matrix)
    table = table[(~np.isnan(table)).sum(axis=1) >= 2]
    table = table[:, (~np.isnan(table)).any(axis=0)]
    known = ~np.isnan(table)
    if len(table) < 2:
        return Icc(reason="fewer than two units have two ratings")
    spread = float(np.ptp(table[known]))
    if spread <= ROUNDING * float(np.abs(table[known]).max()):
        return Icc(reason=f"all {int(known.sum())} ratings are equal: nothing to tell units apart")
    x = np.where(known, (table - np.nanmean(table)) / spread, 0.0)  # centred and scaled: keeps the digits
    components = _two_way_components(known.astype(np.float64), x)
    if components is None:
        return Icc(reason="too few units are shared between raters to tell the two apart")
    unit, rater, residual = components
    k = float(len(table) / (1 / known.sum(axis=1)).sum())
    return Icc(
        two_1=_share(unit, rater + residual),
        two_k=_share(unit, (rater + residual) / k),
        three_1=_share(unit, residual),
    )


def _two_way_components(cells: Array, x: Array) -> tuple[float, float, float] | None:
    """Estimate the variances of units, raters and residuals; None if these cannot be separated.

    `cells` (units, raters) is 1 where there is a rating. `x` has the centred ratings, 0 elsewhere.
    """
    of_unit, of_rater = cells.sum(axis=1), cells.sum(axis=0)
    unit_sums, rater_sums = x.sum(axis=1), x.sum(axis=0)
    (units, raters), n = cells.shape, int(cells.sum())
    squares, by_unit = float((x**2).sum()), float((unit_sums**2 / of_unit).sum())
    # raters adjusted for units: normal equations with the units absorbed
    normal = np.diag(of_rater) - cells.T @ (cells / of_unit[:, None])
    right = rater_sums - cells.T @ (unit_sums / of_unit)
    effects = np.linalg.lstsq(normal, right, rcond=1e-10)
    rank, adjusted_raters = int(effects[2]), float(effects[0] @ right)
    degrees = n - units - rank
    adjusted_units = by_unit + adjusted_raters - float((rater_sums**2 / of_rater).sum())
    if rank == 0 or degrees <= 0 or units + rank - raters <= 0:
        return None
    residual = (squares - by_unit - adjusted_raters) / degrees
    spread_units = n - float((cells / of_rater).sum())
    spread_raters = n - float((cells / of_unit[:, None]).sum())
    unit = (adjusted_units - (units + rank - raters) * residual) / spread_units
    rater = (adjusted_raters - rank * residual) / spread_raters
    return unit, rater, residual


def _share(signal: float, noise: float) -> float | None:
    """Return signal / (signal + noise); None if the two do not add up to a variance."""
    return signal / (signal + noise) if signal + noise > 1e-12 else None


def as_matrix(matrix: ArrayLike) -> Array:
    """Return the matrix (units, raters) as float64. ValueError for another shape or infinite scores."""
    table: Array = np.asarray(matrix, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError("agreement needs a matrix (units, raters) of finite scores, NaN where missing")
    return table


# Means, agreement and rater reports all count a rater's repeated ratings of one output as one: their mean.
#
# Otherwise a rater who rates an output twice would have two votes on it, and raters would seem to agree
# better than they do. WMT's tables have rules of their own (`stats.wmt`).


def one_rating_each(*keys: ArrayLike, value: ArrayLike) -> tuple[list[NDArray[np.int64]], Array]:
    """Average ratings by the combination of their keys, such as rater and output.

    Returns the different combinations of keys (ratings,) in ascending order, and the mean rating of each.
    ValueError for arrays of different lengths.
    """
    columns = np.stack([np.asarray(key, dtype=np.int64) for key in keys], axis=1)
    values = np.asarray(value, dtype=np.float64)
    if columns.shape[0] != values.shape[0]:
        raise ValueError(f"{columns.shape[0]} keys and {values.shape[0]} ratings")
    order = np.lexsort(columns.T[::-1])
    columns, values = columns[order], values[order]
    first = np.flatnonzero(np.any(np.diff(columns, axis=0, prepend=columns[:1] - 1), axis=1))
    counts = np.diff([*first, len(values)])
    sums = np.add.reduceat(values, first) if len(first) else values
    return list(columns[first].T), sums / counts


# Each rater against the others: severity and leave-one-out correlation; and where raters disagree most.
#
# An output is the text of one system for an item. "The others" on an output are all other raters who rated
# it, with equal weight.
#
# Outputs of one item, and items of one document, are not independent: intervals are over items or documents.


MIN_GROUPS_CORRELATION = 4  # groups that an interval needs, as Fisher's does: it divides by n − 3


@dataclass(frozen=True)
class RaterAgreement:
    """One rater against the others, on the `outputs` that somebody else rated too.

    `severity` is the mean of (the rater's score − the others' mean), in points, with its t interval: below 0
    for a severe rater, above 0 for a mild one. `correlation` is Pearson's r between the two (`_correlation`).
    `constant`: the rater gave all these outputs the same score, but the others did not.
    """

    rater: int
    outputs: int
    severity: MeanEstimate
    correlation: Estimate
    constant: bool = False


@dataclass(frozen=True)
class Spread:
    """How far apart the ratings of one output are, in points."""

    output: int  # row of the matrix
    ratings: int
    lowest: float
    highest: float
    deviation: float  # sample standard deviation


def rater_agreement(
    rater: ArrayLike,
    output: ArrayLike,
    score: ArrayLike,
    items: ArrayLike,
    raters: Sequence[int],
    counting: Collection[int] | None = None,
    groups: ArrayLike | None = None,
) -> list[RaterAgreement]:
    """Compare each of `raters` with the others, from ratings (n,): rater, output, points.

    `output` is an index into `items` (outputs,), which names the item of each output. Deviations are averaged
    within an item first, because outputs for one source are not independent. Intervals are over `groups`
    (outputs,), the documents of the outputs, by default over items. With `counting`, only these raters are
    "the others", so that excluded raters are compared with raters who count. ValueError for vectors of
    different lengths.
    """
    who, outputs = np.asarray(rater, dtype=np.int64), np.asarray(output, dtype=np.int64)
    owner = np.asarray(items)
    together = owner if groups is None else np.asarray(groups)
    if together.shape != owner.shape:
        raise ValueError(f"{together.shape} groups for {owner.shape} outputs")
    points = np.asarray(score, dtype=np.float64)
    if not who.shape == outputs.shape == points.shape:
        raise ValueError(f"{who.shape} raters, {outputs.shape} outputs and {points.shape} scores")
    counts = np.ones(who.shape, bool) if counting is None else np.isin(who, list(counting))
    totals = np.bincount(outputs[counts], points[counts], minlength=len(owner))
    many = np.bincount(outputs[counts], minlength=len(owner))
    agreements = []
    for number, rows in rows_of(who, raters):
        own_outputs, own, counted_too = outputs[rows], points[rows], counts[rows]
        # a rater's own score is left out
        other_ratings = many[own_outputs] - counted_too
        shared = other_ratings > 0
        others = (totals[own_outputs] - counted_too * own)[shared] / other_ratings[shared]
        both = own_outputs[shared]
        agreements.append(_compare(number, own[shared], others, owner[both], together[both]))
    return agreements


def _compare(
    rater: int, scores: Array, others: Array, items: NDArray[np.generic], groups: NDArray[np.generic]
) -> RaterAgreement:
    scale = float(np.abs([*scores, *others]).max()) if len(scores) else 0.0
    _, first, of_item = np.unique(items, return_index=True, return_inverse=True)
    deviations = (
        np.bincount(of_item, weights=scores - others) / np.bincount(of_item) if len(scores) else scores
    )
    severity = mean_estimate(deviations, scale=scale, clusters=groups[first])

    def none(reason: str, constant: bool = False) -> RaterAgreement:
        return RaterAgreement(rater, len(scores), severity, Estimate(reason=reason), constant)

    if len(scores) < 3:
        return none(
            f"{counted(len(scores), 'output')} rated by this rater and another: a correlation needs three"
        )
    if float(np.ptp(others)) <= ROUNDING * scale:
        return none(f"the others' mean is the same for all {len(scores)} outputs")
    if float(np.ptp(scores)) <= ROUNDING * scale:
        return none(f"the rater gave the same score to all {len(scores)} outputs", constant=True)
    return RaterAgreement(rater, len(scores), severity, _correlation(scores, others, groups))


def _correlation(x: Array, y: Array, groups: NDArray[np.generic]) -> Estimate:
    """Compute Pearson's r of two vectors (n,) with its 95 % interval.

    If each pair of values is a group of its own, the interval is Fisher's. Otherwise it is the jackknife
    interval of z = artanh r, which leaves out one group at a time, with Student's t of groups − 1 degrees of
    freedom (Efron and Tibshirani 1993, "An Introduction to the Bootstrap", ch. 11).
    """
    pearson = scipy.stats.pearsonr(x, y)
    r = float(pearson.statistic)
    labels, of_group = np.unique(groups, return_inverse=True)
    count = len(labels)
    if count < MIN_GROUPS_CORRELATION:
        outputs = "three outputs" if len(x) == count else "outputs of fewer than four items or documents"
        return Estimate(r, reason=f"no interval for {outputs}")
    if count == len(x):
        low, high = pearson.confidence_interval()
        return Estimate(r, float(low), float(high))
    # the sums without each group: (groups, 6)
    a, b = x - x.mean(), y - y.mean()
    parts = np.stack([np.ones(len(a)), a, b, a * a, b * b, a * b], axis=1)
    sums = np.zeros((count, 6))
    np.add.at(sums, of_group, parts)
    n, of_a, of_b, aa, bb, ab = (parts.sum(axis=0) - sums).T
    spread = np.stack([aa - of_a**2 / n, bb - of_b**2 / n])
    none = spread <= ROUNDING * np.array([[a @ a], [b @ b]])  # equal values leave only rounding
    spread[none] = np.nan
    without = (ab - of_a * of_b / n) / np.sqrt(spread.prod(axis=0))
    if not (np.abs(without) < 1 - ROUNDING).all() or abs(r) >= 1 - ROUNDING:
        return Estimate(r, reason="no interval: without one item or document there is no spread left")
    half, centre = _jackknife_half(np.arctanh(without)), float(np.arctanh(r))
    return Estimate(r, float(np.tanh(centre - half)), float(np.tanh(centre + half)))


def largest_spread(matrix: ArrayLike) -> list[Spread]:
    """List the outputs whose ratings are furthest apart: by range, then deviation, then row.

    `matrix` (outputs, raters) is NaN where a rating is missing. Outputs without two different ratings are
    omitted.
    """
    table = as_matrix(matrix)
    rows = np.flatnonzero((~np.isnan(table)).sum(axis=1) > 1)
    if not len(rows):  # NumPy's minimum needs a rater
        return []
    given = table[rows]
    low, high = np.nanmin(given, axis=1), np.nanmax(given, axis=1)
    deviation = np.nanstd(given, axis=1, ddof=1)
    scale = float(np.abs(given[~np.isnan(given)]).max(initial=0.0))
    # rounding must not order outputs whose scores are the same or shifted by a constant
    spread, same = (np.stack([high - low, deviation]) / (ROUNDING * scale or 1.0)).round()
    order = np.lexsort((rows, -same, -spread))
    order = order[high[order] > low[order]]
    columns = (rows, (~np.isnan(given)).sum(axis=1), low, high, deviation)
    return list(map(Spread, *(column[order].tolist() for column in columns)))
