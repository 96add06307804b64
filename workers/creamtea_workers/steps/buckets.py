"""Step `buckets`: the scores of buckets of a test set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.methods.analyses.buckets import ALL, OF_TRAINING_TEXT, BucketsParams
from creamtea.wording import counted
from creamtea.words import is_unspaced
from creamtea_workers.analysis import buckets
from creamtea_workers.analysis.buckets import Bucket
from creamtea_workers.analysis.rows import ratio_row
from creamtea_workers.corpora.text import UserFile, iterate_lines, normalise, read_jsonl
from creamtea_workers.metrics import build_metric
from creamtea_workers.metrics.texts import read_texts


def run(context: StepContext[BucketsParams]) -> StepResult:
    """BLEU and chrF of each bucket and of `all`, of summed statistics as corpus scores are, with the
    bootstrap of score steps. What a test set does not have (idioms, training text, labels) makes none."""
    params = context.params
    segments = read_jsonl(context.input("test_set") / "segments.jsonl")
    divided = [bucket for by in params.by for bucket in _buckets(by, segments, context)]
    texts = read_texts(context.input("test_set"), context.input("decode"))
    everything = Bucket(ALL, ALL, range(len(segments)))
    rows = []
    for number, spec in enumerate((params.bleu, params.chrf)):
        context.progress(number, 2, f"{spec.describe()} of {counted(len(divided), 'bucket')}")
        metric = build_metric(spec, params.languages, context)
        statistics = metric.statistics(texts)
        rows.append(ratio_row(spec.row(), statistics, metric.score, ALL, metric.note))
        for bucket, subject, position in _numbered(divided):
            facts = {
                "kind": bucket.kind,
                "words": bucket.words,
                "position": position,
                "segments": len(bucket.members),
            }
            detail = {"bucket": facts, "signature": metric.signature() + texts.treatment}
            if len(bucket.members) < params.min_segments:
                count = len(bucket.members)
                note = (
                    f"{counted(count, 'segment')}; a bucket needs {params.min_segments} for a score: "
                    "min_segments of the analysis"
                )
                rows.append(MetricRow(spec.row(), None, subject=subject, note=note, detail=detail))
            else:
                own = statistics[np.array(bucket.members)]
                rows.append(ratio_row(spec.row(), own, metric.score, subject, metric.note, detail))
    context.progress(2, 2)
    return StepResult(rows, facts={"segments": len(everything.members), "buckets": len(divided)})


def _numbered(divided: Sequence[Bucket]) -> Iterator[tuple[Bucket, str, int]]:
    """Each bucket with its subject and its position among those of its kind, from 1."""
    counts: dict[str, int] = {}
    for bucket in divided:
        counts[bucket.kind] = counts.get(bucket.kind, 0) + 1
        yield bucket, f"{bucket.kind}/{counts[bucket.kind]}", counts[bucket.kind]


def _buckets(by: str, segments: list[dict[str, Any]], context: StepContext[BucketsParams]) -> list[Bucket]:
    params, references = context.params, [normalise(row["reference"]) for row in segments]
    match by:
        case "length":
            sources = [normalise(row["source"]) for row in segments]
            return _by_length(by, sources, params.languages.source, params)
        case "reference_length":
            return _by_length(by, references, params.languages.target, params)
        case "idiom":
            return buckets.by_idiom(segments)
        case "label":
            return buckets.by_label(_labels(context, len(segments))) if params.labels else []
    return _by_frequency(by, references, context)


def _by_length(by: str, texts: Sequence[str], language: str, params: BucketsParams) -> list[Bucket]:
    lengths = [len(buckets.words_of(text, language)) for text in texts]
    bounds = params.lengths or buckets.equal_bounds(lengths, params.count)
    unit = "characters" if is_unspaced(language) else "words"
    return buckets.by_size(by, lengths, bounds, buckets.length_name(unit))


def _by_frequency(by: str, references: Sequence[str], context: StepContext[BucketsParams]) -> list[Bucket]:
    """Of references with words. The mean is the geometric one of counts, to which 1 is added."""
    assert by in OF_TRAINING_TEXT
    params, corpora = context.params, context.inputs("corpus")
    if not corpora:
        return []
    words = [buckets.words_of(reference, params.languages.target) for reference in references]
    numbers = [n for n, own in enumerate(words) if own]
    text = iterate_lines(corpora[0] / "train.tgt")
    counts = buckets.count_words(text, {word for own in words for word in own}, params.languages.target)
    if by == "rarest":
        divided = buckets.by_rarest(
            [min(counts[word] for word in words[n]) for n in numbers], params.frequencies
        )
    else:
        means = [float(np.exp(np.log1p([counts[word] for word in words[n]]).mean()) - 1) for n in numbers]
        divided = buckets.by_size(
            by, means, buckets.equal_bounds(means, params.count), buckets.frequency_name
        )
    return [Bucket(bucket.kind, bucket.words, [numbers[n] for n in bucket.members]) for bucket in divided]


def _labels(context: StepContext[BucketsParams], count: int) -> list[str]:
    params = context.params
    assert params.labels is not None
    file = UserFile.find(params.labels, context.locations, params.digests or {})
    labels = [normalise(line) for line in file.lines()][: params.limit]
    if len(labels) != count:
        raise StepError(
            f"{params.labels} has {counted(len(labels), 'line')} and the test set "
            f"{counted(count, 'segment')}: give a label for each segment, in the same order"
        )
    return labels
