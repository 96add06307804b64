"""A report as one HTML file that opens without a server or a network.

No script is in it, and its content policy lets none run: whatever a model or a person wrote is text. Figures
are drawn into it as SVG.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import count, groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from creamtea.report import drawing, text
from creamtea.report.model import Block, Document, Figure, Table

HERE = Path(__file__).parent


def to_html(report: Document) -> str:
    """Every block, and the notes of its cells below all."""
    notes, numbers = text.Footnotes(), count(1)

    def draw(figure: Figure) -> Markup:
        return Markup(drawing.inline_svg(figure, next(numbers)))  # noqa: S704 - `drawing` keeps shapes and text only

    return (
        _environment()
        .get_template("report.html")
        .render(
            css=_css(),
            report=report,
            mark=notes.mark,
            footnotes=notes.notes,
            draw=draw,
            most_groups=max(
                (len(block.groups()) for _, block in report.walk() if isinstance(block, Table)), default=0
            ),
        )
    )


def _best(table: Table) -> dict[str, float | None]:
    return {column.key: text.best(table, column) for column in table.columns}


def _figures_together(blocks: Iterable[Block]) -> list[list[Block]]:
    """Neighbouring figures as one group, every other block by itself."""
    groups: list[list[Block]] = []
    for are_figures, group in groupby(blocks, lambda block: isinstance(block, Figure)):
        neighbours = list(group)
        groups += [neighbours] if are_figures else [[block] for block in neighbours]
    return groups


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "anchor": text.anchor,
        "best_of": _best,
        "code_parts": text.code_parts,
        "column_heading": text.heading,
        "entry_name": text.entry_name,
        "fact": text.fact,
        "figures_together": _figures_together,
        "is_best": text.is_best,
        "kind": lambda block: type(block).__name__,
        "missing": text.missing,
        "row_name": text.row_name,
        "sentence": text.sentence,
        "shown": text.shown,
    }
    return environment


@cache
def _css() -> Markup:
    return Markup((HERE / "report.css").read_text(encoding="utf-8"))  # noqa: S704 - a file of this package
