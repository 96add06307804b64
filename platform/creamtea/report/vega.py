"""What the figures of a report are made of: parts of Vega-Lite specifications (plain dictionaries).

Every figure holds its data, one row per point: what cannot be drawn has a null and is named in `missing` with
its state. `styles` gives each system its colour and its mark, the same in every figure of a report. Width
follows the container.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from creamtea.contract.columns import Column
from creamtea.report import text
from creamtea.report.labels import GAP, LINE, Point, lifts, lines
from creamtea.report.model import Figure, Spec
from creamtea.study.spec import Study

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# chosen so that the closest two are as far apart as eight can be, seen with any colour vision, and all stand
# out on light and on dark pages (tests/report/test_styles.py)
PALETTE = ("#444488", "#ee9900", "#008899", "#dd4433", "#aa88ff", "#00ccaa", "#991100", "#9900ee")
SHAPES = (
    *("circle", "square", "triangle-up", "diamond", "cross"),
    *("triangle-down", "triangle-right", "triangle-left"),
)
DASHES = ((1, 0), (6, 3), (2, 2), (8, 2, 2, 2))
GREY = "#808080"  # of what is not a system
ROW = 34  # pixels of a figure's row that has a name
LONG_NAME = 18  # letters, of which two do not fit side by side on a phone
NAME_LINE = 22  # letters of a line of a name at an axis or in a legend


class Style(NamedTuple):
    colour: str
    shape: str
    dash: tuple[int, ...] = DASHES[0]


Styles = Mapping[str, Style]


def styles(names: Iterable[str]) -> dict[str, Style]:
    """The colour and the mark of each name, by its place. A colour that comes again has the next mark."""
    count = len(PALETTE)
    return {
        name: Style(PALETTE[place % count], SHAPES[(place + place // count) % count])
        for place, name in enumerate(dict.fromkeys(names))
    }


def styles_of(spec: Study) -> dict[str, Style]:
    """How a study's systems and variants look in all of its figures. A variant looks like the first
    system that decodes with it."""
    systems = styles(spec.systems)
    first = {
        system.variant: systems[name] for name, system in reversed(spec.systems.items()) if system.variant
    }
    return {**styles([*spec.systems, *spec.variants]), **first, **systems}


def styles_of_parts(names: Styles, parts: Mapping[str, tuple[str, str]]) -> dict[str, Style]:
    """Styles of several curves for each name; `parts`: by curve its name, and what tells apart the curves of
    one name. They have the name's colour, and marks and dashes of their own."""
    order = list(dict.fromkeys(part for _, part in parts.values()))
    found = {}
    for curve, (name, part) in parts.items():
        style, place = names[name], order.index(part)
        shape = SHAPES[(SHAPES.index(style.shape) + place) % len(SHAPES)]
        found[curve] = style._replace(shape=shape, dash=DASHES[place % len(DASHES)])
    return found


def greys(names: Iterable[str]) -> dict[str, Style]:
    """Styles of what is not a system: grey, told apart by marks and dashes."""
    return styles_of_parts({"": Style(GREY, SHAPES[0])}, {name: ("", name) for name in names})


def by_style(field: str, names: Styles, *channels: str, legend: Spec | None = None) -> Spec:
    """Encodings of a field of names, by default the colour and the shape of points. `legend` is added to
    their legends; an empty one hides them."""
    own = {"values": list(names), **_in_lines(names)} if legend is None else legend
    values = {
        "color": [style.colour for style in names.values()],
        "shape": [style.shape for style in names.values()],
        "strokeDash": [list(style.dash) for style in names.values()],
    }
    return {
        channel: {
            "field": field,
            "type": "nominal",
            "scale": {"domain": list(names), "range": values[channel]},
            "legend": own or None,
        }
        for channel in channels or ("color", "shape")
    }


def _in_lines(names: Iterable[str]) -> Spec:
    """Long names of an axis or a legend in several lines, so that none is cut off."""
    broken = {name: lines(name, NAME_LINE) for name in names if len(name) > NAME_LINE}
    return {"labelExpr": f"({json.dumps(broken)})[datum.label] || datum.label"} if broken else {}


def labels(x: Spec, y: Spec, field: str, rows: list[dict[str, Any]], logarithmic: bool = False) -> list[Spec]:
    """The field's text beside the points, towards the middle of the figure so that none is cut off at its
    edge, and lifted so that none lies on another. Adds the fields `lift` and `words` to the rows. No layers
    where there is no room for all: the figure then needs a legend."""
    across, up = x["field"], y["field"]
    drawn = [row for row in rows if row[across] is not None and row[up] is not None]
    xs = [row[across] for row in drawn]
    ys = [row[bound] for row in drawn for bound in (up, "low", "high") if row.get(bound) is not None]
    labelled = [row for row in drawn if row.get(field)]
    points = [Point(row[across], row[up], row[field]) for row in labelled]
    offsets = lifts(points, xs, ys, logarithmic)
    if offsets is None:
        return []
    for row in rows:
        row["lift"] = row["words"] = None
    for row, lift in zip(labelled, offsets, strict=True):
        row["lift"], row["words"] = lift, "\n".join(lines(row[field]))
    low, high = min(xs, default=0.0), max(xs, default=0.0)
    middle = math.sqrt(low * high) if logarithmic else (low + high) / 2
    sides = (("left", GAP, f"datum.{across} <= {middle}"), ("right", -GAP, f"datum.{across} > {middle}"))
    mark = {"type": "text", "dy": {"expr": "datum.lift"}, "lineBreak": "\n", "color": GREY}
    return [
        {
            "transform": [{"filter": f"isValid(datum.lift) && {where}"}],
            "mark": {**mark, "align": align, "dx": dx},
            "encoding": {"x": x, "y": y, "text": {"field": "words"}},
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
            "legend": {"orient": "bottom", "columns": columns, "labelLimit": 0, "title": None},
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
        "axis": {"labelLimit": 0, **_in_lines(names)},
    }


def low(figure: Figure, names: Sequence[str]) -> Figure:
    """As high as its rows need; `names`: of its rows."""
    most = max((len(lines(name, NAME_LINE)) for name in names), default=1)
    return replace(figure, spec={**figure.spec, "height": max(ROW, LINE * (most + 1)) * max(2, len(names))})


def quantity(field: str, title: str, zero: bool, padding: int = 10) -> Spec:
    scale = {"zero": zero, "padding": padding}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale}


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
