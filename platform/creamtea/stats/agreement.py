"""How far raters agree: Krippendorff's α, and intraclass correlations for designs with missing cells.

All take a matrix (units, raters): a unit is one output (an item of one system), NaN where a rater did not
rate it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy  # its Student's t in scipy.special; scipy.stats takes a second to import
from numpy.typing import ArrayLike

from creamtea.stats.estimate import ROUNDING, Array, Estimate

MIN_GROUPS = 10  # for an interval of α: of fewer it covers less than 90 %


@dataclass(frozen=True)
class Alpha(Estimate):
    """Krippendorff's α: 1 is full agreement, 0 is what chance gives, below 0 is worse than chance."""

    units: int = 0  # with at least two ratings; others cannot be paired and are left out
    raters: int = 0  # with a rating on one of these units
    ratings: int = 0  # on these units


@dataclass(frozen=True)
class Icc:
    """Intraclass correlations by the names of Shrout and Fleiss 1979; None where not defined.

    `two_1` is two-way random, for one rating (absolute agreement: a rater's severity counts as error),
    `two_k` for the mean of k ratings, the harmonic mean of the ratings per unit; `three_1` two-way mixed
    (consistency: severity does not count).
    """

    two_1: float | None = None
    two_k: float | None = None
    three_1: float | None = None
    reason: str | None = None


def krippendorff_alpha(matrix: ArrayLike, groups: ArrayLike | None = None) -> Alpha:
    """α = 1 − D_o/D_e of a matrix (units, raters) by interval distances (Krippendorff 2011, "Computing
    Krippendorff's alpha-reliability").

    D_o is the mean squared difference within units, each unit of m ratings paired with itself m/(m − 1) fold,
    D_e that between all pairable ratings. The interval leaves out one of the `groups` (units,) at a time, the
    items that units belong to, as the outputs for one source are not independent; without `groups`, single
    units. It is the jackknife's, of log(1 − α) = log D_o − log D_e, with Student's t of groups − 1 degrees of
    freedom (Efron and Tibshirani 1993, "An Introduction to the Bootstrap", ch. 11): it covers 90 to 92 %
    with `MIN_GROUPS`, 94 % with a hundred, where the bootstrap covered 60 % with three groups.
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

    # what a unit adds to the sums that α is a function of: (units, 4)
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
    if count < MIN_GROUPS:
        return alpha(value, reason=f"no interval for outputs of fewer than {MIN_GROUPS} items or documents")
    without = _interval_alpha(clusters.sum(axis=0) - clusters)
    if not (without < 1 - ROUNDING).all():  # NaN: all ratings are equal
        return alpha(value, reason="no interval: without one item or document there is no disagreement left")
    log = np.log(1 - without)
    error = float(np.sqrt((count - 1) / count * ((log - log.mean()) ** 2).sum()))
    factor = float(np.exp(scipy.special.stdtrit(count - 1, 0.975) * error))
    return alpha(value, 1 - (1 - value) * factor, 1 - (1 - value) / factor)


def _interval_alpha(sums: Array) -> Array:
    """(…, 4) sums of count, total, squares and within -> (…,); NaN where all ratings are equal."""
    n, total, squares, within = np.moveaxis(sums, -1, 0)
    spread = n * squares - total**2
    spread = np.where(spread > ROUNDING * n * squares, spread, np.nan)  # of equal ratings rounding is left
    expected = 2 * spread / (n * (n - 1))
    alpha: Array = 1 - within / n / expected
    return alpha


def intraclass(matrix: ArrayLike) -> Icc:
    """Intraclass correlations of a matrix (units, raters), complete or not.

    From the variance components of units σ_u², raters σ_r² and residuals σ_e² in x = μ + u + r + e. With
    missing cells they are Henderson's method 3 (Searle, Casella and McCulloch 1992, ch. 5: sums of squares of
    units adjusted for raters and of raters adjusted for units, set equal to their expectations). For a
    complete matrix all equal Shrout and Fleiss's mean squares. Units with one rating are left out. Negative
    components are kept: a coefficient below 0 means "no agreement". None where raters and units cannot be
    separated (too few shared units).
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
    """The variances of units, raters and residuals; None where units and raters cannot be separated.

    `cells` (units, raters) is 1 where there is a rating, `x` the ratings, centred, 0 elsewhere.
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
    """signal / (signal + noise); None where the two do not add up to a variance."""
    return signal / (signal + noise) if signal + noise > 1e-12 else None


def as_matrix(matrix: ArrayLike) -> Array:
    """The matrix (units, raters) as float64. ValueError for another shape or infinite scores."""
    table: Array = np.asarray(matrix, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError("agreement needs a matrix (units, raters) of finite scores, NaN where missing")
    return table
