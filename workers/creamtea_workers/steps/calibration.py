"""Step `calibration`: expected calibration error (Naeini et al. 2015; Peters and Martins 2021, Table 7)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.methods.analyses.probabilities import CalibrationParams
from creamtea.stats.resampling import Array
from creamtea_workers.analysis.forced import References
from creamtea_workers.analysis.rows import SegmentStatistics, ratio_row

ABOVE = "noise adds so much to it that it lies above its own interval"


def run(context: StepContext[CalibrationParams]) -> StepResult:
    """Measure calibration, teacher-forced on the references; each position counts alike, </s> included.

    The confidence of a position is its largest probability, clamped to [0, 1]. (For SCONES it is the largest
    σ, a different quantity, as the rows' note says.) A position is right if its most probable subword is the
    reference's; of equally probable subwords the lowest id counts. With M bins of equal width, [m/M, (m+1)/M)
    and the last one closed, ECE = Σ |B_m|/N |acc(B_m) - conf(B_m)|. An empty bin has no point.

    Intervals are over sentences. Noise adds to an ECE, because errors that cancel in truth do not cancel in a
    sample; in a resample it adds once more. So the interval is the basic one, which takes the second addition
    as the size of the first (`reflected`). Coverage of a true ECE in 400 simulations each (10 bins, 15
    positions per sentence), with the percentile interval's in brackets:

        sentences   0.005       0.02        0.05
          300       87 % (0)    91 % (81)   94 % (94)
        1,000       88 % (12)   90 % (94)   94 % (94)

    Where the basic interval misses, it lies above a small error.
    """
    references = References.load(context)
    measured = references.measure(confidence_and_accuracy, context)
    bins = context.params.bins
    statistics = np.stack([bin_sums(sentence, bins) for sentence in measured])  # (segments, 3 · bins)
    kept = SegmentStatistics()
    rows = metrics(statistics, bins, references.trained.config.objective.confidence_note, kept)
    kept.save(context.output)
    return StepResult(rows, points(statistics.sum(axis=0)))


def confidence_and_accuracy(log_scores: Tensor, targets: Tensor) -> Tensor:
    """Return the largest probability, and 1 if its subword is the target, else 0: (n, V), (n,) -> (n, 2)."""
    chosen = log_scores.argmax(dim=1, keepdim=True)
    confidence = log_scores.gather(1, chosen).double().exp().clamp(0.0, 1.0)
    return torch.cat([confidence, (chosen == targets[:, None]).double()], dim=1)


def bin_sums(measured: Array, bins: int) -> Array:
    """Sum counts, right positions and confidences by bin: (T, 2) -> (3 · bins,)."""
    bin_of = np.minimum((measured[:, 0] * bins).astype(np.int64), bins - 1)
    weights = (None, measured[:, 1], measured[:, 0])
    sums = [np.bincount(bin_of, weights=weight, minlength=bins) for weight in weights]
    return np.concatenate(sums).astype(np.float64)


def expected_calibration_error(sums: Array) -> Array:
    """Compute ECE: (..., 3 · bins) -> (...)."""
    counts, right, confidence = np.split(sums, 3, axis=-1)
    error: Array = np.abs(right - confidence).sum(axis=-1) / counts.sum(axis=-1)
    return error


def metrics(statistics: Array, bins: int, note: str, kept: SegmentStatistics) -> list[MetricRow]:
    totals = statistics.reshape(len(statistics), 3, bins).sum(axis=2)  # counts, right ones, confidences
    about = {"positions": int(totals[:, 0].sum()), "bins": bins}
    return [
        reflected(ratio_row("ece", statistics, expected_calibration_error, note=note, detail=about)),
        kept.ratio_row("accuracy", totals[:, [1, 0]], detail=about),
        kept.ratio_row("confidence", totals[:, [2, 0]], note, about),
    ]


def reflected(ece: MetricRow) -> MetricRow:
    """Replace the percentile interval [low, high] of a value v by the basic bootstrap interval.

    That is [2v - high, 2v - low], cut at 0 (Davison and Hinkley 1997, section 5.2).
    """
    if ece.value is None or ece.low is None or ece.high is None:
        return ece
    low, high = (max(0.0, 2 * ece.value - end) for end in (ece.high, ece.low))
    note = "; ".join(filter(None, [ece.note, ABOVE if ece.value > high else ""]))
    return replace(ece, low=low, high=high, note=note, detail={**ece.detail, "interval": "basic bootstrap"})


def points(sums: Array) -> list[PointRow]:
    """Return a point per bin that has positions. sums: (3 · bins,)."""
    return [
        PointRow("accuracy", confidence / count, right / count, str(int(count)))
        for count, right, confidence in sums.reshape(3, -1).T.tolist()
        if count
    ]
