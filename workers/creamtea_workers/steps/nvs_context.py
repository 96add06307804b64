"""Step `nvs_context`: what NVS selects from the whole sentence, and from its words alone (NVS paper, Table
6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.methods.analyses.nvs_context import NvsContextParams
from creamtea.methods.selections import NvsSelection
from creamtea.stats.proportion import wilson_interval
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.systems import TrainedModel
from creamtea_workers.selection.coverage import Material
from creamtea_workers.selection.nvs import WordVotes, nvs_counts, nvs_logits
from creamtea_workers.selection.words import word_starts

CONTEXTS = ("sentence", "word")
SHARES = (*CONTEXTS, "only_sentence", "only_word")
NO_IDIOMS = "no segment of this test set has an annotated idiom"


def run(context: StepContext[NvsContextParams]) -> StepResult:
    """Over the segments with an idiom, at each threshold: the metric `all_selected` is the share of segments
    of which all the idioms' reference subwords are selected. Subjects: `0.9/sentence` (with context),
    `0.9/word` (each word alone, united), `0.9/only_sentence`, `0.9/only_word` (in that way and not in the
    other: "All excl" of Table 6), each with a 95 % Wilson interval. `selected_size` of `0.9/sentence` and
    `0.9/word` is the mean size over the same segments. Points `all_selected_sentence` and
    `all_selected_word` over that size, labelled by the threshold.
    """
    prepare_torch(context.cpus)
    thresholds = list(dict.fromkeys(context.params.thresholds))
    material = idiomatic(Material.load(context))
    if not len(material):
        return StepResult([row for threshold in thresholds for row in nothing(f"{threshold:g}")])
    counts = count(context, material, thresholds)  # (contexts, segments, thresholds, 2)
    possible = np.array([len(reference.idiom) for reference in material.references])
    result = StepResult()
    for place, threshold in enumerate(thresholds):
        selected, reached = counts[:, :, place, 0], counts[:, :, place, 1]
        result.metrics.extend(shares(f"{threshold:g}", reached == possible))
        for name, own, everything in zip(CONTEXTS, selected, reached == possible, strict=True):
            size = float(own.mean())
            result.metrics.append(MetricRow("selected_size", size, subject=f"{threshold:g}/{name}"))
            share = float(everything.mean())
            result.points.append(PointRow(f"all_selected_{name}", size, share, f"threshold={threshold:g}"))
    return result


def idiomatic(material: Material) -> Material:
    """The segments with an idiom."""
    pairs = zip(material.sources, material.references, strict=True)
    kept = [(source, reference) for source, reference in pairs if reference.idioms]
    return Material(material.subwords, [source for source, _ in kept], [reference for _, reference in kept])


def nothing(threshold: str) -> list[MetricRow]:
    names = [("all_selected", share) for share in SHARES] + [("selected_size", name) for name in CONTEXTS]
    return [MetricRow(name, None, subject=f"{threshold}/{kind}", note=NO_IDIOMS) for name, kind in names]


def count(
    context: StepContext[NvsContextParams], material: Material, thresholds: Sequence[float]
) -> NDArray[np.int64]:
    """(contexts, segments, thresholds, 2): selected ids, and those of the idioms."""
    trained = TrainedModel.of_step(context)
    trained.require(NvsSelection)
    alone = WordVotes(trained.model, word_starts(material.subwords))
    n = len(material)
    counts = np.zeros((len(CONTEXTS), n, len(thresholds), 2), dtype=np.int64)
    for place, words in enumerate((None, alone)):

        def progress(done: int, before: int = place * n) -> None:
            context.progress(before + done, len(CONTEXTS) * n, "sentences")

        for position, row in nvs_logits(trained.model, material.sources, words, progress):
            of_segment = nvs_counts(row, material.references[position], thresholds)
            counts[place, position] = of_segment[:, [0, 2]]
    return counts


def shares(threshold: str, everything: NDArray[np.bool_]) -> list[MetricRow]:
    """everything (contexts, segments): whether all of a segment's idiomatic subwords are selected."""
    sentence, word = everything
    n = len(sentence)
    rows = []
    for kind, hits in zip(SHARES, (sentence, word, sentence & ~word, word & ~sentence), strict=True):
        count = int(hits.sum())
        low, high = wilson_interval(count, n)
        detail = {"count": count, "segments": n}
        rows.append(
            MetricRow("all_selected", count / n, low, high, subject=f"{threshold}/{kind}", detail=detail)
        )
    return rows
