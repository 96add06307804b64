"""Compare a system with the baseline on one test set: paired bootstrap and approximate randomisation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.stats.resampling import bootstrap_pairs, randomization_of_pairs
from creamtea.steps.systems import CompareParams
from creamtea_workers.corpora.text import read_jsonl
from creamtea_workers.metrics import build_metric
from creamtea_workers.metrics.base import (
    Array,
    Metric,
    groups_of,
    mean_statistics,
    read_segment_scores,
    read_texts,
    treatment_of,
)


def run(context: StepContext[CompareParams]) -> StepResult:
    """Compare a system with the baseline: `delta` = system - baseline.

    Each side is the mean over its training seeds. `delta` has a 95 % interval and, in its detail, the
    p-values of both tests (`p_value` is the bootstrap's as sacreBLEU defines it).

    BLEU and chrF are compared on the decodes' texts. COMET is compared on the segment scores that its score
    steps left, so that the model does not run again.
    """
    systems = [context.inputs(role) for role in ("baseline", "system")]
    return StepResult(metrics=list(compared(context, systems).values()))


def compared(
    context: StepContext[Any], systems: Sequence[Sequence[Path]]
) -> dict[tuple[int, int], MetricRow]:
    """Return the `delta` of every two systems, by their positions (baseline, system).

    `systems`: the folders of each system's outputs or segment scores.
    """
    metric = build_metric(context.params.metric, context.params.languages, context)
    significance = context.params.significance
    total, done = sum(map(len, systems)), 0
    statistics: list[list[Array]] = [[] for _ in systems]
    for of_system, outputs in zip(statistics, systems, strict=True):
        for folder in outputs:
            context.progress(done, total + 2, f"{metric.name}: outputs")
            of_system.append(_statistics(metric, context, folder))
            done += 1
    if len({len(array) for arrays in statistics for array in arrays}) != 1:
        raise StepError("the outputs to compare have different numbers of segments")
    context.progress(total, total + 2, f"{metric.name}: paired bootstrap")
    of_outputs = context.params.metric.compares == "outputs"
    segments = read_jsonl(context.input("test_set") / "segments.jsonl") if of_outputs else []
    groups = groups_of(segments) if context.params.metric.by_group else None
    results = bootstrap_pairs(statistics, metric.score, significance.samples, significance.seed, groups)
    context.progress(total + 1, total + 2, f"{metric.name}: approximate randomisation")
    p_swaps = randomization_of_pairs(statistics, metric.score, significance.trials, significance.seed)
    rows = {}
    for (i, j), result in results.items():
        detail = {
            "signature": f"{metric.signature()}{treatment_of(segments)}|seed:{significance.seed}"
            f"|bs:{significance.samples}",
            "p_value": result.p_value,  # sacreBLEU's definition
            "p_two_sided": result.p_two_sided,
            "p_randomization": p_swaps[i, j],
            "baseline": result.baseline,
            "system": result.system,
            "segments": len(statistics[j][0]),
            "samples": significance.samples,
            "trials": significance.trials,
            "seed": significance.seed,
            "outputs": {"baseline": len(systems[i]), "system": len(systems[j])},
        }
        interval = result.delta, result.low, result.high
        rows[i, j] = MetricRow("delta", *interval, subject=metric.name, note=result.reason, detail=detail)
    return rows


def _statistics(metric: Metric, context: StepContext[Any], folder: Path) -> Array:
    if context.params.metric.compares == "segment scores":
        return mean_statistics(read_segment_scores(folder))
    return metric.statistics(read_texts(context.input("test_set"), folder))
