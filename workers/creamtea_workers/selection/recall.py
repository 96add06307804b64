"""Recall of a selection over a test set, as sufficient statistics of its segments.

The scopes are those of `creamtea_workers.selection.coverage`. `sentence`, `idiom` and `idiom_words` are
micro-averages: selected over all reference subwords. Those that end in `_macro` are the mean over distinct
idioms of the recall of each: if one idiom is a third of a test set, as "to pass on" is in
IdiomTranslationDS, the micro-average is mostly about that idiom.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from creamtea.stats.bootstrap import Array, ScoreFunction
from creamtea_workers.metrics.base import ratio
from creamtea_workers.selection.coverage import Reference

_NO_IDIOM = "no segment of this test set has an annotated idiom"
# why a scope may have nothing to count
NOTHING = {
    "sentence": "the references of this test set are empty",
    "idiom": _NO_IDIOM,
    "idiom_macro": _NO_IDIOM,
    "idiom_words": _NO_IDIOM,
    "idiom_words_macro": _NO_IDIOM,
}
Statistics = tuple[Array, ScoreFunction]  # (m, F) of m rows with anything to select; the score of their sums


def scopes(
    sentences: Sequence[Reference],
    reached: Sequence[NDArray[np.int64]],
    idioms: Sequence[Reference],
    reached_idioms: Sequence[NDArray[np.int64]],
) -> dict[str, Statistics]:
    """By scope. m is 0 where there is nothing to select. A row is a segment, or an idiom by itself in the
    scopes `idiom_words` and `idiom_words_macro`.

    `reached`: of each of `sentences` the counts (2 + idioms,), as `Reference.possible` has them;
    `reached_idioms`: the same of each of `idioms` (`Material.of_idioms`).
    """
    return {
        "sentence": _micro(sentences, reached, 0),
        "idiom": _micro(sentences, reached, 1),
        "idiom_macro": _by_name(sentences, reached),
        "idiom_words": _micro(idioms, reached_idioms, 1),
        "idiom_words_macro": _by_name(idioms, reached_idioms),
    }


def _micro(
    references: Sequence[Reference], reached: Sequence[NDArray[np.int64]], position: int
) -> Statistics:
    pairs = zip(reached, (reference.possible() for reference in references), strict=True)
    rows = [(own[position], all_[position]) for own, all_ in pairs if all_[position]]
    return np.array(rows, dtype=np.float64).reshape(-1, 2), ratio


def distinct_idioms(references: Sequence[Reference]) -> list[str]:
    return sorted({name for reference in references for name in reference.idioms})


def _by_name(references: Sequence[Reference], reached: Sequence[NDArray[np.int64]]) -> Statistics:
    """(rows with idioms, 2 × names): reached of every name, then possible of every name."""
    column = {name: n for n, name in enumerate(distinct_idioms(references))}
    rows = []
    for reference, own in zip(references, reached, strict=True):
        if reference.idioms:
            row = np.zeros((2, len(column)))
            places = [column[name] for name in reference.idioms]
            row[:, places] = own[2:], reference.possible()[2:]
            rows.append(row.ravel())
    return np.array(rows).reshape(len(rows), 2 * len(column)), macro


def macro(sums: Array) -> Array:
    """(..., 2 × names) -> (...): the mean over the names that are there (a resample may miss some)."""
    reached, possible = np.split(sums, 2, axis=-1)
    there = possible > 0
    shares = np.divide(reached, possible, out=np.zeros_like(reached), where=there)
    mean: Array = shares.sum(axis=-1) / there.sum(axis=-1)
    return mean
