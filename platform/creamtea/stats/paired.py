"""Two systems rated on the same items: the difference with its interval, and three tests of it.

Side-by-side ratings are paired: how easy or hard an item is for all systems cancels out of the difference.
An unpaired test on such data (Mann-Whitney, as in WMT's tables) keeps it and misses most true differences.

All p-values are two-sided and uncorrected; `creamtea.stats.correction.holm` corrects several.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # scipy.stats is slow to import, and so is imported where it is first used
from numpy.typing import ArrayLike

from creamtea.stats.bootstrap import SEED
from creamtea.stats.estimate import (
    ROUNDING,
    Array,
    MeanEstimate,
    aligned,
    cluster_means,
    complete,
    mean_estimate,
    without_rounding,
)
from creamtea.stats.randomization import swaps
from creamtea.wording import counted

FLIPS = 10_000
_MAX_EXACT_TIED = 13  # items: above, scipy's signed-rank test with ties uses the normal approximation
_MAX_EXACT = 16  # items that differ: up to 2^16 sign patterns are enumerated


@dataclass(frozen=True)
class TestResult:
    """A two-sided p-value; None where `reason` says why."""

    __test__ = False  # pytest: not a test class

    p_value: float | None = None
    statistic: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class PairedComparison:
    """system − baseline in points of the scale, over `items` that were rated for both and weigh anything.

    `estimate` has the 95 % paired-t interval.
    """

    items: int
    estimate: MeanEstimate
    all_equal: bool  # the difference is the same on every item (document)
    t_test: TestResult
    signed_rank: TestResult
    sign_flip: TestResult
    documents: int | None = None  # that the tests are over, where items of a document go together


def compare_paired(
    baseline: ArrayLike,
    system: ArrayLike,
    weights: ArrayLike | None = None,
    flips: int = FLIPS,
    seed: int = SEED,
    clusters: ArrayLike | None = None,
) -> PairedComparison:
    """Compare the item means (n,) of a system with those of a baseline; NaN where an item has no rating.

    Items missing on either side, or of weight 0, are left out. With unequal weights the t interval is that of
    a weighted mean (`mean_estimate`) and the sign flips are weighted; the signed-rank test takes no weights
    and gives a reason instead of a p-value. With `clusters` (n,), the items' documents by number, all three
    tests are over documents: each is one difference (`cluster_means`) that weighs as much as its items.
    Never raises for few or equal items; ValueError for vectors of different lengths, infinite scores and
    negative weights.
    """
    labels = np.arange(np.size(baseline)) if clusters is None else clusters
    (baseline, system, groups), kept_weights = complete(aligned(baseline, system, labels), weights)
    scale = float(np.abs([*baseline, *system]).max()) if len(baseline) else 0.0
    items, points = len(baseline), system - baseline
    grouped = len(np.unique(groups)) < items
    estimate = mean_estimate(points, kept_weights if items and np.ptp(kept_weights) else None, scale, groups)
    if grouped:
        points, kept_weights, _ = cluster_means(points, kept_weights, groups)
    what = "documents" if grouped else "items"
    weighted = len(kept_weights) > 0 and bool(np.ptp(kept_weights) > 0)
    differences = without_rounding(points, scale)
    return PairedComparison(
        items=items,
        documents=len(differences) if grouped else None,
        estimate=estimate,
        all_equal=len(differences) > 0 and float(np.ptp(differences)) == 0.0,
        t_test=_t_test(estimate),
        signed_rank=(
            TestResult(reason=f"the {what} weigh differently; the signed-rank test takes no weights")
            if weighted
            else signed_rank(differences)
        ),
        sign_flip=sign_flip(differences * kept_weights, flips, seed),
    )


def _t_test(estimate: MeanEstimate) -> TestResult:
    if estimate.value is None or estimate.standard_error is None:
        return TestResult(reason=estimate.reason)
    return TestResult(estimate.t_test(), estimate.value / estimate.standard_error)


def signed_rank(differences: Array) -> TestResult:
    """Wilcoxon's signed-rank test of differences (n,) without NaN, zeros by Pratt's rule: ranked, then
    dropped.

    scipy's `wilcoxon(zero_method="pratt", method="auto")`: exact up to 50 items without zeros and ties; with
    zeros or ties (the rule on a scale of 26 values) all sign patterns up to 13 items, above that the normal
    approximation with the variance corrected for ties and zeros, without continuity correction. Equal
    differences must be exactly equal (`without_rounding`).
    """
    n, zeros = len(differences), int(np.sum(differences == 0))
    if n == 0:
        return TestResult(reason="no items")
    if zeros == n:
        return TestResult(reason=f"no difference on any of the {n} items")
    tied = zeros > 0 or len(np.unique(np.abs(differences))) < n
    if tied and n <= _MAX_EXACT_TIED:
        # scipy's value by its definition: its own enumeration takes seconds
        ranks = np.sign(differences) * scipy.stats.rankdata(np.abs(differences))
        statistic = min(float(ranks[ranks > 0].sum()), float(-ranks[ranks < 0].sum()))
        return TestResult(sign_flip(ranks).p_value, statistic)
    wilcoxon = scipy.stats.wilcoxon(differences, zero_method="pratt", method="auto")
    return TestResult(float(wilcoxon.pvalue), float(wilcoxon.statistic))


def sign_flip(differences: Array, flips: int = FLIPS, seed: int = SEED) -> TestResult:
    """Permutation test of differences (n,) without NaN, each already times its item's weight.

    If the two systems were equal, each item's difference could as well have come with the other sign. The
    p-value is the share of sign patterns whose |sum| is at least the observed: of all patterns where at most
    16 items differ, else (count + 1)/(flips + 1) of seeded random patterns (Phipson and Smyth 2010).
    `statistic` is the sum.
    """
    differing = differences[differences != 0]
    n = len(differing)
    if len(differences) == 0:
        return TestResult(reason="no items")
    if n == 0:
        reason = f"no difference on any of the {counted(len(differences), 'item')}"
        return TestResult(statistic=0.0, reason=reason)
    observed = float(differing.sum())
    threshold = abs(observed) - ROUNDING * float(np.abs(differing).sum())  # ties count
    if n <= _MAX_EXACT:
        sums = np.array([differing[0]])  # the other half of the patterns are these with all signs turned
        for value in differing[1:]:
            sums = np.concatenate([sums + value, sums - value])
        return TestResult(float(np.mean(np.abs(sums) >= threshold)), observed)
    count = 0
    for turned in swaps(n, flips, seed):
        sums = observed - 2 * (turned @ differing)
        count += int(np.sum(np.abs(sums) >= threshold))
    return TestResult((count + 1) / (flips + 1), observed)
