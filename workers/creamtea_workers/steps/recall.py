"""Step `recall`: how much of the references a vocabulary selection reaches, and with how many subwords."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.methods.family import implementation
from creamtea.methods.selections import SweepPoint
from creamtea.stats.bootstrap import SAMPLES, SEED, bootstrap_interval
from creamtea.steps.systems import RecallParams
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.selection.coverage import Counts, Material
from creamtea_workers.selection.recall import NOTHING, distinct_idioms, micro, statistics

# name and subject of the metric of each scope
ROWS = {
    "sentence": ("recall", "sentence"),
    "idiom": ("recall", "idiom"),
    "idiom_macro": ("recall_macro", "idiom"),
}


def run(context: StepContext[RecallParams]) -> StepResult:
    """Recall of unique reference subwords (`creamtea_workers.selection.coverage` defines it). Segments
    without idioms are left out of the idiom scope.

    Metrics at the system's own setting: `recall` (micro-average; subjects `sentence`, `idiom`),
    `recall_macro` (subject `idiom`: mean over distinct idioms; `creamtea_workers.selection.recall`) and
    `selected_size` (mean per sentence), each with a 95 % bootstrap interval over segments; points
    `recall_sentence` and `recall_idiom` against the mean size for every setting of the sweep.
    """
    prepare_torch(context.cpus)
    selection = context.params.selection
    settings = selection.sweep(context.params.sweep)  # the system's own first
    material = Material.load(context)
    if not len(material):
        rows = ROWS.items()
        return StepResult(
            [MetricRow(name, None, subject=subject, note=NOTHING[scope]) for scope, (name, subject) in rows]
        )
    values = [value for _, value in settings]
    counts: list[Counts] = implementation(selection).count(selection, context, values, material)
    own = [of_segment[0] for of_segment in counts]
    sweep = np.stack([of_segment[1:, :3] for of_segment in counts], axis=1)  # (settings, n, 3)
    return StepResult(metrics(settings[0], own, material), points(settings[1:], sweep, material))


def metrics(own: SweepPoint, counts: Sequence[Counts], material: Material) -> list[MetricRow]:
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
        about = detail(own, len(values))
        if scope == "idiom_macro":
            about["average"] = "macro"
        else:
            about |= {"average": "micro", "unique_subwords": int(values[:, 1].sum())}
        if subject == "idiom":
            about["idioms"] = len(distinct_idioms(material.references))
        rows.append(
            MetricRow(name, interval.value, interval.low, interval.high, subject=subject, detail=about)
        )
    return rows


def detail(setting: SweepPoint, segments: int) -> dict[str, object]:
    return {
        "setting": setting[0],
        "segments": segments,
        "bootstrap": {"samples": SAMPLES, "seed": SEED},
    }


def points(settings: Sequence[SweepPoint], counts: Counts, material: Material) -> list[PointRow]:
    """counts (settings, n, 3); of each scope the points in order of size."""
    possible = np.array([reference.possible()[:2] for reference in material.references]).sum(axis=0)
    rows = []
    for position, scope in enumerate(("sentence", "idiom")):
        if possible[position] == 0:
            continue
        curve = [
            (float(size[:, 0].mean()), float(size[:, 1 + position].sum() / possible[position]), label)
            for (label, _), size in zip(settings, counts, strict=True)
        ]
        rows += [
            PointRow(f"recall_{scope}", x, y, label)
            for x, y, label in sorted(curve, key=lambda point: point[0])
        ]
    return rows
