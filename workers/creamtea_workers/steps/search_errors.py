"""Step `search_errors`: what exact search finds and proves, and how often a beam misses it.

Stahlberg and Byrne 2019; SCONES, sections 4.3 and 4.4, Figures 5 to 7, Table 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.methods.analyses.search import OutputParams
from creamtea.methods.searches import Beam
from creamtea_workers.analysis.rows import SegmentStatistics, mean_row, output_rows, share_row
from creamtea_workers.corpora.segments import EncodedTestSet, read_hypotheses
from creamtea_workers.corpora.text import read_jsonl
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.base import length_limit
from creamtea_workers.search.exact import exact_metrics, tolerance
from creamtea_workers.search.translator import TrainedModel
from creamtea_workers.steps.empty_string import empty_scores, finite_gaps, gaps

_NOTHING_PROVED = "no sentence's best translation is proved: raise max_states"
_RATIO = Beam(kind="beam").max_length_ratio  # decode steps of this analysis use the default


@dataclass(frozen=True)
class SearchedOutputs:
    """The outputs of one decoding, in the segments' order.

    A score is -inf if no finished hypothesis was found.
    """

    scores: list[float]
    lengths: list[int]  # subwords


def run(context: StepContext[OutputParams]) -> StepResult:
    """Compare the decoding of each width with exact search.

    Shares have Wilson intervals, other metrics bootstrap intervals over segments:

    - `search_errors`, subject the width ("4"): of the sentences whose best translation is proved, the share
      that the beam search has not found. An error is a score lower than the best one by more than rounding
      explains (`creamtea_workers.search.exact.tolerance`), or an output cut at the length limit if there is a
      finished one.
    - `search_errors_at_least`, by width: of all sentences, the share for which the exact search has found a
      better translation, proved the best or not. It is a lower bound if some are unproved.
    - `proved`, `improved`, `limit`: the exact search's outcomes; `unproved` = `improved` + `limit` (Table 7).
    - `bleu`, `length_ratio`, `empty`: by width, and for the subject "exact", whose outputs are the best
      translations found, proved or not (`creamtea_workers.analysis.rows`).
    - `log_prob_best`, `log_prob_empty`, `log_prob_gap` (Figure 6): mean log-probability of the best
      translation found, of the empty string, and their difference; detail.deviation is the standard
      deviation. The first omits sentences without a finished translation, the last two those for which the
      empty string is impossible (entmax), which detail.infinite counts.

    Points `search_errors`, `bleu`: x is the width. The exact search's BLEU follows at twice the largest
    width, labelled "exact".
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
    rows += probability_rows(exact.scores, empty, proved.count(False))
    log_probs: dict[str, ArrayLike] = {"best": exact.scores, "empty": empty, "gap": gaps(exact.scores, empty)}
    for name, values in log_probs.items():
        kept.mean(f"log_prob_{name}", values, deviation=True)
    kept.save(context.output)
    return StepResult(rows, points(rows, widths))


def read_outputs(decode: Path, test_set: EncodedTestSet) -> SearchedOutputs:
    """Read a decoding; outputs as long as the length limit are unfinished and score -inf."""
    rows = read_hypotheses(decode, test_set.indices)
    limits = [length_limit(_RATIO, len(source)) for source in test_set.sources]
    lengths = [row["length"] for row in rows]
    scores = [
        row["score"] if row["length"] < limit else -math.inf for row, limit in zip(rows, limits, strict=True)
    ]
    return SearchedOutputs(scores, lengths)


def search_errors(beam: SearchedOutputs, exact: SearchedOutputs) -> list[bool]:
    """Return, sentence by sentence, whether the exact search has found a better translation."""
    return [
        best > score + tolerance(max(lengths))
        for score, best, *lengths in zip(beam.scores, exact.scores, beam.lengths, exact.lengths, strict=True)
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
        mean_row("log_prob_best", finished, "no sentence has a finished translation", about),
        mean_row("log_prob_empty", possible, never, infinite),
        mean_row("log_prob_gap", finite_gaps(best, empty), never, infinite),
    ]


def points(rows: Sequence[MetricRow], widths: Sequence[int]) -> list[PointRow]:
    places = {str(width): (float(width), "") for width in widths}
    places["exact"] = (2.0 * max(widths), "exact")
    return [
        PointRow(row.name, places[row.subject][0], row.value, places[row.subject][1])
        for name in ("search_errors", "bleu")
        for subject in places
        for row in rows
        if (row.name, row.subject) == (name, subject) and row.value is not None
    ]
