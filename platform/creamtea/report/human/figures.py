"""Figures of human scores, from the cells of their tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from creamtea.contract.columns import Column
from creamtea.report import vega
from creamtea.report.model import Choice, Figure, Spec, Table


def figures(
    campaign: str, baseline: str, tables: Mapping[str, Table], styles: vega.Styles
) -> list[Figure | Choice]:
    """Every figure that a campaign has data for; its tables by their keys."""
    drawn: list[Figure | Choice] = []
    means, ranking = tables.get("means"), tables.get("wmt")
    # preferences have no ratio
    if means is not None and any(column.key == "percent" for column in means.columns):
        drawn.append(baseline_is_hundred(means, baseline, campaign, styles))
    if ranking is not None:
        drawn.append(rank_ranges(ranking, campaign, styles))
    if means is not None and (scores := tables.get("people_and_metrics")) is not None:
        metrics = [column for column in scores.columns if column.key != "people"]
        compared = tuple(people_against_metric(scores, means, metric, campaign, styles) for metric in metrics)
        drawn.append(
            Choice("metrics", "Human scores against a metric", ("Metric to compare",), compared, "no metrics")
        )
    return drawn


def baseline_is_hundred(means: Table, baseline: str, campaign: str, styles: vega.Styles) -> Figure:
    """One row per system: its per cent of the baseline, the delta-method interval as a thick line and the
    paired-t interval as a thin one."""
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
    title = f"% of {baseline}"
    names = [row.name for row in means.rows]
    y = vega.named("system", names)
    style = vega.by_style("system", {name: styles[name] for name in names}, legend={})
    tooltip = _percent_tooltip(title)

    def between(low: str, high: str) -> Spec:
        x = vega.quantity(low, title, zero=False)
        return {"x": x, "x2": {"field": high}, "y": y, "color": style["color"]}

    drawn = vega.low(
        vega.figure(
            "hundred",
            f"Human scores: {baseline} = 100 % ({campaign})",
            rows,
            [
                {
                    "mark": {"type": "rule", "aria": False, "strokeDash": [4, 3]},
                    "encoding": {
                        "x": vega.quantity("baseline", title, zero=False),
                        "color": {"value": vega.GREY},
                    },
                },
                {
                    "mark": {"type": "rule", "aria": False, "strokeWidth": 6, "opacity": 0.35},
                    "encoding": between("low", "high"),
                },
                {
                    "mark": {"type": "rule", "aria": False, "strokeWidth": 2},
                    "encoding": between("paired_low", "paired_high"),
                },
                vega.points(
                    {
                        "x": vega.quantity("percent", title, zero=False),
                        "y": y,
                        **style,
                        "tooltip": tooltip,
                    },
                    size=80,
                ),
            ],
            missing,
        ),
        names,
    )
    return replace(drawn, about="Thick: delta method. Thin: paired t.")


def _percent_tooltip(title: str) -> list[Spec]:
    return vega.tooltip(
        ("system", "system", ""),
        ("percent", title, ".1f"),
        ("low", "delta method, from", ".1f"),
        ("high", "to", ".1f"),
        ("paired_low", "paired t, from", ".1f"),
        ("paired_high", "to", ".1f"),
    )


def people_against_metric(
    scores: Table, means: Table, metric: Column, campaign: str, styles: vega.Styles
) -> Figure:
    """One point per system: the mean human score over the metric's mean, on the same outputs."""
    points = next(column for column in scores.columns if column.key == "people")
    intervals = {row.name: row.cells["mean"] for row in means.rows}
    rows, missing = [], []
    for row in scores.rows:
        people, score, mean = row.cells["people"], row.cells[metric.key], intervals[row.name]
        rows.append(
            {
                "system": row.name,
                "people": vega.scaled(people.value, points),
                "low": vega.scaled(mean.low, points),
                "high": vega.scaled(mean.high, points),
                "metric": score.value,
            }
        )
        if people.value is None or score.value is None:
            missing.append(f"{row.name} (not measured)")
    y_title = f"human score, {points.unit or 'points'}"
    x = vega.quantity("metric", f"{metric.title}, mean of segments", zero=False, padding=30)
    y = vega.quantity("people", y_title, zero=False)
    labels = vega.labels(x, y, "system", rows)
    own = {row.name: styles[row.name] for row in scores.rows}
    style = vega.by_style("system", own, legend={} if labels else None)
    tooltip = vega.tooltip(
        ("system", "system", ""),
        *vega.with_interval("people", points),
        ("metric", metric.title, vega.digits(metric)),
    )
    bounds = {"y": vega.quantity("low", y_title, zero=False), "y2": {"field": "high"}}
    drawn = vega.figure(
        metric.key,
        f"Human scores against {metric.title} ({campaign})",
        rows,
        [
            {
                "mark": {"type": "rule", "aria": False, "strokeWidth": 2},
                "encoding": {"x": x, **bounds, "color": style["color"]},
            },
            vega.points({"x": x, "y": y, **style, "tooltip": tooltip}, size=90),
            *labels,
        ],
        missing,
    )
    return replace(drawn, choice=(metric.title,))


def rank_ranges(ranking: Table, campaign: str, styles: vega.Styles) -> Figure:
    """One bar per system over its possible ranks, with a line between clusters."""
    rows: list[dict[str, Any]] = [
        {
            "system": row.name,
            "low": row.cells["rank_low"].value,
            "high": row.cells["rank_high"].value,
            "cluster": f"{row.cells['cluster'].value:.0f}",
            "begins": False,
        }
        for row in ranking.rows
        if row.cells["rank_low"].value is not None
    ]
    missing = [f"{row.name} (not rated)" for row in ranking.rows if row.cells["rank_low"].value is None]
    for row, above in zip(rows[1:], rows, strict=False):
        row["begins"] = row["cluster"] != above["cluster"]
    names = [row.name for row in ranking.rows]
    y = vega.named("system", names)
    style = vega.by_style("system", {name: styles[name] for name in names}, legend={})
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
    bar: Spec = {
        "mark": {"type": "rule", "aria": False, "strokeWidth": 5},
        "encoding": {"x": x, "x2": {"field": "high"}, "y": y, "color": style["color"]},
    }
    between: Spec = {
        "transform": [{"filter": "datum.begins"}],
        "mark": {"type": "rule", "aria": False, "strokeDash": [4, 4], "color": vega.GREY},
        "encoding": {"y": y | {"bandPosition": 0}},
    }
    point = {"y": y, **style, "tooltip": tooltip}
    ends = [vega.points({"x": x | {"field": end}, **point}, size=80) for end in ("low", "high")]
    drawn = vega.figure("ranks", f"Rank ranges, WMT mode ({campaign})", rows, [between, bar, *ends], missing)
    return replace(vega.low(drawn, names), about="Dashed lines stand between clusters.")
