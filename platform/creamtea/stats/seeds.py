"""What another choice of training seeds could change in a difference between two systems, beside another
choice of segments.

Two seeds of one recipe differ as two recipes may: a difference that is sure for the trained models at hand
need not be one between the ways to train. The bootstrap over segments cannot show that. Here both parts are
added up as the variance components that they are, with t quantiles for the few seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import variance

import scipy  # its Student's t in scipy.special; scipy.stats takes a second to import

_Z = float(scipy.special.ndtri(0.975))


def interval_with_seeds(
    system: Mapping[str, float], baseline: Mapping[str, float], difference: float, low: float, high: float
) -> tuple[float, float] | None:
    """The 95 % interval, over segments and seeds, of a system's mean score less its baseline's.

    Both scores are by the model that translated; low to high is the interval over segments alone. None where
    the spread over seeds is unknown: either has one model only. The squared standard error is the sum of
    independent parts,

        se² = s_seg² + s_a²/k_a + s_b²/k_b,   s_seg = (high − low) / (2 · 1.96)

    with the sample variances s² of the k scores of each. Where both translate with the same models (greedy
    and beam search, say) a lucky seed is lucky for both: the part of seeds is then s_d²/k of the differences
    of equal models. The degrees of freedom of t are Satterthwaite's (1946, "An approximate distribution of
    estimates of variance components"): k − 1 of each part of seeds, counted as it weighs in se²; the segments
    are many. Scores of two seeds also differ because each model errs on segments of its own, which s_seg has
    already: with few segments the interval is somewhat too wide.
    """
    if shared := sorted(system.keys() & baseline.keys()):
        parts = [[system[model] - baseline[model] for model in shared]]
    else:
        parts = [list(system.values()), list(baseline.values())]
    if any(len(part) < 2 for part in parts):
        return None
    of_seeds = [variance(part) / len(part) for part in parts]
    squared = ((high - low) / (2 * _Z)) ** 2 + sum(of_seeds)
    weights = [(of / squared) ** 2 / (len(part) - 1) for of, part in zip(of_seeds, parts, strict=True) if of]
    quantile = float(scipy.special.stdtrit(1 / sum(weights), 0.975)) if weights else _Z
    half = quantile * math.sqrt(squared)
    return difference - half, difference + half
