"""Step `calibration`: expected calibration error (Naeini et al. 2015; Peters and Martins 2021, Table 7)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.methods.analyses.calibration import CalibrationParams
from creamtea.stats.resampling import Array
from creamtea_workers.analysis.forced import References
from creamtea_workers.analysis.rows import SegmentStatistics, ratio_row

ABOVE = "noise adds so much to it that it lies above its own interval"


def run(context: StepContext[CalibrationParams]) -> StepResult:
    """Teacher-forced on the references, every position of every sentence, </s> included, counted alike.

    A position's confidence is its largest probability, clamped to [0, 1] (for SCONES its largest σ, a
    different quantity: the rows' note says so); it is right if that subword, of equal ones the lowest, is the
    reference's. With M bins of equal width, [m/M, (m+1)/M) and the last one closed, ECE = Σ |B_m|/N
    |acc(B_m) - conf(B_m)|.

    Intervals are over sentences. Noise adds to an ECE, as errors that cancel in truth do not cancel in a
    sample, and adds to a resample's once more. So its interval is the basic one, which takes the second as
    the size of the first (`reflected`). Coverage of a true ECE in 400 simulations each (10 bins, 15 positions
    per sentence), and of the percentile interval in brackets:

        sentences   0.005       0.02        0.05
          300       87 % (0)    91 % (81)   94 % (94)
        1,000       88 % (12)   90 % (94)   94 % (94)

    Where the basic interval misses, it lies above a small error. A bin that holds nothing has no point.
    """
    references = References.load(context)
    measured = references.measure(confidence_and_accuracy, context)
    bins = context.params.bins
    statistics = np.stack([bin_sums(sentence, bins) for sentence in measured])  # (segments, 3 · bins)
    totals = position_totals(statistics)
    kept = SegmentStatistics()
    kept.add("accuracy", totals[:, [1, 0]])
    kept.add("confidence", totals[:, [2, 0]])
    kept.save(context.output)
    note = references.trained.config.objective.confidence_note
    return StepResult(metrics(statistics, bins, note), points(statistics.sum(axis=0)))


def confidence_and_accuracy(log_scores: Tensor, targets: Tensor) -> Tensor:
    """(n, V), (n,) -> (n, 2): the largest probability, and 1 where it is the target's, else 0."""
    chosen = log_scores.argmax(dim=1, keepdim=True)
    confidence = log_scores.gather(1, chosen).double().exp().clamp(0.0, 1.0)
    return torch.cat([confidence, (chosen == targets[:, None]).double()], dim=1)


def bin_sums(measured: Array, bins: int) -> Array:
    """(T, 2) confidences and whether they are right -> (3 · bins,): counts, sums of right ones, sums of
    confidences."""
    bin_of = np.minimum((measured[:, 0] * bins).astype(np.int64), bins - 1)
    weights = (None, measured[:, 1], measured[:, 0])
    sums = [np.bincount(bin_of, weights=weight, minlength=bins) for weight in weights]
    return np.concatenate(sums).astype(np.float64)


def expected_calibration_error(sums: Array) -> Array:
    """(..., 3 · bins) -> (...)."""
    counts, right, confidence = np.split(sums, 3, axis=-1)
    error: Array = np.abs(right - confidence).sum(axis=-1) / counts.sum(axis=-1)
    return error


def position_totals(statistics: Array) -> Array:
    """(n, 3 · bins) -> (n, 3): counts, right ones, confidences."""
    totals: Array = statistics.reshape(len(statistics), 3, -1).sum(axis=2)
    return totals


def metrics(statistics: Array, bins: int, note: str) -> list[MetricRow]:
    totals = position_totals(statistics)
    about = {"positions": int(totals[:, 0].sum()), "bins": bins}
    return [
        reflected(ratio_row("ece", statistics, expected_calibration_error, note=note, detail=about)),
        ratio_row("accuracy", totals[:, [1, 0]], detail=about),
        ratio_row("confidence", totals[:, [2, 0]], note=note, detail=about),
    ]


def reflected(ece: MetricRow) -> MetricRow:
    """With the basic bootstrap interval in place of the percentile interval [low, high] of a value v:
    [2v - high, 2v - low], cut at 0 (Davison and Hinkley 1997, section 5.2)."""
    if ece.value is None or ece.low is None or ece.high is None:
        return ece
    low, high = (max(0.0, 2 * ece.value - end) for end in (ece.high, ece.low))
    note = "; ".join(filter(None, [ece.note, ABOVE if ece.value > high else ""]))
    return replace(ece, low=low, high=high, note=note, detail={**ece.detail, "interval": "basic bootstrap"})


def points(sums: Array) -> list[PointRow]:
    """sums (3 · bins,)."""
    return [
        PointRow("accuracy", confidence / count, right / count, str(int(count)))
        for count, right, confidence in sums.reshape(3, -1).T.tolist()
        if count
    ]
