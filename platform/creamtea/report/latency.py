"""Latency of a study: columns in the table of systems, means over repetitions, and what was timed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from creamtea.contract.step import Column
from creamtea.report.cells import Measured, StudyResults, read_cell, state_of
from creamtea.report.model import Cell, Percent, Row, Table
from creamtea.stats.estimate import Estimate, positive_estimate
from creamtea.stats.resampling import FEW_VALUES, MIN_VALUES
from creamtea.store.queries import MetricValue
from creamtea.study.spec import Study
from creamtea.wording import counted


def _percentile(percent: int, note: str) -> Column:
    key, title = f"latency_p{percent}", f"p{percent}"
    return Column(key, title, 1, "lower", 1.0, "ms", note=note, group="latency")


P50 = _percentile(50, "median latency of a sentence")
LATENCY = (P50, *(_percentile(percent, f"{percent} % of the sentences take less") for percent in (90, 99)))
SPEED = Column(
    "sentences_per_second", "sentences/s", 2, "higher", note="mean over repetitions", group="latency"
)
LATENCY_MEANS = (
    Column("latency_mean", "mean", 1, "lower", 1.0, "ms"),
    *(replace(column, key=column.key.replace("_p", "_mean_p"), note="") for column in LATENCY),
    SPEED,
)


_MEANS = {column.key for column in LATENCY_MEANS}
_Mean = TypeVar("_Mean", MetricValue, Percent)
NO_MODEL = "its outputs are given: no model of this study translates"


@dataclass(frozen=True)
class Timed:
    """What the latency step timed, or until then what the study asks for (a test set may be smaller)."""

    batch_size: int  # [sentences]
    sentences: int
    repetitions: int
    threads: int
    capture_seconds: float  # of CUDA graphs, all systems together; 0 without a GPU

    @property
    def unit(self) -> str:
        return "one sentence at a time" if self.batch_size == 1 else f"a batch of {self.batch_size} sentences"


def _timed(results: StudyResults) -> Timed | None:
    """Return what was timed; None for a study without latency."""
    asked = results.spec.latency
    if asked is None:
        return None
    rows = [metric for run in results.of("latency") for metric in run.metrics]
    detail = next((row.detail for row in rows if "sentences" in row.detail), {})
    captures = [row.detail.get("capture_seconds", 0.0) for row in rows if row.name == "latency_p50"]
    # version 0.1.0 timed single sentences; a batch holds at most all sentences
    sentences = detail.get("sentences", asked.sentences)
    return Timed(
        min(detail.get("batch_size", asked.batch_size), sentences),
        sentences,
        detail.get("repetitions", asked.repetitions),
        detail.get("threads", asked.threads),
        sum(captures),
    )


def latency_note(results: StudyResults) -> str:
    spec, timed = results.spec, _timed(results)
    if spec.latency is None or timed is None:
        return "The study measures no latency."
    unit = "sentence, batch 1" if timed.batch_size == 1 else f"batch of {timed.batch_size} sentences"
    note = (
        f"Latency: milliseconds per {unit}, {counted(timed.threads, 'thread')}, {timed.sentences} sentences "
        f"of {spec.latency.test_set} × {timed.repetitions} repetitions, systems interleaved, the first seed "
        f"of each; % of {' / '.join(latency_baselines(spec))}, paired over repetitions"
    )
    if (batches := timed.sentences // timed.batch_size) < 100:
        times = counted(batches, *(("sentence",) if timed.batch_size == 1 else ("batch", "batches")))
        note += f"; p99 of {times} is nearly the maximum"
    if timed.capture_seconds:
        note += f"; capturing CUDA graphs took {timed.capture_seconds:.1f} s, which are not counted"
    for timing in results.of("latency"):
        state, reason = state_of(timing.node)
        if state != "ok":
            note += f" ({state}: {reason})"
    return f"{note}."


def timed_columns(results: StudyResults, test_set: str) -> tuple[Column, ...]:
    """Return the latency columns of the systems' table."""
    timed = _timed(results) if is_timed_on(results.spec, test_set) else None
    if timed is None or timed.batch_size == 1:
        return () if timed is None else LATENCY
    of_batch = f" of {timed.unit}"
    return (*(replace(column, note=f"{column.title}{of_batch}") for column in LATENCY), SPEED)


def is_timed_on(spec: Study, test_set: str) -> bool:
    return spec.latency is not None and spec.latency.test_set == test_set


def latency_table(results: StudyResults) -> Table | None:
    """Build the table of means over repetitions, as papers print them; None if no step measured them."""
    runs, timed = results.of("latency"), _timed(results)
    if timed is None or not any(run.find(LATENCY_MEANS[0].key, "0") for run in runs):
        return None
    cells = latency_cells(results, LATENCY_MEANS)
    rows = [
        Row(name, {column.key: cells[name, column.key] for column in LATENCY_MEANS})
        for name in results.spec.timed()
    ]
    about = (
        f"Of {timed.unit}: means over repetitions with their 95 % t intervals (on the scale of "
        "logarithms). A disturbance of the machine moves a mean, but hardly the median in the systems' "
        "table; the interval of a mean covers only the disturbances that its repetitions have met."
    )
    return Table("latency", "Latency", "system", LATENCY_MEANS, tuple(rows), about, folded=True)


def latency_cells(results: StudyResults, columns: Sequence[Column]) -> dict[tuple[str, str], Cell]:
    """Return the cells by system and column; empty for a study without latency."""
    spec = results.spec
    if spec.latency is None:
        return {}
    runs = results.of("latency")
    timed = spec.timed()

    def cell(system: str, key: str) -> Cell:
        if system not in timed:
            why = "the study does not time this system" if spec.systems[system].runs else NO_MODEL
            return Cell("absent", why)

        def read(run: Measured) -> MetricValue | None:
            metric = run.find(key, str(timed.index(system)))
            if metric is None or key in _MEANS:
                return metric and _positive(metric)
            return _without_few(metric)

        return read_cell(runs, read, "the plan has no latency step")

    baselines = [name for name in latency_baselines(spec) if name in timed]

    def percents(system: str, key: str) -> dict[str, Percent]:
        times = {name: run.find(key, str(timed.index(name))) for run in runs for name in {system, *baselines}}
        return {
            name: _percent(time, baseline_time, timed.index(name))
            for name in baselines
            if (time := times[system]) and (baseline_time := times[name])
        }

    cells = {(system, column.key): cell(system, column.key) for system in spec.systems for column in columns}
    return {
        (system, key): replace(time, percents=percents(system, key)) if time.value is not None else time
        for (system, key), time in cells.items()
    }


def _percent(own: MetricValue, baseline: MetricValue, position: int) -> Percent:
    """Return a system's time as a percentage of the baseline's, paired over repetitions.

    `position`: the baseline's index among the timed systems. For version 1 of the step, which stored no
    pairs, return the ratio of both medians, without an interval.
    """
    if own.subject == baseline.subject:
        return Percent(100.0)
    if (paired := own.detail.get("percent_of")) is not None:
        percent = Percent(**paired[position])
        if own.name in _MEANS:
            return _positive(percent)
        return percent if _without_few(own).low is not None else Percent(percent.value)
    assert own.value is not None
    assert baseline.value is not None
    return Percent(100.0 * own.value / baseline.value)


def _without_few(median: MetricValue) -> MetricValue:
    """Remove an interval over fewer than `MIN_VALUES` repetitions, which earlier versions stored."""
    if median.detail.get("repetitions", MIN_VALUES) >= MIN_VALUES:
        return median
    return replace(median, low=None, high=None, note=f"{FEW_VALUES} repetitions")


def _positive(mean: _Mean) -> _Mean:
    """Put the t interval of a stored mean on a logarithmic scale."""
    interval = positive_estimate(Estimate(mean.value, mean.low, mean.high))
    return replace(mean, low=interval.low, high=interval.high)


def latency_baselines(spec: Study) -> list[str]:
    """Return the systems whose latency is 100 %: the study's latency baselines, or else its baseline."""
    named = spec.latency.baselines if spec.latency else []
    return named or [spec.baseline]
