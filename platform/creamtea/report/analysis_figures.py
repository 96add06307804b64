"""Figures of analyses, and of a metric over a number in which systems differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from creamtea.contract.columns import Column
from creamtea.methods.analysis import ANALYSES
from creamtea.report import text, vega
from creamtea.report.model import Cell, Plot, Report, Sweep
from creamtea.report.parameters import in_common
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
    members = [
        (group.name, [(value, system, cells.get(system, Cell("absent"))) for value, system in group.systems])
        for group in sweep.groups
    ]
    return _over(sweep, members, column, place)


def analysis_over_parameter(report: Report, kind: str, key: str, sweep: Sweep) -> Spec | None:
    """A column of an analysis over a number in which systems differ by their variants: one curve for each
    group of systems and setting of the analysis ("beam 4", "exact"). None without a point.

    All analyses of a kind are one: variants that differ in their corpus are analysed on a test set each. What
    is analysed several times is not drawn.
    """
    analyses = [one for one in report.analyses if one.kind == kind]
    found: dict[tuple[str, str], list[Cell]] = {}  # by variant or system, and setting
    for row in (row for one in analyses for row in one.tables[0].rows):
        found.setdefault((row.name, row.setting), []).append(row.cells[key])
    cells = {place: own[0] for place, own in found.items() if len(own) == 1}
    if not cells:
        return None
    variants = {row.system: row.variant for table in report.tables for row in table.rows}
    # by what is analysed: each once, however many systems decode with it
    members: dict[tuple[str, ...], tuple[str, list[Member]]] = {}
    for group in sweep.groups:
        for setting in dict.fromkeys(setting for _, setting in cells):
            named = [
                (value, system if ANALYSES.kinds[kind].rows == "system" else variants.get(system, system))
                for value, system in group.systems
            ]
            own = [(value, name, cells.get((name, setting), Cell("absent"))) for value, name in named]
            names = tuple(name for _, name in named)
            if len(set(names)) == len(names) and any(cell.state != "absent" for *_, cell in own):
                curve = ", ".join(filter(None, [in_common(list(names)), setting]))
                members.setdefault((*names, setting), (curve, own))
    column = next(one for one in analyses[0].tables[0].columns if one.key == key)
    return _over(sweep, list(members.values()), column, analyses[0].title.lower())


def analysis_columns(report: Report) -> dict[tuple[str, str], str]:
    """What `analysis_over_parameter` may draw, by kind and key: "Search errors: BLEU"."""
    return {
        (analysis.kind, column.key): f"{analysis.title}: {column.title}"
        for analysis in report.analyses
        for column in analysis.tables[0].columns
        if column.key in ANALYSES.kinds[analysis.kind].over
    }


Member = tuple[float, str, Cell]  # the number, what it is of, and what is drawn


def _over(sweep: Sweep, curves: Sequence[tuple[str, list[Member]]], y: Column, about: str) -> Spec | None:
    rows = [
        {
            "group": curve,
            "x": value,
            "y": _scaled(cell.value, y),
            "low": _scaled(cell.low, y),
            "high": _scaled(cell.high, y),
            "label": name,
        }
        for curve, members in curves
        for value, name, cell in members
        if cell.value is not None
    ]
    if not rows:
        return None
    missing = dict.fromkeys(
        text.not_drawn(name, cell.state)
        for _, members in curves
        for _, name, cell in members
        if cell.value is None
    )
    values = [value for _, members in curves for value, *_ in members]
    logarithmic = min(values) > 0 and max(values) / min(values) >= LOGARITHMIC_FROM
    x = Column("x", f"{sweep.title} (log scale)" if logarithmic else sweep.title, 2)
    layer = _curves([curve for curve, _ in curves], x, y, "system", rows, logarithmic)
    return vega.figure(f"{y.title} over {sweep.title} ({about})", list(missing), rows, layer)


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
