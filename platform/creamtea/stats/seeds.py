"""What another choice of training seeds could change, beside another choice of segments.

Two seeds of one recipe differ as two recipes may: a difference that is sure for the trained models at hand
need not be one between the ways to train. The bootstrap over segments cannot show that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import variance

import scipy  # its Student's t in scipy.special; scipy.stats takes a second to import

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Spread:
    """The error of a mean over seeds."""

    square: float  # the squared standard error
    freedom: float  # its degrees of freedom

    @property
    def half(self) -> float:
        """Half of the 95 % t interval."""
        return float(scipy.special.stdtrit(self.freedom, 0.975)) * math.sqrt(self.square)


def spread_of_difference(system: Mapping[str, float], baseline: Mapping[str, float]) -> Spread | None:
    """Return the spread over seeds of a system's mean score less its baseline's.

    Both have scores by the model that translated; no scores if no seed could change the outputs. None if
    neither side has several models, and for `one_against_several`.

    The spread is that of Welch's t interval. If both translate with the same models (greedy and beam search,
    say), a lucky seed is lucky for both, and the spread is that of the paired interval. Scores of two seeds
    also differ because each model errs on segments of its own, which the interval over segments already
    covers: with few segments `widened` is somewhat too wide.
    """
    parts = _independent(system, baseline)
    if not parts or min(map(len, parts)) < 2:
        return None
    spread = together([spread_of_mean(math.sqrt(variance(part)), len(part)) for part in parts])
    # with two seeds against more, Welch's t gives up to 12 % false alarms: two may be close by chance
    return Spread(spread.square, 1) if min(map(len, parts)) == 2 < max(map(len, parts)) else spread


def one_against_several(system: Mapping[str, float], baseline: Mapping[str, float]) -> bool:
    """Return whether one side has a single model and the other several.

    How much other seeds of the single model's recipe would differ cannot be known. If they were assumed to
    differ as those of the other side do, 8 to 55 % of comparisons would be false alarms where they differ
    five times as much.
    """
    counts = [len(part) for part in _independent(system, baseline)]
    return bool(counts) and min(counts) == 1 < max(counts)


def _independent(system: Mapping[str, float], baseline: Mapping[str, float]) -> list[list[float]]:
    """Return the independent scores that vary with the seeds.

    If both sides have the same models, these are the differences by model, else the scores of each side that
    has models. Sides with only some models in common count as if they had none, which is too wide.
    """
    if system.keys() == baseline.keys():
        return [[system[model] - baseline[model] for model in system]] if system else []
    return [list(scores.values()) for scores in (system, baseline) if scores]


def spread_of_mean(deviation: float, seeds: int) -> Spread:
    """Return the spread of a mean over `seeds` ≥ 2 scores with this sample standard deviation."""
    return Spread(deviation**2 / seeds, seeds - 1)


def together(spreads: Sequence[Spread]) -> Spread:
    """Return the spread of a sum of independent means, with Satterthwaite's (for two, Welch's) df."""
    total = math.fsum(spread.square for spread in spreads)
    if not total:
        return Spread(0.0, min(spread.freedom for spread in spreads))
    return Spread(total, 1 / sum((spread.square / total) ** 2 / spread.freedom for spread in spreads))


def widened(value: float, low: float, high: float, seeds: Spread) -> Bounds:
    """Widen an interval over segments, low to high, to one over segments and seeds (95 %).

    Each side is √(d² + half²), d the distance of its limit from the value (Zou and Donner 2008, "Construction
    of confidence limits about effect measures"). With few seeds it keeps to 95 %, where degrees of freedom
    for both errors together (Satterthwaite's) fell to 88 % in simulations.
    """
    return value - math.hypot(value - low, seeds.half), value + math.hypot(high - value, seeds.half)


def p_with_seeds(value: float, low: float, high: float, seeds: Spread) -> float:
    """Return the two-sided p-value of no difference that belongs to `widened`.

    It is the level α at which the interval of 1 − α would just touch 0. The error over segments is taken to
    be normal, with low to high its 95 % interval.
    """
    if not value:
        return 1.0
    error = abs(value - (low if value > 0 else high)) / -float(scipy.special.ndtri(0.025))

    def reaches(level: float) -> float:
        student = float(scipy.special.stdtrit(seeds.freedom, level / 2))
        return math.hypot(error * float(scipy.special.ndtri(level / 2)), math.sqrt(seeds.square) * student)

    least, most = 0.0, 1.0
    while most - least > 1e-9 + 1e-6 * most:
        middle = (least + most) / 2
        least, most = (middle, most) if reaches(middle) > abs(value) else (least, middle)
    return most
