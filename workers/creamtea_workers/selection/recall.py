"""Recall of a selection over a test set, as sufficient statistics of its segments.

There are three averages. `sentence` and `idiom` are micro-averages: selected over all reference subwords.
`idiom_macro` is the mean over distinct idioms of the recall of each: if one idiom is a third of a test set,
as "to pass on" is in IdiomTranslationDS, the micro-average is mostly about that idiom.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from creamtea.stats.bootstrap import Array, ScoreFunction
from creamtea_workers.selection.coverage import Reference

NOTHING = {
    "sentence": "the references of this test set are empty",
    "idiom": "no segment of this test set has an annotated idiom",
    "idiom_macro": "no segment of this test set has an annotated idiom",
}


def statistics(
    references: Sequence[Reference], reached: Sequence[NDArray[np.int64]]
) -> dict[str, tuple[Array, ScoreFunction]]:
    """By scope: the statistics (m, F) of the m segments with anything to select, and the score of their sums.
    m is 0 if there are none.

    `reached`: of each segment the counts (2 + idioms,), as `Reference.possible` has them.
    """
    possible = [reference.possible() for reference in references]
    scopes: dict[str, tuple[Array, ScoreFunction]] = {}
    for position, scope in enumerate(("sentence", "idiom")):
        pairs = zip(reached, possible, strict=True)
        rows = [(own[position], all_[position]) for own, all_ in pairs if all_[position]]
        scopes[scope] = (np.array(rows, dtype=np.float64).reshape(-1, 2), micro)
    scopes["idiom_macro"] = (_by_name(references, reached, possible), macro)
    return scopes


def distinct_idioms(references: Sequence[Reference]) -> list[str]:
    return sorted({name for reference in references for name in reference.idioms})


def _by_name(
    references: Sequence[Reference],
    reached: Sequence[NDArray[np.int64]],
    possible: Sequence[NDArray[np.int64]],
) -> Array:
    """(segments with idioms, 2 × names): reached of every name, then possible of every name."""
    column = {name: n for n, name in enumerate(distinct_idioms(references))}
    rows = []
    for reference, own, all_ in zip(references, reached, possible, strict=True):
        if reference.idioms:
            row = np.zeros((2, len(column)))
            places = [column[name] for name in reference.idioms]
            row[:, places] = own[2:], all_[2:]
            rows.append(row.ravel())
    return np.array(rows).reshape(len(rows), 2 * len(column))


def micro(sums: Array) -> Array:
    """(..., 2) reached, possible -> (...)."""
    quotient: Array = sums[..., 0] / sums[..., 1]
    return quotient


def macro(sums: Array) -> Array:
    """(..., 2 × names) -> (...): the mean over the names that are there (a resample may miss some)."""
    reached, possible = np.split(sums, 2, axis=-1)
    there = possible > 0
    shares = np.divide(reached, possible, out=np.zeros_like(reached), where=there)
    mean: Array = shares.sum(axis=-1) / there.sum(axis=-1)
    return mean
