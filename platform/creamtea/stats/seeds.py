"""What another choice of training seeds could change, beside another choice of segments.

Two seeds of one recipe differ as two recipes may: a difference that is sure for the trained models at hand
need not be one between the ways to train. The bootstrap over segments cannot show that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import variance

import scipy  # its Student's t in scipy.special; scipy.stats takes a second to import

Bounds = tuple[float, float]


def difference_with_seeds(
    system: Mapping[str, float], baseline: Mapping[str, float], difference: float, low: float, high: float
) -> Bounds | None:
    """The 95 % interval, over segments and seeds, of a system's mean score less its baseline's.

    Both scores are by the model that translated; low to high is the interval over segments alone. None where
    the spread over seeds is unknown: either has one model only. The error of seeds has the limits of Welch's
    t interval; where both translate with the same models (greedy and beam search, say) a lucky seed is lucky
    for both, and it has those of the paired one. `widened` adds it to the error of segments. Scores of two
    seeds also differ because each model errs on segments of its own, which the interval over segments has
    already: with few segments the result is somewhat too wide.
    """
    if system.keys() == baseline.keys():
        parts: list[Sequence[float]] = [[system[model] - baseline[model] for model in system]]
    else:  # some models in common: as if there were none, which is too wide
        parts = [list(system.values()), list(baseline.values())]
    if any(len(part) < 2 for part in parts):
        return None
    squares = [variance(part) / len(part) for part in parts]
    return widened(difference, low, high, _welch(squares, [len(part) - 1 for part in parts]))


def value_with_seeds(value: float, low: float, high: float, deviation: float, seeds: int) -> Bounds:
    """The same of a mean over `seeds` ≥ 2 scores with this sample standard deviation."""
    return widened(value, low, high, _t(seeds - 1) * deviation / math.sqrt(seeds))


def widened(value: float, low: float, high: float, half: float) -> Bounds:
    """The interval of a value with two independent errors: one has the limits low and high, the other ± half.

    Each side is √(d² + half²), d the distance of its limit from the value (Zou and Donner 2008, "Construction
    of confidence limits about effect measures"). With few seeds it keeps to 95 %, where degrees of freedom
    for both errors together (Satterthwaite's) fell to 88 % in simulations.
    """
    return value - math.hypot(value - low, half), value + math.hypot(high - value, half)


def _welch(squares: Sequence[float], freedoms: Sequence[int]) -> float:
    """Half of a t interval whose squared standard error is the sum of these, each with its degrees of
    freedom."""
    total = sum(squares)
    if not total:
        return 0.0
    shares = sum((square / total) ** 2 / df for square, df in zip(squares, freedoms, strict=True))
    return _t(1 / shares) * math.sqrt(total)


def _t(df: float) -> float:
    return float(scipy.special.stdtrit(df, 0.975))
