"""Compare a system with the baseline on one test set: paired bootstrap and approximate randomisation."""

from __future__ import annotations

from pathlib import Path

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.stats.bootstrap import paired_bootstrap
from creamtea.stats.randomization import paired_randomization
from creamtea.steps.systems import CompareParams
from creamtea_workers.corpora.text import read_jsonl
from creamtea_workers.metrics import build_metric
from creamtea_workers.metrics.base import Array, Metric, mean_statistics
from creamtea_workers.metrics.texts import groups_of, read_segment_scores, read_texts, treatment_of


def run(context: StepContext[CompareParams]) -> StepResult:
    """`delta` = system - baseline, each the mean over its training seeds, with a 95 % interval and, in its
    detail, the p-values of both tests (`p_value`: the bootstrap's as sacreBLEU has it).

    BLEU and chrF are compared on the decodes' texts. COMET is compared on the segment scores that its
    score steps left, so that the model does not run again.
    """
    metric = build_metric(context.params.metric, context.params.languages, context)
    significance = context.params.significance
    folders = {role: context.inputs(role) for role in ("baseline", "system")}
    total = sum(map(len, folders.values()))
    statistics: dict[str, list[Array]] = {"baseline": [], "system": []}
    for role, outputs in folders.items():
        for folder in outputs:
            context.progress(sum(map(len, statistics.values())), total + 2, f"{metric.name}: {role}")
            statistics[role].append(_statistics(metric, context, folder))
    if len({len(array) for arrays in statistics.values() for array in arrays}) != 1:
        raise StepError("the outputs to compare have different numbers of segments")
    both = statistics["baseline"], statistics["system"]
    context.progress(total, total + 2, f"{metric.name}: paired bootstrap")
    of_outputs = context.params.metric.compares == "outputs"
    segments = read_jsonl(context.input("test_set") / "segments.jsonl") if of_outputs else []
    groups = groups_of(segments) if context.params.metric.by_group else None
    result = paired_bootstrap(*both, metric.score, significance.samples, significance.seed, groups)
    context.progress(total + 1, total + 2, f"{metric.name}: approximate randomisation")
    p_swaps = paired_randomization(*both, metric.score, significance.trials, significance.seed)
    detail = {
        "signature": f"{metric.signature()}{treatment_of(segments)}|seed:{significance.seed}"
        f"|bs:{significance.samples}",
        "p_value": result.p_value,  # sacreBLEU's definition
        "p_two_sided": result.p_two_sided,
        "p_randomization": p_swaps,
        "baseline": result.baseline,
        "system": result.system,
        "segments": len(statistics["system"][0]),
        "samples": significance.samples,
        "trials": significance.trials,
        "seed": significance.seed,
        "outputs": {role: len(outputs) for role, outputs in folders.items()},
    }
    interval = result.delta, result.low, result.high
    row = MetricRow("delta", *interval, subject=metric.name, note=result.reason, detail=detail)
    return StepResult(metrics=[row])


def _statistics(metric: Metric, context: StepContext[CompareParams], folder: Path) -> Array:
    if context.params.metric.compares == "segment scores":
        return mean_statistics(read_segment_scores(folder))
    return metric.statistics(read_texts(context.input("test_set"), folder))
