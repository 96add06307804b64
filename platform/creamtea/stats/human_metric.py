"""Agreement of a metric with human scores: by segment, by system, and by certainty about pairs of systems.

All functions take two matrices (items, systems) of the same shape, NaN where a system has no score for an
item; only cells with both scores count. Higher must be better in both: pass an error metric (TER) with its
sign changed.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy  # scipy.stats is slow to import, and so is imported where it is first used
from numpy.typing import ArrayLike, NDArray

from creamtea.stats.estimate import ROUNDING, Array, Estimate, without_rounding
from creamtea.stats.resampling import SEED, swaps

Kind = Literal["kendall", "pearson"]

PERMUTATIONS = 1000  # Thompson et al.'s
NO_SHARED_ITEM = "no two systems share an item with all scores"


def segment_correlation(human: ArrayLike, metric: ArrayLike, kind: Kind, by_item: bool) -> Estimate:
    """Compute Kendall's τ-b or Pearson's r over segments, in [-1, 1].

    Over all cells at once, the correlation also rewards a metric that recognises hard items. With `by_item`
    it is computed over the systems of each item and averaged over items, which rewards only the order of the
    systems on an item (Deutsch et al. 2023, "Ties matter"). Items where one side gives all systems the same
    score have no correlation.
    """
    ours, theirs = _both(human, metric)
    known = ~np.isnan(ours)
    if not by_item:
        x, y = (without_rounding(matrix[known], _scale(matrix)) for matrix in (ours, theirs))
        for name, values in (("human", x), ("metric", y)):
            if len(values) < 2:
                return Estimate(reason="fewer than two outputs have both scores")
            if float(np.ptp(values)) == 0.0:
                return Estimate(reason=f"all {name} scores are equal")
        correlation = scipy.stats.kendalltau(x, y) if kind == "kendall" else scipy.stats.pearsonr(x, y)
        return Estimate(float(correlation.statistic))
    if kind == "kendall":
        x, y = _pair_signs(ours), _pair_signs(theirs)  # (items, pairs)
    else:
        x, y = _centred(ours), _centred(theirs)  # (items, systems)
    spread = (x**2).sum(axis=1) * (y**2).sum(axis=1)
    distinguished = spread > 0
    if not distinguished.any():
        return Estimate(reason="no item has two systems that both sides tell apart")
    values = (x * y).sum(axis=1)[distinguished] / np.sqrt(spread[distinguished])
    return Estimate(float(values.mean()))


def pairwise_accuracy(human: ArrayLike, metric: ArrayLike) -> Estimate:
    """Return the share of pairs of systems that metric and people put in the same order.

    Source: Kocmi et al. 2021, "To ship or not to ship". Each pair is compared on the items that have all four
    scores. A pair that both sides call equal agrees; a pair that one side calls equal does not.
    """
    differences, known, usable = _usable_pairs(human, metric)
    if not usable.any():
        return Estimate(reason=NO_SHARED_ITEM)
    signs = []
    for scores, matrix in zip(differences, _both(human, metric), strict=True):
        totals = np.where(known, scores, 0.0).sum(axis=0)[usable]
        signs.append(np.sign(without_rounding(totals, _scale(matrix) * len(matrix))))
    return Estimate(float(np.mean(signs[0] == signs[1])))


def soft_pairwise_accuracy(
    human: ArrayLike, metric: ArrayLike, permutations: int = PERMUTATIONS, seed: int = SEED
) -> Estimate:
    """Compute soft pairwise accuracy: 1 − mean |p_human − p_metric| over pairs of systems.

    Source: Thompson et al. 2024, "Improving statistical significance in human evaluation of automatic metrics
    via soft pairwise accuracy". p is one-sided for "the first of the pair is better": the share of random
    sign patterns of the items' differences whose sum is above the observed sum; equal sums count half.
    (Thompson et al. count them whole; half makes p(a, b) = 1 − p(b, a), so that the order of the systems
    does not matter.) Each pair uses the items that have all four scores. Both sides get the same patterns, so
    that a metric equal to the human scores has an accuracy of 1.
    """
    differences, known, usable = _usable_pairs(human, metric)
    if not usable.any():
        return Estimate(reason=NO_SHARED_ITEM)
    both = np.concatenate([np.where(known, scores, 0.0)[:, usable] for scores in differences], axis=1)
    p_human, p_metric = np.split(_one_sided(both, permutations, seed), 2)
    return Estimate(float(1 - np.abs(p_human - p_metric).mean()))


def _one_sided(differences: Array, permutations: int, seed: int) -> Array:
    """Return the one-sided p-value of each pair: (items, pairs) -> (pairs,)."""
    observed = differences.sum(axis=0)
    tie = ROUNDING * np.abs(differences).sum(axis=0)
    share = np.zeros(len(observed))
    for flipped in swaps(len(differences), permutations, seed):
        drawn = observed - 2 * (flipped @ differences)
        above, equal = drawn > observed + tie, np.abs(drawn - observed) <= tie
        share += above.sum(axis=0) + equal.sum(axis=0) / 2
    return share / permutations


def tie_calibrated_accuracy(human: ArrayLike, metric: ArrayLike) -> Estimate:
    """Compute acc*_eq with tie calibration, grouped by item.

    Source: Deutsch et al. 2023, "Ties matter"; used by WMT since 2023. An item's accuracy is the share of
    pairs of systems that people and metric put in the same order or both call equal; the result is the mean
    over items. The metric calls a pair equal if the scores differ by at most a threshold: the threshold with
    the highest accuracy on these same scores.
    """
    ours, theirs = _both(human, metric)
    h, m = _pair_signs(ours), _pair_differences(theirs)
    known = ~np.isnan(m)
    if not known.any():
        return Estimate(reason="no item has two systems with both scores")
    in_item = known.sum(axis=1)
    weight = np.where(known, 1 / np.maximum(in_item, 1)[:, None], 0.0)[known] / int((in_item > 0).sum())
    people, size = h[known], np.abs(m[known])
    tied, ordered = weight * (people == 0), weight * ((people != 0) & (people == np.sign(m[known])))
    order = np.argsort(size, kind="stable")
    size, tied, ordered = size[order], np.cumsum(tied[order]), ordered[order]
    accuracy = tied + ordered.sum() - np.cumsum(ordered)  # if the metric calls all pairs so far equal
    last = np.append(size[1:] > size[:-1], True)  # a threshold includes all pairs of its size
    accuracies = accuracy[last]
    if size[0] > 0.0:  # otherwise a threshold of 0 calls some pairs equal
        accuracies = np.append(float(ordered.sum()), accuracies)
    return Estimate(float(accuracies[int(np.argmax(accuracies >= accuracies.max() - ROUNDING))]))


def _both(human: ArrayLike, metric: ArrayLike) -> tuple[Array, Array]:
    """Return both matrices, NaN in both where either is NaN."""
    ours, theirs = np.asarray(human, dtype=np.float64), np.asarray(metric, dtype=np.float64)
    if ours.shape != theirs.shape or ours.ndim != 2 or np.isinf(ours).any() or np.isinf(theirs).any():
        raise ValueError(
            f"two matrices (items, systems) of finite scores, not {ours.shape} and {theirs.shape}"
        )
    missing = np.isnan(ours) | np.isnan(theirs)
    return np.where(missing, np.nan, ours), np.where(missing, np.nan, theirs)


def _usable_pairs(
    human: ArrayLike, metric: ArrayLike
) -> tuple[tuple[Array, Array], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the differences of pairs of systems, which of them are known, and which pairs have one.

    Shapes: differences by people and by the metric (items, pairs) each; known (items, pairs); pairs (pairs,).
    """
    ours, theirs = _both(human, metric)
    differences = _pair_differences(ours), _pair_differences(theirs)
    known = ~np.isnan(differences[0])
    return differences, known, np.asarray(known.any(axis=0))


def _pair_differences(matrix: Array) -> Array:
    """Subtract the second of each pair from the first: (items, systems) -> (items, pairs); NaN if missing."""
    first, second = np.triu_indices(matrix.shape[1], 1)
    return without_rounding(matrix[:, first] - matrix[:, second], _scale(matrix))


def _centred(matrix: Array) -> Array:
    """Subtract the item's mean from (items, systems); 0 where a score is missing."""
    known = ~np.isnan(matrix)
    mean = np.where(known, matrix, 0.0).sum(axis=1, keepdims=True) / np.maximum(
        known.sum(axis=1, keepdims=True), 1
    )
    return np.where(known, without_rounding(matrix - mean, _scale(matrix)), 0.0)


def _pair_signs(matrix: Array) -> Array:
    """Return the signs of the pairs' differences, 0 where a score is missing."""
    return np.nan_to_num(np.sign(_pair_differences(matrix)))


def _scale(matrix: Array) -> float:
    return float(np.nanmax(np.abs(matrix))) if (~np.isnan(matrix)).any() else 0.0
