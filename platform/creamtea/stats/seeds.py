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
    """Of a system's mean score less its baseline's, both by the model that translated; empty of outputs that
    no seed could change. None where neither has several models, and for `one_against_several`.

    That of Welch's t interval; where both translate with the same models (greedy and beam search, say) a
    lucky seed is lucky for both, and it is that of the paired one. Scores of two seeds also differ because
    each model errs on segments of its own, which the interval over segments has already: with few segments
    `widened` is somewhat too wide.
    """
    parts = _independent(system, baseline)
    if not parts or min(map(len, parts)) < 2:
        return None
    found = together([spread_of_mean(math.sqrt(variance(part)), len(part)) for part in parts])
    # of two seeds against more, Welch's t gives up to 12 % false alarms: two may differ too little by chance
    return Spread(found.square, 1) if min(map(len, parts)) == 2 < max(map(len, parts)) else found


def one_against_several(system: Mapping[str, float], baseline: Mapping[str, float]) -> bool:
    """Whether one side has a single model and the other several: how much other seeds of the single one's
    recipe would differ cannot be known. Taken to differ as those of the other side do, they give false
    alarms in 8 to 55 % of comparisons where they differ five times as much."""
    counts = [len(part) for part in _independent(system, baseline)]
    return bool(counts) and min(counts) == 1 < max(counts)


def _independent(system: Mapping[str, float], baseline: Mapping[str, float]) -> list[list[float]]:
    """What varies with the seeds: the differences of models that both have; else the scores of each side that
    has models. With some models in common they count as if there were none, which is too wide."""
    if system.keys() == baseline.keys():
        return [[system[model] - baseline[model] for model in system]] if system else []
    return [list(scores.values()) for scores in (system, baseline) if scores]


def spread_of_mean(deviation: float, seeds: int) -> Spread:
    """Return the spread of a mean over `seeds` ≥ 2 scores with this sample standard deviation."""
    return Spread(deviation**2 / seeds, seeds - 1)


def together(spreads: Sequence[Spread]) -> Spread:
    """Return the spread of a sum of independent means, with Satterthwaite's degrees of freedom (for two,
    Welch's)."""
    total = math.fsum(spread.square for spread in spreads)
    if not total:
        return Spread(0.0, min(spread.freedom for spread in spreads))
    return Spread(total, 1 / sum((spread.square / total) ** 2 / spread.freedom for spread in spreads))


def widened(value: float, low: float, high: float, seeds: Spread) -> Bounds:
    """The 95 % interval over segments and seeds of a value: low to high is that over segments alone.

    Each side is √(d² + half²), d the distance of its limit from the value (Zou and Donner 2008, "Construction
    of confidence limits about effect measures"). With few seeds it keeps to 95 %, where degrees of freedom
    for both errors together (Satterthwaite's) fell to 88 % in simulations.
    """
    return value - math.hypot(value - low, seeds.half), value + math.hypot(high - value, seeds.half)


def p_with_seeds(value: float, low: float, high: float, seeds: Spread) -> float:
    """The two-sided p-value of no difference that belongs to `widened`: the level α at which the interval of
    1 − α would just touch 0. Its error over segments is taken to be normal, with low to high its 95 %."""
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
