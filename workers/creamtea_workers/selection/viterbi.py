"""The most probable alignment of sentence pairs under a trained aligner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from creamtea_workers.selection.aligner import (
    NULL_PROBABILITY,
    Aligner,
    TranslationTable,
    diagonal_prior,
    same_shape,
)

Ids = NDArray[np.int64]
NULL = -1


def viterbi(
    aligner: Aligner, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[Ids]:
    """For each pair (m,): the source position, from 0, of every target word, or NULL; of equally probable
    ones the first, NULL last. In model 2 the best alignment is the best of each target word alone:

        argmax_j δ(j | i, m, n) · t(e_i | f_j)

    Words that never occurred together in training have t = 0; a target word that has it for all sources,
    and every word of a pair without a source, is NULL's.
    """
    table = _Table.of(aligner.table)
    alignments: list[Ids] = [np.full(len(target), NULL) for target in targets]
    for places in same_shape(sources, targets):
        source = np.array([sources[place] for place in places], dtype=np.int64)  # (pairs, n)
        target = np.array([targets[place] for place in places], dtype=np.int64)  # (pairs, m)
        best = _best(table, aligner.tension, source, target)
        for place, row in zip(places, best, strict=True):
            alignments[place] = row
    return alignments


def _best(table: _Table, tension: float, source: Ids, target: Ids) -> Ids:
    m, n = target.shape[1], source.shape[1]
    scores = table.lookup(source[:, None, :], target[:, :, None])  # (pairs, m, n)
    scores *= (1 - NULL_PROBABILITY) * diagonal_prior(m, n, tension)
    null = NULL_PROBABILITY * table.lookup(np.array(table.size), target)  # (pairs, m)
    best = scores.argmax(axis=2)
    value = np.take_along_axis(scores, best[:, :, None], axis=2)[:, :, 0]
    return np.where((value > 0) & (value >= null), best, NULL)


@dataclass(frozen=True)
class _Table:
    """A translation table for look-ups."""

    keys: Ids  # source * size + target, sorted
    probability: NDArray[np.float64]
    size: int  # the vocabulary's, and NULL's id

    @classmethod
    def of(cls, table: TranslationTable) -> _Table:
        keys = table.source * table.vocabulary_size + table.target
        return cls(keys, table.probability, table.vocabulary_size)

    def lookup(self, source: Ids, target: Ids) -> NDArray[np.float64]:
        """t(target | source), 0 where the two never occur together; the shapes broadcast."""
        keys = source * self.size + target
        wanted, numbers = np.unique(keys, return_inverse=True)  # sorted look-ups are many times faster
        places = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        values = np.where(self.keys[places] == wanted, self.probability[places], 0.0)
        return values[numbers].reshape(keys.shape)
