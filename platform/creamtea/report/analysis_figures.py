"""Figures of analyses: curves over a setting, or marks in rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from creamtea.contract.columns import Column
from creamtea.report import text, vega
from creamtea.report.model import Figure, Spec
from creamtea.report.vega import GREY

MAX_TICKS = 12
LARGE = 10_000


@dataclass(frozen=True)
class PlotPoint:
    x: float
    y: float
    label: str
    low: float | None = None  # 95 %
    high: float | None = None


@dataclass(frozen=True)
class PlotCurve:
    group: str  # a variant or a system, and what tells its curves apart
    points: tuple[PlotPoint, ...]


@dataclass(frozen=True)
class Plot:
    """What a figure of an analysis draws: one curve per group. `y` says how a value is shown."""

    title: str
    x: Column
    y: Column
    curves: tuple[PlotCurve, ...]
    missing: tuple[str, ...]  # groups without a point, and why: "scones (pending)"
    label: str = "setting"  # what the points' labels say
    logarithmic: bool = False  # the x axis
    diagonal: bool = False  # draw x = y too
    ticks: dict[float, str] = field(default_factory=dict)  # of the x axis, in place of the number
    rows: bool = False  # the ticks are names: each has a row, along which the values are drawn
    bounds: str = "95 %"  # what the points' low and high are


def analysis_figure(plot: Plot) -> Figure:
    """A plot of an analysis: one curve per group, or marks in rows; intervals as rules."""
    rows: list[dict[str, Any]] = [
        {
            "group": curve.group,
            "x": point.x * plot.x.scale,
            "y": point.y * plot.y.scale,
            "low": vega.scaled(point.low, plot.y),
            "high": vega.scaled(point.high, plot.y),
            "label": point.label,
        }
        for curve in plot.curves
        for point in curve.points
    ]
    key = text.key_of(plot.title)
    groups = list(dict.fromkeys(curve.group for curve in plot.curves))
    if not rows:
        return Figure(key, plot.title, {}, (), plot.missing)
    if plot.rows:
        names = list(plot.ticks.values())
        layer = _marks(names, groups, plot)
        return vega.low(vega.figure(key, plot.title, rows, layer, plot.missing), len(names))
    layer = curve_layers(groups, plot.x, plot.y, plot.label, rows, plot.logarithmic)
    _name_ticks(layer[0]["encoding"]["x"], plot, rows)
    if plot.diagonal:
        encoding = layer[0]["encoding"]
        for axis, column in (("x", plot.x), ("y", plot.y)):  # as long as the diagonal
            encoding[axis]["scale"] = {"domain": [0, column.scale]}
        encoding["x"]["axis"] = {"format": ",.0f", "grid": False}
        layer.insert(0, _diagonal(encoding, plot.x, plot.y))
    return vega.figure(key, plot.title, rows, layer, plot.missing)


def _name_ticks(x: Spec, plot: Plot, rows: Sequence[dict[str, Any]]) -> None:
    """Words in place of the numbers that have some."""
    drawn = {place: word for place, word in plot.ticks.items() if any(row["x"] == place for row in rows)}
    if drawn:
        words = "".join(f"datum.value == {place:g} ? {json.dumps(word)} : " for place, word in drawn.items())
        x["axis"]["labelExpr"] = f"{words}datum.label"


def curve_layers(
    groups: Sequence[str], x: Column, y: Column, label: str, rows: list[dict[str, Any]], logarithmic: bool
) -> list[Spec]:
    """Lines, intervals where there are any, and points with what they are."""
    across = vega.quantity("x", text.heading(x), zero=False)
    ticks = sorted({row["x"] for row in rows})
    large = ticks[0] >= 1 and ticks[-1] >= LARGE  # 100k
    across["axis"] = {"format": ",.0f" if x.digits == 0 else "~s" if large else ",.6~g", "grid": False}
    across["axis"] |= {"values": ticks} if len(ticks) <= MAX_TICKS else {"tickCount": 5}
    if logarithmic:
        across["scale"] = {"type": "log", "nice": False, "padding": 10}
    up = vega.quantity("y", text.heading(y), zero=False, padding=0)
    colour = vega.colour_scale("group", groups)
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
    tooltip = vega.tooltip(
        ("group", "of", ""),
        ("label", label, ""),
        ("x", text.heading(x), ",.4~g"),
        *vega.with_interval("y", y),
    )
    shape = vega.shape_scale("group", groups)
    drawn = {"x": across, "y": up, "color": colour, "shape": shape, "tooltip": tooltip}
    return [*layer, vega.points(drawn, size=55)]


def _marks(names: Sequence[str], groups: Sequence[str], plot: Plot) -> list[Spec]:
    """A row per name; in it, below each other, a mark per group with its interval."""
    along = vega.quantity("y", text.heading(plot.y), zero=False, padding=0)
    place = {
        "y": vega.named("label", names),
        "yOffset": {"field": "group", "type": "nominal", "scale": {"domain": list(groups)}},
        "color": vega.colour_scale("group", groups),
    }
    tooltip = vega.tooltip(
        ("label", plot.label, ""),
        ("group", "measure", ""),
        *vega.with_interval("y", plot.y, bounds=plot.bounds),
    )
    shape = vega.shape_scale("group", groups)
    return [
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"x": along | {"field": "low"}, "x2": {"field": "high"}, **place},
        },
        vega.points({"x": along, **place, "shape": shape, "tooltip": tooltip}, size=55),
    ]


def _diagonal(encoding: Spec, x: Column, y: Column) -> Spec:
    """Where x and y are the same share."""
    ends = [{"x": share * x.scale, "y": share * y.scale} for share in (0.0, 1.0)]
    return {
        "data": {"values": ends},
        "mark": {"type": "line", "strokeDash": [4, 4], "color": GREY},
        "encoding": {"x": encoding["x"], "y": encoding["y"]},
    }
