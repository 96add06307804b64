"""Figures of people's judgements as Vega-Lite specifications, from the cells of their tables."""

from __future__ import annotations

from typing import Any

from creamtea.contract.columns import Column
from creamtea.report import vega
from creamtea.report.model import HumanReport
from creamtea.report.vega import Spec


def baseline_is_hundred(report: HumanReport) -> Spec | None:
    """One row a system: its per cent of the baseline, the delta-method interval as a thick line and the
    paired-t interval as a thin one. None for preferences, which have no ratio."""
    means = report.table("means")
    if means is None or not any(column.key == "percent" for column in means.columns):
        return None
    rows, missing = [], []
    for row in means.rows:
        delta, paired = row.cells["percent"], row.cells["percent_paired_t"]
        rows.append(
            {
                "system": row.name,
                "percent": delta.value,
                "low": delta.low,
                "high": delta.high,
                "paired_low": paired.low,
                "paired_high": paired.high,
                "baseline": 100.0,
            }
        )
        if delta.value is None:
            missing.append(f"{row.name} (not rated)")
    title = f"% of {report.baseline}"
    y = vega.named("system", [row.name for row in means.rows])
    tooltip = vega.tooltip(
        ("system", "system", ""),
        ("percent", title, ".1f"),
        ("low", "delta method, from", ".1f"),
        ("high", "to", ".1f"),
        ("paired_low", "paired t, from", ".1f"),
        ("paired_high", "to", ".1f"),
    )

    def between(low: str, high: str) -> Spec:
        return {"x": vega.quantity(low, title, zero=False), "x2": {"field": high}, "y": y}

    grey, blue = {"value": vega.GREY}, {"value": vega.PALETTE[0]}
    return vega.low(
        vega.figure(
            f"People: {report.baseline} = 100 % ({report.campaign})",
            missing,
            rows,
            [
                {
                    "mark": {"type": "rule", "strokeDash": [4, 3]},
                    "encoding": {"x": vega.quantity("baseline", title, zero=False), "color": grey},
                },
                {
                    "mark": {"type": "rule", "strokeWidth": 6, "opacity": 0.35},
                    "encoding": between("low", "high"),
                },
                {
                    "mark": {"type": "rule", "strokeWidth": 2},
                    "encoding": {**between("paired_low", "paired_high"), "color": blue},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
                    "encoding": {
                        "x": vega.quantity("percent", title, zero=False),
                        "y": y,
                        "color": blue,
                        "tooltip": tooltip,
                    },
                },
            ],
        ),
        len(rows),
    )


def people_against_metric(report: HumanReport, metric: str) -> Spec | None:
    """One point a system: people's mean over the metric's mean, on the same outputs. None without scores;
    KeyError for a metric that the table does not have."""
    found, means = report.table("people_and_metrics"), report.table("means")
    if found is None or means is None:
        return None
    column = {one.key: one for one in found.columns}[metric]
    points = {one.key: one for one in found.columns}["people"]
    intervals = {row.name: row.cells["mean"] for row in means.rows}
    rows, missing = [], []
    for row in found.rows:
        people, score, mean = row.cells["people"], row.cells[metric], intervals[row.name]
        rows.append(
            {
                "system": row.name,
                "people": _shown(people.value, points),
                "low": _shown(mean.low, points),
                "high": _shown(mean.high, points),
                "metric": score.value,
            }
        )
        if people.value is None or score.value is None:
            missing.append(f"{row.name} (not measured)")
    y_title = f"people, {points.unit or 'points'}"
    x = vega.quantity("metric", f"{column.title}, mean of segments", zero=False, padding=30)
    y = vega.quantity("people", y_title, zero=False)
    colour = vega.colour_scale("system", [row.name for row in found.rows], legend=False)
    tooltip = vega.tooltip(
        ("system", "system", ""),
        ("people", "people", f".{points.digits}f"),
        ("low", "95 % from", f".{points.digits}f"),
        ("high", "95 % to", f".{points.digits}f"),
        ("metric", column.title, f".{column.digits}f"),
    )
    bounds = {"y": vega.quantity("low", y_title, zero=False), "y2": {"field": "high"}}
    return vega.figure(
        f"People against {column.title} ({report.campaign})",
        missing,
        rows,
        [
            {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": {"x": x, **bounds, "color": colour}},
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": {"x": x, "y": y, "color": colour, "tooltip": tooltip},
            },
            *vega.labels({"x": x, "y": y, "text": {"field": "system"}, "color": colour}, rows),
        ],
    )


def rank_ranges(report: HumanReport) -> Spec | None:
    """One bar a system over its possible ranks, the clusters by colour and shape. None without a ranking."""
    ranking = report.table("wmt")
    if ranking is None:
        return None
    rows: list[dict[str, Any]] = [
        {
            "system": row.name,
            "low": row.cells["rank_low"].value,
            "high": row.cells["rank_high"].value,
            "cluster": f"cluster {row.cells['cluster'].value:.0f}",
        }
        for row in ranking.rows
        if row.cells["rank_low"].value is not None
    ]
    missing = [f"{row.name} (not rated)" for row in ranking.rows if row.cells["rank_low"].value is None]
    y = vega.named("system", [row.name for row in ranking.rows])
    clusters = list(dict.fromkeys(str(row["cluster"]) for row in rows))
    colour, shape = vega.colour_scale("cluster", clusters), vega.shape_scale("cluster", clusters)
    x: Spec = {
        "field": "low",
        "type": "quantitative",
        "title": "rank",
        "scale": {"domain": [0.5, max(1, len(rows)) + 0.5], "nice": False},
        "axis": {"values": list(range(1, len(rows) + 1)), "format": "d", "grid": False},
    }
    tooltip = vega.tooltip(
        ("system", "system", ""),
        ("low", "from rank", "d"),
        ("high", "to rank", "d"),
        ("cluster", "cluster", ""),
    )
    point = {"type": "point", "filled": True, "size": 80, "opacity": 1}
    bar: Spec = {
        "mark": {"type": "rule", "strokeWidth": 5},
        "encoding": {"x": x, "x2": {"field": "high"}, "y": y, "color": colour},
    }
    ends: list[Spec] = [
        {
            "mark": point,
            "encoding": {
                "x": x | {"field": end},
                "y": y,
                "color": colour,
                "shape": shape,
                "tooltip": tooltip,
            },
        }
        for end in ("low", "high")
    ]
    title = f"Rank ranges, WMT mode ({report.campaign})"
    return vega.low(vega.figure(title, missing, rows, [bar, *ends]), len(ranking.rows))


def figures(report: HumanReport) -> list[Spec]:
    """Every figure that the report has data for."""
    found = report.table("people_and_metrics")
    metrics = [column.key for column in found.columns if column.key != "people"] if found else []
    drawn = [baseline_is_hundred(report), *(people_against_metric(report, one) for one in metrics)]
    return [one for one in (*drawn, rank_ranges(report)) if one is not None]


def _shown(value: float | None, column: Column) -> float | None:
    return None if value is None else value * column.scale
