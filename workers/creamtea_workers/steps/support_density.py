"""Step `support_density`: how much of the vocabulary has a probability above zero.

Peters and Martins 2021, Table 6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.methods.analyses.probabilities import SupportDensityParams
from creamtea.stats.resampling import FEW_VALUES, Array, pooled_median
from creamtea_workers.analysis.forced import References
from creamtea_workers.analysis.rows import BOOTSTRAP, SegmentStatistics


def run(context: StepContext[SupportDensityParams]) -> StepResult:
    """Measure the support, teacher-forced on the references; each position counts alike, </s> included.

    A subword is in the support if its log-score is above -inf, so that it counts even if its probability
    underflows: softmax and SCONES have the whole vocabulary.

    Intervals are over sentences. Points `support_size`: y is the share of positions with a support of more
    than x/2 and at most x subwords. x are the powers of two, at last the size of the vocabulary; the label
    names the sizes ("5–8").
    """
    references = References.load(context)
    sizes = [sentence[:, 0] for sentence in references.measure(support_sizes, context)]
    vocabulary = references.trained.model.vocabulary_size
    kept = SegmentStatistics()
    rows = metrics(sizes, vocabulary, kept)
    kept.save(context.output)
    return StepResult(rows, histogram(np.concatenate(sizes), vocabulary))


def support_sizes(log_scores: Tensor, targets: Tensor) -> Tensor:
    """Count the subwords in the support: (n, V) -> (n, 1)."""
    return (log_scores > -torch.inf).sum(dim=1, keepdim=True)


def metrics(sizes: Sequence[Array], vocabulary: int, kept: SegmentStatistics) -> list[MetricRow]:
    """Measure density and size of the support. `sizes`: of each sentence, (T,) at its positions."""
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


def histogram(sizes: Array, vocabulary: int) -> list[PointRow]:
    """Return the shares of positions by size of the support. sizes: (N,), at least 1."""
    counts = Counter((int(size) - 1).bit_length() for size in sizes)  # k: more than 2^(k-1), at most 2^k
    points = []
    for k, count in sorted(counts.items()):
        first, last = 2**k // 2 + 1, min(2**k, vocabulary)
        label = str(last) if first >= last else f"{first}–{last}"
        points.append(PointRow("support_size", last, count / len(sizes), label))
    return points
