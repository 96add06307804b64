"""The most probable alignment of sentence pairs under a trained aligner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from creamtea_workers.corpora.tokens import Shard
from creamtea_workers.selection.aligner import (
    NULL_PROBABILITY,
    Aligner,
    Reals,
    diagonal_prior,
)
from creamtea_workers.selection.together import Ids, same_shape

NULL = -1


def viterbi(aligner: Aligner, shards: Iterable[Shard]) -> Iterator[tuple[Shard, list[Ids]]]:
    """Each shard with the alignments of its pairs, as `best_of_shard` has them."""
    keys = aligner.table.keys
    return ((shard, best_of_shard(aligner, keys, shard)) for shard in shards)


def best_of_shard(aligner: Aligner, keys: Ids, shard: Shard) -> list[Ids]:
    """For each pair (m,): the source position, from 0, of every target word, or NULL; of equally probable
    ones the first, NULL last. In model 2 the best alignment is the best of each target word alone:

        argmax_j δ(j | i, m, n) · t(e_i | f_j)

    Words that never occurred together in training have t = 0; a target word that has it for all sources,
    and every word of a pair without a source, is NULL's.
    """
    table = aligner.table
    alignments: list[Ids] = [np.full(len(target), NULL) for target in shard.targets]
    size = table.vocabulary_size  # also NULL's id

    def lookup(source: Ids | int, target: Ids) -> Reals:
        """t(target | source), 0 where the two never occur together; the shapes broadcast."""
        pairs = source * size + target
        wanted, numbers = np.unique(pairs, return_inverse=True)  # sorted look-ups are many times faster
        nearest = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        values = np.where(keys[nearest] == wanted, table.probability[nearest], 0.0)
        return values[numbers].reshape(pairs.shape)

    for places, source, target in same_shape(shard):  # (pairs, n), (pairs, m)
        scores = lookup(source[:, None, :], target[:, :, None])  # (pairs, m, n)
        scores *= (1 - NULL_PROBABILITY) * diagonal_prior(target.shape[1], source.shape[1], aligner.tension)
        null = NULL_PROBABILITY * lookup(size, target)  # (pairs, m)
        best = scores.argmax(axis=2)
        value = np.take_along_axis(scores, best[:, :, None], axis=2)[:, :, 0]
        rows = np.where((value > 0) & (value >= null), best, NULL)
        for place, row in zip(places, rows, strict=True):
            alignments[place] = row
    return alignments
