"""Compare a system with the baseline on one test set: paired bootstrap over segments."""

from __future__ import annotations

from pathlib import Path

from creamtea.engine.step import MetricRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.stats.bootstrap import paired_bootstrap
from creamtea.study.spec import Significance
from creamtea_workers.metrics import AnyMetric, build_metric
from creamtea_workers.metrics.base import Array
from creamtea_workers.metrics.comet import CometMetric, mean_statistics
from creamtea_workers.metrics.texts import read_segment_scores, read_texts


def run(context: StepContext) -> StepResult:
    """`delta` = system - baseline, each the mean over its training seeds, with a 95 % interval.

    BLEU and chrF are compared on the decodes' texts. COMET is compared on the segment scores that its
    score steps left, so that the model does not run again.
    """
    metric = build_metric(context.params, context)
    significance = Significance.model_validate(context.params["significance"])
    folders = {role: context.inputs(role) for role in ("baseline", "system")}
    total = sum(map(len, folders.values()))
    statistics: dict[str, list[Array]] = {"baseline": [], "system": []}
    for role, outputs in folders.items():
        for folder in outputs:
            context.progress(sum(map(len, statistics.values())), total + 1, f"{metric.name}: {role}")
            statistics[role].append(_statistics(metric, context, folder))
    if len({len(array) for arrays in statistics.values() for array in arrays}) != 1:
        raise StepError("the outputs to compare have different numbers of segments")
    context.progress(total, total + 1, f"{metric.name}: paired bootstrap")
    result = paired_bootstrap(
        statistics["baseline"], statistics["system"], metric.score, significance.samples, significance.seed
    )
    detail = {
        "signature": f"{metric.signature()}|seed:{result.seed}|bs:{result.samples}",
        "p_value": result.p_value,  # sacreBLEU's definition
        "p_two_sided": result.p_two_sided,
        "baseline": result.baseline,
        "system": result.system,
        "segments": result.segments,
        "samples": result.samples,
        "seed": result.seed,
        "outputs": {role: len(outputs) for role, outputs in folders.items()},
    }
    row = MetricRow("delta", result.delta, result.low, result.high, subject=metric.name, detail=detail)
    return StepResult(metrics=[row])


def _statistics(metric: AnyMetric, context: StepContext, folder: Path) -> Array:
    if isinstance(metric, CometMetric):
        return mean_statistics(read_segment_scores(folder))
    return metric.statistics(read_texts(context.input("test_set"), folder))
