"""Step `agreement`: how much the outputs of systems have in common, and how long they are."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from sacrebleu.metrics.helpers import extract_all_char_ngrams

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.steps.systems import AgreementParams
from creamtea_workers.analysis.rows import ratio_row
from creamtea_workers.metrics.base import Array, read_texts
from creamtea_workers.metrics.chrf import chrf_from_sums

ORDERS = 6  # orders of character n-grams, as in chrF2


def run(context: StepContext[AgreementParams]) -> StepResult:
    """Measure chrF2 of every two systems, each system's mean over the others, and lengths in characters."""
    texts = [read_texts(context.input("test_set"), folder) for folder in context.inputs("systems")]
    outputs = [system_texts.hypotheses for system_texts in texts]
    statistics = np.empty((len(outputs[0]), len(outputs), len(outputs), ORDERS * 3))
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
    hypothesis, of the reference, and of both. Each text is cut into n-grams only once.
    """
    counts = [extract_all_char_ngrams(text, ORDERS) for text in texts]
    statistics = np.empty((len(texts), len(texts), ORDERS, 3))
    for order in range(ORDERS):
        ngrams = {
            ngram: place
            for place, ngram in enumerate(set().union(*(ngram_counts[order] for ngram_counts in counts)))
        }
        table = np.zeros((len(texts), len(ngrams)))
        for row, ngram_counts in zip(table, counts, strict=True):
            row[[ngrams[ngram] for ngram in ngram_counts[order]]] = list(ngram_counts[order].values())
        totals = table.sum(axis=1)
        # a hypothesis' n-grams do not count where the reference is too short to have any
        statistics[:, :, order, 0] = totals[:, None] * (totals > 0)
        statistics[:, :, order, 1] = totals
        for place, row in enumerate(table):
            statistics[place, :, order, 2] = np.minimum(row, table).sum(axis=1)
    return statistics.reshape(len(texts), len(texts), -1)


def mean_chrf(sums: Array) -> Array:
    """Average chrF2 (...,) over pairs of outputs.

    `sums`: their joined statistics (..., pairs · 3 · orders).
    """
    mean: Array = chrf_from_sums(sums.reshape(*sums.shape[:-1], -1, ORDERS * 3)).mean(axis=-1)
    return mean
