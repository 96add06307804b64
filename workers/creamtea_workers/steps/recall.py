"""Step `recall`: how much of the references a vocabulary selection reaches, and with how many subwords."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.stats.bootstrap import SAMPLES, SEED, bootstrap_interval
from creamtea.study.spec import FullVocabulary, LexiconSelection, NvsSelection, Recall, Selection
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.systems import SELECTION, TrainedModel, lexicon_file, step_device
from creamtea_workers.selection.coverage import (
    Counts,
    Material,
    full_counts,
    lexicon_counts,
    nvs_counts,
    nvs_logits,
)
from creamtea_workers.selection.lexicon import Lexicon
from creamtea_workers.selection.nvs import WordVotes
from creamtea_workers.selection.recall import NOTHING, distinct_idioms, micro, statistics
from creamtea_workers.selection.words import word_starts

# name and subject of the metric of each scope
ROWS = {
    "sentence": ("recall", "sentence"),
    "idiom": ("recall", "idiom"),
    "idiom_macro": ("recall_macro", "idiom"),
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
    """Recall of unique reference subwords (`creamtea_workers.selection.coverage` defines it). Segments
    without idioms are left out of the idiom scope.

    Metrics at the system's own setting: `recall` (micro-average; subjects `sentence`, `idiom`),
    `recall_macro` (subject `idiom`: mean over distinct idioms; `creamtea_workers.selection.recall`) and
    `selected_size` (mean a sentence), each with a 95 % bootstrap interval over segments; points
    `recall_sentence` and `recall_idiom` against the mean size for every setting of the sweep.
    """
    prepare_torch(context.cpus)
    selection = SELECTION.validate_python(context.params["selection"])
    settings = Setting.all_of(selection, Recall.model_validate(context.params["sweep"]))
    material = Material.load(context)
    if not len(material):
        rows = ROWS.items()
        return StepResult(
            [MetricRow(name, None, subject=subject, note=NOTHING[scope]) for scope, (name, subject) in rows]
        )
    counts = count(context, selection, settings, material)
    own = [of_segment[0] for of_segment in counts]
    sweep = np.stack([of_segment[1:, :3] for of_segment in counts], axis=1)  # (settings, n, 3)
    return StepResult(metrics(settings[0], own, material), points(settings[1:], sweep, material))


def count(
    context: StepContext, selection: Selection, settings: Sequence[Setting], material: Material
) -> list[Counts]:
    """Of each segment."""
    if isinstance(selection, FullVocabulary):
        return [full_counts(material.subwords.size, reference) for reference in material.references]
    if isinstance(selection, LexiconSelection):
        return count_lexicon(context, settings, material)
    return count_nvs(context, selection, settings, material)


def count_lexicon(context: StepContext, settings: Sequence[Setting], material: Material) -> list[Counts]:
    path = lexicon_file(context)
    if path is None:
        raise ValueError("the recall of a lexicon needs an align step")
    lexicon, ks, found = Lexicon.load(path), [int(setting.value) for setting in settings], []
    for n, (source, reference) in enumerate(zip(material.sources, material.references, strict=True)):
        context.progress(n, len(material), "sentences")
        found.append(lexicon_counts(lexicon, source, reference, ks))
    return found


def count_nvs(
    context: StepContext, selection: NvsSelection, settings: Sequence[Setting], material: Material
) -> list[Counts]:
    trained = TrainedModel.load(context.input("train"), "fp32", step_device(context.gpus))
    trained.require(selection)
    words = WordVotes(trained.model, word_starts(material.subwords)) if selection.context == "word" else None
    thresholds = [setting.value for setting in settings]
    logits = nvs_logits(
        trained.model,
        material.sources,
        words,
        lambda done: context.progress(done, len(material), "sentences"),
    )
    found = {n: nvs_counts(row, material.references[n], thresholds) for n, row in logits}
    return [found[n] for n in range(len(material))]


def metrics(own: Setting, counts: Sequence[Counts], material: Material) -> list[MetricRow]:
    """`counts`: of each segment (3 + idioms,), at the system's own setting."""
    sizes = np.array([[segment[0], 1] for segment in counts])
    size = bootstrap_interval(sizes, micro)
    rows = [MetricRow("selected_size", size.value, size.low, size.high, detail=detail(own, len(counts)))]
    scopes = statistics(material.references, [segment[1:] for segment in counts])
    for scope, (values, score) in scopes.items():
        name, subject = ROWS[scope]
        if not len(values):
            rows.append(MetricRow(name, None, subject=subject, note=NOTHING[scope]))
            continue
        interval = bootstrap_interval(values, score)
        told: dict[str, object] = {"average": "micro", "unique_subwords": int(values[:, 1].sum())}
        if scope == "idiom_macro":
            told = {"average": "macro"}
        if subject == "idiom":
            told["idioms"] = len(distinct_idioms(material.references))
        about = detail(own, len(values)) | told
        rows.append(
            MetricRow(name, interval.value, interval.low, interval.high, subject=subject, detail=about)
        )
    return rows


def detail(setting: Setting, segments: int) -> dict[str, object]:
    return {
        "setting": setting.label,
        "segments": segments,
        "bootstrap": {"samples": SAMPLES, "seed": SEED},
    }


def points(settings: Sequence[Setting], counts: Counts, material: Material) -> list[PointRow]:
    """counts (settings, n, 3); of each scope the points in order of size."""
    possible = np.array([reference.possible()[:2] for reference in material.references]).sum(axis=0)
    rows = []
    for position, scope in enumerate(("sentence", "idiom")):
        if possible[position] == 0:
            continue
        curve = [
            (float(one[:, 0].mean()), float(one[:, 1 + position].sum() / possible[position]), setting.label)
            for setting, one in zip(settings, counts, strict=True)
        ]
        rows += [
            PointRow(f"recall_{scope}", x, y, label)
            for x, y, label in sorted(curve, key=lambda point: point[0])
        ]
    return rows
