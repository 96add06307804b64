"""The analyses of a study as tables, figures and lists of idioms, as their classes declare them.

Tables of differences compare each row with a baseline at the same setting, and with the base setting.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from creamtea.contract.step import Column
from creamtea.methods.analysis import (
    BLEU,
    DIFFERENCES,
    Analysis,
    CellPlot,
    IdiomList,
    Measure,
    PointPlot,
    RowPlot,
    RowSetting,
    TableLayout,
)
from creamtea.methods.metrics import METRICS
from creamtea.report import text, vega
from creamtea.report.cells import (
    NEAR_ZERO,
    SEEDS_ALLOW,
    WITH_SEEDS,
    Measured,
    StudyResults,
    correct,
    few_segments,
    idioms_of,
    known_count,
    model_of,
    models_of,
    read_cell,
    read_delta,
    state_of,
    with_seeds,
    with_spread,
)
from creamtea.report.model import Cell, Delta, Figure, Notes, Row, Section, Spec, Table, column_meanings
from creamtea.stats.estimate import widened, wilson_interval
from creamtea.store.queries import CurvePoint, MetricValue

MISSED = IdiomList(
    "Idioms whose subwords are missed",
    "recall",
    "missed",
    "Subwords of the idiom's translation that are not selected from the idiom's words alone (NVS paper, "
    "Figure 1).",
)


def missed_idioms(results: StudyResults, test_set: str) -> tuple[Table, ...]:
    """Build the table of missed idioms, with a column for each system that selects."""
    systems = results.spec.systems_on(test_set)
    steps = {system: results.of("recall", system=system, test_set=test_set) for system in systems}
    return idiom_table(
        MISSED,
        {system: seeds[0].find(MISSED.metric, "idiom_words") for system, seeds in steps.items() if seeds},
    )


def idiom_table(listed: IdiomList, metrics: Mapping[str, MetricValue | None]) -> tuple[Table, ...]:
    """Build a table of idioms, the most subwords first. `metrics`: by the title of their column.

    Returns no table if no idiom is listed.
    """
    lists = {
        title: metric.detail[listed.detail]
        for title, metric in metrics.items()
        if metric is not None and listed.detail in metric.detail
    }
    rows: dict[tuple[str, str], dict[str, list[str]]] = {}
    for title, listing in lists.items():
        for idiom in listing["idioms"]:
            place = f" (segment {idiom['segment'] + 1})" if "segment" in idiom else ""
            rows.setdefault((idiom["source"], idiom["target"] + place), {})[title] = idiom[listed.detail]
    if not rows:
        return ()
    ordered = sorted(rows.items(), key=lambda row: -max(map(len, row[1].values())))
    counts = "; ".join(f"{title}: {listing['count']} of {listing['of']}" for title, listing in lists.items())
    table = Table(
        text.key_of(listed.title),
        listed.title,
        "idiom",
        tuple(Column(title, title, 0) for title in lists),
        tuple(
            Row(
                source,
                {
                    title: _subwords_cell(subwords.get(title, []), len(listing["idioms"]), listing["count"])
                    for title, listing in lists.items()
                },
                description=target,
            )
            for (source, target), subwords in ordered
        ),
        f"{listed.about} ▁ begins a word. Of several seeds, the first is shown. Idioms concerned: {counts}.",
        folded=True,
    )
    return (table,)


def _subwords_cell(subwords: list[str], shown: int, count: int) -> Cell:
    if subwords or shown == count:
        return Cell("ok", words=", ".join(subwords) or "none")
    return Cell("absent", f"not among the {shown} listed idioms, which have the most subwords", words="—")


BASELINES, SETTINGS = "baselines", "settings"  # the keys of tables of differences end in these
MANY_ROWS = 9  # a page folds tables with at least so many rows
Groups = Mapping[str, Sequence[Measured]]  # the seeds of a variant or system
Rows = Sequence[tuple[RowSetting, Row]]  # the rows of a table

NOT_COMPARED = (
    "No rows of this analysis are compared: an earlier version of creamtea made it, which kept no statistics "
    "of single sentences. Run the study again to compare rows; models and translations are reused."
)
ABOUT = (
    "In tables of differences, each value has its difference below it: paired over sentences, with a 95 % "
    "interval. p: paired bootstrap ({samples} resamples), two-sided, after Holm's correction over the rows "
    "of a column; * marks where it is below 0.05{allow}. If only some sentences have a measure (say, those "
    "with a proved best), each row covers its own.{seeds}"
)


@dataclass(frozen=True)
class _Compared:
    """A row, the row that it is compared with, and the step that compared them."""

    row: Row
    setting: RowSetting
    against: Row
    step: Measured


def differences(
    results: StudyResults, name: str, spec: Analysis, layouts: Sequence[TableLayout], tables: Sequence[Rows]
) -> tuple[list[Table], list[Notes]]:
    """Build an analysis' tables of differences, and a note on how to read them or why there are none."""
    if not spec.paired:
        return [], []
    steps = results.of(DIFFERENCES.name, analysis=name)
    compared = [
        table
        for layout, rows in zip(layouts, tables, strict=True)
        for key, pairs in _pairs(spec, rows, steps).items()
        if (table := _differences_table(results, name, spec, layout, pairs, key)) is not None
    ]
    if compared:
        samples = " or ".join(f"{n:,}" for n in sorted({step.node.params["samples"] for step in steps}))
        seeds = results.spec.has_several_seeds
        allow, sentence = (SEEDS_ALLOW, f" {text.sentence(WITH_SEEDS)}") if seeds else ("", "")
        about = ABOUT.format(samples=samples, allow=allow, seeds=sentence)
        return compared, [Notes("differences", (about,))]
    settings = max(len(rows) for rows in tables) > 1 and spec.base_setting
    several = settings or len({row.name for rows in tables for _, row in rows}) > 1
    return [], [Notes("differences", (NOT_COMPARED,))] if several else []


def _pairs(spec: Analysis, rows: Rows, steps: Sequence[Measured]) -> dict[str, list[_Compared]]:
    """Pair each compared row of a table with its baseline at the same setting, or with the base setting."""
    by_place = {(row.name, setting.parts): row for setting, row in rows}
    base = (spec.base_setting,)
    pairs: dict[str, list[_Compared]] = {BASELINES: [], SETTINGS: []}
    for step in steps:
        baseline = step.node.labels.get("baseline")
        for setting, row in rows:
            if row.name != step.node.labels[spec.rows]:
                continue
            if baseline is not None:
                against = by_place[baseline, setting.parts]
                pairs[BASELINES].append(_Compared(row, setting, against, step))
            elif setting.parts != base and (row.name, base) in by_place:
                pairs[SETTINGS].append(_Compared(row, setting, by_place[row.name, base], step))
    return pairs


def _differences_table(
    results: StudyResults,
    name: str,
    spec: Analysis,
    layout: TableLayout,
    compared: Sequence[_Compared],
    key: str,
) -> Table | None:
    measures = [measure for measure in layout.measures if measure.column.key in spec.paired]
    if not compared or not measures:
        return None
    models = {
        group: _models(results, name, spec, group)
        for pair in compared
        for group in (pair.row.name, pair.against.name)
    }
    deltas = {measure.column.key: _column(measure, compared, models) for measure in measures}
    others = [pair.against.name if key == BASELINES else pair.against.setting for pair in compared]
    rows = [
        Row(
            pair.row.name,
            {column: replace(pair.row.cells[column], delta=own[place]) for column, own in deltas.items()},
            setting=f"{pair.row.setting} against {other}".strip(),
            against=text.row_name(pair.against),
        )
        for place, (pair, other) in enumerate(zip(compared, others, strict=True))
    ]
    return Table(
        f"{text.key_of(layout.heading)}-{key}",
        f"Differences from {' and '.join(dict.fromkeys(others))}",
        layout.heading,
        tuple(measure.column for measure in measures),
        tuple(rows),
        folded=True,
    )


def _column(
    measure: Measure, compared: Sequence[_Compared], models: Mapping[str, Sequence[str]]
) -> Sequence[Delta | None]:
    """Return the differences in a column, corrected together; None for rows without the measure."""
    has_measure = [not set(pair.setting.parts) & measure.undefined.keys() for pair in compared]
    deltas, low = [], []
    for pair, measured in zip(compared, has_measure, strict=True):
        if measured:
            subject = "/".join(filter(None, (measure.column.key, measure.subject(pair.setting))))
            delta = read_delta(pair.step, subject)
            metric = pair.step.find("delta", subject)
            scores = metric.detail.get("scores", {}) if metric is not None else {}
            own_scores, other_scores = (
                dict(zip(models[row.name], scores[role], strict=True)) if scores.get(role) else {}
                for row, role in ((pair.row, "system"), (pair.against, "baseline"))
            )
            deltas.append(with_seeds(delta, own_scores, other_scores))
            values = [row.cells[measure.column.key].value for row in (pair.row, pair.against)]
            near_zero = all(value is not None and value < NEAR_ZERO for value in values)
            low.append(near_zero and measure.column.key == BLEU.key)
    corrected = iter(correct(deltas, low))
    return [next(corrected) if measured else None for measured in has_measure]


def _models(results: StudyResults, name: str, spec: Analysis, group: str) -> list[str]:
    """Return the models of the seeds, in the order of the analysis' steps."""
    if spec.rows == "system" and results.spec.systems[group].ensemble:
        return models_of(results, group, [])
    steps = results.of(spec.step.name, analysis=name, **{spec.rows: group})
    labels = [step.node.labels for step in steps]
    return [model_of(results, label["variant"], label["seed"]) for label in labels]


Counts = Callable[[Mapping[str, Any]], tuple[int, int]]


@dataclass(frozen=True)
class AnalysisResults:
    """The tables and figures of one analysis of the study."""

    name: str
    spec: Analysis
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    notes: tuple[Notes, ...] = ()
    segments: int | None = None  # analysed, or in the smallest scored bucket


def build_analysis(results: StudyResults, name: str, spec: Analysis) -> AnalysisResults:
    """Build an analysis of the study. Cells say why a step has not run or has failed."""
    groups: dict[str, list[Measured]] = {}  # the seeds of a variant or system
    for measured in results.of(spec.step.name, analysis=name):
        groups.setdefault(str(measured.node.labels[spec.rows]), []).append(measured)
    available = idioms_of(results, spec.test_set).needs
    scored_by = {  # the metrics that the steps score with, by kind: {"bleu": "BLEU (lower-cased)"}
        value["kind"]: METRICS.kinds[value["kind"]].model_validate(value).describe()
        for seeds in groups.values()
        for step in seeds
        for value in step.node.params.values()
        if isinstance(value, dict) and value.get("kind") in METRICS.kinds
    }
    buckets = _measured_buckets(groups)
    layouts, rows, tables = list[TableLayout](), list[Rows](), list[Table]()
    for declared in spec.tables:
        measures = tuple(replace(m, column=_column_of(m.column, scored_by)) for m in declared.measures)
        layout = replace(declared, measures=measures)
        # the measured buckets; the declared settings until there are any
        settings = (buckets if layout.buckets else []) or layout.settings(spec)
        own = [
            (setting, Row(group, {m.column.key: _cell(m, setting, seeds) for m in measures}, setting.words))
            for group, seeds in groups.items()
            for setting in settings
            if setting.needs in available
        ]
        layouts.append(layout)
        rows.append(own)
        columns = tuple(measure.column for measure in measures)
        shown, folded = tuple(row for _, row in own), len(own) >= MANY_ROWS
        whole = Table(text.key_of(layout.heading), "", layout.heading, columns, shown, folded=folded)
        tables += _bucket_tables(layout, own) or [whole]
    for listed in spec.lists:
        metrics = {
            f"{group}, {setting.words}": seeds[0].find(listed.metric, "/".join(setting.parts))
            for group, seeds in groups.items()
            for setting in spec.tables[0].settings(spec)
        }
        tables += idiom_table(listed, metrics)
    styles = vega.styles_of(results.spec)
    figures = (
        _analysis_figure(replace(plot, y=_column_of(plot.y, scored_by)), rows, results.points, groups, styles)
        for plot in spec.plots
    )
    compared, notes = differences(results, name, spec, layouts, rows)
    return AnalysisResults(
        name,
        spec,
        (*tables, *compared),
        tuple(filter(None, figures)),
        tuple(notes),
        _fewest_segments(results, spec, groups),
    )


def _column_of(column: Column, scored_by: Mapping[str, str]) -> Column:
    return replace(column, title=scored_by.get(column.key, column.title))


def _fewest_segments(results: StudyResults, spec: Analysis, groups: Groups) -> int | None:
    scored = (row for row in _bucket_rows(groups) if row.value is not None)
    buckets = [int(row.detail["bucket"]["segments"]) for row in scored]
    available = known_count(results.of("test_set", test_set=spec.test_set), "segments")
    limits = [limit for limit in (*buckets, available, spec.first_sentences) if limit is not None]
    return min(limits, default=None)


def analyses_section(analyses: Sequence[AnalysisResults]) -> Section | None:
    """Group analyses by kind, so that a kind is explained once. None for a study without analyses."""
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
    return Section(kind, spec.title, (*sections, *column_meanings(columns)), about=spec.about())


def _analysed(spec: Analysis) -> str:
    """Name what an analysis covers: "newstest" or "the first 200 sentences of newstest"."""
    if spec.first_sentences is None:
        return spec.test_set
    return f"the first {spec.first_sentences:,} sentences of {spec.test_set}"


# ---------------------------------------------------------------- cells


def _cell(measure: Measure, setting: RowSetting, measured: Sequence[Measured]) -> Cell:
    for part in setting.parts:
        if reason := measure.undefined.get(part):
            return Cell("absent", reason)
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

    cell = with_spread(read_cell(measured, read, "the plan has no such step"))
    if not measure.column.less or cell.spread is None:
        return cell
    if cell.value is None or cell.low is None or cell.high is None:
        return cell
    # a reader takes the interval of a difference for a test, which must not forget the choice of seeds
    low, high = widened(cell.value, cell.low, cell.high, cell.spread)
    return replace(cell, low=low, high=high)


def _counted(metric: MetricValue, counts: Counts) -> MetricValue | None:
    """Return the share that the detail counts, with its Wilson interval; None without counts."""
    try:
        count, of = counts(metric.detail)
    except KeyError:
        return None
    low, high = wilson_interval(count, of)
    return replace(metric, value=count / of, low=low, high=high)


# ---------------------------------------------------------------- buckets and figures


def _bucket_rows(groups: Groups) -> list[MetricValue]:
    rows = (row for seeds in groups.values() for step in seeds for row in step.metrics)
    return [row for row in rows if "bucket" in row.detail]


def _measured_buckets(groups: Groups) -> list[RowSetting]:
    """Return every bucket that a step has measured, in order; `words` include its number of segments."""
    buckets = {row.subject: row.detail["bucket"] for row in _bucket_rows(groups)}
    ordered = sorted(buckets.items(), key=lambda item: int(item[1]["position"]))
    return [
        RowSetting(
            tuple(subject.split("/")),
            f"{bucket['words']} ({bucket['segments']:,})",
            float(bucket["position"]),
            tick=bucket["words"],
        )
        for subject, bucket in ordered
    ]


def _bucket_tables(layout: TableLayout, rows: Sequence[tuple[RowSetting, Row]]) -> list[Table]:
    """Build a table for each kind of buckets: a row per group, a column per bucket and measure."""
    tables = []
    for kind, title in layout.buckets.items():
        of_kind = [(setting, row) for setting, row in rows if setting.parts[0] == kind]
        if not of_kind:
            continue
        cells: dict[str, dict[str, Cell]] = {}
        columns: dict[str, Column] = {}
        for measure in layout.measures:
            for setting, row in of_kind:
                key = text.key_of(f"{measure.column.key}-{'-'.join(setting.parts)}")
                heading = f"{measure.column.title}, {setting.words}"
                columns[key] = replace(measure.column, key=key, title=heading)
                cells.setdefault(row.name, {})[key] = row.cells[measure.column.key]
        tables.append(
            Table(
                kind,
                f"By {title}",
                layout.heading,
                tuple(columns.values()),
                tuple(Row(name, its_cells) for name, its_cells in cells.items()),
                "In brackets: the number of segments of the bucket.",
                folded=len(cells) >= MANY_ROWS,
            )
        )
    return tables


MAX_TICKS = 12
LARGE = 10_000
Points = Mapping[str, Mapping[str, Sequence[CurvePoint]]]  # by step key and series
Mark = dict[str, Any]


def _analysis_figure(
    plot: CellPlot | RowPlot | PointPlot,
    tables: Sequence[Rows],
    points: Points,
    groups: Groups,
    styles: vega.Styles,
) -> Figure | None:
    """Draw a plot of an analysis. None if nothing is drawn and nothing is missing."""
    match plot:
        case CellPlot():
            return _over_cells(plot, tables[0], styles)
        case RowPlot():
            return _in_rows(plot, [row for _, row in tables[plot.table]], styles)
        case PointPlot():
            return _over_points(plot, points, groups, styles)


def mark(group: str, x: float, cell: Cell, y: Column, label: str) -> Mark:
    """Return a point of a curve with its interval, in the scale of the column's axis."""
    return {"group": group, "x": x, **vega.with_bounds(cell, y, "y"), "label": label}


def _over_cells(plot: CellPlot, rows: Rows, styles: vega.Styles) -> Figure | None:
    """Draw means over seeds with their intervals, as the table has them."""
    curves: dict[tuple[str, str], list[Mark]] = {}
    gaps: dict[tuple[str, str], str] = {}
    parts: dict[str, tuple[str, str]] = {}
    rows = [(setting, row) for setting, row in rows if not plot.only or plot.only in setting.parts]
    for setting, row in rows:
        apart_here = [words for part, words in plot.apart.items() if part in setting.parts]
        if plot.apart and not apart_here:
            continue
        for key, words in plot.measures.items():
            part = ", ".join(filter(None, [words, *apart_here]))
            group = f"{row.name}, {part}" if part else row.name
            parts[group] = row.name, part
            cell = row.cells[key]
            x = setting.x if plot.x.key == "setting" else row.cells[plot.x.key].value
            if cell.value is None:
                gaps.setdefault((key, group), cell.state)
            elif x is not None:
                drawn = mark(group, x * plot.x.scale, cell, plot.y, setting.words)
                curves.setdefault((key, group), []).append(drawn)
    missing = [text.not_drawn(curve[1], state) for curve, state in gaps.items() if curve not in curves]
    marks = [drawn for group in curves.values() for drawn in group]
    ticks = {setting.x: setting.tick for setting, _ in rows if setting.x is not None and setting.tick}
    return _curves(plot, marks, missing, vega.styles_of_parts(styles, parts), "setting", ticks)


def _over_points(plot: PointPlot, points: Points, groups: Groups, styles: vega.Styles) -> Figure | None:
    """Draw one curve per step: points of different seeds share no x."""
    marks, missing, parts = [], [], dict[str, tuple[str, str]]()
    for name, measured in groups.items():
        for step in measured:
            model = f"{name}, seed {step.node.labels['seed']}" if len(measured) > 1 else name
            series_of_step = points.get(step.node.key, {})
            if not any(series in series_of_step for series in plot.series):
                state = state_of(step.node)[0]
                missing.append(text.not_drawn(model, "absent" if state == "ok" else state))
            for series, words in plot.series.items():
                group = f"{model}, {words}" if words else model
                parts[group] = name, group.removeprefix(name)
                for point in series_of_step.get(series, ()):
                    cell = Cell("ok", value=point.y)
                    if plot.counted:  # y is a share, and the label the number of cases
                        of = int(point.label)
                        low, high = wilson_interval(round(point.y * of), of)
                        cell = replace(cell, low=low, high=high)
                    marks.append(mark(group, point.x * plot.x.scale, cell, plot.y, point.label))
    return _curves(plot, marks, missing, vega.styles_of_parts(styles, parts), plot.label, {}, plot.diagonal)


def _curves(
    plot: CellPlot | PointPlot,
    marks: list[Mark],
    missing: Sequence[str],
    styles: vega.Styles,
    label: str,
    ticks: Mapping[float, str],
    diagonal: bool = False,
) -> Figure | None:
    if not marks:
        return _empty(plot.title, missing)
    groups = dict.fromkeys(drawn["group"] for drawn in marks)
    own_styles = {group: styles[group] for group in groups}
    layer = curve_layers(own_styles, plot.x, plot.y, label, marks, plot.logarithmic)
    encoding = layer[0]["encoding"]
    # ticks that have a word show it instead of their number
    named = {x: word for x, word in ticks.items() if any(drawn["x"] == x for drawn in marks)}
    if named:
        words = "".join(f"datum.value == {place:g} ? {json.dumps(word)} : " for place, word in named.items())
        encoding["x"]["axis"]["labelExpr"] = f"{words}datum.label"
    if isinstance(plot, CellPlot) and not plot.joined:
        layer = [part for part in layer if part["mark"]["type"] != "line"]
    if diagonal:
        for axis, column in (("x", plot.x), ("y", plot.y)):  # as long as the diagonal
            encoding[axis]["scale"] = {"domain": [0, column.scale]}
        encoding["x"]["axis"] = {"format": ",.0f", "grid": False}
        ends = [{"x": share * plot.x.scale, "y": share * plot.y.scale} for share in (0.0, 1.0)]
        diagonal_layer = {
            "data": {"values": ends},
            "mark": {"type": "line", "strokeDash": [4, 4], "color": vega.GREY},
            "encoding": {"x": encoding["x"], "y": encoding["y"]},
        }
        layer.insert(0, diagonal_layer)
    return vega.figure(text.key_of(plot.title), plot.title, marks, layer, missing)


def _empty(title: str, missing: Sequence[str]) -> Figure | None:
    return Figure(text.key_of(title), title, {}, (), tuple(missing)) if missing else None


def _in_rows(plot: RowPlot, rows: Sequence[Row], styles: vega.Styles) -> Figure | None:
    """Draw a measure's mark in each row, with its interval or its deviation to either side."""
    marks = []
    for key, words in plot.measures.items():
        for place, row in enumerate(rows):
            cell = row.cells[key]
            if cell.value is None:
                continue
            if plot.deviations:
                deviation = row.cells[f"{key}_deviation"].value
                low = None if deviation is None else cell.value - deviation
                high = None if deviation is None else cell.value + deviation
                cell = replace(cell, low=low, high=high)
            marks.append(mark(words, float(place), cell, plot.y, row.name))
    missing = [
        text.not_drawn(row.name, row.cells[next(iter(plot.measures))].state)
        for row in rows
        if all(row.cells[key].value is None for key in plot.measures)
    ]
    if not marks:
        return _empty(plot.title, missing)
    names = [row.name for row in rows]
    measures = list(dict.fromkeys(drawn["group"] for drawn in marks))
    layer = _marks(names, measures, plot, styles)
    return vega.figure(text.key_of(plot.title), plot.title, marks, layer, missing, names=names)


def curve_layers(
    groups: vega.Styles, x: Column, y: Column, label: str, rows: Sequence[Mark], logarithmic: bool
) -> list[Spec]:
    """Return layers of lines, of intervals if there are any, and of points with tooltips."""
    across = vega.quantity("x", text.heading(x), zero=False)
    ticks = sorted({row["x"] for row in rows})
    large = ticks[0] >= 1 and ticks[-1] >= LARGE  # 100k
    across["axis"] = {"format": ",.0f" if x.digits == 0 else "~s" if large else ",.6~g", "grid": False}
    across["axis"] |= {"values": ticks} if len(ticks) <= MAX_TICKS else {"tickCount": 5}
    if logarithmic:
        across["scale"] = {"type": "log", "nice": False, "padding": 10}
    up = vega.quantity("y", text.heading(y), zero=False, padding=0)
    style = vega.by_style("group", groups, "color", "shape", "strokeDash")
    line = {"x": across, "y": up, "color": style["color"], "strokeDash": style["strokeDash"]}
    layer: list[Spec] = [{"mark": {"type": "line", "strokeWidth": 2}, "encoding": line}]
    if any(row["low"] is not None for row in rows):
        bounds = {"x": across, "y": up | {"field": "low"}, "y2": {"field": "high"}, "color": style["color"]}
        layer.append({"transform": [vega.WITH_BOUNDS], **vega.rule(bounds, strokeWidth=1)})
    tooltip = vega.tooltip(
        ("group", "of", ""),
        ("label", label, ""),
        ("x", text.heading(x), ",.4~g"),
        *vega.with_interval("y", y),
    )
    drawn = {"x": across, "y": up, "color": style["color"], "shape": style["shape"], "tooltip": tooltip}
    return [*layer, vega.points(drawn, size=55)]


def _marks(names: Sequence[str], groups: Sequence[str], plot: RowPlot, styles: vega.Styles) -> list[Spec]:
    """Draw a row per name with a mark per group, one below the other, each with its interval.

    Marks of several groups are grey and differ in shape.
    """
    if len(groups) > 1:
        style = vega.by_style("group", vega.greys(groups))
    else:
        style = vega.by_style("label", {name: styles[name] for name in names}, legend={})
    along = vega.quantity("y", text.heading(plot.y), zero=False, padding=0)
    place = {
        "y": vega.named("label", names),
        "yOffset": {"field": "group", "type": "nominal", "scale": {"domain": list(groups)}},
        "color": style["color"],
    }
    tooltip = vega.tooltip(
        ("label", "variant", ""),
        ("group", "measure", ""),
        *vega.with_interval("y", plot.y, bounds="one deviation" if plot.deviations else "95 %"),
    )
    bounds = {"x": along | {"field": "low"}, "x2": {"field": "high"}, **place}
    return [
        {"transform": [vega.WITH_BOUNDS], **vega.rule(bounds, strokeWidth=2)},
        vega.points({"x": along, **place, "shape": style["shape"], "tooltip": tooltip}, size=55),
    ]
