"""Each rater against the others: severity and leave-one-out correlation; and where raters disagree most.

An output is what is scored: the text of one system for an item. A rater's others on an output are all who
rated it too, with equal weight.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # scipy.stats is slow to import, and so is imported where it is first used
from numpy.typing import ArrayLike

from creamtea.stats.agreement import as_matrix
from creamtea.stats.estimate import ROUNDING, Array, Estimate, MeanEstimate, mean_estimate


@dataclass(frozen=True)
class RaterAgreement:
    """One rater against the others, on the `outputs` that somebody else rated too.

    `severity` is the mean of (the rater's score − the others' mean), in points: below 0 a severe rater, above
    0 a mild one, with its t interval over items. `correlation` is Pearson's r of the two with its Fisher
    interval. `constant`: the rater gave all those outputs the same score, while the others did not.
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
) -> list[RaterAgreement]:
    """Each of `raters` against the others, from ratings (n,): who, which output (a row of `items`), points.

    `items` (outputs,) names the item that each output belongs to: deviations are averaged within an item
    first, as the outputs for one source are not independent. With `counting`, the others are only these
    raters (excluded raters are compared with those who count). ValueError for vectors of other lengths.
    """
    who, what, owner = np.asarray(rater), np.asarray(output, dtype=np.int64), np.asarray(items)
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
        agreements.append(_against(each, mine[shared], others, owner[here[shared]]))
    return agreements


def _against(rater: int, own: Array, others: Array, items: Array) -> RaterAgreement:
    scale = float(np.abs([*own, *others]).max()) if len(own) else 0.0
    _, of_item = np.unique(items, return_inverse=True)
    deviations = np.bincount(of_item, weights=own - others) / np.bincount(of_item) if len(own) else own
    severity = mean_estimate(deviations, scale=scale)

    def none(reason: str, constant: bool = False) -> RaterAgreement:
        return RaterAgreement(rater, len(own), severity, Estimate(reason=reason), constant)

    if len(own) < 3:
        return none(f"{len(own)} outputs rated by this rater and another: a correlation needs three")
    if float(np.ptp(others)) <= ROUNDING * scale:
        return none(f"the others' mean is the same for all {len(own)} outputs")
    if float(np.ptp(own)) <= ROUNDING * scale:
        return none(f"the rater gave the same score to all {len(own)} outputs", constant=True)
    pearson = scipy.stats.pearsonr(own, others)
    r = float(pearson.statistic)
    if len(own) == 3:  # Fisher's interval has n − 3 in its denominator
        return RaterAgreement(rater, 3, severity, Estimate(r, reason="no interval for three outputs"))
    low, high = pearson.confidence_interval()
    return RaterAgreement(rater, len(own), severity, Estimate(r, float(low), float(high)))


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
