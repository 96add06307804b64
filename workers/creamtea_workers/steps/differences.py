"""Step `differences`: rows of an analysis compared in pairs, segment by segment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.methods.analysis import DifferencesParams
from creamtea.stats.resampling import Array, ScoreFunction, paired_bootstrap
from creamtea_workers.analysis.rows import Measured, Score, SegmentStatistics
from creamtea_workers.metrics.base import ratio
from creamtea_workers.metrics.bleu import bleu_from_sums

TOO_FEW = "one of the two has too few sentences that this is measured over"
_FEWEST: Mapping[Score, int] = {"ratio": 1, "deviation": 2, "bleu": 0}  # smallest sum of the last column


def deviation(sums: Array) -> Array:
    """Compute sample standard deviations: (..., 3) sums of squares, values and segments -> (...).

    The deviation of one segment is 0.
    """
    squares, total, count = np.moveaxis(sums, -1, 0)
    variance = (squares - total**2 / np.maximum(count, 1)) / np.maximum(count - 1, 1)
    return np.sqrt(np.maximum(variance, 0.0))


SCORES: Mapping[Score, ScoreFunction] = {
    "ratio": ratio,
    "deviation": deviation,
    "bleu": partial(bleu_from_sums, effective_order=False),
}


def run(context: StepContext[DifferencesParams]) -> StepResult:
    """Compare the rows of an analysis in pairs: `delta`, subject MEASURE/SETTING.

    Without `base` it is system − baseline at that setting. With `base` it is the system at that setting − the
    system at `base`. Each side is the mean over seeds, with the interval and the p-values of
    `creamtea.stats.resampling.paired_bootstrap`; detail.scores has the scores of each seed.
    """
    base = context.params.base
    system = [SegmentStatistics.load(folder) for folder in context.inputs("system")]
    baseline = [SegmentStatistics.load(folder) for folder in context.inputs("baseline")]
    rows = []
    pairs = list(_pairs(system[0], base))
    for number, (own, other) in enumerate(pairs):
        context.progress(number, len(pairs), "/".join(filter(None, own)))
        others = baseline if base is None else system
        rows.append(_compared(own, other, system, others, context.params))
    context.progress(len(pairs), len(pairs), "differences")
    return StepResult(rows)


def _pairs(measured: SegmentStatistics, base: str | None) -> Iterator[tuple[Measured, Measured]]:
    for key in measured:
        other = key if base is None else key._replace(setting=base)
        if base is None or (key != other and other in measured):
            yield key, other


def _compared(
    own: Measured,
    other: Measured,
    system: Sequence[SegmentStatistics],
    baseline: Sequence[SegmentStatistics],
    params: DifferencesParams,
) -> MetricRow:
    score = SCORES[system[0][own].score]
    arrays = [output[other].values for output in baseline], [output[own].values for output in system]
    subject = "/".join(filter(None, own))
    if len({len(array) for outputs in arrays for array in outputs}) != 1:
        raise StepError("the analyses to compare have different numbers of segments")
    fewest = _FEWEST[system[0][own].score]
    if any(array[:, -1].sum() < fewest for outputs in arrays for array in outputs):
        return MetricRow("delta", None, subject=subject, note=TOO_FEW)
    result = paired_bootstrap(*arrays, score, params.samples, params.seed)
    scores = [[float(score(array.sum(axis=0))) for array in outputs] for outputs in arrays]
    detail = {
        "p_value": result.p_value,  # sacreBLEU's definition
        "p_two_sided": result.p_two_sided,
        "scores": {"baseline": scores[0], "system": scores[1]},
        "segments": len(arrays[0][0]),
        "samples": params.samples,
        "seed": params.seed,
    }
    interval = result.delta, result.low, result.high
    return MetricRow("delta", *interval, subject=subject, note=result.reason, detail=detail)
