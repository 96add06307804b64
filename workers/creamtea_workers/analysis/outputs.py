"""What analyses say of a search's outputs."""

from __future__ import annotations

from pathlib import Path

from creamtea.contract.step import MetricRow
from creamtea.methods.analyses.beam_sizes import OutputParams
from creamtea_workers.analysis.paired import SegmentStatistics
from creamtea_workers.analysis.rows import ratio_row, share_row
from creamtea_workers.metrics.bleu import BleuMetric
from creamtea_workers.metrics.texts import read_texts


def output_rows(
    params: OutputParams, test_set: Path, decode: Path, subject: str, kept: SegmentStatistics
) -> list[MetricRow]:
    """`test_set` and `decode`: the folders of a test set and of its decoding. What each segment adds is
    `kept`.

    `bleu` (detail.signature) and `length_ratio`, hypothesis over reference tokens of the whole test set as
    BLEU's tokenizer counts them, with bootstrap intervals over segments; `empty`, the share of outputs
    without text, with a Wilson interval. StepError for a test set without segments.
    """
    metric = BleuMetric(params.metric, params.languages)
    texts = read_texts(test_set, decode)
    statistics = metric.statistics(texts)
    about = {"signature": metric.signature() + texts.treatment}
    bleu = ratio_row("bleu", statistics, metric.score, subject, metric.note, about)
    lengths = statistics[:, :2]
    if lengths[:, 1].any():
        length = ratio_row("length_ratio", lengths, subject=subject, detail=about)
    else:
        length = MetricRow("length_ratio", None, subject=subject, note="every reference is empty")
    empty = [not text for text in texts.hypotheses]
    kept.add("bleu", statistics, subject, "bleu")
    kept.add("length_ratio", lengths, subject)
    kept.share("empty", empty, subject)
    return [bleu, length, share_row("empty", sum(empty), len(empty), subject)]
