"""Steps of analyses of search: `beam_sizes`, `search_errors`, `empty_string`, `depth_limited`.

Koehn and Knowles 2017; Stahlberg and Byrne 2019; Peters and Martins 2021, Tables 4 and 5; SCONES, sections
4.3 and 4.4, Figures 3 to 7, Table 7.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.methods.analyses.search import DepthLimitedParams, OutputParams
from creamtea.methods.searches import Beam, InPrecision
from creamtea.stats.resampling import Array
from creamtea_workers.analysis.rows import SegmentStatistics, mean_row, output_rows, share_row
from creamtea_workers.corpora.batches import parts
from creamtea_workers.corpora.segments import EncodedTestSet, read_hypotheses
from creamtea_workers.corpora.text import read_jsonl, write_jsonl
from creamtea_workers.models.interface import BOS, EOS, output_logits
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.base import SearchInput, length_limit
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.exact import SearchBudget, depth_first, exact_metrics, tolerance
from creamtea_workers.search.output import output_layer
from creamtea_workers.search.translator import SAVE_EVERY, TrainedModel, source_batch
from creamtea_workers.training import checkpoint

_NOTHING_PROVED = "no sentence's best translation is proved: raise max_states"
_RATIO = Beam(kind="beam").max_length_ratio  # decode steps of these analyses use the default
_EMPTY_STRING_BATCH, _DEPTH_BATCH = 64, 32  # sentences
_MAX_BARS = 40
_SAVED = "verdicts.pt"


# ---------------------------------------------------------------- beam sizes


def compare_beam_sizes(context: StepContext[OutputParams]) -> StepResult:
    """Measure the outputs of one decoding per width, in the order of the widths.

    `output_rows` defines the metrics; their subject is the width ("4").
    """
    widths, decodes = context.params.widths, context.inputs("decode")
    kept = SegmentStatistics()
    rows: list[MetricRow] = []
    points: list[PointRow] = []
    for n, (width, decode) in enumerate(zip(widths, decodes, strict=True)):
        context.progress(n, len(widths), f"beam {width}")
        rows_of_width = output_rows(context.params, context.input("test_set"), decode, str(width), kept)
        rows += rows_of_width
        points += [PointRow(row.name, width, row.value) for row in rows_of_width if row.value is not None]
    kept.save(context.output)
    context.progress(len(widths), len(widths), "beams")
    return StepResult(rows, points)


# ---------------------------------------------------------------- search errors


class SearchedOutput(NamedTuple):
    score: float  # -inf if no finished hypothesis was found
    length: int  # subwords


def count_search_errors(context: StepContext[OutputParams]) -> StepResult:
    """Compare the decoding of each width with exact search.

    Shares have Wilson intervals, other metrics bootstrap intervals over segments.

    A search error is a score lower than the best by more than rounding explains
    (`creamtea_workers.search.exact.tolerance`), or an output cut at the length limit although a finished one
    exists. `search_errors` counts them among the sentences with a proved best translation;
    `search_errors_at_least`, among all sentences, is a lower bound if some are unproved.

    Metrics of outputs (`creamtea_workers.analysis.rows`) have the width as subject, and "exact" for the best
    translations found, proved or not. `log_prob_best` omits sentences without a finished translation;
    `log_prob_empty` and `log_prob_gap` (Figure 6) omit sentences for which the empty string is impossible
    (entmax), which detail.infinite counts. The exact search's BLEU is at twice the largest width, labelled
    "exact".
    """
    prepare_torch(context.cpus)
    test_set, folder, widths = context.input("test_set"), context.input("exact"), context.params.widths
    encoded = EncodedTestSet.of_step(context)
    exact, searched = read_outputs(folder, encoded), read_jsonl(folder / "exact.jsonl")
    proved = [row["outcome"] == "proved" for row in searched]
    kept = SegmentStatistics()
    rows = [
        *exact_metrics(searched),
        kept.share_row("unproved", [not is_proved for is_proved in proved]),
        *output_rows(context.params, test_set, folder, "exact", kept),
    ]
    for width, decode in zip(widths, context.inputs("decode"), strict=True):
        errors = search_errors(read_outputs(decode, encoded), exact)
        rows += error_rows(str(width), errors, proved)
        rows += output_rows(context.params, test_set, decode, str(width), kept)
        kept.add("search_errors", np.column_stack([np.logical_and(errors, proved), proved]), str(width))
        kept.share("search_errors_at_least", errors, str(width))
    trained = TrainedModel.of_step(context)
    empty = empty_scores(trained, encoded.sources, context)
    best = [output.score for output in exact]
    rows += probability_rows(best, empty, proved.count(False))
    log_probs: dict[str, ArrayLike] = {"best": best, "empty": empty, "gap": gaps(best, empty)}
    for name, values in log_probs.items():
        kept.mean(f"log_prob_{name}", values, deviation=True)
    kept.save(context.output)
    return StepResult(rows, error_points(rows, widths))


def read_outputs(decode: Path, test_set: EncodedTestSet) -> list[SearchedOutput]:
    """Read a decoding; outputs as long as the length limit are unfinished and score -inf."""
    rows = zip(read_hypotheses(decode, test_set.indices), test_set.sources, strict=True)
    return [
        SearchedOutput(
            row["score"] if row["length"] < length_limit(_RATIO, len(source)) else -math.inf, row["length"]
        )
        for row, source in rows
    ]


def search_errors(beam: Sequence[SearchedOutput], exact: Sequence[SearchedOutput]) -> list[bool]:
    """Return, for each sentence, True if the exact search found a better translation."""
    return [
        best.score > own.score + tolerance(max(own.length, best.length))
        for own, best in zip(beam, exact, strict=True)
    ]


def error_rows(width: str, errors: Sequence[bool], proved: Sequence[bool]) -> list[MetricRow]:
    decided, total = sum(proved), len(errors)
    counted = sum(error and is_proved for error, is_proved in zip(errors, proved, strict=True))
    return [
        share_row("search_errors", counted, decided, width, {"unproved": total - decided})
        if decided
        else MetricRow("search_errors", None, subject=width, note=_NOTHING_PROVED),
        share_row("search_errors_at_least", sum(errors), total, width),
    ]


def probability_rows(best: Sequence[float], empty: Sequence[float], unproved: int) -> list[MetricRow]:
    finished = [score for score in best if score > -math.inf]
    possible = [score for score in empty if score > -math.inf]
    about = {"unproved": unproved}
    infinite = {"infinite": len(empty) - len(possible), **about}
    never = "the empty string is impossible for every sentence"
    return [
        mean_row("log_prob_best", finished, len(best), "no sentence has a finished translation", about),
        mean_row("log_prob_empty", possible, len(best), never, infinite),
        mean_row("log_prob_gap", finite_gaps(best, empty), len(best), never, infinite),
    ]


def error_points(rows: Sequence[MetricRow], widths: Sequence[int]) -> list[PointRow]:
    places = {str(width): (float(width), "") for width in widths}
    places["exact"] = (2.0 * max(widths), "exact")
    return [
        PointRow(row.name, places[row.subject][0], row.value, places[row.subject][1])
        for name in ("search_errors", "bleu")
        for subject in places
        for row in rows
        if (row.name, row.subject) == (name, subject) and row.value is not None
    ]


# ---------------------------------------------------------------- the empty string


def measure_empty_string(context: StepContext[InPrecision]) -> StepResult:
    """Compare log P(</s> | x), the score of the empty string, with the score of the system's output.

    Both scores come from the same model; for SCONES they are sums of log σ. Shares have Wilson intervals,
    means (Figure 6; the error bars are the deviations) bootstrap intervals.

    `empty_preferred` is the share for which the empty string scores strictly higher than the output, or is
    the output: Table 4 is an upper bound on how often the empty string is the most probable of all strings,
    so empty outputs must count. The score of an output that was cut at its length limit lacks </s>, so it may
    be too high. Sentences with an infinite gap are in no bar of the histogram.
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
    result = empty_string_rows(outputs, empty, lengths, kept)
    kept.save(context.output)
    return StepResult(result, gap_histogram(outputs, empty))


@torch.inference_mode()
def empty_scores(
    trained: TrainedModel, sources: Sequence[Sequence[int]], context: StepContext[Any]
) -> list[float]:
    """Compute log P(</s> | x) of each source. For an empty source only </s> competes, as in decoding."""
    model, device = trained.model, trained.model.output_weight.device
    order = sorted(range(len(sources)), key=lambda n: -len(sources[n]))
    by_position: dict[int, float] = {}
    for batch in parts(order, [len(source) for source in sources], _EMPTY_STRING_BATCH, model.may_pad):
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


def empty_string_rows(
    outputs: Sequence[float], empty: Sequence[float], lengths: Sequence[int], kept: SegmentStatistics
) -> list[MetricRow]:
    """Compare the scores of outputs and empty strings. `lengths`: subwords of the outputs."""
    higher, blank = np.array(empty) > np.array(outputs), np.array(lengths) == 0
    impossible = np.isneginf(empty)
    possible = [score for score in empty if score > -math.inf]
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
        mean_row("log_prob_gap", finite_gaps(outputs, empty), len(empty), never, infinite),
        mean_row("log_prob_output", outputs, len(outputs)),
        mean_row("log_prob_empty", possible, len(empty), never, infinite),
    ]


def gaps(outputs: Sequence[float], empty: Sequence[float]) -> Array:
    """Return the output's score minus the empty string's score, for each segment."""
    with np.errstate(invalid="ignore"):  # minus infinity minus minus infinity
        return np.subtract(outputs, empty, dtype=np.float64)


def finite_gaps(outputs: Sequence[float], empty: Sequence[float]) -> list[float]:
    return [gap for gap in gaps(outputs, empty).tolist() if math.isfinite(gap)]


def gap_histogram(outputs: Sequence[float], empty: Sequence[float]) -> list[PointRow]:
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

    Bars begin at multiples of the width, so that systems can be compared bar by bar.
    """
    width, step = 0.5, 0
    while spread / width > _MAX_BARS - 1:
        width *= (2, 2, 2.5)[step % 3]
        step += 1
    return width


# ---------------------------------------------------------------- short translations


@dataclass(frozen=True)
class Verdict:
    """The result of the searches for one sentence.

    `shortest`: the smallest length limit within which a hypothesis outscores the beam's; None if there is
    none. `undecided`: the length limits at which the search ran out of states.
    """

    shortest: int | None
    undecided: list[int]

    def is_better(self, length: int) -> bool:
        return self.shortest is not None and self.shortest <= length

    def is_undecided(self, length: int) -> bool:
        return length in self.undecided and not self.is_better(length)


def compare_depths(context: StepContext[DepthLimitedParams]) -> StepResult:
    """Search, for each length ℓ, for a hypothesis of at most ℓ subwords that outscores the beam's.

    The depth-first search may expand `max_states` states per sentence and length; </s> does not count as a
    subword. A hypothesis outscores the beam's if its score is higher by more than rounding explains. If a
    hypothesis is found at one ℓ, it also counts at every larger ℓ. A beam output that was cut at its length
    limit has no score: any finished hypothesis outscores it. Nothing outscores the output of an empty source.

    Batches are saved every `SAVE_EVERY` seconds, and a later attempt continues after the last saved batch.

    The subject of a metric is ℓ ("2"). `shorter_better` is a lower bound if some sentences are undecided.
    """
    prepare_torch(context.cpus)
    sources = EncodedTestSet.of_step(context).sources
    trained = TrainedModel.of_step(context)
    lengths = sorted(set(context.params.lengths))
    budget = SearchBudget(context.params.max_states, only_first=True)
    order = [n for n, source in enumerate(sources) if source]
    order.sort(key=lambda n: -len(sources[n]))
    saved_verdicts = checkpoint.load(context.checkpoints, _SAVED) or []
    verdicts = [Verdict(**fields) for fields in saved_verdicts]  # in this order
    saved = time.monotonic()
    for members in parts(order[len(verdicts) :], [len(source) for source in sources], _DEPTH_BATCH):
        tick = partial(context.progress, len(verdicts), len(order), "sentences")
        batch = [sources[n] for n in members]
        verdicts += judge(trained, batch, context.params.width, lengths, budget, tick)
        if time.monotonic() - saved > SAVE_EVERY:
            checkpoint.save(context.checkpoints, _SAVED, [asdict(verdict) for verdict in verdicts])
            saved = time.monotonic()
    by_sentence, kept = dict(zip(order, verdicts, strict=True)), SegmentStatistics()
    verdicts = [by_sentence.get(n, Verdict(None, [])) for n in range(len(sources))]
    rows = []
    for length in lengths:
        better = [verdict.is_better(length) for verdict in verdicts]
        undecided = [verdict.is_undecided(length) for verdict in verdicts]
        rows.append(kept.share_row("shorter_better", better, str(length)))
        rows.append(kept.share_row("undecided", undecided, str(length)))
    kept.save(context.output)
    context.progress(len(order), len(order), "sentences")
    curve = [
        PointRow("shorter_better", float(row.subject), row.value)
        for row in rows
        if row.name == "shorter_better" and row.value is not None
    ]
    return StepResult(rows, curve)


@torch.inference_mode()
def judge(
    trained: TrainedModel,
    sources: Sequence[Sequence[int]],
    width: int,
    lengths: Sequence[int],
    budget: SearchBudget,
    tick: Callable[[], None],
) -> list[Verdict]:
    """Judge a batch of sources. `lengths` are ascending; `tick` is called often, and may raise."""
    model, objective = trained.model, trained.objective
    memory = model.encode(source_batch(sources, model.output_weight.device))
    output = output_layer(model, None)
    search = BeamSearch(width)
    limits = [length_limit(search.max_length_ratio, len(source)) for source in sources]
    batch = SearchInput(model, objective, memory, output, limits)
    beams = search(batch)
    shortest: dict[int, int] = {}
    undecided: list[list[int]] = [[] for _ in sources]
    for length in lengths:
        left = [n for n in range(len(sources)) if n not in shortest]
        if not left:
            break
        rows = torch.tensor(left, device=memory.hidden.device)
        bounds = [
            beams[n].score + tolerance(len(beams[n].tokens)) if beams[n].finished else -math.inf for n in left
        ]
        depths = [min(limits[n], length + 1) for n in left]
        rest = replace(batch, memory=memory.select(rows), output=output.keep(rows), limits=depths)
        for finished in depth_first(rest, bounds, budget):
            tick()
            for search_result in finished:
                if search_result.tokens is not None:
                    shortest[left[search_result.sentence]] = length
                elif not search_result.exhausted:
                    undecided[left[search_result.sentence]].append(length)
    return [Verdict(shortest.get(n), undecided[n]) for n in range(len(sources))]
