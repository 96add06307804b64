"""Figures and tables of ours for a paper's: from our studies' reports, with the points that it prints."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from creamtea.papers.model import Curve, Drawing, Size
from creamtea.papers.model import number as printed_number
from creamtea.report import vega
from creamtea.report.model import Document, Figure, Table
from creamtea.report.papers.ours import Reports, StudyReport


def drawn(reports: Reports, drawings: Sequence[Drawing], size: Size) -> tuple[Figure | Table, ...]:
    """One for each study; empty, with the reason, where the study is not in the database."""
    figures: list[Figure | Table] = []
    for drawing in drawings:
        collection = reports.paper.collections[drawing.collection]
        if collection.size != size:
            continue
        for member in drawing.members:
            study = collection.members[member].name
            report = reports.read(drawing.collection, member)
            own = _figure_of(report.document, drawing) if isinstance(report, StudyReport) else None
            key = f"{study}-{len(figures)}"
            title = f"{drawing.title}: {study}"
            if own is None:
                why = "not run" if report is None else "no such figure"
                figures.append(Figure(key, title, {}, (), (f"{study} ({why})",)))
            else:
                drawn = with_curves(own, drawing.curves) if isinstance(own, Figure) else own
                figures.append(replace(drawn, key=key, title=title))
    return tuple(figures)


def _figure_of(document: Document, drawing: Drawing) -> Figure | Table | None:
    for path, block in document.walk():
        of_it = not drawing.analysis or f"/{drawing.analysis}/" in path
        if of_it and isinstance(block, Figure | Table) and block.title == drawing.title:
            return block
    return None


def with_curves(figure: Figure, curves: Sequence[Curve]) -> Figure:
    """A figure of curves by group, with those that the paper prints among them."""
    if not curves or not figure.rows:
        return figure
    rows = [*figure.rows, *(row for curve in curves for row in _points(curve))]
    published = vega.greys(curve.name for curve in curves)
    spec = deepcopy(figure.spec)
    for layer in spec["layer"]:
        for channel, added in vega.by_style("group", published, "color", "shape", "strokeDash").items():
            if own := layer["encoding"].get(channel):
                # a new one, since the layers of a figure share theirs
                scale = {end: [*own["scale"][end], *added["scale"][end]] for end in ("domain", "range")}
                legend = (own["legend"] or {}) | {"values": scale["domain"]}
                layer["encoding"][channel] = own | {"scale": scale, "legend": legend}
    return replace(figure, spec=spec, rows=tuple(rows))


def _points(curve: Curve) -> list[dict[str, Any]]:
    return [
        {"group": curve.name, "x": printed_number(x), "y": printed_number(y), "low": None, "high": None}
        | {"label": "published"}
        for x, y in curve.points.items()
    ]
