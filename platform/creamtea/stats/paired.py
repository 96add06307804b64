"""Two systems rated on the same items: the difference, its intervals and its tests."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # scipy.stats is slow to import, and so is imported where it is first used
from numpy.typing import ArrayLike, NDArray

from creamtea.stats.estimate import (
    OUTWEIGHED,
    ROUNDING,
    Array,
    Estimate,
    MeanEstimate,
    aligned,
    cluster_means,
    complete,
    mean_estimate,
    numbered,
    outweighed,
    sums_of,
    variance_of_mean,
    without_rounding,
)
from creamtea.stats.resampling import SEED, swaps
from creamtea.wording import counted

SIGNIFICANT = 0.05  # two-sided; the family-wise level if there are several comparisons


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Correct p-values by Holm's step-down method (Holm 1979), in the order given; None stays None.

    With m comparisons the i-th smallest p-value is multiplied by m - i + 1, made monotone and cut at 1. If
    corrected values below 5 % are rejected, the chance of *any* false alarm is at most 5 %.
    """
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    running = 0.0
    for rank, (p, index) in enumerate(known):
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"{p!r} is not a p-value")
        running = max(running, min(1.0, (len(known) - rank) * p))
        adjusted[index] = running
    return adjusted


# Two systems rated on the same items: the difference with its interval, and three tests of it.
#
# Side-by-side ratings are paired: an item's difficulty for all systems cancels out of the difference. An
# unpaired test on such data (Mann-Whitney, as in WMT's tables) keeps it and misses most true differences.
#
# All p-values are two-sided and uncorrected; `creamtea.stats.paired.holm` corrects several.


FLIPS = 10_000
_MAX_EXACT_TIED = 13  # items: above, scipy's signed-rank test with ties uses the normal approximation
_MAX_EXACT = 16  # items that differ: up to 2^16 sign patterns are enumerated


@dataclass(frozen=True)
class TestResult:
    """A two-sided p-value; None if there is none, and `reason` says why."""

    __test__ = False  # pytest: not a test class

    p_value: float | None = None
    statistic: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class PairedComparison:
    """system − baseline in points of the scale, over `items` rated for both with a weight above 0.

    `estimate` has the 95 % paired-t interval.
    """

    items: int
    estimate: MeanEstimate
    all_equal: bool  # the difference is the same on every item (document)
    t_test: TestResult
    signed_rank: TestResult
    sign_flip: TestResult
    documents: int | None = None  # the tests' units, if items share documents


def compare_paired(
    baseline: ArrayLike,
    system: ArrayLike,
    weights: ArrayLike | None = None,
    flips: int = FLIPS,
    seed: int = SEED,
    clusters: ArrayLike | None = None,
) -> PairedComparison:
    """Compare the item means (n,) of a system with those of a baseline; NaN where an item has no rating.

    Items that are missing on either side or have weight 0 are left out. With unequal weights the t interval
    is for a weighted mean (`mean_estimate`) and the sign flips are weighted; the signed-rank test takes no
    weights and gives a reason instead of a p-value. With `clusters` (n,), the items' documents by number, all
    three tests are over documents: a document is one difference (`cluster_means`) with the weight of its
    items.

    Never raises for few or equal items. ValueError for vectors of different lengths, infinite scores and
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
    units = "documents" if grouped else "items"
    weighted = len(kept_weights) > 0 and bool(np.ptp(kept_weights) > 0)
    differences = without_rounding(points, scale)
    return PairedComparison(
        items=items,
        documents=len(differences) if grouped else None,
        estimate=estimate,
        all_equal=len(differences) > 0 and float(np.ptp(differences)) == 0.0,
        t_test=_t_test(estimate),
        signed_rank=(
            TestResult(reason=f"the {units} weigh differently; the signed-rank test takes no weights")
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
    """Apply Wilcoxon's signed-rank test to differences (n,) without NaN.

    Zeros follow Pratt's rule: ranked, then dropped. This is scipy's `wilcoxon(zero_method="pratt",
    method="auto")`: exact up to 50 items without zeros and ties. With zeros or ties (usual on a scale of 26
    values) it enumerates all sign patterns of up to 13 items; for more items it uses the normal approximation
    with the variance corrected for ties and zeros, without continuity correction. Equal differences must be
    exactly equal (`without_rounding`).
    """
    n, zeros = len(differences), int(np.sum(differences == 0))
    if n == 0:
        return TestResult(reason="no items")
    if zeros == n:
        return TestResult(reason=f"no difference on any of the {counted(n, 'item')}")
    tied = zeros > 0 or len(np.unique(np.abs(differences))) < n
    if tied and n <= _MAX_EXACT_TIED:
        # the same value as scipy's, whose own enumeration takes seconds
        ranks = np.sign(differences) * scipy.stats.rankdata(np.abs(differences))
        statistic = min(float(ranks[ranks > 0].sum()), float(-ranks[ranks < 0].sum()))
        return TestResult(sign_flip(ranks).p_value, statistic)
    wilcoxon = scipy.stats.wilcoxon(differences, zero_method="pratt", method="auto")
    return TestResult(float(wilcoxon.pvalue), float(wilcoxon.statistic))


def sign_flip(
    differences: Array, flips: int = FLIPS, seed: int = SEED, one_sided: bool = False
) -> TestResult:
    """Apply a permutation test to differences (n,) without NaN, already multiplied by item weights.

    If the two systems were equal, each item's difference could as well have come with the other sign. The
    p-value is the share of sign patterns whose |sum| (`one_sided`: sum) is at least the observed one: among
    all patterns if at most 16 items differ, else (count + 1)/(flips + 1) of seeded random patterns (Phipson
    and Smyth 2010; `one_sided` counts each pattern's mirror image, too). `statistic` is the observed sum.
    """
    differing = differences[differences != 0]
    n = len(differing)
    if len(differences) == 0:
        return TestResult(reason="no items")
    if n == 0:
        reason = f"no difference on any of the {counted(len(differences), 'item')}"
        return TestResult(statistic=0.0, reason=reason)
    observed = float(differing.sum())
    threshold = (observed if one_sided else abs(observed)) - ROUNDING * float(np.abs(differing).sum())

    def extreme(sums: Array) -> int:
        """Count the patterns with these sums, and those with all signs reversed; ties count."""
        return int(np.sum(sums >= threshold) + np.sum(-sums >= threshold))

    sides = 2 if one_sided else 1
    if n <= _MAX_EXACT:
        sums = np.array([differing[0]])
        for value in differing[1:]:
            sums = np.concatenate([sums + value, sums - value])
        return TestResult(min(1.0, extreme(sums) / (sides * len(sums))), observed)
    count = extreme(np.array([observed]))
    for flipped in swaps(n, flips, seed):
        count += extreme(observed - 2 * (flipped @ differing))
    return TestResult(min(1.0, count / (sides * (flips + 1))), observed)


# The uncertainty of a comparison when both items and raters are samples: t intervals for crossed designs.
#
# Ratings of one item are not independent, nor are those of one rater. Radiology has the same problem (several
# readers, the same cases: "MRMC"), and its solution is used here. The variance of a mean is the variance of
# the raters' own means, plus what raters have in common because they rated the same items (Obuchowski and
# Rockette 1995, "Hypothesis testing of diagnostic accuracy for multiple readers and multiple tests", Commun.
# Stat. Simul. 24(2), as Hillis 2007 writes it, "A comparison of denominator degrees of freedom methods for
# multiple observer ROC analysis", Stat. Med. 26):
#
#     V = V_raters + C,   C = max(0, Σ_i(Σ_r e_ir)² − Σ_ir e_ir²) / (1 − Σ_r q_r²)
#
# where e_ir is the contribution of rater r's work on item i to the value's deviation, and q_r is the share of
# the work that rater r did. Both terms are scaled as in `variance_of_mean`. V_raters, the variance of a mean
# over raters, has R − 1 degrees of freedom; C, from the pairs of raters on an item, has n − 1. The numerator
# of C comes from two-way clustering (Cameron, Gelbach and Miller 2011, "Robust inference with multiway
# clustering"); it is divided because V_raters, which is centred, misses what all raters share. If every rater
# rated every item, C is Hillis' estimate by the mean squares, less V_raters/(n − 1).
#
# A few raters say little about how raters differ, and an interval must allow for that. A bootstrap of items
# and raters does not: its 95 % intervals covered 82 % in simulated campaigns with four raters, 68 % with two.
# Nor does a single t with Hillis' degrees of freedom, estimated from the same few raters. So the critical
# value is Cochran and Cox's (1950, "Experimental designs"): the mean of the two terms' t quantiles, weighted
# by the terms. It covers 93.5 to 97.6 % with two to 40 raters,
# each item rated by one, some or all of them, and up to 99 % if work is shared unevenly, items weigh
# differently and scores are missing (docs/results/data/human-evaluation.yaml; tests/stats/test_error_rates.py
# repeats a part of the simulation). Intervals from few raters are wide, as they must be: t is 12.7 with two
# raters and 4.3 with three.


Integers = NDArray[np.int64]

FEW_RATERS = 4  # with fewer, t makes an interval at least twice as wide as many raters would
_MAX_SHARE = 0.99  # of all ratings: if one rater has more, the others do not show how raters differ
_MIN_P = 1e-300  # smaller p-values become this one


@dataclass(frozen=True)
class CrossedEstimate(Estimate):
    """An estimate with its 90 % interval, to be compared with ±δ, and its two-sided p-value.

    `standard_error` is 0 if no rating deviates: neither items nor raters differ, so there is no interval.
    """

    standard_error: float | None = None
    low_90: float | None = None
    high_90: float | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class CrossedComparison:
    """system − baseline (points) and 100 · system / baseline (per cent), over `items` rated for both."""

    difference: CrossedEstimate
    ratio: CrossedEstimate
    items: int
    raters: int


def crossed_comparisons(
    item: ArrayLike,
    rater: ArrayLike,
    scores: ArrayLike,
    pairs: Sequence[tuple[int, int]],
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
) -> list[CrossedComparison]:
    """Compare each (baseline, system) of `pairs`, columns of `scores` (m, systems).

    A row is one rater's work on one item. Item and rater (m,) are any labels; a score is NaN if the rater did
    not rate the system. As in `compare_paired`, an item's ratings are averaged first, then the items: a score
    of system s by one of k_is raters of an item of weight w_i counts c_irs = w_i/(k_is Σw). A cell (a row)
    contributes e_ir = c_ir1(x_ir1 − m_1) − c_ir0(x_ir0 − m_0) to the difference, and to the ratio (by the
    delta method) 100/m_0 · (c_ir1(x_ir1 − m_1) − m_1/m_0 · c_ir0(x_ir0 − m_0)).

    `weights` (m,) repeat an item's weight on each of its rows. `clusters` (m,) likewise repeat its document:
    then documents, not items, are the sample beside the raters, and a cell is a rater's work on a document,
    e_dr = Σ_{i in d} e_ir. ValueError for arrays of different lengths, an item with two weights, or two rows
    of a rater on an item.
    """
    columns = np.asarray(scores, dtype=np.float64)
    weighing = np.ones(len(columns)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not np.shape(item) == np.shape(rater) == weighing.shape == columns.shape[:1]:
        raise ValueError("item, rater, scores and weights must have one length")
    if np.isinf(columns).any() or not (np.isfinite(weighing) & (weighing >= 0)).all():
        raise ValueError("scores must be finite or NaN, weights finite and not negative")
    of_item, of_rater = numbered(item), numbered(rater)
    if len(np.unique(of_item * (of_rater.max(initial=0) + 1) + of_rater)) < len(of_item):
        raise ValueError("a rater's work on an item must be one row")
    item_weight = np.zeros(of_item.max(initial=-1) + 1)
    item_weight[of_item] = weighing
    if not np.array_equal(item_weight[of_item], weighing):
        raise ValueError("the rows of an item must repeat one weight")
    group = of_item if clusters is None else numbered(clusters)
    return [_compare(of_item, of_rater, columns[:, list(pair)].T, weighing, group) for pair in pairs]


def _compare(
    item: Integers, rater: Integers, scores: Array, weights: Array, group: Integers
) -> CrossedComparison:
    """Compare baseline and system by the scores (2, m) of the rows."""
    known = ~np.isnan(scores)
    counts = np.stack([np.bincount(item, mask, item.max(initial=-1) + 1) for mask in known])
    kept = (counts.min(axis=0) > 0)[item] & (weights > 0) & known.any(axis=0)
    if not kept.any():
        missing = CrossedEstimate(reason="no item was rated for both systems")
        return CrossedComparison(missing, missing, 0, 0)
    known, x = known[:, kept], np.where(known, scores, 0.0)[:, kept]
    share = np.where(known, weights[kept] / counts[:, item[kept]], 0.0)  # (2, rows)
    share /= share.sum(axis=1, keepdims=True)
    base, ours = (float(mean) for mean in (share * x).sum(axis=1))
    deviation = share * (x - np.array([[base], [ours]]))
    items = len(np.unique(item[kept]))
    group, rater = numbered(group[kept]), numbered(rater[kept])
    raters = int(rater.max()) + 1
    key, cell = np.unique(group * raters + rater, return_inverse=True)  # rows of one document and rater
    group, rater = key // raters, key % raters
    of_cell = sums_of(cell, share.mean(axis=0))
    deviation = np.stack([sums_of(cell, parts) for parts in deviation])
    cells = _Cells(group, rater, of_cell, sums_of(group, of_cell), sums_of(rater, of_cell))

    largest = float(np.abs(x).max())
    difference = _estimate(cells, ours - base, 0.0, deviation[1] - deviation[0], largest)
    if base > 0:
        parts = 100 / base * (deviation[1] - ours / base * deviation[0])
        ratio = _estimate(cells, 100 * ours / base, 100.0, parts, 100 * largest / base)
    else:
        ratio = CrossedEstimate(reason="the baseline's mean is not above 0: no ratio to it")
    return CrossedComparison(difference, ratio, items=items, raters=raters)


@dataclass(frozen=True)
class _Cells:
    """Item (or document), rater and share of each cell (cells,); a cell is a rater's work on an item."""

    item: Integers
    rater: Integers
    share: Array  # sums to 1
    of_item: Array  # shares of the items
    of_rater: Array  # shares of the raters

    def refusal(self) -> str | None:
        """Return why no scores would give an interval; None if they could."""
        if len(self.of_rater) == 1:
            return "one rater: unknown how others would judge"
        if self.of_rater.max() > _MAX_SHARE:
            return "one rater has nearly all ratings: unknown how others would judge"
        if len(self.of_item) == 1:
            return "only one item or document: no spread to judge by"
        return OUTWEIGHED if outweighed(self.of_item) else None


def _estimate(cells: _Cells, value: float, null: float, parts: Array, scale: float) -> CrossedEstimate:
    """Estimate a value from the contributions of the cells to its deviation.

    `parts` (cells,) are the contributions e; they sum to 0. `null` is the value if both systems are equal,
    and `scale` the size of the scores.
    """
    refusal = cells.refusal()
    if refusal is not None:
        return CrossedEstimate(value, reason=refusal)
    if (np.abs(parts) <= ROUNDING * scale * cells.share).all():
        reason = "the same on all items by all raters: no spread to judge by"
        return CrossedEstimate(value, reason=reason, standard_error=0.0)
    by_item, by_rater = sums_of(cells.item, parts), sums_of(cells.rater, parts)
    raters, raters_df = variance_of_mean(by_rater / cells.of_rater, cells.of_rater)
    items, items_df = variance_of_mean(by_item / cells.of_item, cells.of_item)
    squares = float((by_item**2).sum())
    between = max(0.0, 1 - float((parts**2).sum()) / squares) if squares > 0 else 0.0
    common = items * between / (1 - float((cells.of_rater**2).sum()))
    error = math.sqrt(raters + common)
    if error <= ROUNDING * scale:
        return CrossedEstimate(value, reason="differences between raters cancel out: no spread to judge by")
    share, t = raters / error**2, abs(value - null) / error

    def critical(alpha: float) -> float:
        """Return Cochran and Cox's two-sided critical value."""
        of_raters, of_items = -scipy.special.stdtrit([raters_df, items_df], alpha / 2)
        return float(share * of_raters + (1 - share) * of_items)

    # the α whose critical value is t lies between the p-values of the two t distributions
    tails = np.sort(2 * scipy.special.stdtr([raters_df, items_df], -t))
    low, high = (math.log(max(float(tail), _MIN_P)) for tail in tails)
    if critical(math.exp(low)) <= t:
        log_p = low
    elif critical(math.exp(high)) >= t:
        log_p = high
    else:
        log_p = float(scipy.optimize.brentq(lambda log: critical(math.exp(log)) - t, low, high))
    half, half_90 = critical(0.05) * error, critical(0.10) * error
    return CrossedEstimate(
        value,
        value - half,
        value + half,
        standard_error=error,
        low_90=value - half_90,
        high_90=value + half_90,
        p_value=math.exp(log_p),
    )


# ---------------------------------------------------------------- n-grams of two systems


# N-grams that one system uses in significantly more segments than another. The two outputs of a segment are a
# pair: the source decides most of their words. So each n-gram is tested by the exact sign test (McNemar 1947)
# over the segments where only one of the two outputs has it. An n-gram with too few such segments to be
# significant at all is left out of the correction (Tarone 1990): the number of these segments does not depend
# on which system uses it more often.


LONGEST = 4  # words
NGram = tuple[str, ...]


@dataclass(frozen=True)
class CharacteristicNGram:
    """An n-gram that one system uses in more segments; `more`: whether it is the first system."""

    ngram: NGram
    ours: int  # segments whose first output has it
    theirs: int
    p_corrected: float  # Holm's, over the n-grams that could be significant

    @property
    def more(self) -> bool:
        return self.ours > self.theirs


def ngrams_of(words: Sequence[str], longest: int = LONGEST) -> set[NGram]:
    """Return the different n-grams of a text of up to `longest` words."""
    return {
        tuple(words[start : start + length])
        for length in range(1, longest + 1)
        for start in range(len(words) - length + 1)
    }


def characteristic_ngrams(
    ours: Sequence[Sequence[str]], theirs: Sequence[Sequence[str]]
) -> list[CharacteristicNGram]:
    """Test which n-grams tell two systems' outputs apart; the smallest p-values come first.

    `ours` and `theirs`: words, segment by segment. If one n-gram holds another, only the more significant is
    listed; if both are equally significant, the longer one.
    """
    ours_in, theirs_in, only_ours, only_theirs = (Counter[NGram]() for _ in range(4))
    for own_words, other_words in zip(ours, theirs, strict=True):
        own, other = ngrams_of(own_words), ngrams_of(other_words)
        ours_in.update(own)
        theirs_in.update(other)
        only_ours.update(own - other)
        only_theirs.update(other - own)
    tested = _testable(only_ours, only_theirs)
    p_values = {
        pair: float(scipy.stats.binomtest(pair[0], sum(pair)).pvalue)
        for pair in {(only_ours[ngram], only_theirs[ngram]) for ngram in tested}
    }
    corrected = holm([p_values[only_ours[ngram], only_theirs[ngram]] for ngram in tested])
    significant = [
        CharacteristicNGram(ngram, ours_in[ngram], theirs_in[ngram], p)
        for ngram, p in zip(tested, corrected, strict=True)
        if p is not None and p < SIGNIFICANT
    ]
    significant.sort(key=lambda entry: (entry.p_corrected, -len(entry.ngram), entry.ngram))
    listed: dict[NGram, CharacteristicNGram] = {}
    inside_listed: set[NGram] = set()  # every part of a listed n-gram
    for entry in significant:
        parts = ngrams_of(entry.ngram)
        if entry.ngram not in inside_listed and parts.isdisjoint(listed):
            listed[entry.ngram] = entry
            inside_listed |= parts
    return list(listed.values())


def _testable(only_ours: Counter[NGram], only_theirs: Counter[NGram]) -> list[NGram]:
    """Return the n-grams that could be significant: only one output has them in at least k segments.

    k is the smallest number with 2 · 0.5^k · (number of these n-grams) ≤ `SIGNIFICANT`.
    """
    discordant = only_ours + only_theirs
    at_least = Counter(discordant.values())
    k, count = 1, len(discordant)
    while count and 2 * 0.5**k * count > SIGNIFICANT:
        count -= at_least[k]
        k += 1
    return sorted(ngram for ngram, segments in discordant.items() if segments >= k)
