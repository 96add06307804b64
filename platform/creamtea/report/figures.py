"""Figures of a report as Vega-Lite specifications (plain dictionaries).

Every figure holds its data, one row a point, with all systems or runs in it: what cannot be drawn has a
null and is named in the subtitle with its state. Colours are Okabe and Ito's, which people with any
colour vision can tell apart, and shapes or labels repeat what the colours say. Width follows the container.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from creamtea.report import text
from creamtea.report.labels import GAP, LIMIT, Point, lifts
from creamtea.report.model import Cell, Curve, Report, TestSetTable

Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# Okabe and Ito (2008), without the yellow, which is faint on white, and black, which vanishes on dark pages
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C8C8C")
GREY = PALETTE[-1]
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
LEARNING_TITLES = {
    "dev_loss": "development loss",
    "dev_bleu": "development BLEU",
    "train_loss": "training loss",
    "dev_perplexity": "development perplexity",
    "learning_rate": "learning rate",
}


def quality_against_latency(report: Report, test_set: str, metric: str) -> Spec | None:
    """One point a system: score with its 95 % interval over median latency. None without latency.

    KeyError for an unknown test set or metric. Latency may have been measured on another test set: the
    axis says on which.
    """
    table, timed = report.table(test_set), _timed(report)
    if timed is None:
        return None
    quality = {column.key: column for column in table.columns}[metric]
    latency = {row.system: row.cells["latency_p50"] for row in timed.rows}
    rows, missing = [], []
    for row in table.rows:
        score, time = row.cells[metric], latency[row.system]
        rows.append(
            {
                "system": row.system,
                "description": row.description,
                "quality": score.value,
                "low": score.low,
                "high": score.high,
                "latency": time.value,
                "percent": time.percent,
            }
        )
        missing += [_missing(row.system, cell) for cell in (score, time) if cell.value is None][:1]
    x = _quantity("latency", f"latency p50, ms a sentence ({timed.test_set})", zero=False, padding=30)
    y = _quantity("quality", quality.title, zero=False)
    colour = _colour("system", [row.system for row in table.rows], legend=False)
    tooltip = _tooltip(
        ("system", "system", ""),
        ("description", "decodes", ""),
        ("quality", quality.title, f".{quality.digits}f"),
        ("low", "95 % from", f".{quality.digits}f"),
        ("high", "95 % to", f".{quality.digits}f"),
        ("latency", "p50, ms", ".1f"),
        ("percent", "% of the baseline", ".0f"),
    )
    bounds = {"y": _quantity("low", quality.title, zero=False), "y2": {"field": "high"}}
    return _figure(
        f"{quality.title} against latency ({test_set})",
        missing,
        rows,
        [
            {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": {"x": x, **bounds, "color": colour}},
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": {"x": x, "y": y, "color": colour, "tooltip": tooltip},
            },
            *_labels({"x": x, "y": y, "text": {"field": "system"}, "color": colour}, rows),
        ],
    )


def recall_against_size(report: Report, test_set: str, scope: str) -> Spec | None:
    """Recall of the reference's subwords over the mean selected size (log scale), one line a selection,
    and the study's systems as labelled points. `scope` is "sentence" or "idiom". None without a sweep.
    """
    table = report.table(test_set)
    curves = [c for c in report.recall if c.series == f"recall_{scope}" and c.test_set == test_set]
    if not curves:
        return None
    rows: list[dict[str, Any]] = [
        {
            "selection": curve.group,
            "size": point.x,
            "recall": point.y,
            "setting": point.label,
            "system": "",
            "label": "",
        }
        for curve in curves
        for point in curve.points
    ]
    missing, places = [], dict[tuple[float, float], dict[str, Any]]()
    for row in table.rows:
        size, recall = row.cells["selected_size"], row.cells.get(f"recall_{scope}", Cell("absent"))
        point = {"selection": None, "size": size.value, "recall": recall.value, "setting": row.description}
        rows.append({**point, "system": row.system, "label": row.system})
        if size.value is None or recall.value is None:
            missing += [_missing(row.system, cell) for cell in (recall, size) if cell.value is None][:1]
        elif (size.value, recall.value) in places:  # one label for systems in one place
            places[size.value, recall.value]["label"] += f", {row.system}"
            rows[-1]["label"] = ""
        else:
            places[size.value, recall.value] = rows[-1]
    x: Spec = {
        "field": "size",
        "type": "quantitative",
        "title": "mean selected vocabulary (log scale)",
        "scale": {"type": "log", "nice": False},
        "axis": {"tickCount": 5, "format": ",.0f", "grid": False},
    }
    y = _quantity("recall", f"{scope} recall", zero=False) | {"axis": {"format": ".0%"}}
    groups = list(dict.fromkeys(curve.group for curve in curves))
    colour, shape = _colour("selection", groups), _shape("selection", groups)
    tooltip = _tooltip(
        ("selection", "selection", ""),
        ("system", "system", ""),
        ("setting", "setting", ""),
        ("size", "mean size", ",.1f"),
        ("recall", "recall", ".2%"),
    )
    of_curves, of_systems = {"filter": "datum.selection !== null"}, {"filter": "datum.selection === null"}
    text_of = {"x": x, "y": y, "text": {"field": "label"}, "color": {"value": GREY}}
    return _figure(
        f"{scope.capitalize()} recall against selected size ({test_set})",
        missing,
        rows,
        [
            {
                "transform": [of_curves],
                "mark": {"type": "line", "strokeWidth": 2},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": colour,
                    "order": {"field": "size", "type": "quantitative"},
                },
            },
            {
                "transform": [of_curves],
                "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
                "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": tooltip},
            },
            {
                "transform": [of_systems],
                "mark": {
                    "type": "point",
                    "shape": "diamond",
                    "size": 130,
                    "strokeWidth": 2,
                    "color": "#8C8C8C",
                },
                "encoding": {"x": x, "y": y, "tooltip": tooltip},
            },
            *_labels(text_of, rows, logarithmic=True),
        ],
    )


def learning_curves(report: Report, series: str = "dev_bleu") -> Spec | None:
    """One line a training run over its updates; `series` as in `LEARNING_TITLES`. None without points."""
    curves: Sequence[Curve] = [curve for curve in report.learning if curve.series == series]
    if not curves:
        return None
    rows: list[dict[str, Any]] = [
        {"run": curve.group, "update": point.x, "value": point.y}
        for curve in curves
        for point in curve.points
    ]
    title = LEARNING_TITLES[series]
    groups = [f"{run.variant}, seed {run.seed}" for run in report.training]
    drawn = {curve.group for curve in curves}
    missing = [f"{group} (no points yet)" for group in groups if group not in drawn]
    rows += [{"run": group, "update": None, "value": None} for group in groups if group not in drawn]
    encoding = {
        "x": _quantity("update", "updates", zero=True, padding=0),
        "y": _quantity("value", title, zero=False),
        "color": _colour("run", groups),
    }
    tooltip = _tooltip(("run", "run", ""), ("update", "update", ",.0f"), ("value", title, ".4~g"))
    points = {**encoding, "shape": _shape("run", groups), "tooltip": tooltip}
    return _figure(
        title[0].upper() + title[1:],
        missing,
        rows,
        [
            {"mark": {"type": "line", "strokeWidth": 2}, "encoding": encoding},
            {"mark": {"type": "point", "filled": True, "size": 35, "opacity": 1}, "encoding": points},
        ],
    )


# ---------------------------------------------------------------- parts


def _timed(report: Report) -> TestSetTable | None:
    for table in report.tables:
        if any(column.key == "latency_p50" for column in table.columns):
            return table
    return None


def _missing(system: str, cell: Cell) -> str:
    return f"{system} ({'not measured' if cell.state == 'absent' else text.STATE_WORDS[cell.state]})"


def _labels(encoding: Spec, rows: list[dict[str, Any]], logarithmic: bool = False) -> list[Spec]:
    """Text beside the points, towards the middle of the figure so that none is cut off at its edge, and
    lifted so that none lies on another. Adds the field `lift` to the rows."""
    x, y, label = (encoding[channel]["field"] for channel in ("x", "y", "text"))
    drawn = [row for row in rows if row[x] is not None and row[y] is not None]
    xs = [row[x] for row in drawn]
    ys = [row[field] for row in drawn for field in (y, "low", "high") if row.get(field) is not None]
    labelled = [row for row in drawn if row.get(label)]
    points = [Point(row[x], row[y], row[label]) for row in labelled]
    for row in rows:
        row["lift"] = None
    for row, lift in zip(labelled, lifts(points, xs, ys, logarithmic), strict=True):
        row["lift"] = lift
    low, high = min(xs, default=0.0), max(xs, default=0.0)
    middle = math.sqrt(low * high) if logarithmic else (low + high) / 2
    sides = (("left", GAP, f"datum.{x} <= {middle}"), ("right", -GAP, f"datum.{x} > {middle}"))
    mark = {"type": "text", "dy": {"expr": "datum.lift"}, "limit": LIMIT}
    return [
        {
            "transform": [{"filter": f"isValid(datum.lift) && {where}"}],
            "mark": {**mark, "align": align, "dx": dx},
            "encoding": encoding,
        }
        for align, dx, where in sides
    ]


def _figure(title: str, missing: list[str], rows: list[dict[str, Any]], layer: list[Spec]) -> Spec:
    heading: Spec = {"text": title, "anchor": "start", "subtitleColor": GREY}
    if missing:
        heading["subtitle"] = f"not drawn: {', '.join(missing)}"
    return {
        "$schema": SCHEMA,
        "title": heading,
        "width": "container",
        "height": 320,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": rows},
        "layer": layer,
        "config": {"legend": {"orient": "bottom", "columns": 2, "labelLimit": 200, "title": None}},
    }


def _quantity(field: str, title: str, zero: bool, padding: int = 10) -> Spec:
    scale = {"zero": zero, "padding": padding}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale}


def _colour(field: str, names: Sequence[str], legend: bool = True) -> Spec:
    return _scale(field, names, PALETTE) | ({} if legend else {"legend": None})


def _shape(field: str, names: Sequence[str]) -> Spec:
    return _scale(field, names, SHAPES)


def _scale(field: str, names: Sequence[str], values: Sequence[str]) -> Spec:
    """The same value for a name in every figure of a report; they repeat when there are more names."""
    domain = list(dict.fromkeys(names))
    chosen = [values[index % len(values)] for index in range(len(domain))]
    return {"field": field, "type": "nominal", "scale": {"domain": domain, "range": chosen}}


def _tooltip(*fields: tuple[str, str, str]) -> list[Spec]:
    """(field, title, format) each; a format makes the field a quantity."""
    return [
        {"field": field, "title": title, "type": "quantitative" if form else "nominal"}
        | ({"format": form} if form else {})
        for field, title, form in fields
    ]
