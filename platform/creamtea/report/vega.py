"""What the figures of a report are made of: parts of Vega-Lite specifications (plain dictionaries).

Every figure holds its data, one row per point: what cannot be drawn has a null and is named in `missing` with
its state. Colours are Okabe and Ito's, which people with any colour vision can tell apart, and shapes or
labels repeat what the colours say. Width follows the container.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from creamtea.contract.columns import Column
from creamtea.report import text
from creamtea.report.labels import GAP, LIMIT, Point, lifts
from creamtea.report.model import Figure, Spec

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# Okabe and Ito (2008), without the yellow, which is faint on white, and black, which vanishes on dark pages
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C8C8C")
GREY = PALETTE[-1]
ROW = 34  # pixels of a figure's row that has a name
LONG_NAME = 18  # letters, of which two do not fit side by side on a phone
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")


def labels(encoding: Spec, rows: list[dict[str, Any]], logarithmic: bool = False) -> list[Spec]:
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


def figure(
    key: str, title: str, rows: list[dict[str, Any]], layer: list[Spec], missing: Sequence[str] = ()
) -> Figure:
    scales = (part["encoding"].get("color", {}).get("scale", {}) for part in layer)
    longest = max((len(name) for scale in scales for name in scale.get("domain", [])), default=0)
    columns = 1 if longest > LONG_NAME else 2
    spec: Spec = {
        "$schema": SCHEMA,
        "width": "container",
        "height": 320,
        "autosize": {"type": "fit-x", "contains": "padding"},
        # the last number of an axis is wider in a page's font than Vega expects
        "padding": {"left": 5, "top": 5, "right": 12, "bottom": 5},
        "layer": layer,
        "config": {
            "legend": {"orient": "bottom", "columns": columns, "labelLimit": 200, "title": None},
            "axisX": {"labelSeparation": GAP},  # else neighbours touch: "110,000120,000"
        },
    }
    return Figure(key, title, spec, tuple(rows), tuple(missing))


def vega_lite(figure: Figure, title: bool = True) -> Spec:
    """The whole specification, its data in it; the title says what is not drawn."""
    heading: Spec = {"text": figure.title, "anchor": "start", "subtitleColor": GREY}
    if figure.missing:
        heading["subtitle"] = text.missing(figure)
    shown = {"title": heading} if title else {}
    return {"description": figure.title, **figure.spec, **shown, "data": {"values": list(figure.rows)}}


def named(field: str, names: Sequence[str]) -> Spec:
    """The y axis of a figure with a row per name, from the top down."""
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(names)},
        "axis": {"labelLimit": 150},
    }


def low(figure: Figure, rows: int) -> Figure:
    """As high as its rows need."""
    return replace(figure, spec={**figure.spec, "height": ROW * max(2, rows)})


def quantity(field: str, title: str, zero: bool, padding: int = 10) -> Spec:
    scale = {"zero": zero, "padding": padding}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale}


def colour_scale(field: str, names: Sequence[str], legend: bool = True) -> Spec:
    return _scale(field, names, PALETTE) | ({} if legend else {"legend": None})


def shape_scale(field: str, names: Sequence[str]) -> Spec:
    """As many shapes as colours: a colour that repeats has the next shape, so that both together are new."""
    return _scale(field, names, SHAPES, shift=1)


def _scale(field: str, names: Sequence[str], values: Sequence[str], shift: int = 0) -> Spec:
    """The same value for a name in every figure of a report; they repeat when there are more names."""
    domain, count = list(dict.fromkeys(names)), len(values)
    chosen = [values[(index + shift * (index // count)) % count] for index in range(len(domain))]
    return {"field": field, "type": "nominal", "scale": {"domain": domain, "range": chosen}}


def tooltip(*fields: tuple[str, str, str]) -> list[Spec]:
    """(field, title, format) each; a format makes the field a quantity."""
    return [
        {"field": field, "title": title, "type": "quantitative" if form else "nominal"}
        | ({"format": form} if form else {})
        for field, title, form in fields
    ]


def scaled(value: float | None, column: Column) -> float | None:
    """As the column's numbers are shown."""
    return None if value is None else value * column.scale


def digits(column: Column) -> str:
    """The format of a column's numbers, as its tables show them."""
    return f",.{column.digits}f"


def with_interval(
    field: str, column: Column, low: str = "low", high: str = "high", bounds: str = "95 %"
) -> list[tuple[str, str, str]]:
    """A column's value with its bounds, for `tooltip`; the data are in the column's scale."""
    shown = digits(column)
    return [
        (field, text.heading(column), shown),
        (low, f"{bounds} from", shown),
        (high, f"{bounds} to", shown),
    ]


def points(encoding: Spec, size: int) -> Spec:
    """A layer of filled points."""
    return {"mark": {"type": "point", "filled": True, "size": size, "opacity": 1}, "encoding": encoding}
