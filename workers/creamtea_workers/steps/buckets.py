"""Step `buckets`: score the buckets of a test set."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.methods.analyses.buckets import ALL, OF_TRAINING_TEXT, BucketsParams
from creamtea.wording import counted
from creamtea.words import MARK, WORD, is_unspaced, with_one_mark
from creamtea_workers.analysis.rows import ratio_row
from creamtea_workers.corpora.text import UserFile, iterate_lines, normalise, read_jsonl
from creamtea_workers.metrics import build_metric
from creamtea_workers.metrics.base import read_texts


def run(context: StepContext[BucketsParams]) -> StepResult:
    """Score each bucket and `all` by BLEU and chrF, with the same bootstrap as score steps.

    A test set without idioms, training text or labels has no buckets of that kind.
    """
    params = context.params
    segments = read_jsonl(context.input("test_set") / "segments.jsonl")
    divided = [
        (position, bucket)
        for by in dict.fromkeys(params.by)
        for position, bucket in enumerate(_buckets(by, segments, context), start=1)
    ]
    texts = read_texts(context.input("test_set"), context.input("decode"))
    rows = []
    for number, spec in enumerate((params.bleu, params.chrf)):
        context.progress(number, 2, f"{spec.describe()} of {counted(len(divided), 'bucket')}")
        metric = build_metric(spec, params.languages, context)
        statistics = metric.statistics(texts)
        rows.append(ratio_row(spec.row(), statistics, metric.score, ALL, metric.note))
        for position, bucket in divided:
            subject = f"{bucket.kind}/{position}"
            size = len(bucket.members)
            facts = {"kind": bucket.kind, "words": bucket.words, "position": position, "segments": size}
            detail = {"bucket": facts, "signature": metric.signature() + texts.treatment}
            if size < params.min_segments:
                note = (
                    f"{counted(size, 'segment')}; a bucket needs {params.min_segments} for a score: "
                    "min_segments of the analysis"
                )
                rows.append(MetricRow(spec.row(), None, subject=subject, note=note, detail=detail))
            else:
                of_bucket = statistics[np.array(bucket.members)]
                rows.append(ratio_row(spec.row(), of_bucket, metric.score, subject, metric.note, detail))
    context.progress(2, 2)
    return StepResult(rows, facts={"segments": len(segments), "buckets": len(divided)})


def _buckets(by: str, segments: list[dict[str, Any]], context: StepContext[BucketsParams]) -> list[Bucket]:
    params, references = context.params, [normalise(row["reference"]) for row in segments]
    match by:
        case "length":
            sources = [normalise(row["source"]) for row in segments]
            return _by_length(by, sources, params.languages.source, params)
        case "reference_length":
            return _by_length(by, references, params.languages.target, params)
        case "idiom":
            return by_idiom(segments)
        case "label":
            return by_label(_labels(context, len(segments))) if params.labels else []
    return _by_frequency(by, references, context)


def _by_length(by: str, texts: Sequence[str], language: str, params: BucketsParams) -> list[Bucket]:
    lengths = [len(words_of(text, language)) for text in texts]
    bounds = params.lengths or equal_bounds(lengths, params.count)
    unit = "characters" if is_unspaced(language) else "words"
    return by_size(by, lengths, bounds, length_name(unit))


def _by_frequency(by: str, references: Sequence[str], context: StepContext[BucketsParams]) -> list[Bucket]:
    """Divide references by the frequency of their words in the training text; omit those without words.

    The mean frequency is geometric, over counts plus 1.
    """
    assert by in OF_TRAINING_TEXT
    params, corpora = context.params, context.inputs("corpus")
    if not corpora:
        return []
    words = [words_of(reference, params.languages.target) for reference in references]
    numbers = [n for n, words_of_reference in enumerate(words) if words_of_reference]
    text = iterate_lines(corpora[0] / "train.tgt")
    counts = count_words(text, chain.from_iterable(words), params.languages.target)
    if by == "rarest":
        rarest, begins = [min(counts[word] for word in words[n]) for n in numbers], params.frequencies

        def name(low: float, high: float) -> str:
            place = bisect_right(begins, low)
            return _times([0, *begins][place], [*(begin - 1 for begin in begins), None][place])

        divided = by_size(by, rarest, [begin - 1 for begin in begins], name)
    else:
        means = [float(np.exp(np.log1p([counts[word] for word in words[n]]).mean()) - 1) for n in numbers]
        divided = by_size(
            by, means, equal_bounds(means, params.count), lambda low, high: _times(round(low), round(high))
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


# ---------------------------------------------------------------- dividing a test set


MAX_LABELS = 12  # labels with a bucket each; rarer labels share one
_WORD = re.compile(WORD)
_CHARACTER = re.compile(rf"\w{MARK}*")


@dataclass(frozen=True)
class Bucket:
    """A bucket. `members`: positions in the test set, ascending; at least one."""

    kind: str
    words: str  # its name for people
    members: Sequence[int]


def words_of(text: str, language: str) -> list[str]:
    """Return case-folded runs of letters and digits with their marks.

    A language written without blanks gives single characters.
    """
    folded, pattern = text.casefold(), _CHARACTER if is_unspaced(language) else _WORD
    return [folded[slice(*match.span())] for match in pattern.finditer(with_one_mark(folded))]


def count_words(lines: Iterable[str], wanted: Iterable[str], language: str) -> Counter[str]:
    """Count the wanted words in the lines; use no memory for other words."""
    known, counts = frozenset(wanted), Counter[str]()
    for line in lines:
        counts.update(word for word in words_of(line, language) if word in known)
    return counts


def by_size(
    kind: str, values: Sequence[float], bounds: Sequence[float], name: Callable[[float, float], str]
) -> list[Bucket]:
    """Divide values at `bounds`. A bucket includes its upper bound. Empty buckets are omitted.

    `name` gets the lowest and the highest value in a bucket.
    """
    places = np.searchsorted(np.array(bounds), np.array(values), side="left")
    buckets = []
    for place in range(len(bounds) + 1):
        members = np.flatnonzero(places == place).tolist()
        if members:
            values_of_bucket = [values[n] for n in members]
            buckets.append(Bucket(kind, name(min(values_of_bucket), max(values_of_bucket)), members))
    return buckets


def equal_bounds(values: Sequence[float], count: int) -> list[float]:
    """Return the bounds of `count` buckets of about equal size; fewer if many values are the same."""
    if not values:
        return []
    quantiles = np.quantile(np.array(values), np.arange(1, count) / count, method="inverted_cdf")
    return [bound for bound in np.unique(quantiles).tolist() if bound < max(values)]


def by_idiom(segments: Sequence[Mapping[str, Any]]) -> list[Bucket]:
    """Divide into segments with and without an idiom. Returns nothing for a test set without idioms."""
    labels = ["with an idiom" if segment["idioms"] else "without" for segment in segments]
    return by_label(labels, "idiom") if "with an idiom" in labels else []


def by_label(labels: Sequence[str], kind: str = "label") -> list[Bucket]:
    """Divide by label, in the order of names.

    If there are more than `MAX_LABELS` labels, the rarest share a bucket.
    """
    common = [label for label, _ in Counter(labels).most_common()]
    kept_labels = common if len(common) <= MAX_LABELS else common[: MAX_LABELS - 1]
    buckets = [
        Bucket(kind, label or "(no label)", [n for n, given in enumerate(labels) if given == label])
        for label in sorted(kept_labels)
    ]
    rest = [n for n, given in enumerate(labels) if given not in kept_labels]
    if rest:
        buckets.append(Bucket(kind, f"{len(common) - len(kept_labels)} other labels", rest))
    return buckets


def length_name(unit: str) -> Callable[[float, float], str]:
    def name(low: float, high: float) -> str:
        return f"{_range(int(low), int(high))} {unit if high != 1 else unit.removesuffix('s')}"

    return name


def _times(low: int, high: int | None) -> str:
    alone = {0: "never", 1: "once"}
    return alone[low] if low == high and low in alone else f"{_range(low, high)} times"


def _range(low: int, high: int | None) -> str:
    if high is None:
        return f"{low:,} or more"
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
