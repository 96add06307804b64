"""What the others' ratings let one expect of an output, rated by them or not.

In many campaigns each output has one rater, so that nobody shares outputs with anybody. But others rated the
same system on other segments, and other systems on the same segment, and both tell something. The expected
score is a shrunken mean: the others' mean for the system, plus what their scores on the segment lie above
their systems' means, more heavily those of the output itself. It need not be right: what it is used for
(`creamtea.stats.reading`) is judged against chance by permutation.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import ArrayLike

from creamtea.stats.estimate import Array

OWN_OUTPUT = 3.0  # how many ratings of the segment's other outputs one of the same output is worth
SHRINKAGE = 2.0  # ratings that say "as usual" on each segment


def expected_scores(
    rater: ArrayLike,
    segment: ArrayLike,
    system: ArrayLike,
    score: ArrayLike,
    raters: Sequence[int],
    counting: Collection[int],
) -> dict[int, Array]:
    """For each of `raters` the expected scores of their ratings, in their order, from those of `counting`
    without the rater; NaN where no other rater rated the system. In deviations of a rater's own scores.

    Ratings (n,): who, segment and system by number, points.
    """
    who, where, what = (np.asarray(column, dtype=np.int64) for column in (rater, segment, system))
    z = _standardised(who, np.asarray(score, dtype=np.float64))
    counts = np.isin(who, list(counting))
    segments, systems = int(where.max(initial=-1)) + 1, int(what.max(initial=-1)) + 1
    cell = where * systems + what
    found = {}
    for each in raters:
        own = who == each
        others = counts & ~own
        number = np.bincount(what[others], minlength=systems)
        with np.errstate(invalid="ignore", divide="ignore"):
            usual = np.bincount(what[others], z[others], minlength=systems) / number
        above = z[others] - usual[what[others]]
        by_segment = np.bincount(where[others], above, minlength=segments)[where[own]]
        many = np.bincount(where[others], minlength=segments)[where[own]]
        order, here = np.unique(cell[own], return_inverse=True)
        same = np.searchsorted(order, cell[others])
        same_here = (same < len(order)) & (order[np.minimum(same, len(order) - 1)] == cell[others])
        by_output = np.bincount(same[same_here], above[same_here], minlength=len(order))[here]
        of_output = np.bincount(same[same_here], minlength=len(order))[here]
        extra = OWN_OUTPUT - 1
        found[each] = usual[what[own]] + (by_segment + extra * by_output) / (
            SHRINKAGE + many + extra * of_output
        )
    return found


def _standardised(who: ArrayLike, score: Array) -> Array:
    """Each rater's scores less their mean, over their deviation (one that has none has only zeros)."""
    _, number = np.unique(who, return_inverse=True)
    many = np.bincount(number)
    centred = score - (np.bincount(number, score) / many)[number]
    deviation = np.sqrt(np.bincount(number, centred**2) / np.maximum(many - 1, 1))
    z: Array = centred / np.where(deviation > 0, deviation, 1.0)[number]
    return z
