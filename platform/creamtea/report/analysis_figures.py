"""Figures of analyses, and the buckets into which some analyses divide a test set."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from creamtea.contract.step import Column
from creamtea.methods.analysis import CellPlot, Measure, PointPlot, RowPlot, RowSetting, TableLayout
from creamtea.report import text, vega
from creamtea.report.cells import Measured, state_of
from creamtea.report.model import Cell, Figure, Row, Spec, Table
from creamtea.report.vega import GREY, Styles, styles_of_parts
from creamtea.stats.estimate import wilson_interval
from creamtea.store.queries import CurvePoint

MANY_ROWS = 9  # from which on a page folds a table
Groups = Mapping[str, Sequence[Measured]]  # the seeds of a variant or system


def found_buckets(groups: Groups) -> list[RowSetting]:
    """Return every bucket that a step has measured, in order; `words` include its number of segments."""
    buckets = {
        metric.subject: metric.detail["bucket"]
        for seeds in groups.values()
        for step in seeds
        for metric in step.metrics
        if "bucket" in metric.detail
    }
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


def bucket_tables(layout: TableLayout, rows: Sequence[tuple[RowSetting, Row]]) -> list[Table]:
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
                column = _column(measure, setting)
                columns[column.key] = column
                cells.setdefault(row.name, {})[column.key] = row.cells[measure.column.key]
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


def _column(measure: Measure, setting: RowSetting) -> Column:
    column = measure.column
    key = text.key_of(f"{column.key}-{'-'.join(setting.parts)}")
    return replace(column, key=key, title=f"{column.title}, {setting.words}")


MAX_TICKS = 12
LARGE = 10_000
Rows = Sequence[tuple[RowSetting, Row]]  # the rows of a table
Points = Mapping[str, Mapping[str, Sequence[CurvePoint]]]  # by step key and series
Mark = dict[str, Any]


def analysis_figure(
    plot: CellPlot | RowPlot | PointPlot,
    tables: Sequence[Rows],
    points: Points,
    groups: Groups,
    styles: Styles,
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


def _over_cells(plot: CellPlot, rows: Rows, styles: Styles) -> Figure | None:
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
    return _curves(plot, marks, missing, styles_of_parts(styles, parts), "setting", ticks)


def _over_points(plot: PointPlot, points: Points, groups: Groups, styles: Styles) -> Figure | None:
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
                    if plot.counted:  # a share of as many cases as the label says
                        of = int(point.label)
                        low, high = wilson_interval(round(point.y * of), of)
                        cell = replace(cell, low=low, high=high)
                    marks.append(mark(group, point.x * plot.x.scale, cell, plot.y, point.label))
    return _curves(plot, marks, missing, styles_of_parts(styles, parts), plot.label, {}, plot.diagonal)


def _curves(
    plot: CellPlot | PointPlot,
    marks: list[Mark],
    missing: Sequence[str],
    styles: Styles,
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
    # words in the place of a tick's number, where it has some
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
        of_equals = {
            "data": {"values": ends},
            "mark": {"type": "line", "strokeDash": [4, 4], "color": GREY},
            "encoding": {"x": encoding["x"], "y": encoding["y"]},
        }
        layer.insert(0, of_equals)
    return vega.figure(text.key_of(plot.title), plot.title, marks, layer, missing)


def _empty(title: str, missing: Sequence[str]) -> Figure | None:
    return Figure(text.key_of(title), title, {}, (), tuple(missing)) if missing else None


def _in_rows(plot: RowPlot, rows: Sequence[Row], styles: Styles) -> Figure | None:
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
    groups: Styles, x: Column, y: Column, label: str, rows: Sequence[Mark], logarithmic: bool
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


def _marks(names: Sequence[str], groups: Sequence[str], plot: RowPlot, styles: Styles) -> list[Spec]:
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
