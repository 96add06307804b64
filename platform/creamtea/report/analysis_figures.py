"""Figures of analyses, and of a metric over a number in which systems differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from creamtea.report import text, vega
from creamtea.report.model import Cell, Column, Plot, Report, Sweep
from creamtea.report.vega import GREY, Spec

MOST_TICKS = 12
LARGE = 10_000
OF_A_CORPUS = "variant.corpus."
LOGARITHMIC_FROM = 30.0  # the largest value over the smallest, both above 0


def analysis_figure(plot: Plot) -> Spec | None:
    """A plot of an analysis: one curve a group, or marks in rows; intervals as rules. None without a
    point."""
    rows = [
        {
            "group": curve.group,
            "x": point.x * plot.x.scale,
            "y": point.y * plot.y.scale,
            "low": _scaled(getattr(point, "low", None), plot.y),
            "high": _scaled(getattr(point, "high", None), plot.y),
            "label": point.label,
        }
        for curve in plot.curves
        for point in curve.points
    ]
    if not rows:
        return None
    groups = list(dict.fromkeys(curve.group for curve in plot.curves))
    if plot.rows:
        names = list(plot.ticks.values())
        layer = _marks(names, groups, plot)
        return vega.low(vega.figure(plot.title, list(plot.missing), rows, layer), len(names))
    layer = _curves(groups, plot.x, plot.y, plot.label, rows, plot.logarithmic)
    drawn = {x: word for x, word in plot.ticks.items() if any(row["x"] == x for row in rows)}
    if drawn:
        words = "".join(f"datum.value == {x:g} ? {json.dumps(word)} : " for x, word in drawn.items())
        layer[0]["encoding"]["x"]["axis"]["labelExpr"] = f"{words}datum.label"
    if plot.diagonal:
        encoding = layer[0]["encoding"]
        for axis, column in (("x", plot.x), ("y", plot.y)):  # as long as the diagonal
            encoding[axis]["scale"] = {"domain": [0, column.scale]}
        encoding["x"]["axis"] = {"format": ",.0f", "grid": False}
        layer.insert(0, _diagonal(encoding, plot.x, plot.y))
    return vega.figure(plot.title, list(plot.missing), rows, layer)


def score_over_parameter(report: Report, test_set: str, key: str, sweep: Sweep) -> Spec | None:
    """A column of a test set's table over a number in which systems differ: one curve for each group of
    systems. None without a point; KeyError for an unknown test set or column.

    Systems that differ in a number of their corpus (the temperature of a sampled one) have a test set
    each: those that do not translate this one are drawn by the only test set that they translate.
    """
    table = report.table(test_set)
    column = {column.key: column for column in table.columns}[key]
    cells = {row.system: row.cells[key] for row in table.rows}
    place = test_set
    if sweep.parameter.startswith(OF_A_CORPUS):
        elsewhere = _own_test_sets(report, key)
        place = test_set if elsewhere.keys() <= cells.keys() else "each on the test set of its corpus"
        cells = {**elsewhere, **cells}
    rows, missing = [], []
    for group in sweep.groups:
        for value, system in group.systems:
            cell = cells.get(system, Cell("absent"))
            if cell.value is None:
                missing.append(text.not_drawn(system, cell.state))
                continue
            rows.append(
                {
                    "group": group.name,
                    "x": value,
                    "y": _scaled(cell.value, column),
                    "low": _scaled(cell.low, column),
                    "high": _scaled(cell.high, column),
                    "label": system,
                }
            )
    if not rows:
        return None
    values = [value for group in sweep.groups for value, _ in group.systems]
    logarithmic = min(values) > 0 and max(values) / min(values) >= LOGARITHMIC_FROM
    x = Column("x", f"{sweep.title} (log scale)" if logarithmic else sweep.title, 2)
    layer = _curves([group.name for group in sweep.groups], x, column, "system", rows, logarithmic)
    return vega.figure(f"{column.title} over {sweep.title} ({place})", missing, rows, layer)


def _own_test_sets(report: Report, key: str) -> dict[str, Cell]:
    """A column's cell of each system that translates one test set."""
    found: dict[str, list[Cell]] = {}
    for table in report.tables:
        if key in {column.key for column in table.columns}:
            for row in table.rows:
                found.setdefault(row.system, []).append(row.cells[key])
    return {system: cells[0] for system, cells in found.items() if len(cells) == 1}


def _curves(
    groups: list[str],
    x: Column,
    y: Column,
    label: str,
    rows: list[dict[str, Any]],
    logarithmic: bool,
) -> list[Spec]:
    """Lines, intervals where there are any, and points with what they are."""
    across = vega.quantity("x", text.heading(x), zero=False)
    ticks = sorted({row["x"] for row in rows})
    large = ticks[0] >= 1 and ticks[-1] >= LARGE  # 100k
    across["axis"] = {"format": ",.0f" if x.digits == 0 else "~s" if large else ",.6~g", "grid": False}
    across["axis"] |= {"values": ticks} if len(ticks) <= MOST_TICKS else {"tickCount": 5}
    if logarithmic:
        across["scale"] = {"type": "log", "nice": False, "padding": 10}
    up = vega.quantity("y", text.heading(y), zero=False, padding=0)
    colour = vega.colour_scale("group", groups)
    tooltip = vega.tooltip(
        ("group", "of", ""),
        ("label", label, ""),
        ("x", text.heading(x), ",.4~g"),
        ("y", text.heading(y), f",.{y.digits}f"),
        ("low", "95 % from", f",.{y.digits}f"),
        ("high", "95 % to", f",.{y.digits}f"),
    )
    layer: list[Spec] = [
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"x": across, "y": up, "color": colour}}
    ]
    if any(row["low"] is not None for row in rows):
        bounds = {"y": up | {"field": "low"}, "y2": {"field": "high"}}
        layer.append(
            {
                "transform": [{"filter": "isValid(datum.low)"}],
                "mark": {"type": "rule", "strokeWidth": 1},
                "encoding": {"x": across, **bounds, "color": colour},
            }
        )
    points = {"x": across, "y": up, "color": colour, "shape": vega.shape_scale("group", groups)}
    mark = {"type": "point", "filled": True, "size": 55, "opacity": 1}
    layer.append({"mark": mark, "encoding": {**points, "tooltip": tooltip}})
    return layer


def _marks(names: Sequence[str], groups: Sequence[str], plot: Plot) -> list[Spec]:
    """A row a name, in it below each other a mark a group with its interval."""
    title, digits = text.heading(plot.y), f",.{plot.y.digits}f"
    along = vega.quantity("y", title, zero=False, padding=0)
    place = {
        "y": vega.named("label", names),
        "yOffset": {"field": "group", "type": "nominal", "scale": {"domain": list(groups)}},
        "color": vega.colour_scale("group", groups),
    }
    tooltip = vega.tooltip(
        ("label", plot.label, ""),
        ("group", "measure", ""),
        ("y", title, digits),
        ("low", f"{plot.bounds} from", digits),
        ("high", f"{plot.bounds} to", digits),
    )
    shape = vega.shape_scale("group", groups)
    return [
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"x": along | {"field": "low"}, "x2": {"field": "high"}, **place},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
            "encoding": {"x": along, **place, "shape": shape, "tooltip": tooltip},
        },
    ]


def _diagonal(encoding: Spec, x: Column, y: Column) -> Spec:
    """Where x and y are the same share."""
    ends = [{"x": share * x.scale, "y": share * y.scale} for share in (0.0, 1.0)]
    return {
        "data": {"values": ends},
        "mark": {"type": "line", "strokeDash": [4, 4], "color": GREY},
        "encoding": {"x": encoding["x"], "y": encoding["y"]},
    }


def _scaled(value: float | None, column: Column) -> float | None:
    return None if value is None else value * column.scale
