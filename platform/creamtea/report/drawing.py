"""Figures as SVG and PNG: Vega-Lite drawn without a browser; inside a page, only shapes and text are kept.

vl-convert holds Vega itself and neither asks a network nor runs anything of the page's reader.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from functools import lru_cache
from typing import Any

import vl_convert

from creamtea.report.model import Figure, Spec
from creamtea.report.vega import vega_lite

WIDTH = 520  # pixels
INLINE_WIDTH = 420  # pixels of a figure inside a page, which scales from a phone's width to 34rem
PNG_SCALE = 2.0
VEGA_LITE = "6.1"
_TAGS = {"svg", "g", "path", "line", "rect", "circle", "text", "tspan", "defs", "clipPath", "title"}
_ATTRIBUTES = {
    *("viewBox", "transform", "d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "dy"),
    *("width", "height"),
    *("fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity"),
    *("stroke-linecap", "stroke-linejoin", "stroke-miterlimit", "text-anchor", "font-family", "font-size"),
    *(
        "font-weight",
        "font-style",
        "aria-label",
        "aria-hidden",
        "role",
        "class",
        "display",
        "clip-path",
        "id",
    ),
}
# characters that XML cannot hold, and halves of surrogate pairs
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def svg(figure: Figure) -> str:
    """Draw a figure as a file of its own, with its title."""
    return vl_convert.vegalite_to_svg(_sized(figure), vl_version=VEGA_LITE, allowed_base_urls=[])


def png(figure: Figure) -> bytes:
    """Draw a figure as pixels, twice as many as its size on a page."""
    return vl_convert.vegalite_to_png(
        _sized(figure), vl_version=VEGA_LITE, scale=PNG_SCALE, allowed_base_urls=[]
    )


def inline_svg(figure: Figure, number: int) -> str:
    """Draw an <svg> element for a page that shows the title and the missing systems beside it.

    `number` keeps the ids of figures on one page apart.
    """
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
    return vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE, allowed_base_urls=[])


def _sized(figure: Figure) -> Spec:
    return {**_clean(vega_lite(figure)), "width": WIDTH}


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
