"""Baseline = 100 %: a system's mean rating in per cent of the baseline's (Domhan et al. 2022, Table 5).

R = 100 · mean(x_s) / mean(x_b), with two 95 % intervals:

- `paired_t`, the paper's: the paired-t interval of mean(x_s − x_b), times 100/mean(x_b). It takes the
  denominator as known.
- `delta`: e_i = x_si − (R/100) · x_bi, half-width 100 · t · sd(e) / (√n · mean(x_b)). The delta method's; it
  lets the baseline's mean be an estimate too.

A ratio depends on the zero of the scale (1–6 renamed to 0–5 gives other percentages): show the raw means
beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from creamtea.stats.estimate import Estimate, aligned, complete, mean_estimate


@dataclass(frozen=True)
class Ratio:
    """A system's mean in per cent of the baseline's, over the items rated for both, with either interval."""

    delta: Estimate
    paired_t: Estimate


def baseline_ratio(
    baseline: ArrayLike,
    system: ArrayLike,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
) -> Ratio:
    """The ratio of item means (n,), NaN where an item has no rating; items missing on either side are
    left out. `clusters` (n,): the items' documents by number, where items of a document go together.

    A baseline whose mean is not above 0 has no ratio, only a reason. ValueError as in `compare_paired`.
    """
    own = np.arange(np.size(baseline)) if clusters is None else clusters
    (base, ours, groups), kept_weights = complete(aligned(baseline, system, own), weights)
    if len(base) == 0:
        return _none("no items")
    base_mean = float(np.average(base, weights=kept_weights))
    our_mean = float(np.average(ours, weights=kept_weights))
    if base_mean <= 0:
        return _none("the baseline's mean is not above 0: no ratio to it")
    equal_weights = None if np.ptp(kept_weights) == 0 else kept_weights
    scale = float(np.abs([base, ours]).max())
    share = our_mean / base_mean
    points = mean_estimate(ours - base, equal_weights, scale, groups)
    residuals = mean_estimate(ours - share * base, equal_weights, scale, groups)  # their mean is 0
    percent = 100 * share
    delta, paired_t = (
        Estimate(percent, reason=estimate.reason)
        if estimate.low is None or estimate.high is None
        else Estimate(
            percent, centre + 100 * estimate.low / base_mean, centre + 100 * estimate.high / base_mean
        )
        for estimate, centre in ((residuals, percent), (points, 100.0))
    )
    return Ratio(delta, paired_t)


def _none(reason: str) -> Ratio:
    return Ratio(Estimate(reason=reason), Estimate(reason=reason))
