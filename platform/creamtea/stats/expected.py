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
from numpy.typing import ArrayLike, NDArray

from creamtea.stats.estimate import ROUNDING, Array

OWN_OUTPUT = 3.0  # how many ratings of the segment's other outputs one of the same output is worth
SHRINKAGE = 2.0  # ratings that say "as usual" on each segment
DECIMALS = 9  # so that equal expectations stay equal, in whatever order their sums were made
Integers = NDArray[np.int64]


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

    Ratings (n,): who, segment and system by number, points. Takes time in proportion to the ratings and to
    the systems rated of a segment.
    """
    who, where, what = (np.asarray(column, dtype=np.int64) for column in (rater, segment, system))
    z = _standardised(who, np.asarray(score, dtype=np.float64))
    counts = np.isin(who, list(counting))
    systems = int(what.max(initial=-1)) + 1
    cells, cell = np.unique(where * systems + what, return_inverse=True)  # outputs, by segment
    of_segment, of_system = np.divmod(cells, max(systems, 1))
    all_of_cell = np.bincount(cell[counts], minlength=len(cells)), _sums(cell[counts], z[counts], len(cells))
    all_of_system = np.bincount(what[counts], minlength=systems), _sums(what[counts], z[counts], systems)
    by_rater = np.argsort(who, kind="stable")
    asked = np.asarray(raters, dtype=np.int64)
    bounds = [np.searchsorted(who[by_rater], asked, side) for side in ("left", "right")]
    found = {}
    for each, start, end in zip(raters, *bounds, strict=True):
        own = by_rater[start:end]
        counted = own[counts[own]]  # of the sums, which are the others' without these
        number = all_of_system[0] - np.bincount(what[counted], minlength=systems)
        with np.errstate(invalid="ignore", divide="ignore"):
            usual = (all_of_system[1] - _sums(what[counted], z[counted], systems)) / number
            usual[number == 0] = np.nan
        near, segment = _cells_of(of_segment, where[own])
        mine = np.searchsorted(near, cell[counted])
        many = all_of_cell[0][near] - np.bincount(mine, minlength=len(near))
        total = all_of_cell[1][near] - _sums(mine, z[counted], len(near))
        above = np.where(many > 0, total - many * usual[of_system[near]], 0.0)
        here = np.searchsorted(near, cell[own])
        of_own = segment[here]
        by_segment, ratings = (
            _sums(segment, above, len(near))[of_own],
            _sums(segment, many, len(near))[of_own],
        )
        extra = OWN_OUTPUT - 1
        expected = usual[what[own]] + (by_segment + extra * above[here]) / (
            SHRINKAGE + ratings + extra * many[here]
        )
        found[each] = expected.round(DECIMALS)
    return found


def _cells_of(of_segment: Integers, segments: Integers) -> tuple[Integers, Integers]:
    """The positions of all cells (ascending in `of_segment`) of these segments, and for each a number of its
    segment."""
    wanted = np.unique(segments)
    first = np.searchsorted(of_segment, wanted)
    lengths = np.searchsorted(of_segment, wanted, "right") - first
    number = np.repeat(np.arange(len(wanted)), lengths)
    return np.arange(len(number)) + (first - (np.cumsum(lengths) - lengths))[number], number


def _sums(at: Integers, values: ArrayLike, size: int) -> Array:
    """(size,): bincount with weights, of float64 where there are none, too."""
    return np.bincount(at, np.asarray(values, dtype=np.float64), minlength=size).astype(np.float64)


def _standardised(who: ArrayLike, score: Array) -> Array:
    """Each rater's scores less their mean, over their deviation (one that has none has only zeros)."""
    _, number = np.unique(who, return_inverse=True)
    many = np.bincount(number)
    centred = score - (np.bincount(number, score) / many)[number]
    deviation = np.sqrt(np.bincount(number, centred**2) / np.maximum(many - 1, 1))
    scale = float(np.abs(score).max(initial=0.0))
    z: Array = centred / np.where(deviation > ROUNDING * scale, deviation, np.inf)[number]
    return z
