"""How far raters agree: Krippendorff's α, and intraclass correlations for designs with missing cells.

All take a matrix (units, raters): a unit is one output (an item of one system), NaN where a rater did not
rate it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from creamtea.stats.bootstrap import SEED, percentile_interval, resampled_sums
from creamtea.stats.estimate import ROUNDING, Array

Level = Literal["nominal", "ordinal", "interval"]


@dataclass(frozen=True)
class Alpha:
    """Krippendorff's α: 1 is full agreement, 0 is what chance gives, below 0 is worse than chance.

    `low` and `high` bound its 95 % bootstrap interval over groups of units; None where `reason` says why, or
    (`low`, `high` alone) where no interval was asked for.
    """

    level: Level
    units: int = 0  # with at least two ratings; others cannot be paired and are left out
    raters: int = 0  # with a rating on one of these units
    ratings: int = 0  # on these units
    value: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Icc:
    """Intraclass correlations by the names of Shrout and Fleiss 1979; None where not defined.

    `one_1`, `two_1`, `three_1` are for one rating, `one_k`, `two_k`, `three_k` for the mean of k of them:
    one-way random, two-way random (absolute agreement: a rater's severity counts as error) and two-way mixed
    (consistency: it does not). `k` is the harmonic mean of the ratings per unit.
    """

    units: int  # with at least two ratings
    raters: int
    ratings: int
    one_1: float | None = None
    one_k: float | None = None
    two_1: float | None = None
    two_k: float | None = None
    three_1: float | None = None
    three_k: float | None = None
    k: float | None = None
    reason: str | None = None


def krippendorff_alpha(
    matrix: ArrayLike,
    level: Level = "interval",
    groups: ArrayLike | None = None,
    samples: int = 0,
    seed: int = SEED,
) -> Alpha:
    """α = 1 − D_o/D_e of a matrix (units, raters) (Krippendorff 2011, "Computing Krippendorff's
    alpha-reliability").

    D_o is the mean squared distance within units, each unit of m ratings paired with itself m/(m − 1) fold,
    D_e that between all pairable ratings. Distances: nominal 0 or 1; ordinal the number of ratings between
    two values, half of those at the two values counted; interval the difference. `level="interval"` with
    `samples` > 0 gives a bootstrap interval that draws whole `groups` (units,), the items that units belong
    to, as the outputs for one source are not independent; without `groups`, single units. ValueError for an
    interval on another level.
    """
    table = as_matrix(matrix)
    if samples and level != "interval":
        raise ValueError(f"no bootstrap interval for α at level {level!r}")
    pairable = (~np.isnan(table)).sum(axis=1) >= 2
    table = table[pairable]
    known = ~np.isnan(table)
    units, ratings, raters = len(table), int(known.sum()), int(known.any(axis=0).sum())
    if units == 0:
        return Alpha(level, reason="no unit has two ratings")
    if float(np.ptp(table[known])) <= ROUNDING * float(np.abs(table[known]).max()):
        reason = f"all {ratings} ratings are equal: no disagreement to expect by chance"
        return Alpha(level, units, raters, ratings, reason=reason)
    if level != "interval":
        return Alpha(level, units, raters, ratings, _alpha_by_values(table, level))

    # what a unit adds to the sums that α is a function of: (units, 4)
    filled = np.where(known, table - np.nanmean(table), 0.0)  # centred: keeps the digits of D_e
    count, total, squares = known.sum(axis=1).astype(np.float64), filled.sum(axis=1), (filled**2).sum(axis=1)
    within = 2 * (count * squares - total**2) / (count - 1)
    parts = np.stack([count, total, squares, within], axis=1)
    value = float(_interval_alpha(parts.sum(axis=0)))
    if not samples:
        return Alpha(level, units, raters, ratings, value)
    owner = np.arange(len(pairable)) if groups is None else np.asarray(groups)
    if owner.shape != pairable.shape:
        raise ValueError(f"{owner.shape} groups for {pairable.shape} units")
    _, owner = np.unique(owner[pairable], return_inverse=True)
    clusters = np.zeros((int(owner.max()) + 1, 4))
    np.add.at(clusters, owner, parts)
    if len(clusters) == 1:
        return Alpha(level, units, raters, ratings, value, reason="only one group: nothing to resample")
    with np.errstate(invalid="ignore", divide="ignore"):
        resampled = _interval_alpha(resampled_sums(clusters, samples, seed))
    # not finite: a resample of equal ratings
    low, high = percentile_interval(resampled[np.isfinite(resampled)])
    return Alpha(level, units, raters, ratings, value, low, high)


def _interval_alpha(sums: Array) -> Array:
    """(…, 4) sums of count, total, squares and within -> (…,)."""
    n, total, squares, within = np.moveaxis(sums, -1, 0)
    expected = 2 * (n * squares - total**2) / (n * (n - 1))
    alpha: Array = 1 - within / n / expected
    return alpha


def _alpha_by_values(table: Array, level: Level) -> float:
    """By the matrix of coincidences of values: (values, values)."""
    known = ~np.isnan(table)
    values, codes = np.unique(table[known], return_inverse=True)
    counts = np.zeros((len(table), len(values)))  # of each value in each unit
    np.add.at(counts, (np.nonzero(known)[0], codes), 1.0)
    weights = 1 / (counts.sum(axis=1) - 1)
    coincidences = (counts * weights[:, None]).T @ counts - np.diag((counts * weights[:, None]).sum(axis=0))
    margin = coincidences.sum(axis=1)
    n = margin.sum()
    if level == "nominal":
        distances = 1.0 - np.eye(len(values))
    else:
        position = np.cumsum(margin) - margin / 2  # ratings below a value and half of those at it
        distances = (position[:, None] - position[None, :]) ** 2
    expected = np.outer(margin, margin) - np.diag(margin)
    return float(1 - (n - 1) * (coincidences * distances).sum() / (expected * distances).sum())


def intraclass(matrix: ArrayLike) -> Icc:
    """Intraclass correlations of a matrix (units, raters), complete or not.

    From the variance components of units σ_u², raters σ_r² and residuals σ_e² in x = μ + u + r + e. With
    missing cells they are Henderson's method 3 (Searle, Casella and McCulloch 1992, ch. 5: sums of squares of
    units adjusted for raters and of raters adjusted for units, set equal to their expectations); the one-way
    pair comes from the analysis of variance with unequal groups. For a complete matrix all equal Shrout and
    Fleiss's mean squares. Units with one rating are left out. Negative components are kept: a coefficient
    below 0 means "no agreement". The two-way ones are None where raters and units cannot be separated (too
    few shared units).
    """
    table = as_matrix(matrix)
    table = table[(~np.isnan(table)).sum(axis=1) >= 2]
    table = table[:, (~np.isnan(table)).any(axis=0)]
    known = ~np.isnan(table)
    units, raters, n = len(table), table.shape[1], int(known.sum())

    def none(reason: str) -> Icc:
        return Icc(units, raters, n, reason=reason)

    if units < 2:
        return none("fewer than two units have two ratings")
    spread = float(np.ptp(table[known]))
    if spread <= ROUNDING * float(np.abs(table[known]).max()):
        return none(f"all {n} ratings are equal: nothing to tell units apart")
    x = np.where(known, (table - np.nanmean(table)) / spread, 0.0)  # centred and scaled: keeps the digits
    cells = known.astype(np.float64)
    of_unit = cells.sum(axis=1)
    unit_sums = x.sum(axis=1)
    k = float(units / (1 / of_unit).sum())
    squares, by_unit = float((x**2).sum()), float((unit_sums**2 / of_unit).sum())

    within = (squares - by_unit) / (n - units)
    typical = (n - float((of_unit**2).sum()) / n) / (units - 1)  # ratings per unit, where these differ
    between = (by_unit / (units - 1) - within) / typical  # by_unit is about the mean: x is centred
    one_1, one_k = _share(between, within), _share(between, within / k)

    components = _two_way_components(cells, x, squares, by_unit)
    if components is None:
        reason = "too few units are shared between raters to tell the two apart: one-way coefficients only"
        return Icc(units, raters, n, one_1, one_k, k=k, reason=reason)
    unit, rater, residual = components
    return Icc(
        units,
        raters,
        n,
        one_1,
        one_k,
        two_1=_share(unit, rater + residual),
        two_k=_share(unit, (rater + residual) / k),
        three_1=_share(unit, residual),
        three_k=_share(unit, residual / k),
        k=k,
    )


def _two_way_components(
    cells: Array, x: Array, squares: float, by_unit: float
) -> tuple[float, float, float] | None:
    """The variances of units, raters and residuals; None where units and raters cannot be separated.

    `cells` (units, raters) is 1 where there is a rating, `x` the ratings, 0 elsewhere; `squares` their total
    sum of squares, `by_unit` that between units.
    """
    of_unit, of_rater = cells.sum(axis=1), cells.sum(axis=0)
    unit_sums, rater_sums = x.sum(axis=1), x.sum(axis=0)
    (units, raters), n = cells.shape, int(cells.sum())
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
    """signal / (signal + noise); None where the two do not add up to a variance."""
    return signal / (signal + noise) if signal + noise > 1e-12 else None


def as_matrix(matrix: ArrayLike) -> Array:
    """The matrix (units, raters) as float64. ValueError for another shape or infinite scores."""
    table: Array = np.asarray(matrix, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError("agreement needs a matrix (units, raters) of finite scores, NaN where missing")
    return table
