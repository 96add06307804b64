"""Figures of a report as Vega-Lite specifications: quality, recall and learning curves.

All systems or runs are in the data of a figure (`creamtea.report.vega`); `analysis_figures` draws the
analyses and the sweeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from creamtea.report import text, vega
from creamtea.report.model import Cell, Curve, Report, TestSetTable
from creamtea.report.vega import Spec

LEARNING_TITLES = {
    "dev_loss": "development loss",
    "dev_bleu": "development BLEU",
    "train_loss": "training loss",
    "dev_perplexity": "development perplexity",
    "learning_rate": "learning rate",
}


def quality_against_latency(report: Report, test_set: str, metric: str) -> Spec | None:
    """One point a system: score over median latency, each with its 95 % interval. None without latency.

    KeyError for an unknown test set or metric. Latency may have been measured on another test set: the
    axis says on which.
    """
    table, timed = report.table(test_set), _timed(report)
    if timed is None:
        return None
    quality = {column.key: column for column in table.columns}[metric]
    latency = {row.system: row.cells["latency_p50"] for row in timed.rows}
    baselines = list(dict.fromkeys(name for cell in latency.values() for name in cell.percents))
    rows, missing = [], []
    for row in table.rows:
        score, time = row.cells[metric], latency.get(row.system, Cell("absent"))
        rows.append(
            {
                "system": row.system,
                "description": row.description,
                "quality": score.value,
                "low": score.low,
                "high": score.high,
                "latency": time.value,
                "latency_low": time.low,
                "latency_high": time.high,
                **{
                    f"percent{at}": text.percent(time.percents[name]) if name in time.percents else None
                    for at, name in enumerate(baselines)
                },
            }
        )
        missing += [text.not_drawn(row.system, cell.state) for cell in (score, time) if cell.value is None][
            :1
        ]
    x = vega.quantity("latency", f"latency p50, ms a sentence ({timed.test_set})", zero=False, padding=30)
    y = vega.quantity("quality", quality.title, zero=False)
    colour = vega.colour_scale("system", [row.system for row in table.rows], legend=False)
    tooltip = vega.tooltip(
        ("system", "system", ""),
        ("description", "decodes", ""),
        ("quality", quality.title, f".{quality.digits}f"),
        ("low", "95 % from", f".{quality.digits}f"),
        ("high", "95 % to", f".{quality.digits}f"),
        ("latency", "p50, ms", ".1f"),
        ("latency_low", "95 % from", ".1f"),
        ("latency_high", "95 % to", ".1f"),
        *((f"percent{at}", f"of {name}", "") for at, name in enumerate(baselines)),
    )
    up = {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}, "color": colour}
    across = {"x": x | {"field": "latency_low"}, "x2": {"field": "latency_high"}, "y": y, "color": colour}
    return vega.figure(
        f"{quality.title} against latency ({test_set})",
        missing,
        rows,
        [
            {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": up},
            {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": across},
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": {"x": x, "y": y, "color": colour, "tooltip": tooltip},
            },
            *vega.labels({"x": x, "y": y, "text": {"field": "system"}, "color": colour}, rows),
        ],
    )


def recall_against_size(report: Report, test_set: str, scope: str) -> Spec | None:
    """Recall of the reference's subwords over the mean selected size (log scale), one line a selection,
    and the study's systems as labelled points with their 95 % intervals. `scope` is "sentence" or
    "idiom". None without a sweep.
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
            "low": None,
            "high": None,
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
        bounds = {"low": recall.low, "high": recall.high}
        rows.append({**point, **bounds, "system": row.system, "label": row.system})
        if size.value is None or recall.value is None:
            missing += [
                text.not_drawn(row.system, cell.state) for cell in (recall, size) if cell.value is None
            ][:1]
        elif (size.value, recall.value) in places:  # one label for systems in one place
            places[size.value, recall.value]["label"] += f", {row.system}"
            rows[-1]["label"] = ""
        else:
            places[size.value, recall.value] = rows[-1]
    x: Spec = {
        "field": "size",
        "type": "quantitative",
        "title": "mean selected vocabulary, subwords (log scale)",
        "scale": {"type": "log", "nice": False},
        "axis": {"tickCount": 5, "format": ",.0f", "grid": False},
    }
    y = vega.quantity("recall", f"{scope} recall", zero=False) | {"axis": {"format": ".0%"}}
    groups = list(dict.fromkeys(curve.group for curve in curves))
    colour, shape = vega.colour_scale("selection", groups), vega.shape_scale("selection", groups)
    tooltip = vega.tooltip(
        ("selection", "selection", ""),
        ("system", "system", ""),
        ("setting", "setting", ""),
        ("size", "mean size", ",.1f"),
        ("recall", "recall", ".2%"),
        ("low", "95 % from", ".2%"),
        ("high", "95 % to", ".2%"),
    )
    of_curves, of_systems = {"filter": "datum.selection !== null"}, {"filter": "datum.selection === null"}
    text_of = {"x": x, "y": y, "text": {"field": "label"}, "color": {"value": vega.GREY}}
    return vega.figure(
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
                "transform": [of_systems, {"filter": "isValid(datum.low)"}],
                "mark": {"type": "rule", "color": vega.GREY},
                "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}},
            },
            {
                "transform": [of_systems],
                "mark": {
                    "type": "point",
                    "shape": "diamond",
                    "size": 130,
                    "strokeWidth": 2,
                    "color": vega.GREY,
                },
                "encoding": {"x": x, "y": y, "tooltip": tooltip},
            },
            *vega.labels(text_of, rows, logarithmic=True),
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
        "x": vega.quantity("update", "updates", zero=True, padding=0),
        "y": vega.quantity("value", title, zero=False),
        "color": vega.colour_scale("run", groups),
    }
    tooltip = vega.tooltip(("run", "run", ""), ("update", "update", ",.0f"), ("value", title, ".4~g"))
    points = {**encoding, "shape": vega.shape_scale("run", groups), "tooltip": tooltip}
    return vega.figure(
        title[0].upper() + title[1:],
        missing,
        rows,
        [
            {"mark": {"type": "line", "strokeWidth": 2}, "encoding": encoding},
            {"mark": {"type": "point", "filled": True, "size": 35, "opacity": 1}, "encoding": points},
        ],
    )


def _timed(report: Report) -> TestSetTable | None:
    for table in report.tables:
        if any(column.key == "latency_p50" for column in table.columns):
            return table
    return None
