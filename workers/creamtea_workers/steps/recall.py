"""Step `recall`: how much of the references a vocabulary selection reaches, and with how many subwords."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.methods.family import implementation
from creamtea.methods.selections import SweepPoint
from creamtea.steps.systems import RecallParams
from creamtea_workers.analysis.rows import ratio_row
from creamtea_workers.corpora.segments import EncodedTestSet, idiom_words
from creamtea_workers.corpora.subwords import subword_texts
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.selection.recall import (
    NOTHING,
    Counts,
    RecallInputs,
    RecallTask,
    Reference,
    most_first,
    unique,
)

# name and subject of the metric of each scope
ROWS = {
    "sentence": ("recall", "sentence"),
    "idiom": ("recall", "idiom"),
    "idiom_macro": ("recall_macro", "idiom"),
    "idiom_words": ("recall", "idiom_words"),
    "idiom_words_macro": ("recall_macro", "idiom_words"),
}
CURVES = ("sentence", "idiom", "idiom_words")


class Measured(NamedTuple):
    """A test set with the counts of its sentences and idioms at every setting."""

    task: RecallTask
    counts: list[list[Counts]]
    shared: list[Counts]  # of the sentences with what a batch shares; empty: not asked for
    missed: dict[str, Any]  # at the system's own setting


def run(context: StepContext[RecallParams]) -> StepResult:
    """Recall of unique reference subwords (`creamtea_workers.selection.recall` defines it and its scopes).

    Metrics are at the system's own setting, with intervals over segments, of idioms over distinct idioms;
    points at every setting of the sweep, over the mean size of the sentences' sets, and likewise with what
    all sentences of a batch select.
    """
    prepare_torch(context.cpus)
    selection = context.params.selection
    settings = selection.sweep(context.params.sweep)  # the system's own first
    values = [value for _, value in settings]
    task, count = RecallTask.load(context), implementation(selection).count
    counts = [count(selection, context, values, inputs) if len(inputs) else [] for inputs in task]
    batch = context.params.sweep.batch if len(settings) > 1 else None
    shared = count(selection, context, values, task.sentences, batch) if batch else []
    measured = Measured(task, counts, shared, missed(context, values[0]) if len(task.idioms) else {})
    return StepResult(metrics(settings[0], measured), points(settings, measured))


def sizes(counts: Sequence[Counts], place: int) -> NDArray[np.int64]:
    """Return the selected size of each sentence (n,) at the setting in this place."""
    return np.array([of_segment[place, 0] for of_segment in counts])


def missed(context: StepContext[RecallParams], own: float) -> dict[str, Any]:
    """List the distinct idioms with the subwords of their translations that their words do not select.

    The subwords are in order. Each is counted as if it were an idiom: so any selection tells which it
    reaches.
    """
    test_set = EncodedTestSet.of_step(context)
    subwords, selection = subword_texts(test_set.subwords), context.params.selection
    in_segments = (idiom for segment in test_set.segments for idiom in idiom_words(segment))
    words = list(dict.fromkeys((idiom.source, idiom.target) for idiom in in_segments))
    targets = subwords.encode_targets([target for _, target in words])
    single = [Reference(unique(ids), {str(id_): unique([id_]) for id_ in ids}) for ids in targets]
    inputs = RecallInputs(subwords, subwords.encode_lines([source for source, _ in words]), single)
    counts = implementation(selection).count(selection, context, [own], inputs)
    idioms = []
    for (source, target), ids, reached in zip(words, targets, counts, strict=True):
        absent = [id_ for id_, hit in zip(dict.fromkeys(ids), reached[0, 3:], strict=True) if not hit]
        idiom = {"source": source, "target": target, "subwords": subwords.pieces(ids)}
        idioms.append({**idiom, "missed": subwords.pieces(absent)})
    return most_first("missed", idioms)


def metrics(own: SweepPoint, measured: Measured) -> list[MetricRow]:
    """Return the recall at the system's own setting."""
    setting = {"setting": own[0]}
    own_sizes = sizes(measured.counts[0], 0)
    rows = [
        ratio_row("selected_size", np.stack([own_sizes, np.ones_like(own_sizes)], axis=1), detail=setting)
    ]
    for scope, counted in measured.task.scopes(measured.counts, 0).items():
        name, subject = ROWS[scope]
        if not len(counted.rows):
            rows.append(MetricRow(name, None, subject=subject, note=NOTHING[scope]))
            continue
        detail: dict[str, object] = {**setting, "average": "macro"}
        if name == "recall":
            detail |= {"average": "micro", "unique_subwords": int(counted.rows[:, 1].sum())}
        if scope == "idiom_words":
            detail["missed"] = measured.missed
        if scope != "sentence":
            detail["idioms"] = measured.task.distinct(scope)
        rows.append(counted.metric(name, subject, detail))
    return rows


def points(settings: Sequence[SweepPoint], measured: Measured) -> list[PointRow]:
    """Return the points of the sweep for each scope, in order of size; the first setting is the system's own,
    which the sweep repeats."""
    curves: dict[str, list[tuple[float, float, str]]] = {scope: [] for scope in (*CURVES, "batch")}
    for place, (label, _) in enumerate(settings[1:], start=1):
        statistics, size = measured.task.scopes(measured.counts, place), sizes(measured.counts[0], place)
        for scope in CURVES:
            if len(statistics[scope].rows):
                curves[scope].append((float(size.mean()), statistics[scope].value, label))
        if measured.shared and len(statistics["sentence"].rows):
            counted = measured.task.scopes([measured.shared, measured.counts[1]], place)["sentence"]
            curves["batch"].append((float(sizes(measured.shared, place).mean()), counted.value, label))
    return [
        PointRow(f"recall_{scope}", x, y, label)
        for scope, curve in curves.items()
        for x, y, label in sorted(curve, key=lambda point: point[0])
    ]
