"""Score one system's outputs on one test set with one metric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.error_spans import SPANS_FILE
from creamtea.methods.metrics import Metric
from creamtea.stats.resampling import SAMPLES, SEED, bootstrap_interval
from creamtea.steps.systems import ScoreParams
from creamtea.wording import counted
from creamtea_workers.corpora.text import write_jsonl
from creamtea_workers.metrics import build_metric
from creamtea_workers.metrics.base import Array, Texts, obstacles, read_texts
from creamtea_workers.metrics.scorer import ScorerMetric
from creamtea_workers.metrics.words import WordMetric


def run(context: StepContext[ScoreParams]) -> StepResult:
    """Compute the corpus score with a 95 % bootstrap interval over segments, and a score for each segment.

    If there is no interval, a note says why. BLEU also gives `length_ratio`: hypothesis over reference tokens
    of the whole test set, as BLEU's tokenizer counts them, end of sentence on neither side.
    `error_spans.jsonl` holds the errors that a scorer found, if it looks for any. The detail `unfit` says why
    the metric cannot compare most of these texts, if it cannot. Raises StepUnavailable if the metric's
    tokenizer, environment or model is unavailable.
    """
    spec = context.params.metric
    metric = build_metric(spec, context.params.languages, context)
    without_reference = context.params.without_reference
    texts = read_texts(context.input("test_set"), context.input("decode"), without_reference)
    context.progress(0, 2, f"{metric.name}: {counted(len(texts.sources), 'segment')}")
    statistics = metric.statistics(texts)
    context.progress(1, 2, f"{metric.name}: bootstrap")
    interval = bootstrap_interval(statistics, metric.score, groups=texts.groups if spec.by_group else None)
    scores = zip(texts.indices, metric.segment_scores(statistics), strict=True)
    write_jsonl(
        context.output / "segment_scores.jsonl",
        ({"index": index, "value": float(value)} for index, value in scores),
    )
    if isinstance(metric, ScorerMetric) and metric.error_spans:
        write_jsonl(
            context.output / SPANS_FILE,
            ({"index": index, "spans": metric.error_spans[index]} for index in texts.indices),
        )

    signature = metric.signature() + texts.treatment
    detail = {
        "signature": signature,
        "segments": len(statistics),
        "bootstrap": {
            "samples": SAMPLES,
            "seed": SEED,
            "mean": interval.mean,
            "half_width": interval.half_width,
        },
    }
    text_obstacles = obstacles(texts) if spec.of_strings else []
    unfit = [metric.note] if spec.of_strings else []
    unfit += [obstacle.words for obstacle in text_obstacles if 2 * obstacle.segments > len(texts.hypotheses)]
    if any(unfit):
        detail["unfit"] = "; ".join(filter(None, unfit))
    notes = [metric.note, *(obstacle.words for obstacle in text_obstacles)]
    note = "; ".join(filter(None, [*notes, _of_references(spec, texts, without_reference), interval.reason]))
    rows = [MetricRow(metric.name, interval.value, interval.low, interval.high, note=note, detail=detail)]
    if context.params.each_group and isinstance(metric, WordMetric):
        rows += _each_group(metric, metric.of_own_group(statistics), texts.groups)
    if spec.counts_length:
        rows.append(length_ratio(statistics, signature))
    context.progress(2, 2, metric.name)
    facts = {"segments": len(statistics), **metric.facts}
    return StepResult(metrics=rows, facts=facts)


def _each_group(metric: WordMetric, statistics: Array, groups: Sequence[str]) -> Iterator[MetricRow]:
    """Score each group by itself, if there are several."""
    names = list(dict.fromkeys(groups))
    for name in names if len(names) > 1 else ():
        of_group = statistics[[group == name for group in groups]]
        interval = bootstrap_interval(of_group, metric.score)
        detail = {"segments": len(of_group)}
        note = interval.reason or ""
        yield MetricRow(metric.name, interval.value, interval.low, interval.high, name, note, detail)


def _of_references(spec: Metric, texts: Texts, without_reference: int | None) -> str:
    """Say against which references the score is, if it is not against all."""
    count = len(texts.all_references)
    words = (
        []
        if without_reference is None
        else [f"against the other {'reference' if count == 1 else 'references'} only"]
    )
    if count > 1 and not spec.several_references:
        words.append(f"against one reference of {count}, the first")
    return "; ".join(words)


def length_ratio(statistics: Array, signature: str) -> MetricRow:
    """Compute the ratio from statistics that begin with the lengths of hypothesis and reference."""
    hypothesis, reference = statistics[:, :2].sum(axis=0)
    detail = {"hypothesis_tokens": hypothesis, "reference_tokens": reference, "signature": signature}
    if reference == 0:
        return MetricRow("length_ratio", None, note="every reference is empty", detail=detail)
    return MetricRow("length_ratio", hypothesis / reference, detail=detail)
