"""Steps of analyses of a model's token distributions at the references: `calibration` and `support_density`.

Distributions are teacher-forced, in fp32, </s> included. Naeini et al. 2015; Peters and Martins 2021, Tables
6 and 7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepParams, StepResult
from creamtea.methods.analyses.probabilities import CalibrationParams
from creamtea.stats.resampling import FEW_VALUES, Array, pooled_median
from creamtea_workers.analysis.rows import BOOTSTRAP, SegmentStatistics, ratio_row
from creamtea_workers.corpora.batches import Batch, Pairs, parts
from creamtea_workers.corpora.segments import EncodedTestSet
from creamtea_workers.models.interface import output_logits
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.translator import TrainedModel

_POSITIONS = 1 << 12  # positions of a batch, padding included: B × T
_CELLS = 1 << 22  # log-scores held at once: 16 MB
ABOVE = "noise adds so much to it that it lies above its own interval"

# log-scores (n, V) and targets (n,) of n positions -> F numbers per position (n, F)
Statistic = Callable[[Tensor, Tensor], Tensor]


def measure_references(context: StepContext[Any], statistic: Statistic) -> tuple[TrainedModel, list[Array]]:
    """Load the model of a step with the inputs test_set, subwords and train, and measure the references.

    Returns also the statistics (T, F) of the T target positions of each segment.
    """
    prepare_torch(context.cpus)
    test_set = EncodedTestSet.of_step(context)
    references = test_set.subwords.encode_targets([row["reference"] for row in test_set.segments])
    trained, pairs = TrainedModel.of_step(context), Pairs(test_set.sources, references)
    lengths, sources = pairs.target_lengths, pairs.source_lengths
    measured: dict[int, Tensor] = {}
    for members in (part for batch in batches(lengths.tolist()) for part in parts(batch, sources)):
        context.progress(len(measured), len(lengths), "sentences")
        numbers = _measure(trained, pairs.batch(np.array(members)), statistic)
        measured.update(zip(members, numbers.split(lengths[members].tolist()), strict=True))
    context.progress(len(measured), len(lengths), "sentences")
    return trained, [measured[n].numpy() for n in range(len(lengths))]


@torch.inference_mode()
def _measure(trained: TrainedModel, batch: Batch, statistic: Statistic) -> Tensor:
    """Measure the batch's N target positions, sentence after sentence: (N, F)."""
    model = trained.model
    batch = batch.to(model.output_weight.device)
    hidden, targets = batch.real(model.decode(model.encode(batch.source), batch.target_in))
    size = max(1, _CELLS // model.vocabulary_size)
    parts = []
    for rows, wanted in zip(hidden.split(size), targets.split(size), strict=True):  # (n, D), (n,)
        log_scores = trained.objective.log_scores(output_logits(model, rows))
        parts.append(statistic(log_scores, wanted).double().cpu())
    return torch.cat(parts)


def batches(lengths: Sequence[int]) -> list[list[int]]:
    """Group the positions of all sentences by similar length, the longest first."""
    grouped: list[list[int]] = []
    for n in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
        if not grouped or (len(grouped[-1]) + 1) * lengths[grouped[-1][0]] > _POSITIONS:
            grouped.append([])
        grouped[-1].append(n)
    return grouped


# ---------------------------------------------------------------- calibration


def measure_calibration(context: StepContext[CalibrationParams]) -> StepResult:
    """Measure calibration, teacher-forced on the references; all positions weigh the same, with </s>.

    The confidence of a position is its largest probability, clamped to [0, 1]. (For SCONES it is the largest
    σ, a different quantity, as the rows' note says.) A position is right if its most probable subword is the
    reference's; of equally probable subwords the lowest id counts. With M bins of equal width, [m/M, (m+1)/M)
    and the last one closed, ECE = Σ |B_m|/N |acc(B_m) - conf(B_m)|. An empty bin has no point.

    Intervals are over sentences. Noise biases an ECE upwards, because errors that cancel in the population do
    not cancel in a sample; a resample adds the same bias again. So the interval is the basic bootstrap
    interval, which uses the second bias as an estimate of the first (`reflected`). In simulations with 300
    and 1,000 sentences it covers 86 to 94 % (docs/results/data/intervals.yaml); of a true ECE of 0.005 the
    percentile interval covered 0 and 12 %. Where the basic interval misses, it lies above a small error.
    """
    trained, measured = measure_references(context, confidence_and_accuracy)
    bins = context.params.bins
    statistics = np.stack([bin_sums(sentence, bins) for sentence in measured])  # (segments, 3 · bins)
    kept = SegmentStatistics()
    rows = calibration_rows(statistics, bins, trained.config.objective.confidence_note, kept)
    kept.save(context.output)
    return StepResult(rows, accuracy_points(statistics.sum(axis=0)))


def confidence_and_accuracy(log_scores: Tensor, targets: Tensor) -> Tensor:
    """Return the largest probability and, as 0 or 1, if its subword is the target: (n, V), (n,) -> (n, 2)."""
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
    return np.abs(right - confidence).sum(axis=-1) / counts.sum(axis=-1)


def calibration_rows(statistics: Array, bins: int, note: str, kept: SegmentStatistics) -> list[MetricRow]:
    totals = statistics.reshape(len(statistics), 3, bins).sum(axis=2)  # counts, right positions, confidences
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


def accuracy_points(sums: Array) -> list[PointRow]:
    """Return a point for each bin that has positions. `sums`: (3 · bins,)."""
    return [
        PointRow("accuracy", confidence / count, right / count, str(int(count)))
        for count, right, confidence in sums.reshape(3, -1).T.tolist()
        if count
    ]


# ---------------------------------------------------------------- support


def measure_support(context: StepContext[StepParams]) -> StepResult:
    """Measure the support, teacher-forced on the references; all positions weigh the same, with </s>.

    A subword is in the support if its log-score is above -inf, even if its probability underflows: the
    support of softmax and SCONES is the whole vocabulary.

    Intervals are over sentences. Points `support_size`: y is the share of positions with a support of more
    than x/2 and at most x subwords. x runs through the powers of two and ends at the size of the vocabulary;
    the label names the sizes ("5–8").
    """
    trained, measured = measure_references(context, support_sizes)
    sizes, vocabulary = [sentence[:, 0] for sentence in measured], trained.model.vocabulary_size
    kept = SegmentStatistics()
    rows = support_rows(sizes, vocabulary, kept)
    kept.save(context.output)
    return StepResult(rows, support_histogram(np.concatenate(sizes), vocabulary))


def support_sizes(log_scores: Tensor, targets: Tensor) -> Tensor:
    """Count the subwords in the support: (n, V) -> (n, 1)."""
    return (log_scores > -torch.inf).sum(dim=1, keepdim=True)


def support_rows(sizes: Sequence[Array], vocabulary: int, kept: SegmentStatistics) -> list[MetricRow]:
    """Measure density and size of the support. `sizes`: per sentence, the sizes (T,) at its positions."""
    sums = np.array([[own.sum(), len(own)] for own in sizes], dtype=np.float64)
    positions = int(sums[:, 1].sum())
    about = {"positions": positions, "vocabulary": vocabulary}
    median = pooled_median(sizes)
    return [
        kept.ratio_row("density", sums * [1 / vocabulary, 1.0], detail=about),
        kept.ratio_row("support_size", sums, detail=about),
        MetricRow(
            "support_size_median",
            median.value,
            median.low,
            median.high,
            note=f"{FEW_VALUES} sentences" if median.low is None else "",
            detail={"segments": len(sizes), "bootstrap": BOOTSTRAP, **about},
        ),
    ]


def support_histogram(sizes: Array, vocabulary: int) -> list[PointRow]:
    """Return the shares of positions by size of the support. sizes: (N,), at least 1."""
    counts = Counter((int(size) - 1).bit_length() for size in sizes)  # k: more than 2^(k-1), at most 2^k
    points = []
    for k, count in sorted(counts.items()):
        first, last = 2**k // 2 + 1, min(2**k, vocabulary)
        label = str(last) if first >= last else f"{first}–{last}"
        points.append(PointRow("support_size", last, count / len(sizes), label))
    return points
