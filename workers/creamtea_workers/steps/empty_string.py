"""Step `empty_string`: how often a model prefers the empty string to a system's output, and by how much.

Stahlberg and Byrne 2019; Peters and Martins 2021, Table 4; SCONES, Figure 6 (which has exact search's
outputs).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.methods.analyses.search import EmptyStringParams
from creamtea.stats.resampling import Array
from creamtea_workers.analysis.rows import SegmentStatistics, mean_row
from creamtea_workers.corpora.batches import parts
from creamtea_workers.corpora.segments import EncodedTestSet, read_hypotheses
from creamtea_workers.corpora.text import write_jsonl
from creamtea_workers.models.interface import BOS, EOS, output_logits
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.translator import TrainedModel, source_batch

_BATCH = 64  # sentences
_MAX_BARS = 40


def run(context: StepContext[EmptyStringParams]) -> StepResult:
    """Compare log P(</s> | x), the score of the empty string, with the score of the system's output.

    Both scores are of the same model; for SCONES they are sums of log σ. Over all sentences:

    - `empty_preferred`: the share for which the empty string scores strictly higher than the output, or is
      the output, with a Wilson interval. Table 4 is an upper bound for how often the empty string is the most
      probable of all strings. It is one only if empty outputs count; `detail.output_empty` says how many
      there are. The score of an output that was cut at its length limit lacks </s>, and so is too high if
      anything.
    - `empty_impossible`: the share for which its probability is exactly 0 (entmax), with a Wilson interval.
    - `log_prob_gap`: the mean of output - empty over the sentences where it is finite, with a bootstrap
      interval; the detail has the `deviation` and how many are `infinite`.
    - `log_prob_output`, `log_prob_empty`: means, likewise (Figure 6; the error bars are the deviations).

    Points `log_prob_gap` are a histogram: x the middle of a bar, y its share of all sentences; sentences with
    an infinite gap are in no bar. The file `empty_string.jsonl` has {index, output, empty} (null: -inf).
    """
    prepare_torch(context.cpus)
    test_set = EncodedTestSet.of_step(context)
    hypotheses = read_hypotheses(context.input("decode"), test_set.indices)
    trained = TrainedModel.of_step(context, context.params.precision)
    empty = empty_scores(trained, test_set.sources, context)
    rows = [
        {"index": row["index"], "output": row["score"], "empty": score if score > -math.inf else None}
        for row, score in zip(hypotheses, empty, strict=True)
    ]
    write_jsonl(context.output / "empty_string.jsonl", rows)
    outputs, lengths = ([row[name] for row in hypotheses] for name in ("score", "length"))
    kept = SegmentStatistics()
    result = metrics(outputs, empty, lengths, kept)
    kept.save(context.output)
    return StepResult(result, histogram(outputs, empty))


@torch.inference_mode()
def empty_scores(
    trained: TrainedModel, sources: Sequence[Sequence[int]], context: StepContext[Any]
) -> list[float]:
    """Compute log P(</s> | x) of each source.

    For an empty source only </s> competes, as when it is decoded.
    """
    model, device = trained.model, trained.model.output_weight.device
    order = sorted(range(len(sources)), key=lambda n: -len(sources[n]))
    by_position: dict[int, float] = {}
    for batch in parts(order, [len(source) for source in sources], _BATCH, model.may_pad):
        context.progress(len(by_position), len(order), "sentences")
        begin = torch.full((len(batch), 1), BOS, device=device)
        hidden = model.decode(model.encode(source_batch([sources[n] for n in batch], device)), begin)
        logits = output_logits(model, hidden)  # (B, 1, V)
        scores = trained.objective.log_scores(logits)[:, 0, EOS]
        alone = trained.objective.log_scores(logits[:, :, EOS : EOS + 1])[:, 0, 0]
        empty = torch.tensor([not sources[n] for n in batch], device=device)
        by_position.update(zip(batch, torch.where(empty, alone, scores).tolist(), strict=True))
    context.progress(len(order), len(order), "sentences")
    return [by_position[n] for n in range(len(sources))]


def metrics(
    outputs: Sequence[float], empty: Sequence[float], lengths: Sequence[int], kept: SegmentStatistics
) -> list[MetricRow]:
    """Compare the scores of outputs and empty strings. `lengths`: subwords of the outputs."""
    higher, blank = np.array(empty) > np.array(outputs), np.array(lengths) == 0
    impossible = np.isneginf(empty)
    infinite = {"infinite": int(impossible.sum())}
    never = "the empty string is impossible for every sentence"
    about = {"output_empty": int(blank.sum())}
    kept.share("empty_higher", higher & ~blank)
    shares = [
        kept.share_row("empty_preferred", (higher | blank).tolist(), detail=about),
        kept.share_row("empty_impossible", impossible.tolist()),
    ]
    kept.mean("log_prob_gap", gaps(outputs, empty), deviation=True)
    kept.mean("log_prob_output", outputs)
    kept.mean("log_prob_empty", empty)
    return [
        *shares,
        mean_row("log_prob_gap", finite_gaps(outputs, empty), never, infinite),
        mean_row("log_prob_output", outputs),
        mean_row("log_prob_empty", [score for score in empty if score > -math.inf], never, infinite),
    ]


def gaps(outputs: Sequence[float], empty: Sequence[float]) -> Array:
    """Return the output's score less that of the empty string, for each segment."""
    with np.errstate(invalid="ignore"):  # minus infinity less minus infinity
        return np.subtract(outputs, empty, dtype=np.float64)


def finite_gaps(outputs: Sequence[float], empty: Sequence[float]) -> list[float]:
    return [gap for gap in gaps(outputs, empty).tolist() if math.isfinite(gap)]


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
    """Return the smallest of 0.5, 1, 2, 5, 10, 20, 50, … that needs at most `_MAX_BARS` bars.

    Bars begin at multiples of the width, so that those of several systems can be compared.
    """
    width, step = 0.5, 0
    while spread / width > _MAX_BARS - 1:
        width *= (2, 2, 2.5)[step % 3]
        step += 1
    return width
