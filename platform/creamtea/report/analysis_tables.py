"""The analyses of a study from its steps' rows, as their classes declare them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from creamtea.methods.analysis import Analysis, IdiomList, Measure, RowSetting, TableLayout
from creamtea.report import text
from creamtea.report.analysis_differences import differences
from creamtea.report.analysis_figures import analysis_figure
from creamtea.report.buckets import MANY_ROWS, Groups, bucket_tables, found_buckets
from creamtea.report.cells import Material, Measured, absent, few_segments, idioms_of, known_count, read_cell
from creamtea.report.columns import meanings
from creamtea.report.idioms import idiom_table
from creamtea.report.model import Cell, Figure, Notes, Row, Section, Table
from creamtea.report.vega import styles_of
from creamtea.stats.estimate import wilson_interval
from creamtea.store.queries import MetricValue

Counts = Callable[[Mapping[str, Any]], tuple[int, int]]


@dataclass(frozen=True)
class AnalysisResults:
    """The tables and figures of one analysis of the study."""

    name: str
    spec: Analysis
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    notes: tuple[Notes, ...] = ()
    segments: int | None = None  # of the test set that are analysed, or of the smallest bucket with a score


def build_analyses(material: Material) -> tuple[AnalysisResults, ...]:
    """In the study's order. What has not run, or has failed, is in its cells with the reason."""
    return tuple(_results(material, name, spec) for name, spec in material.spec.analyses.items())


def _results(material: Material, name: str, spec: Analysis) -> AnalysisResults:
    groups: dict[str, list[Measured]] = {}  # the seeds of a variant or system
    for measured in material.of(spec.step.name, analysis=name):
        groups.setdefault(str(measured.node.labels[spec.rows]), []).append(measured)
    given = idioms_of(material, spec.test_set).needs
    rows = [
        [
            (setting, Row(group, _cells(table.measures, setting, seeds), setting.words))
            for group, seeds in groups.items()
            for setting in _settings(table, spec, groups)
            if setting.needs in given
        ]
        for table in spec.tables
    ]
    tables = tuple(
        table
        for layout, its_rows in zip(spec.tables, rows, strict=True)
        for table in bucket_tables(layout, its_rows) or [_table(layout, [row for _, row in its_rows])]
    )
    lists = (table for listed in spec.lists for table in _idioms(listed, spec, groups))
    styles = styles_of(material.spec)
    figures = (analysis_figure(plot, rows, material.points, groups, styles) for plot in spec.plots)
    compared, notes = differences(material, name, spec, rows)
    return AnalysisResults(
        name,
        spec,
        (*tables, *lists, *compared),
        tuple(filter(None, figures)),
        tuple(notes),
        _fewest_segments(material, spec, groups),
    )


def _fewest_segments(material: Material, spec: Analysis, groups: Groups) -> int | None:
    buckets = [
        int(metric.detail["bucket"]["segments"])
        for seeds in groups.values()
        for step in seeds
        for metric in step.metrics
        if "bucket" in metric.detail and metric.value is not None
    ]
    available = known_count(material.of("test_set", test_set=spec.test_set), "segments")
    limits = [limit for limit in (*buckets, available, spec.first_sentences) if limit is not None]
    return min(limits, default=None)


def _settings(layout: TableLayout, spec: Analysis, groups: Groups) -> Sequence[RowSetting]:
    """Buckets take the place of what is declared as soon as a step has measured some."""
    return (found_buckets(groups) if layout.buckets else []) or layout.settings(spec)


def _table(layout: TableLayout, rows: Sequence[Row]) -> Table:
    return Table(
        text.key_of(layout.heading),
        "",
        layout.heading,
        tuple(measure.column for measure in layout.measures),
        tuple(rows),
        folded=len(rows) >= MANY_ROWS,
    )


def _idioms(listed: IdiomList, spec: Analysis, groups: Mapping[str, Sequence[Measured]]) -> tuple[Table, ...]:
    """A column for each group and setting of the first table."""
    metrics = {
        f"{group}, {setting.words}": seeds[0].find(listed.metric, "/".join(setting.parts))
        for group, seeds in groups.items()
        for setting in spec.tables[0].settings(spec)
    }
    return idiom_table(listed, metrics)


def analyses_section(analyses: Sequence[AnalysisResults]) -> Section | None:
    """By kind: what a kind is about is said once. None for a study without analyses."""
    kinds: dict[str, list[AnalysisResults]] = {}
    for analysis in analyses:
        kinds.setdefault(analysis.spec.kind, []).append(analysis)
    sections = tuple(_kind_section(kind, alike) for kind, alike in kinds.items())
    return Section("analyses", "Analyses", sections) if sections else None


def _kind_section(kind: str, alike: Sequence[AnalysisResults]) -> Section:
    columns = [column for table in alike[0].tables for column in table.columns]
    sections = tuple(
        Section(
            analysis.name,
            analysis.name,
            (
                *analysis.figures,
                *analysis.tables,
                *few_segments(f"{analysis.name} on {analysis.spec.test_set}", analysis.segments),
                *analysis.notes,
            ),
            facts=(_analysed(analysis.spec),),
            test_set=analysis.spec.test_set,
        )
        for analysis in alike
    )
    spec = alike[0].spec
    return Section(kind, spec.title, (*sections, *meanings(columns)), about=spec.about())


def _analysed(spec: Analysis) -> str:
    """As "newstest" or "the first 200 sentences of newstest"."""
    if spec.first_sentences is None:
        return spec.test_set
    return f"the first {spec.first_sentences:,} sentences of {spec.test_set}"


# ---------------------------------------------------------------- cells


def _cells(measures: Iterable[Measure], setting: RowSetting, measured: Sequence[Measured]) -> dict[str, Cell]:
    return {measure.column.key: _cell(measure, setting, measured) for measure in measures}


def _cell(measure: Measure, setting: RowSetting, measured: Sequence[Measured]) -> Cell:
    for part in setting.parts:
        if reason := measure.undefined.get(part):
            return absent(reason)
    subject = measure.subject(setting)

    def read(step: Measured) -> MetricValue | None:
        metric = step.find(measure.name, subject)
        if metric is not None and measure.counts is not None:
            return _counted(metric, measure.counts)
        if metric is None or not measure.detail:
            return metric
        value = metric.detail.get(measure.detail)
        note = measure.no_detail if value is None and metric.value is not None else metric.note
        return replace(metric, value=value, low=None, high=None, note=note)

    return read_cell(measured, read, "the plan has no such step")


def _counted(metric: MetricValue, counts: Counts) -> MetricValue | None:
    """A share of what the detail counts, with its Wilson interval; None where it does not count that."""
    try:
        count, of = counts(metric.detail)
    except KeyError:
        return None
    low, high = wilson_interval(count, of)
    return replace(metric, value=count / of, low=low, high=high)
