"""Step `recall`: how much of the references a vocabulary selection reaches, and with how many subwords."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from creamtea.engine.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.stats.bootstrap import SAMPLES, SEED, Array, Interval, bootstrap_interval
from creamtea.study.spec import FullVocabulary, LexiconSelection, Recall, Selection
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.metrics.texts import read_jsonl
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.systems import SELECTION, TrainedModel, lexicon_file, step_device
from creamtea_workers.selection.coverage import (
    Counts,
    Reference,
    full_counts,
    lexicon_counts,
    nvs_batch_size,
    nvs_counts,
)
from creamtea_workers.selection.lexicon import Lexicon

SCOPES = ("sentence", "idiom")
NOTHING = {
    "sentence": "the references of this test set are empty",
    "idiom": "no segment of this test set has an annotated idiom",
}


@dataclass(frozen=True)
class Setting:
    """One point of the sweep; the first of a list is the system's own."""

    label: str  # "k=200", "threshold=0.9", "full"
    value: float

    @classmethod
    def all_of(cls, selection: Selection, sweep: Recall) -> list[Setting]:
        if isinstance(selection, FullVocabulary):
            return [cls("full", 0.0)]
        if isinstance(selection, LexiconSelection):
            return [cls(f"k={k}", k) for k in (selection.k, *sweep.k)]
        return [cls(f"threshold={t:g}", t) for t in (selection.threshold, *sweep.thresholds)]


def run(context: StepContext) -> StepResult:
    """Recall of unique reference subwords (`creamtea_workers.selection.coverage` defines it), micro-averaged:
    all that are reached over all that there are. Segments without idioms are left out of the idiom scope.

    Metrics at the system's own setting: `recall` of both scopes and `selected_size` (mean a sentence),
    each with a 95 % bootstrap interval over segments; points `recall_sentence` and `recall_idiom` against
    the mean size for every setting of the sweep.
    """
    prepare_torch(context.cpus)
    selection = SELECTION.validate_python(context.params["selection"])
    settings = Setting.all_of(selection, Recall.model_validate(context.params["sweep"]))
    segments = read_jsonl(context.input("test_set") / "segments.jsonl")
    subwords = SubwordModel.load(context.input("subwords") / "subwords.model")
    sources = [subwords.encode(segment["source"]) for segment in segments]
    references = [
        Reference.of(subwords, segment["reference"], (idiom["target"] for idiom in segment["idioms"]))
        for segment in segments
    ]
    if not segments:
        return StepResult([MetricRow("recall", None, subject=scope, note=NOTHING[scope]) for scope in SCOPES])
    counts = np.stack(count(context, selection, settings, sources, references, subwords.size), axis=1)
    possible = np.array([[len(r.sentence), len(r.idiom)] for r in references])  # (n, 2)
    return StepResult(metrics(settings[0], counts[0], possible), points(settings[1:], counts[1:], possible))


def count(
    context: StepContext,
    selection: Selection,
    settings: Sequence[Setting],
    sources: Sequence[Sequence[int]],
    references: Sequence[Reference],
    vocabulary_size: int,
) -> list[Counts]:
    """Of each segment the counts (settings, 3)."""
    if isinstance(selection, FullVocabulary):
        return [full_counts(vocabulary_size, reference) for reference in references]
    if isinstance(selection, LexiconSelection):
        return count_lexicon(context, settings, sources, references)
    return count_nvs(context, selection, settings, sources, references)


def count_lexicon(
    context: StepContext,
    settings: Sequence[Setting],
    sources: Sequence[Sequence[int]],
    references: Sequence[Reference],
) -> list[Counts]:
    path = lexicon_file(context)
    if path is None:
        raise ValueError("the recall of a lexicon needs an align step")
    lexicon, ks, found = Lexicon.load(path), [int(setting.value) for setting in settings], []
    for n, (source, reference) in enumerate(zip(sources, references, strict=True)):
        context.progress(n, len(sources), "sentences")
        found.append(lexicon_counts(lexicon, source, reference, ks))
    return found


def count_nvs(
    context: StepContext,
    selection: Selection,
    settings: Sequence[Setting],
    sources: Sequence[Sequence[int]],
    references: Sequence[Reference],
) -> list[Counts]:
    trained = TrainedModel.load(context.input("train"), "fp32", step_device(context.gpus))
    trained.require(selection)
    thresholds = [setting.value for setting in settings]
    size = nvs_batch_size(trained.model.vocabulary_size)
    order = sorted(range(len(sources)), key=lambda n: len(sources[n]))
    found: dict[int, Counts] = {}
    for start in range(0, len(order), size):
        context.progress(start, len(order), "sentences")
        batch = order[start : start + size]
        some = [sources[n] for n in batch], [references[n] for n in batch]
        found.update(zip(batch, nvs_counts(trained.model, *some, thresholds), strict=True))
    return [found[n] for n in range(len(sources))]


def metrics(own: Setting, counts: Counts, possible: NDArray[np.int64]) -> list[MetricRow]:
    """counts (n, 3) and possible (n, 2) of the system's own setting."""
    n = len(counts)
    size = bootstrap_interval(np.stack([counts[:, 0], np.ones(n)], axis=1), ratio)
    rows = [MetricRow("selected_size", size.value, size.low, size.high, detail=detail(own, n))]
    for position, scope in enumerate(SCOPES):
        interval = recall(counts[:, 1 + position], possible[:, position])
        if interval is None:
            rows.append(MetricRow("recall", None, subject=scope, note=NOTHING[scope]))
            continue
        told = {"unique_subwords": int(possible[:, position].sum()), "average": "micro"}
        about = detail(own, int((possible[:, position] > 0).sum())) | told
        rows.append(
            MetricRow("recall", interval.value, interval.low, interval.high, subject=scope, detail=about)
        )
    return rows


def detail(setting: Setting, segments: int) -> dict[str, object]:
    return {
        "setting": setting.label,
        "segments": segments,
        "bootstrap": {"samples": SAMPLES, "seed": SEED},
    }


def points(settings: Sequence[Setting], counts: Counts, possible: NDArray[np.int64]) -> list[PointRow]:
    """counts (settings, n, 3); of each scope the points in order of size."""
    rows = []
    for position, scope in enumerate(SCOPES):
        total = possible[:, position].sum()
        if total == 0:
            continue
        curve = [
            (float(one[:, 0].mean()), float(one[:, 1 + position].sum() / total), setting.label)
            for setting, one in zip(settings, counts, strict=True)
        ]
        rows += [
            PointRow(f"recall_{scope}", x, y, label)
            for x, y, label in sorted(curve, key=lambda point: point[0])
        ]
    return rows


def recall(reached: NDArray[np.int64], possible: NDArray[np.int64]) -> Interval | None:
    """reached (n,) over possible (n,), of the segments that have any; None where none has."""
    some = possible > 0
    if not some.any():
        return None
    return bootstrap_interval(np.stack([reached[some], possible[some]], axis=1), ratio)


def ratio(sums: Array) -> Array:
    """(..., 2) -> (...)."""
    quotient: Array = sums[..., 0] / sums[..., 1]
    return quotient
