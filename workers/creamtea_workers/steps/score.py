"""Score one system's outputs on one test set with one metric."""

from __future__ import annotations

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.stats.bootstrap import SAMPLES, SEED, bootstrap_interval
from creamtea.steps.systems import ScoreParams
from creamtea_workers.corpora.text import write_jsonl
from creamtea_workers.metrics import build_metric
from creamtea_workers.metrics.base import Array
from creamtea_workers.metrics.texts import read_texts


def run(context: StepContext[ScoreParams]) -> StepResult:
    """Corpus score with a 95 % interval (bootstrap over segments), and a score for each segment.

    BLEU also gives `length_ratio`: hypothesis over reference tokens of the whole test set, as BLEU's
    tokenizer counts them, end of sentence on neither side.
    Raises StepUnavailable when the metric's tokenizer, environment or model is unavailable.
    """
    spec = context.params.metric
    metric = build_metric(spec, context.params.languages, context)
    texts = read_texts(context.input("test_set"), context.input("decode"))
    context.progress(0, 2, f"{metric.name}: {len(texts.sources)} segments")
    statistics = metric.statistics(texts)
    context.progress(1, 2, f"{metric.name}: bootstrap")
    interval = bootstrap_interval(statistics, metric.score, groups=texts.groups if spec.by_group else None)
    scores = zip(texts.indices, metric.segment_scores(statistics), strict=True)
    write_jsonl(
        context.output / "segment_scores.jsonl",
        ({"index": index, "value": float(value)} for index, value in scores),
    )

    detail = {
        "signature": metric.signature(),
        "segments": len(statistics),
        "bootstrap": {
            "samples": SAMPLES,
            "seed": SEED,
            "mean": interval.mean,
            "half_width": interval.half_width,
        },
    }
    rows = [
        MetricRow(metric.name, interval.value, interval.low, interval.high, note=metric.note, detail=detail)
    ]
    if spec.counts_length:
        rows.append(length_ratio(statistics, metric.signature()))
    context.progress(2, 2, metric.name)
    facts = {"segments": len(statistics), **metric.facts}
    return StepResult(metrics=rows, facts=facts)


def length_ratio(statistics: Array, signature: str) -> MetricRow:
    """From statistics whose first two columns are hypothesis and reference lengths."""
    hypothesis, reference = statistics[:, :2].sum(axis=0)
    detail = {"hypothesis_tokens": hypothesis, "reference_tokens": reference, "signature": signature}
    if reference == 0:
        return MetricRow("length_ratio", None, note="every reference is empty", detail=detail)
    return MetricRow("length_ratio", hypothesis / reference, detail=detail)
