"""Rows of an analysis with intervals, and the statistics of each segment behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from creamtea.contract.step import MetricRow
from creamtea.methods.analyses.search import OutputParams
from creamtea.methods.analysis import STATISTICS_FILE
from creamtea.stats.estimate import wilson_interval
from creamtea.stats.resampling import MIN_VALUES, SAMPLES, SEED, Array, ScoreFunction, bootstrap_interval
from creamtea_workers.metrics.base import mean_statistics, ratio, read_texts
from creamtea_workers.metrics.sacrebleu_metrics import BleuMetric

NO_DETAIL: Mapping[str, Any] = {}
BOOTSTRAP = {"samples": SAMPLES, "seed": SEED}


def share_row(
    name: str, count: int, of: int, subject: str = "", detail: Mapping[str, Any] = NO_DETAIL
) -> MetricRow:
    """Make the row of a share, `count` / `of`, with its Wilson interval. `of` must be above 0."""
    facts = {"count": count, "of": of, "interval": "Wilson", **detail}
    return MetricRow(name, count / of, *wilson_interval(count, of), subject=subject, detail=facts)


def ratio_row(
    name: str,
    statistics: Array,
    score: ScoreFunction = ratio,
    subject: str = "",
    note: str = "",
    detail: Mapping[str, Any] = NO_DETAIL,
) -> MetricRow:
    """Make the row of a score of summed `statistics` (segments, F), with its bootstrap interval.

    The default `score` divides the first column by the second. If there is no interval, the note says why.
    """
    interval = bootstrap_interval(statistics, score)
    facts = {"segments": len(statistics), "bootstrap": BOOTSTRAP, **detail}
    notes = "; ".join(filter(None, [note, interval.reason]))
    return MetricRow(
        name, interval.value, interval.low, interval.high, subject=subject, note=notes, detail=facts
    )


def mean_row(
    name: str, values: Sequence[float], of: int, none: str = "", detail: Mapping[str, Any] = NO_DETAIL
) -> MetricRow:
    """Make the row of the mean of the values that some `of` segments have, with its bootstrap interval.

    The detail has the sample deviation (null for a single value). Without values, `none` becomes the note.
    """
    if not values:
        return MetricRow(name, None, note=none, detail=detail)
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    row = ratio_row(name, mean_statistics(values), detail={"deviation": deviation, **detail})
    if 1 < len(values) < min(MIN_VALUES, of):
        note = f"no interval of the mean of {len(values)} of {of:,} segments"
        return replace(row, low=None, high=None, note=note)
    return row


# ---------------------------------------------------------------- statistics of segments, for paired tests


Score = Literal["ratio", "deviation", "bleu"]


class Measured(NamedTuple):
    """The key of a column: its measure, and a setting such as "4", or "" if it has none."""

    measure: str
    setting: str = ""


class Statistics(NamedTuple):
    score: Score  # how to score the sums: `creamtea_workers.steps.scores.SCORES`
    values: Array  # (segments, F)


class SegmentStatistics(dict[Measured, Statistics]):
    """Statistics of segments: an analysis collects them, and comparing steps read them."""

    def add(self, measure: str, values: Array, setting: str = "", score: Score = "ratio") -> None:
        self[Measured(measure, setting)] = Statistics(score, np.asarray(values, dtype=np.float64))

    def share(self, measure: str, counted: ArrayLike, setting: str = "") -> None:
        """Add a share of all segments."""
        self.add(measure, np.column_stack([counted, np.ones_like(counted)]), setting)

    def share_row(
        self, measure: str, counted: Sequence[bool], setting: str = "", detail: Mapping[str, Any] = NO_DETAIL
    ) -> MetricRow:
        """Add a share of all segments; return its row."""
        self.share(measure, counted, setting)
        return share_row(measure, sum(counted), len(counted), setting, detail)

    def ratio_row(
        self, measure: str, values: Array, note: str = "", detail: Mapping[str, Any] = NO_DETAIL
    ) -> MetricRow:
        """Add the ratio of the sums of two columns; return its row."""
        self.add(measure, values)
        return ratio_row(measure, values, note=note, detail=detail)

    def mean(self, measure: str, values: ArrayLike, deviation: bool = False) -> None:
        """Add the mean of the finite values; with `deviation` also their deviation, MEASURE_deviation."""
        finite = np.isfinite(values)
        numbers = np.where(finite, values, 0.0)
        self.add(measure, np.column_stack([numbers, finite]))
        if deviation:
            squares = np.column_stack([numbers**2, numbers, finite])
            self.add(f"{measure}_deviation", squares, score="deviation")

    def save(self, folder: Path) -> None:
        """Write each array as "SCORE/MEASURE/SETTING", in the smallest type that holds its numbers."""
        arrays = {
            "/".join((score, *measured)): np.asfortranarray(_smallest(values))
            for measured, (score, values) in self.items()
        }
        np.savez_compressed(folder / STATISTICS_FILE, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, folder: Path) -> SegmentStatistics:
        statistics = cls()
        with np.load(folder / STATISTICS_FILE, allow_pickle=False) as arrays:
            for name in arrays.files:
                score, measure, setting = name.split("/", 2)
                statistics.add(measure, arrays[name], setting, score)
        return statistics


def _smallest(values: Array) -> NDArray[Any]:
    if not values.size or values.min() < 0 or (values != np.floor(values)).any():
        return values
    return values.astype(np.min_scalar_type(int(values.max())))


# ---------------------------------------------------------------- outputs of a search


def output_rows(
    params: OutputParams, test_set: Path, decode: Path, subject: str, kept: SegmentStatistics
) -> list[MetricRow]:
    """Measure the outputs of one search: BLEU, length ratio and share of empty outputs.

    `test_set` and `decode` are the folders of these steps. Adds the statistics of each segment to `kept`.

    `bleu` (detail.signature) and `length_ratio` have bootstrap intervals over segments. `length_ratio` is
    hypothesis tokens over reference tokens of the whole test set, as BLEU's tokenizer counts them. `empty` is
    the share of outputs without text, with a Wilson interval. Raises StepError if there are no segments.
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
    return [bleu, length, kept.share_row("empty", empty, subject)]
