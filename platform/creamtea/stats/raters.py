"""Each rater against the others: severity and leave-one-out correlation; and where raters disagree most.

An output is what is scored: the text of one system for an item. A rater's others on an output are all who
rated it too, with equal weight.

Outputs of one item, and items of one document, are not independent: intervals are over what goes together.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # scipy.stats is slow to import, and so is imported where it is first used
from numpy.typing import ArrayLike, NDArray

from creamtea.stats.agreement import as_matrix
from creamtea.stats.estimate import ROUNDING, Array, Estimate, MeanEstimate, mean_estimate
from creamtea.wording import counted

MIN_GROUPS = 4  # for an interval of a correlation: as Fisher's, which has n − 3 in its denominator


@dataclass(frozen=True)
class RaterAgreement:
    """One rater against the others, on the `outputs` that somebody else rated too.

    `severity` is the mean of (the rater's score − the others' mean), in points: below 0 a severe rater, above
    0 a mild one, with its t interval. `correlation` is Pearson's r of the two (`_correlation`). `constant`:
    the rater gave all those outputs the same score, while the others did not.
    """

    rater: int
    outputs: int
    severity: MeanEstimate
    correlation: Estimate
    constant: bool = False


@dataclass(frozen=True)
class Spread:
    """How far apart the ratings of one output are, in points; `deviation` is their sample standard
    deviation."""

    output: int  # row of the matrix
    ratings: int
    lowest: float
    highest: float
    deviation: float


def rater_agreement(
    rater: ArrayLike,
    output: ArrayLike,
    score: ArrayLike,
    items: ArrayLike,
    raters: Sequence[int],
    counting: Collection[int] | None = None,
    groups: ArrayLike | None = None,
) -> list[RaterAgreement]:
    """Each of `raters` against the others, from ratings (n,): who, which output (a row of `items`), points.

    `items` (outputs,) names the item that each output belongs to: deviations are averaged within an item
    first, as the outputs for one source are not independent. `groups` (outputs,) names what intervals are
    over, the documents that the items belong to; without, they are over items. With `counting`, the others
    are only these raters (excluded raters are compared with those who count). ValueError for vectors of other
    lengths.
    """
    who, what, owner = np.asarray(rater), np.asarray(output, dtype=np.int64), np.asarray(items)
    together = owner if groups is None else np.asarray(groups)
    if together.shape != owner.shape:
        raise ValueError(f"{together.shape} groups for {owner.shape} outputs")
    points = np.asarray(score, dtype=np.float64)
    if not who.shape == what.shape == points.shape:
        raise ValueError(f"{who.shape} raters, {what.shape} outputs and {points.shape} scores")
    counts = np.ones(who.shape, bool) if counting is None else np.isin(who, list(counting))
    totals = np.bincount(what[counts], points[counts], minlength=len(owner))
    many = np.bincount(what[counts], minlength=len(owner))
    by_rater = np.argsort(who, kind="stable")
    asked = np.asarray(raters, dtype=who.dtype)
    bounds = [np.searchsorted(who[by_rater], asked, side) for side in ("left", "right")]
    agreements = []
    for each, first, last in zip(raters, *bounds, strict=True):
        own = by_rater[first:last]
        here, mine, itself = what[own], points[own], counts[own]  # a rater's own score is left out
        theirs = many[here] - itself
        shared = theirs > 0
        others = (totals[here] - itself * mine)[shared] / theirs[shared]
        both = here[shared]
        agreements.append(_against(each, mine[shared], others, owner[both], together[both]))
    return agreements


def _against(
    rater: int, own: Array, others: Array, items: NDArray[np.generic], groups: NDArray[np.generic]
) -> RaterAgreement:
    scale = float(np.abs([*own, *others]).max()) if len(own) else 0.0
    _, first, of_item = np.unique(items, return_index=True, return_inverse=True)
    deviations = np.bincount(of_item, weights=own - others) / np.bincount(of_item) if len(own) else own
    severity = mean_estimate(deviations, scale=scale, clusters=groups[first])

    def none(reason: str, constant: bool = False) -> RaterAgreement:
        return RaterAgreement(rater, len(own), severity, Estimate(reason=reason), constant)

    if len(own) < 3:
        return none(
            f"{counted(len(own), 'output')} rated by this rater and another: a correlation needs three"
        )
    if float(np.ptp(others)) <= ROUNDING * scale:
        return none(f"the others' mean is the same for all {len(own)} outputs")
    if float(np.ptp(own)) <= ROUNDING * scale:
        return none(f"the rater gave the same score to all {len(own)} outputs", constant=True)
    return RaterAgreement(rater, len(own), severity, _correlation(own, others, groups))


def _correlation(x: Array, y: Array, groups: NDArray[np.generic]) -> Estimate:
    """Pearson's r of two vectors (n,) with its 95 % interval: Fisher's where each pair of values is a group
    of its own; else by the jackknife that leaves out a group at a time, of Fisher's z = artanh r, with
    Student's t of groups − 1 degrees of freedom (Efron and Tibshirani 1993, "An Introduction to the
    Bootstrap", ch. 11)."""
    pearson = scipy.stats.pearsonr(x, y)
    r = float(pearson.statistic)
    labels, of_group = np.unique(groups, return_inverse=True)
    count = len(labels)
    if count < MIN_GROUPS:
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
    none = spread <= ROUNDING * np.array([[a @ a], [b @ b]])  # of equal values rounding is left
    spread[none] = np.nan
    without = (ab - of_a * of_b / n) / np.sqrt(spread.prod(axis=0))
    if not (np.abs(without) < 1 - ROUNDING).all() or abs(r) >= 1 - ROUNDING:
        return Estimate(r, reason="no interval: without one item or document there is no spread left")
    z = np.arctanh(without)
    error = float(np.sqrt((count - 1) / count * ((z - z.mean()) ** 2).sum()))
    half = float(scipy.special.stdtrit(count - 1, 0.975)) * error
    centre = float(np.arctanh(r))
    return Estimate(r, float(np.tanh(centre - half)), float(np.tanh(centre + half)))


def largest_spread(matrix: ArrayLike, limit: int = 20) -> list[Spread]:
    """The outputs of a matrix (outputs, raters), NaN where missing, whose ratings are furthest apart, by
    deviation, then range, then row. Those without two different ratings are omitted."""
    table = as_matrix(matrix)
    rows = np.flatnonzero((~np.isnan(table)).sum(axis=1) > 1)
    given = table[rows]
    low, high = np.nanmin(given, axis=1), np.nanmax(given, axis=1)
    deviation = np.nanstd(given, axis=1, ddof=1)
    scale = float(np.abs(given[~np.isnan(given)]).max(initial=0.0))
    same = (deviation / (ROUNDING * scale or 1.0)).round()  # the same scores of others have one deviation
    order = [at for at in np.lexsort((rows, low - high, -same)) if high[at] > low[at]]
    return [
        Spread(
            output=int(rows[at]),
            ratings=int((~np.isnan(given[at])).sum()),
            lowest=float(low[at]),
            highest=float(high[at]),
            deviation=float(deviation[at]),
        )
        for at in order[:limit]
    ]
