"""The analyses of a study from its steps' rows, as their classes declare them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from creamtea.contract.columns import Column
from creamtea.methods.displays import CellPlot, Measure, PointPlot, RowPlot, RowSetting
from creamtea.report import text
from creamtea.report.analysis_figures import Plot, PlotCurve, PlotPoint, analysis_figure
from creamtea.report.cells import Material, Measured, absent, idioms_of, read_cell, state_of
from creamtea.report.columns import meanings
from creamtea.report.model import Cell, Row, Section, Table
from creamtea.report.text import not_drawn
from creamtea.stats.proportion import wilson_interval
from creamtea.store.queries import CurvePoint, MetricValue

MANY_ROWS = 9  # of a table that a page shows when asked for
Points = Mapping[str, Mapping[str, Sequence[CurvePoint]]]  # of steps: key, series
Groups = Mapping[str, Sequence[Measured]]  # the seeds of a variant or system


@dataclass(frozen=True)
class Analysis:
    """The results of one analysis of the study."""

    name: str
    kind: str
    title: str
    about: str
    rows: str  # what its rows are: variants or systems
    over: tuple[str, ...]  # columns of the first table that are drawn over a number
    test_set: str
    sentences: int | None  # only so many of the test set
    tables: tuple[Table, ...]
    plots: tuple[Plot, ...]


def build_analyses(material: Material, points: Points) -> tuple[Analysis, ...]:
    """In the study's order. What has not run, or has failed, is in its cells with the reason."""
    return tuple(_analysis(material, points, name) for name in material.spec.analyses)


def _analysis(material: Material, points: Points, name: str) -> Analysis:
    spec = material.spec.analyses[name]
    groups: dict[str, list[Measured]] = {}
    for measured in material.of(spec.step.name, analysis=name):
        groups.setdefault(str(measured.node.labels[spec.rows]), []).append(measured)
    idioms = idioms_of(material, spec.test_set)
    given = {"", *(["idioms"] if idioms.count != 0 else []), *(["repeated"] if idioms.repeated else [])}
    rows = [
        [
            (setting, Row(group, _cells(table.measures, setting, seeds), setting.words))
            for group, seeds in groups.items()
            for setting in table.settings(spec)
            if setting.needs in given
        ]
        for table in spec.tables
    ]
    plots = [_plot(plot, rows, points, groups) for plot in spec.plots]
    return Analysis(
        name=name,
        kind=spec.kind,
        title=spec.title,
        about=spec.about,
        rows=spec.rows,
        over=spec.over,
        test_set=spec.test_set,
        sentences=spec.first_sentences,
        tables=tuple(
            Table(
                text.key_of(table.heading),
                "",
                table.heading,
                tuple(measure.column for measure in table.measures),
                tuple(row for _, row in its_rows),
                folded=len(its_rows) >= MANY_ROWS,
            )
            for table, its_rows in zip(spec.tables, rows, strict=True)
        ),
        plots=tuple(plot for plot in plots if plot.curves or plot.missing),
    )


def analyses_section(analyses: Sequence[Analysis]) -> Section | None:
    """By kind: what a kind is about is said once. None for a study without analyses."""
    kinds: dict[str, list[Analysis]] = {}
    for analysis in analyses:
        kinds.setdefault(analysis.kind, []).append(analysis)
    sections = tuple(_kind_section(kind, alike) for kind, alike in kinds.items())
    return Section("analyses", "Analyses", sections) if sections else None


def _kind_section(kind: str, alike: Sequence[Analysis]) -> Section:
    columns = [column for table in alike[0].tables for column in table.columns]
    sections = tuple(
        Section(
            analysis.name,
            analysis.name,
            (*map(analysis_figure, analysis.plots), *analysis.tables),
            facts=(_analysed(analysis),),
            test_set=analysis.test_set,
        )
        for analysis in alike
    )
    first = alike[0]
    return Section(kind, first.title, (*sections, *meanings(columns)), about=first.about)


def _analysed(analysis: Analysis) -> str:
    """As "newstest" or "the first 200 sentences of newstest"."""
    if analysis.sentences is None:
        return analysis.test_set
    return f"the first {analysis.sentences:,} sentences of {analysis.test_set}"


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
        if metric is None or not measure.detail:
            return metric
        return replace(metric, value=metric.detail.get(measure.detail), low=None, high=None)

    return read_cell(measured, read, "the plan has no such step")


# ---------------------------------------------------------------- plots

Rows = Sequence[tuple[RowSetting, Row]]  # of a table


def _plot(
    plot: CellPlot | RowPlot | PointPlot, tables: Sequence[Rows], points: Points, groups: Groups
) -> Plot:
    match plot:
        case CellPlot():
            return _cell_plot(plot, tables[0])
        case RowPlot():
            return _row_plot(plot, [row for _, row in tables[plot.table]])
        case PointPlot():
            return _point_plot(plot, points, groups)


def _cell_plot(plot: CellPlot, rows: Rows) -> Plot:
    """Means over seeds with their intervals, as the table has them."""
    points: dict[tuple[str, str], list[PlotPoint]] = {}
    gaps: dict[tuple[str, str], str] = {}
    for setting, row in rows:
        if plot.only and plot.only not in setting.parts:
            continue
        own = [words for part, words in plot.apart.items() if part in setting.parts]
        if plot.apart and not own:
            continue
        for key, words in plot.measures.items():
            curve = (key, ", ".join(filter(None, [row.name, words, *own])))
            cell = row.cells[key]
            x = setting.x if plot.x.key == "setting" else row.cells[plot.x.key].value
            if cell.value is None:
                gaps.setdefault(curve, cell.state)
            elif x is not None:
                points.setdefault(curve, []).append(
                    PlotPoint(x, cell.value, setting.words, cell.low, cell.high)
                )
    return Plot(
        plot.title,
        plot.x,
        plot.y,
        curves=tuple(PlotCurve(group, tuple(drawn)) for (_, group), drawn in points.items()),
        missing=tuple(
            not_drawn(group, state) for (key, group), state in gaps.items() if (key, group) not in points
        ),
        logarithmic=plot.logarithmic,
        ticks={setting.x: setting.tick for setting, _ in rows if setting.x is not None and setting.tick},
    )


def _row_plot(plot: RowPlot, rows: Sequence[Row]) -> Plot:
    """A measure's mark in each row, with its interval or its deviation to either side."""
    curves = []
    for key, words in plot.measures.items():
        marks = []
        for place, row in enumerate(rows):
            cell = row.cells[key]
            if cell.value is None:
                continue
            low, high = cell.low, cell.high
            if plot.deviations:
                deviation = row.cells[f"{key}_deviation"].value
                low = None if deviation is None else cell.value - deviation
                high = None if deviation is None else cell.value + deviation
            marks.append(PlotPoint(place, cell.value, row.name, low, high))
        if marks:
            curves.append(PlotCurve(words, tuple(marks)))
    states = {row.name: [row.cells[key] for key in plot.measures] for row in rows}
    return Plot(
        plot.title,
        Column("row", "", 0),
        plot.y,
        tuple(curves),
        missing=tuple(
            not_drawn(name, cells[0].state)
            for name, cells in states.items()
            if all(cell.value is None for cell in cells)
        ),
        label="variant",
        ticks={float(place): row.name for place, row in enumerate(rows)},
        rows=True,
        bounds="one deviation" if plot.deviations else "95 %",
    )


def _point_plot(plot: PointPlot, points: Points, groups: Groups) -> Plot:
    """One curve per step: points of different seeds have no x in common."""
    curves, missing = [], []
    for name, measured in groups.items():
        for step in measured:
            model = f"{name}, seed {step.node.labels['seed']}" if len(measured) > 1 else name
            measured_points = points.get(step.node.key, {})
            if not any(series in measured_points for series in plot.series):
                state = state_of(step.node)[0]
                missing.append(not_drawn(model, "absent" if state == "ok" else state))
            for series, words in plot.series.items():
                if series in measured_points:
                    drawn = tuple(_point(point, plot.counted) for point in measured_points[series])
                    curves.append(PlotCurve(f"{model}, {words}" if words else model, drawn))
    return Plot(
        plot.title,
        plot.x,
        plot.y,
        tuple(curves),
        tuple(missing),
        plot.label,
        plot.logarithmic,
        plot.diagonal,
    )


def _point(point: CurvePoint, counted: bool) -> PlotPoint:
    if not counted:
        return PlotPoint(point.x, point.y, point.label)
    of = int(point.label)
    return PlotPoint(point.x, point.y, point.label, *wilson_interval(round(point.y * of), of))
