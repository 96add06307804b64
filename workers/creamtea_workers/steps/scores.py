"""Steps that score the outputs of systems and compare them: `outputs`, `score`, `compare`, `pairs`,
`agreement`, `differences`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np

from creamtea.contract.step import MetricRow, StepContext, StepParams, StepResult
from creamtea.error_spans import SPANS_FILE
from creamtea.errors import StepError
from creamtea.methods.analysis import DifferencesParams
from creamtea.methods.metrics import Metric as MetricSpec
from creamtea.stats.resampling import (
    MIN_VALUES,
    Array,
    ScoreFunction,
    bootstrap_interval,
    bootstrap_pairs,
    paired_bootstrap,
    randomization_of_pairs,
)
from creamtea.steps.systems import CompareParams, OutputsParams, PairsParams, ScoreParams
from creamtea.wording import counted
from creamtea_workers.analysis.rows import BOOTSTRAP, Measured, Score, SegmentStatistics, ratio_row
from creamtea_workers.corpora.text import UserFile, plain_line, read_jsonl, write_jsonl
from creamtea_workers.metrics import build_metric
from creamtea_workers.metrics.base import (
    Texts,
    groups_of,
    mean_statistics,
    obstacles,
    ratio,
    read_segment_scores,
    read_texts,
    references_of,
    treatment_of,
)
from creamtea_workers.metrics.sacrebleu_metrics import (
    CHARACTER_ORDER,
    bleu_from_sums,
    characters,
    chrf_from_sums,
    ngram_matches,
)
from creamtea_workers.metrics.scorer import ScorerMetric
from creamtea_workers.metrics.words import WordMetric

LONGEST_RUN = 4  # words of BLEU's longest n-grams
TOO_FEW = "one of the two has too few sentences that this is measured over"
_FEWEST: Mapping[Score, int] = {"ratio": 1, "deviation": 2}  # segments that a score is defined for


def copy_outputs(context: StepContext[OutputsParams]) -> StepResult:
    """Write one hypothesis per segment: line n of the file belongs to segment n.

    A line ends in LF or CR LF alone, and its text stays as it is (`creamtea.words.plain`). There is no model,
    so score, length in subwords and selected size are null. Raises StepError for a NUL character.
    """
    segments = read_jsonl(context.input("test_set") / "segments.jsonl")
    params = context.params
    if params.reference is not None:
        texts = references_of(segments)[params.reference - 1]
    else:
        assert params.file is not None
        file = UserFile.find(params.file, context.locations, params.digests or {})
        texts = [
            plain_line(line, params.file, number)
            for number, line in enumerate(file.lines(), start=1)
            if params.limit is None or number <= params.limit
        ]
        if len(texts) != len(segments):
            raise StepError(
                f"{params.file} has {counted(len(texts), 'line')} and the test set "
                f"{counted(len(segments), 'segment')}: give a line for each segment, in the same order (a "
                "line ends in a line feed, \\n, and nothing else)"
            )
    rows = [
        {"index": row["index"], "text": text, "score": None, "length": None, "selected_size": None}
        for row, text in zip(segments, texts, strict=True)
    ]
    write_jsonl(context.output / "hypotheses.jsonl", rows)
    context.progress(1, 1)
    empty, count = sum(not text for text in texts), len(texts)
    return StepResult([MetricRow("empty", empty / count, detail={"count": empty, "of": count})])


def score(context: StepContext[ScoreParams]) -> StepResult:
    """Compute the corpus score with a 95 % bootstrap interval over segments, and a score for each segment.

    If there is no interval, a note says why. BLEU also gives `length_ratio`: hypothesis tokens over reference
    tokens of the whole test set, as BLEU's tokenizer counts them, without the end of sentence.

    A scorer that looks for errors also writes them to `error_spans.jsonl`. If the metric cannot compare most
    of the texts, the detail `unfit` says why. Raises StepUnavailable if the metric's tokenizer, environment
    or model is unavailable.
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
        "bootstrap": {**BOOTSTRAP, "mean": interval.mean, "half_width": interval.half_width},
    }
    text_obstacles = obstacles(texts) if spec.of_strings else {}
    unfit = [metric.note] if spec.of_strings else []
    unfit += [words for words, count in text_obstacles.items() if 2 * count > len(texts.hypotheses)]
    # the second column has the length of the closest reference
    if spec.counts_length and 2 * (statistics[:, 1] < LONGEST_RUN).sum() > len(statistics):
        unfit.append("most references have fewer than four tokens, and BLEU compares runs of up to four")
    if any(unfit):
        detail["unfit"] = "; ".join(filter(None, unfit))
    notes = [metric.note, *text_obstacles]
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
    """Score each group separately, if there are several."""
    names = list(dict.fromkeys(groups))
    for name in names if len(names) > 1 else ():
        of_group = statistics[[group == name for group in groups]]
        interval = bootstrap_interval(of_group, metric.score)
        detail = {"segments": len(of_group)}
        note = interval.reason or ""
        yield MetricRow(metric.name, interval.value, interval.low, interval.high, name, note, detail)


def _of_references(spec: MetricSpec, texts: Texts, without_reference: int | None) -> str:
    """Say which references the score uses; "" if it uses all."""
    count = len(texts.all_references)
    words = []
    if without_reference is not None:
        words.append(f"against the other {'reference' if count == 1 else 'references'} only")
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


def compare(context: StepContext[CompareParams]) -> StepResult:
    """Compare a system with the baseline: `delta` = system - baseline.

    Each side is the mean over its training seeds. `delta` has a 95 % interval and, in its detail, the
    p-values of both tests (`p_value` is the bootstrap's as sacreBLEU defines it).

    BLEU and chrF compare the decoded texts. COMET compares the segment scores of its score steps, so that the
    model does not run again.
    """
    systems = [context.inputs(role) for role in ("baseline", "system")]
    return StepResult(metrics=list(compared(context, systems).values()))


def compared(
    context: StepContext[Any], systems: Sequence[Sequence[Path]]
) -> dict[tuple[int, int], MetricRow]:
    """Return the `delta` of every pair of systems, by their positions (baseline, system).

    `systems`: the folders of each system's outputs or segment scores.
    """
    metric = build_metric(context.params.metric, context.params.languages, context)
    significance, of_outputs = context.params.significance, context.params.metric.compares == "outputs"
    total, done = sum(map(len, systems)), 0
    statistics: list[list[Array]] = [[] for _ in systems]
    for of_system, outputs in zip(statistics, systems, strict=True):
        for folder in outputs:
            context.progress(done, total + 2, f"{metric.name}: outputs")
            of_system.append(
                metric.statistics(read_texts(context.input("test_set"), folder))
                if of_outputs
                else mean_statistics(read_segment_scores(folder))
            )
            done += 1
    if len({len(array) for arrays in statistics for array in arrays}) != 1:
        raise StepError("the outputs to compare have different numbers of segments")
    context.progress(total, total + 2, f"{metric.name}: paired bootstrap")
    segments = read_jsonl(context.input("test_set") / "segments.jsonl") if of_outputs else []
    groups = groups_of(segments) if context.params.metric.by_group else None
    results = bootstrap_pairs(statistics, metric.score, significance.samples, significance.seed, groups)
    context.progress(total + 1, total + 2, f"{metric.name}: approximate randomisation")
    p_swaps = randomization_of_pairs(statistics, metric.score, significance.trials, significance.seed)
    rows = {}
    for (i, j), result in results.items():
        detail = {
            "signature": f"{metric.signature()}{treatment_of(segments)}|seed:{significance.seed}"
            f"|bs:{significance.samples}",
            "p_value": result.p_value,  # sacreBLEU's definition
            "p_two_sided": result.p_two_sided,
            "p_randomization": p_swaps[i, j],
            "baseline": result.baseline,
            "system": result.system,
            "segments": len(statistics[j][0]),
            "samples": significance.samples,
            "trials": significance.trials,
            "seed": significance.seed,
            "outputs": {"baseline": len(systems[i]), "system": len(systems[j])},
        }
        interval = result.delta, result.low, result.high
        rows[i, j] = MetricRow("delta", *interval, subject=metric.name, note=result.reason, detail=detail)
    return rows


def compare_pairs(context: StepContext[PairsParams]) -> StepResult:
    """Return a `delta` for each pair. The subject "0/2" is the third system minus the first."""
    folders = iter(context.inputs("systems"))
    systems = [list(islice(folders, count)) for count in context.params.outputs]
    rows = compared(context, systems)
    return StepResult(metrics=[replace(row, subject=f"{i}/{j}") for (i, j), row in rows.items()])


def measure_agreement(context: StepContext[StepParams]) -> StepResult:
    """Measure chrF2 between systems, each system's mean over the others, and lengths in characters."""
    texts = [read_texts(context.input("test_set"), folder) for folder in context.inputs("systems")]
    outputs = [system_texts.hypotheses for system_texts in texts]
    statistics = np.empty((len(outputs[0]), len(outputs), len(outputs), CHARACTER_ORDER * 3))
    for number, segment in enumerate(zip(*outputs, strict=True)):
        context.progress(number, len(statistics), "n-grams in common")
        statistics[number] = common_ngrams(segment)
    sums = statistics.sum(axis=0)
    rows = [
        MetricRow("agreement", float(mean_chrf(np.hstack([sums[i, j], sums[j, i]]))), subject=f"{i}/{j}")
        for i, j in combinations(range(len(outputs)), 2)
    ]
    lengths = np.array([[len(text) for text in column] for column in outputs], dtype=np.float64)
    of_source = np.array([len(text) for text in texts[0].sources], dtype=np.float64)
    for place in range(len(outputs)):
        ways = statistics[:, place], statistics[:, :, place]
        others = [np.delete(way, place, axis=1).reshape(len(way), -1) for way in ways]
        mean_length = np.delete(lengths, place, axis=0).mean(axis=0)
        rows += [
            ratio_row("agreement", np.hstack(others), mean_chrf, subject=str(place)),
            ratio_row("length_others", np.column_stack([lengths[place], mean_length]), subject=str(place))
            if mean_length.any()
            else MetricRow("length_others", None, subject=str(place), note="the other outputs are empty"),
            ratio_row("length_source", np.column_stack([lengths[place], of_source]), subject=str(place)),
        ]
    context.progress(1, 1)
    return StepResult(rows)


def common_ngrams(texts: tuple[str, ...]) -> Array:
    """Count common n-grams of n texts: (n, n, 3 · orders).

    These are sacreBLEU's statistics of chrF2 for each text as hypothesis and each as reference: n-grams of
    the hypothesis, of the reference, and of both.
    """
    counts, matched = ngram_matches(list(map(characters, texts)), CHARACTER_ORDER)
    statistics = np.empty((*matched.shape, 3))
    # a hypothesis' n-grams do not count if the reference is too short to have any
    statistics[..., 0] = counts[:, None] * (counts > 0)
    statistics[..., 1] = counts
    statistics[..., 2] = matched
    return statistics.reshape(len(texts), len(texts), -1)


def mean_chrf(sums: Array) -> Array:
    """Average chrF2 (...,) over pairs of outputs.

    `sums`: the pairs' concatenated statistics (..., pairs · 3 · orders).
    """
    return chrf_from_sums(sums.reshape(*sums.shape[:-1], -1, CHARACTER_ORDER * 3)).mean(axis=-1)


def compare_rows(context: StepContext[DifferencesParams]) -> StepResult:
    """Compare the rows of an analysis in pairs: `delta`, subject MEASURE/SETTING.

    Without `base`, delta = system − baseline, at the same setting. With `base`, delta = system at the setting
    − system at `base`. Each side is the mean over seeds, with the interval and the p-values of
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
    kind, segments = system[0][own].score, len(arrays[0][0])
    # if only a few segments have the measure, equal systems differ too often
    fewest = max(_FEWEST[kind], min(MIN_VALUES, segments)) if kind in _FEWEST else 0
    if any(np.count_nonzero(array[:, -1]) < fewest for outputs in arrays for array in outputs):
        return MetricRow("delta", None, subject=subject, note=TOO_FEW)
    result = paired_bootstrap(*arrays, score, params.samples, params.seed)
    scores = [[float(score(array.sum(axis=0))) for array in outputs] for outputs in arrays]
    detail = {
        "p_value": result.p_value,  # sacreBLEU's definition
        "p_two_sided": result.p_two_sided,
        "scores": {"baseline": scores[0], "system": scores[1]},
        "segments": segments,
        "samples": params.samples,
        "seed": params.seed,
    }
    interval = result.delta, result.low, result.high
    return MetricRow("delta", *interval, subject=subject, note=result.reason, detail=detail)


def deviation(sums: Array) -> Array:
    """Compute sample standard deviations: (..., 3) sums of squares, values and segments -> (...).

    A single segment has none: NaN.
    """
    squares, total, count = np.moveaxis(sums, -1, 0)
    variance = (squares - total**2 / np.maximum(count, 1)) / np.maximum(count - 1, 1)
    return np.where(count > 1, np.sqrt(np.maximum(variance, 0.0)), np.nan)


SCORES: Mapping[Score, ScoreFunction] = {
    "ratio": ratio,
    "deviation": deviation,
    "bleu": partial(bleu_from_sums, effective_order=False),
}
