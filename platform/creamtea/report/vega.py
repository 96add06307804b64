"""Build the figures of a report from parts of Vega-Lite specifications (plain dictionaries).

Every figure holds its data, one row per point. A system that cannot be drawn has a null value, and `missing`
names it with its state. `styles` gives each system its colour and its mark, the same in every figure of a
report. The width follows the container.

Labels of points do not overlap. Vega-Lite places a text at a fixed offset from its point, so `lifts` computes
an offset for each label, for a figure of usual size. A narrower figure moves points together but keeps the
offsets.
"""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from creamtea.contract.step import Column
from creamtea.report import text
from creamtea.report.model import Cell, Figure, Spec
from creamtea.study.spec import Study

WIDTH, HEIGHT = 250.0, 320.0  # pixels between the axes, on a phone
LETTER, LINE = 6.4, 12.0  # pixels of a letter, and of a line of text
LETTERS = 17  # letters per line of a label: with its gap it fits into half the width
GAP = 8.0  # pixels between a point and its label
MARK = 4.0  # pixels from the middle of a point to its edge
LIFTS = (-9.0, 12.0, -22.0, 25.0, -35.0, 38.0, -48.0, 51.0)  # offsets to try, in this order
_PARTS = re.compile(r"[^-_./\s]*[-_./\s]*")


class Box(NamedTuple):
    left: float
    right: float
    top: float
    bottom: float

    def touches(self, other: Box) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


class Point(NamedTuple):
    x: float
    y: float
    text: str


def lifts(
    points: Sequence[Point], xs: Sequence[float], ys: Sequence[float], logarithmic: bool = False
) -> list[float] | None:
    """Return the vertical offset of each label in pixels, downwards positive. None if a label finds no place.

    `xs` and `ys`: everything that the figure draws, with intervals and curves: the axes cover it.

    A label stands to the right of a point in the left half, and to the left of a point in the right half. The
    offset is the first of LIFTS at which it touches no other point and no label placed before it.
    """
    measure = math.log if logarithmic else float
    across = _units([measure(point.x) for point in points], [measure(x) for x in xs], WIDTH)
    up = _units([point.y for point in points], ys, HEIGHT)
    marks = {(x, y): Box(x - MARK, x + MARK, -y - MARK, -y + MARK) for x, y in zip(across, up, strict=True)}
    placed: list[Box] = []
    offsets = []
    for x, y, point in zip(across, up, points, strict=True):
        words = lines(point.text)
        length, height = LETTER * max(map(len, words), default=0), LINE * len(words)
        start = x + GAP if x <= WIDTH / 2 else x - GAP - length
        taken = [*placed, *(box for place, box in marks.items() if place != (x, y))]
        for lift in LIFTS:
            box = Box(start, start + length, lift - y - height / 2, lift - y + height / 2)
            if not any(map(box.touches, taken)):
                break
        else:
            return None
        placed += [box] if words else []
        offsets.append(lift)
    return offsets


def lines(name: str, letters: int = LETTERS) -> list[str]:
    """Break a name into short lines, after its hyphens, dots, underscores or spaces if possible."""
    pieces = (
        part[start : start + letters]
        for part in _PARTS.findall(name)
        for start in range(0, len(part), letters)
    )
    broken: list[str] = []
    for piece in pieces:
        if broken and len(broken[-1]) + len(piece.rstrip()) <= letters:
            broken[-1] += piece
        else:
            broken.append(piece)
    return [line.rstrip() for line in broken]


def _units(values: Sequence[float], drawn: Sequence[float], size: float) -> list[float]:
    low, high = min(drawn, default=0.0), max(drawn, default=0.0)
    return [size * (value - low) / (high - low) if high > low else size / 2 for value in values]


SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# chosen so that the closest two of the eight are as far apart as possible, seen with any colour vision, and
# all stand out on light and on dark pages (tests/report/test_figures.py); the most distinct ones come first
PALETTE = ("#008899", "#dd4433", "#9900ee", "#ee9900", "#aa88ff", "#00ccaa", "#444488", "#991100")
SHAPES = (
    *("circle", "square", "triangle-up", "diamond", "cross"),
    *("triangle-down", "triangle-right", "triangle-left"),
)
DASHES = ((1, 0), (6, 3), (2, 2), (8, 2, 2, 2), (14, 4), (2, 6), (8, 2, 2, 2, 2, 2), (14, 3, 4, 3))
GREY = "#808080"  # for curves and marks that are not systems
ROW = 34  # pixels of a figure's row that has a name
LONG_NAME = 18  # letters; two longer names do not fit side by side on a phone
NAME_LINE = 22  # letters per line of a name at an axis or in a legend


class Style(NamedTuple):
    colour: str
    shape: str
    dash: tuple[int, ...] = DASHES[0]


Styles = Mapping[str, Style]


def styles(names: Iterable[str]) -> dict[str, Style]:
    """Give each name a colour and a mark by its position. A repeated colour has the next mark."""
    count = len(PALETTE)
    return {
        name: Style(PALETTE[place % count], SHAPES[(place + place // count) % count])
        for place, name in enumerate(dict.fromkeys(names))
    }


def styles_of(spec: Study) -> dict[str, Style]:
    """Return the styles of a study's systems and variants for all of its figures.

    A variant looks like the first system that decodes with it.
    """
    systems = styles(spec.systems)
    first = {
        system.variant: systems[name] for name, system in reversed(spec.systems.items()) if system.variant
    }
    return {**styles([*spec.systems, *spec.variants]), **first, **systems}


def styles_of_parts(names: Styles, parts: Mapping[str, tuple[str, str]]) -> dict[str, Style]:
    """Return the styles of several curves per name: the name's colour, other marks and dashes.

    `parts`: curve -> its name, and the part that tells apart the curves of one name.
    """
    order = list(dict.fromkeys(part for _, part in parts.values()))
    styles_by_curve = {}
    for curve, (name, part) in parts.items():
        style, place = names[name], order.index(part)
        shape = SHAPES[(SHAPES.index(style.shape) + place) % len(SHAPES)]
        styles_by_curve[curve] = style._replace(shape=shape, dash=DASHES[place % len(DASHES)])
    return styles_by_curve


def greys(names: Iterable[str]) -> dict[str, Style]:
    """Return grey styles that differ in marks and dashes, for curves that are not systems."""
    return styles_of_parts({"": Style(GREY, SHAPES[0])}, {name: ("", name) for name in names})


def by_style(field: str, names: Styles, *channels: str, legend: Spec | None = None) -> Spec:
    """Return the encodings of a field of names, by default the colour and the shape of points.

    `legend` is added to their legends; an empty one hides them.
    """
    legend_settings = {"values": list(names), **_in_lines(names)} if legend is None else legend
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
            "legend": legend_settings or None,
        }
        for channel in channels or ("color", "shape")
    }


def _in_lines(names: Iterable[str]) -> Spec:
    """Break long names of an axis or a legend into lines, so that none is cut off."""
    broken = {name: lines(name, NAME_LINE) for name in names if len(name) > NAME_LINE}
    return {"labelExpr": f"({json.dumps(broken)})[datum.label] || datum.label"} if broken else {}


def labels(x: Spec, y: Spec, field: str, rows: list[dict[str, Any]], logarithmic: bool = False) -> list[Spec]:
    """Return layers that write a field's text beside the points, without overlaps.

    Labels point towards the middle of the figure so that none is cut off. Adds the fields `lift` and `words`
    to the rows. Returns no layers if there is no room for all labels: the figure then needs a legend.
    """
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
    key: str,
    title: str,
    rows: list[dict[str, Any]],
    layer: list[Spec],
    missing: Sequence[str] = (),
    *,
    names: Sequence[str] | None = None,
    about: str = "",
    choice: tuple[str, ...] = (),
) -> Figure:
    """Build a figure from its layers. With a row for each of `names`, it is as high as the rows need."""
    height: float = 320
    if names is not None:
        most = max((len(lines(name, NAME_LINE)) for name in names), default=1)
        height = max(ROW, LINE * (most + 1)) * max(2, len(names))
    scales = (part["encoding"].get("color", {}).get("scale", {}) for part in layer)
    longest = max((len(name) for scale in scales for name in scale.get("domain", [])), default=0)
    columns = 1 if longest > LONG_NAME else 2
    spec: Spec = {
        "$schema": SCHEMA,
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        # the last number of an axis is wider in a page's font than Vega expects
        "padding": {"left": 5, "top": 5, "right": 12, "bottom": 5},
        "layer": layer,
        "config": {
            "legend": {"orient": "bottom", "columns": columns, "labelLimit": 0, "title": None},
            "axis": {"labelFlush": False},  # else the first and the last label move away from their ticks
            "axisX": {"labelSeparation": 2 * GAP},  # else neighbours touch: "110,000120,000"
        },
    }
    return Figure(key, title, spec, tuple(rows), tuple(missing), about, choice)


def vega_lite(figure: Figure, title: bool = True) -> Spec:
    """Return the whole specification with its data; the title says what is not drawn."""
    heading: Spec = {"text": figure.title, "anchor": "start", "subtitleColor": GREY}
    if figure.missing:
        heading["subtitle"] = text.missing(figure)
    shown = {"title": heading} if title else {}
    return {"description": figure.title, **figure.spec, **shown, "data": {"values": list(figure.rows)}}


def named(field: str, names: Sequence[str]) -> Spec:
    """Return the y axis of a figure with a row per name, from the top down."""
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(names)},
        "axis": {"labelLimit": 0, **_in_lines(names)},
    }


def quantity(field: str, title: str, zero: bool, padding: int = 10) -> Spec:
    scale = {"zero": zero, "padding": padding}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale}


def tooltip(*fields: tuple[str, str, str]) -> list[Spec]:
    """Return tooltip channels from (field, title, format); a format makes the field a quantity."""
    return [
        {"field": field, "title": title, "type": "quantitative" if form else "nominal"}
        | ({"format": form} if form else {})
        for field, title, form in fields
    ]


def with_bounds(cell: Cell, column: Column, field: str = "value") -> dict[str, float | None]:
    """Return a cell's value with its bounds for a row of data, scaled as the column shows them."""
    shown = cell.scaled(column.scale)
    return {field: shown.value, "low": shown.low, "high": shown.high}


def digits(column: Column) -> str:
    """Return the format of a column's numbers, as its tables show them."""
    return f",.{column.digits}f"


def with_interval(
    field: str, column: Column, low: str = "low", high: str = "high", bounds: str = "95 %"
) -> list[tuple[str, str, str]]:
    """Return a column's value with its bounds, for `tooltip`; the data are in the column's scale."""
    shown = digits(column)
    return [
        (field, text.heading(column), shown),
        (low, f"{bounds} from", shown),
        (high, f"{bounds} to", shown),
    ]


WITH_BOUNDS: Spec = {"filter": "isValid(datum.low)"}


def rule(encoding: Spec, **mark: Any) -> Spec:
    """Return a layer of lines; `mark`: their width, colour and so on."""
    return {"mark": {"type": "rule", "aria": False, **mark}, "encoding": encoding}


def points(encoding: Spec, size: int) -> Spec:
    """Return a layer of filled points."""
    return {"mark": {"type": "point", "filled": True, "size": size, "opacity": 1}, "encoding": encoding}


def systems_at(
    x: Spec, y: Spec, rows: list[dict[str, Any]], styles: Styles, hover: list[Spec], intervals: Sequence[Spec]
) -> list[Spec]:
    """Return layers of one labelled point per system, with its intervals: encodings without a colour."""
    texts = labels(x, y, "system", rows)
    style = by_style("system", styles, legend={} if texts else None)
    lines = [rule(interval | {"color": style["color"]}, strokeWidth=2) for interval in intervals]
    return [*lines, points({"x": x, "y": y, **style, "tooltip": hover}, size=90), *texts]


# ---------------------------------------------------------------- SVG and PNG


# vl-convert draws Vega-Lite without a browser. It includes Vega, asks no network, and runs no code from the
# figures' texts. Inside a page, only shapes and text are kept.


EXPORT_WIDTH = 520  # pixels of a figure in a file of its own
INLINE_WIDTH = 420  # pixels of a figure inside a page, which scales from a phone's width to 34rem
PNG_SCALE = 2.0
VEGA_LITE = "6.1"
_TAGS = {"svg", "g", "path", "line", "rect", "circle", "text", "tspan", "defs", "clipPath", "title"}
_ATTRIBUTES = {
    *("viewBox", "transform", "d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "dy"),
    *("width", "height"),
    *("fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity"),
    *("stroke-linecap", "stroke-linejoin", "stroke-miterlimit", "text-anchor", "font-family", "font-size"),
    *("font-weight", "font-style", "aria-label", "aria-hidden", "role"),
    *("class", "display", "clip-path", "id"),
}
# characters that XML cannot hold, and halves of surrogate pairs
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def svg(figure: Figure) -> str:
    """Draw a figure as a file of its own, with its title."""
    return _drawn(json.dumps(_sized(figure)))


def png(figure: Figure) -> bytes:
    """Draw a figure as pixels, twice as many as its size on a page."""
    import vl_convert  # takes a second to load

    return vl_convert.vegalite_to_png(
        _sized(figure), vl_version=VEGA_LITE, scale=PNG_SCALE, allowed_base_urls=[]
    )


def inline_svg(figure: Figure, number: int) -> str:
    """Draw an <svg> element without a title; `number` keeps the ids of figures on one page apart."""
    spec = _clean(vega_lite(figure, title=False)) | {"width": INLINE_WIDTH, "background": "transparent"}
    drawn = _drawn(json.dumps(spec))
    root = ET.fromstring(drawn)  # noqa: S314 - it was made one line above, and has no document type
    _keep(root, f"figure{number}-")
    root.set("role", "img")
    root.set("aria-label", _clean(figure.title))
    return ET.tostring(root, encoding="unicode", method="html")


@lru_cache(maxsize=64)
def _drawn(spec: str) -> str:
    """Draw a specification. Cached: reports are written and checked again, and drawing is slow."""
    import vl_convert  # takes a second to load

    return vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE, allowed_base_urls=[])


def _sized(figure: Figure) -> Spec:
    return {**_clean(vega_lite(figure)), "width": EXPORT_WIDTH}


def _keep(element: ET.Element, prefix: str) -> None:
    """Keep only shapes and text, without any reference to another place."""
    element.tag = element.tag.rpartition("}")[2]
    for name, value in list(element.attrib.items()):
        if name not in _ATTRIBUTES:
            del element.attrib[name]
        elif name == "id":
            element.set(name, prefix + value)
        elif "url(" in value:
            element.set(name, value.replace("url(#", f"url(#{prefix}"))
            if not value.startswith("url(#"):
                del element.attrib[name]
    for child in list(element):
        if child.tag.rpartition("}")[2] in _TAGS:
            _keep(child, prefix)
        else:
            element.remove(child)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _NO_XML.sub("\ufffd", value)
    if isinstance(value, dict):
        return {key: _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
