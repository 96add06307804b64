"""Step `agreement`: how much the outputs of systems have in common, and how long they are."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.steps.systems import AgreementParams
from creamtea_workers.analysis.rows import ratio_row
from creamtea_workers.metrics.base import Array, read_texts
from creamtea_workers.metrics.chrf import chrf_from_sums
from creamtea_workers.search.mbr import CHARACTER_ORDER, characters, ngram_matches


def run(context: StepContext[AgreementParams]) -> StepResult:
    """Measure chrF2 of every two systems, each system's mean over the others, and lengths in characters."""
    texts = [read_texts(context.input("test_set"), folder) for folder in context.inputs("systems")]
    outputs = [system_texts.hypotheses for system_texts in texts]
    statistics = np.empty((len(outputs[0]), len(outputs), len(outputs), CHARACTER_ORDER * 3))
    for number, segment in enumerate(zip(*outputs, strict=True)):
        context.progress(number, len(statistics), "n-grams in common")
        statistics[number] = common_ngrams(segment)
    sums = statistics.sum(axis=0)
    rows = [
        MetricRow("agreement", float(mean_chrf(np.hstack([sums[i, j], sums[j, i]]))), subject=f"{i}/{j}")
        for i, j in combinations(range(len(outputs)), 2)
    ]
    lengths = np.array([[len(text) for text in column] for column in outputs], dtype=np.float64)
    of_source = np.array([len(text) for text in texts[0].sources], dtype=np.float64)
    for place in range(len(outputs)):
        ways = statistics[:, place], statistics[:, :, place]
        others = [np.delete(way, place, axis=1).reshape(len(way), -1) for way in ways]
        mean_length = np.delete(lengths, place, axis=0).mean(axis=0)
        rows += [
            ratio_row("agreement", np.hstack(others), mean_chrf, subject=str(place)),
            ratio_row("length_others", np.column_stack([lengths[place], mean_length]), subject=str(place)),
            ratio_row("length_source", np.column_stack([lengths[place], of_source]), subject=str(place)),
        ]
    context.progress(1, 1)
    return StepResult(rows)


def common_ngrams(texts: tuple[str, ...]) -> Array:
    """Count the n-grams that n texts have in common: (n, n, 3 · orders).

    These are sacreBLEU's statistics of chrF2, each text as hypothesis with each as reference: n-grams of the
    hypothesis, of the reference, and of both.
    """
    counts, matched = ngram_matches(list(map(characters, texts)), CHARACTER_ORDER)
    statistics = np.empty((*matched.shape, 3))
    # a hypothesis' n-grams do not count where the reference is too short to have any
    statistics[..., 0] = counts[:, None] * (counts > 0)
    statistics[..., 1] = counts
    statistics[..., 2] = matched
    return statistics.reshape(len(texts), len(texts), -1)


def mean_chrf(sums: Array) -> Array:
    """Average chrF2 (...,) over pairs of outputs.

    `sums`: their joined statistics (..., pairs · 3 · orders).
    """
    mean: Array = chrf_from_sums(sums.reshape(*sums.shape[:-1], -1, CHARACTER_ORDER * 3)).mean(axis=-1)
    return mean
