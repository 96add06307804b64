"""The best alignment against every one that there is."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from creamtea_workers.corpora.tokens import Shard
from creamtea_workers.selection.aligner import (
    NULL,
    NULL_PROBABILITY,
    Aligner,
    Ids,
    TranslationTable,
    diagonal_prior,
    train_aligner,
    viterbi,
)

SIZE = 6


def aligned(aligner: Aligner, sources: list[list[int]], targets: list[list[int]]) -> list[Ids]:
    ((_, alignments),) = viterbi(aligner, [Shard.of(sources, targets)])
    return alignments


sentences = st.lists(st.integers(0, SIZE - 1), min_size=0, max_size=5)


def table_of(probabilities: dict[tuple[int, int], float]) -> TranslationTable:
    keys = sorted(probabilities)
    return TranslationTable(
        np.array([source for source, _ in keys]),
        np.array([target for _, target in keys]),
        np.array([probabilities[key] for key in keys]),
        SIZE,
    )


def slow(aligner: Aligner, source: list[int], target: list[int]) -> list[int]:
    """One word after the other, every origin tried."""
    table = aligner.table
    t = dict(
        zip(zip(table.source.tolist(), table.target.tolist(), strict=True), table.probability, strict=True)
    )
    best = []
    for i, word in enumerate(target):
        scores = {NULL: NULL_PROBABILITY * t.get((SIZE, word), 0.0)}
        for j, x in enumerate(source):
            prior = diagonal_prior(len(target), len(source), aligner.tension)[i, j]
            scores[j] = (1 - NULL_PROBABILITY) * prior * t.get((x, word), 0.0)
        best.append(
            max(scores, key=lambda j: (scores[j], j != NULL and scores[j] > 0, -j)) if source else NULL
        )
    return best


@given(st.lists(st.tuples(sentences, sentences), min_size=1, max_size=6), sentences, sentences)
def test_it_is_the_best_of_every_word(
    pairs: list[tuple[list[int], list[int]]], source: list[int], target: list[int]
) -> None:
    """On the pairs of the training and on one whose words need not have met in it."""
    sources, targets = [[*s, 0] for s, _ in pairs], [[*t, 1] for _, t in pairs]
    aligner = train_aligner([Shard.of(sources, targets)], SIZE, 2)
    sources, targets = [*sources, source], [*targets, target]
    found = [row.tolist() for row in aligned(aligner, sources, targets)]
    assert found == [slow(aligner, s, t) for s, t in zip(sources, targets, strict=True)]


def test_words_go_to_their_translations_and_what_has_none_to_null() -> None:
    table = table_of({(1, 3): 1.0, (2, 4): 1.0, (SIZE, 5): 1.0})
    (found,) = aligned(Aligner(table, 1.0, []), [[1, 2]], [[4, 5, 3, 0]])
    assert found.tolist() == [1, NULL, 0, NULL]


def test_of_equal_words_the_diagonal_decides() -> None:
    table = table_of({(1, 3): 1.0})
    (found,) = aligned(Aligner(table, 4.0, []), [[1, 1, 1]], [[3, 3, 3]])
    assert found.tolist() == [0, 1, 2]


def test_a_pair_without_a_source_is_nulls() -> None:
    found = aligned(Aligner(table_of({(1, 3): 1.0}), 1.0, []), [[], [1]], [[3, 3], []])
    assert [row.tolist() for row in found] == [[NULL, NULL], []]
