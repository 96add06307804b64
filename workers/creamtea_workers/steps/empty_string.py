"""Step `empty_string`: how often a model prefers the empty string to a system's output (Stahlberg and Byrne
2019; Peters and Martins 2021, Table 4), and by how much (SCONES, Figure 6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.methods.analyses.empty_string import EmptyStringParams
from creamtea.methods.searches import Greedy
from creamtea.methods.selections import FullVocabulary
from creamtea_workers.analysis.rows import NO_SEGMENTS, mean_row, share_row
from creamtea_workers.corpora.segments import EncodedTestSet
from creamtea_workers.corpora.text import read_jsonl, write_jsonl
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.hypothesis import Hypothesis
from creamtea_workers.search.systems import TrainedModel

_BATCH = 64  # sentences
_MAX_BARS = 40
_NAMES = ("empty_preferred", "empty_impossible", "log_prob_gap", "log_prob_output", "log_prob_empty")


def run(context: StepContext[EmptyStringParams]) -> StepResult:
    """The log-probability of the empty string, log P(</s> | x), against the score of the system's output
    under the same model; for SCONES both are sums of log σ. Parameters {"precision"}; inputs test_set,
    decode, subwords, train.

    Metrics, over all sentences:

    - `empty_preferred`: the share for which the empty string scores strictly higher than the output, or is
      the output. Table 4 is an upper bound for how often the empty string is the most probable of all, which
      it only is if outputs that are empty count; `detail.output_empty` says how many those are. An output cut
      at its length limit has its score without </s>, which can only be too high.
    - `empty_impossible`: the share for which its probability is exactly 0 (entmax). Both with Wilson
      intervals.
    - `log_prob_gap`: the mean of output - empty over the sentences where it is finite, with a bootstrap
      interval; the detail has the `deviation` and how many are `infinite`.
    - `log_prob_output`, `log_prob_empty`: means, likewise (Figure 6; the error bars are the deviations).

    Points `log_prob_gap`: a histogram, x the middle of a bar, y its share of all sentences; sentences with
    an infinite gap are in no bar. The file `empty_string.jsonl` has {index, output, empty} (null: -inf).
    """
    prepare_torch(context.cpus)
    test_set = EncodedTestSet.of_step(context)
    hypotheses = read_jsonl(context.input("decode") / "hypotheses.jsonl")
    indices = test_set.indices
    if indices != [row["index"] for row in hypotheses]:
        raise StepError(
            f"{len(hypotheses)} hypotheses do not line up with the test set's {len(indices)} segments"
        )
    trained = TrainedModel.of_step(context, context.params.precision)
    empty = empty_scores(trained, test_set.sources, context)
    rows = [
        {"index": row["index"], "output": row["score"], "empty": score if score > -math.inf else None}
        for row, score in zip(hypotheses, empty, strict=True)
    ]
    write_jsonl(context.output / "empty_string.jsonl", rows)
    outputs = [row["score"] for row in hypotheses]
    return StepResult(
        metrics(outputs, empty, [row["length"] for row in hypotheses]), histogram(outputs, empty)
    )


def empty_scores(
    trained: TrainedModel, sources: Sequence[Sequence[int]], context: StepContext[Any]
) -> list[float]:
    """log P(</s> | x) of each source."""
    translator = trained.translator(FullVocabulary(), Greedy())  # texts are scored, nothing is searched
    nothing = Hypothesis([], 0.0, finished=True)
    order = sorted(range(len(sources)), key=lambda n: -len(sources[n]))
    by_position: dict[int, float] = {}
    for start in range(0, len(order), _BATCH):
        context.progress(start, len(order), "sentences")
        batch = order[start : start + _BATCH]
        scores = translator.score([sources[n] for n in batch], [nothing] * len(batch))
        by_position.update(zip(batch, scores, strict=True))
    context.progress(len(order), len(order), "sentences")
    return [by_position[n] for n in range(len(sources))]


def metrics(outputs: Sequence[float], empty: Sequence[float], lengths: Sequence[int]) -> list[MetricRow]:
    """Scores of the outputs and of the empty string, and the outputs' subwords."""
    of = len(outputs)
    if of == 0:
        return [MetricRow(name, None, note=NO_SEGMENTS) for name in _NAMES]
    preferred = sum(
        length == 0 or other > own for own, other, length in zip(outputs, empty, lengths, strict=True)
    )
    gaps, possible = finite_gaps(outputs, empty), [score for score in empty if score > -math.inf]
    infinite = {"infinite": of - len(possible)}
    never = "the empty string is impossible for every sentence"
    about = {"output_empty": sum(length == 0 for length in lengths)}
    return [
        share_row("empty_preferred", preferred, of, detail=about),
        share_row("empty_impossible", of - len(possible), of),
        mean_row("log_prob_gap", gaps, never, infinite),
        mean_row("log_prob_output", outputs, NO_SEGMENTS, {}),
        mean_row("log_prob_empty", possible, never, infinite),
    ]


def finite_gaps(outputs: Sequence[float], empty: Sequence[float]) -> list[float]:
    return [own - other for own, other in zip(outputs, empty, strict=True) if other > -math.inf]


def histogram(outputs: Sequence[float], empty: Sequence[float]) -> list[PointRow]:
    gaps = np.array(finite_gaps(outputs, empty))
    if len(gaps) == 0:
        return []
    width = bar_width(float(gaps.max() - gaps.min()))
    bars, counts = np.unique(np.floor(gaps / width), return_counts=True)
    return [
        PointRow(
            "log_prob_gap",
            (bar + 0.5) * width,
            count / len(outputs),
            f"{bar * width:g} to {(bar + 1) * width:g}",
        )
        for bar, count in zip(bars.tolist(), counts.tolist(), strict=True)
    ]


def bar_width(spread: float) -> float:
    """The smallest of 0.5, 1, 2, 5, 10, 20, 50, … that needs at most `_MAX_BARS` bars; bars begin at its
    multiples, so that those of several systems can be compared."""
    width, step = 0.5, 0
    while spread / width > _MAX_BARS - 1:
        width *= (2, 2, 2.5)[step % 3]
        step += 1
    return width
