"""Rows of an analysis: with their intervals, and with what each segment adds to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from creamtea.contract.step import MetricRow
from creamtea.methods.analyses.search import OutputParams
from creamtea.methods.analysis import STATISTICS_FILE
from creamtea.stats.estimate import wilson_interval
from creamtea.stats.resampling import SAMPLES, SEED, Array, ScoreFunction, bootstrap_interval
from creamtea_workers.metrics.base import mean_statistics, ratio, read_texts
from creamtea_workers.metrics.sacrebleu_metrics import BleuMetric

NO_DETAIL: Mapping[str, Any] = {}
BOOTSTRAP = {"samples": SAMPLES, "seed": SEED}


def share_row(
    name: str, count: int, of: int, subject: str = "", detail: Mapping[str, Any] = NO_DETAIL
) -> MetricRow:
    """Make a row of a share with its Wilson interval. `of` is above 0."""
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
    """Make a row of a score of summed statistics (segments, F), with its bootstrap interval over segments.

    The default `score` divides the first column by the second. If there is no interval, the note says why.
    """
    interval = bootstrap_interval(statistics, score)
    facts = {"segments": len(statistics), "bootstrap": BOOTSTRAP, **detail}
    notes = "; ".join(filter(None, [note, interval.reason]))
    return MetricRow(
        name, interval.value, interval.low, interval.high, subject=subject, note=notes, detail=facts
    )


def mean_row(
    name: str, values: Sequence[float], none: str = "", detail: Mapping[str, Any] = NO_DETAIL
) -> MetricRow:
    """Make a row of the mean of one value per segment, with its bootstrap interval.

    The detail has the sample deviation (null for a single value). Without values the note is `none`.
    """
    if not values:
        return MetricRow(name, None, note=none, detail=detail)
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return ratio_row(name, mean_statistics(values), detail={"deviation": deviation, **detail})


# ---------------------------------------------------------------- statistics of segments, for paired tests


Score = Literal["ratio", "deviation", "bleu"]


class Measured(NamedTuple):
    """A column of an analysis, at a setting ("4") or at none ("")."""

    measure: str
    setting: str = ""


class Statistics(NamedTuple):
    score: Score  # of the sums: `creamtea_workers.steps.scores.SCORES`
    values: Array  # (segments, F)


class SegmentStatistics(dict[Measured, Statistics]):
    """Statistics of segments, collected by one step and read by the steps that compare it with others."""

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
        """Add the mean of the finite values, and if `deviation` their sample deviation: MEASURE_deviation."""
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

    `test_set` and `decode` are the folders of these steps. The statistics of each segment are added to
    `kept`.

    `bleu` (detail.signature) and `length_ratio` have bootstrap intervals over segments. `length_ratio` is
    hypothesis over reference tokens of the whole test set, as BLEU's tokenizer counts them. `empty` is the
    share of outputs without text, with a Wilson interval. Raises StepError for a test set without segments.
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
