"""A report's blocks as HTML: for a file that needs no server or network, and for the web app's pages.

The file has no script, and its content policy lets none run: whatever a model or a person wrote stays text.
Figures are drawn into it as SVG.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import count, groupby
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from creamtea.contract.step import Column
from creamtea.report import text, vega
from creamtea.report.model import Block, Document, Figure, Notes, Table
from creamtea.report.outputs import Outputs

HERE = Path(__file__).parent
GROUPS = 40  # groups of columns that can be hidden
FEW_COLUMNS = 4  # columns of a table that stands beside its figure
WIDTHS = (21, 28, 34, 40, 47, 53, 60, 66, 72, 999)  # rem; a table of class wN has columns from N rem on
HALF = 34  # rem of a wide page's 72, with a gap
LETTER, SMALL, BETWEEN, NAME = 0.47, 0.4, 1.1, 9.0  # rem: a letter, a small one, a gap, the rows' names


def to_html(report: Document, outputs: Sequence[Outputs] = ()) -> str:
    """Write every block, the outputs, and the notes of cells at the end."""
    notes, numbers = text.Footnotes(), count(1)
    rules = (HERE / "report.css").read_text(encoding="utf-8")

    def draw(figure: Figure) -> Markup:
        return Markup(vega.inline_svg(figure, next(numbers)))  # noqa: S704 - `vega` keeps shapes and text only

    return (
        _environment()
        .get_template("report.html")
        .render(
            css=Markup(f"{block_styles()}\n{table_styles()}\n{rules}"),  # noqa: S704 - files of this package
            report=report,
            mark=notes.mark,
            notes=lambda: notes.notes,
            draw=draw,
            outputs=outputs,
            sorts=False,
        )
    )


def part(macro: str, /, *values: Any) -> Markup:
    """Render a macro of parts.html with the notes of its cells, for a page with a script that sorts."""
    notes = text.Footnotes()
    template = _environment().get_template("parts.html")
    macros = cast(Any, template.make_module({"mark": notes.mark, "sorts": True}))
    return Markup("{}{}").format(getattr(macros, macro)(*values), macros.footnotes(notes.notes))


@cache
def block_styles() -> str:
    """Return the style sheet of parts.html's macros, without the rules of tables."""
    return (HERE / "blocks.css").read_text(encoding="utf-8")


@cache
def table_styles(most: int = WIDTHS[-1]) -> str:
    """Return the style sheet of tables. At `most` rem or more, no table stacks its cells."""
    stacked = (HERE / "stacked.css").read_text(encoding="utf-8")
    narrow = [
        f"@container (width < {min(width, most)}rem) {{ .ct .w{width} {{ {stacked} }} }}" for width in WIDTHS
    ]
    hidden = [
        f".table:has(.choose .g{group}:not(:checked)) .c{group} {{ display: none; }}"
        for group in range(GROUPS)
    ]
    rules = (HERE / "tables.css").read_text(encoding="utf-8")
    return "\n".join([rules, *narrow, "@media screen {", *hidden, "}"])


def _width(table: Table) -> int:
    """Return the smallest of WIDTHS that the table's columns fit into."""
    needed = NAME
    for column in table.columns:
        cells = (row.cells[column.key] for row in table.rows)
        shown = [text.shown(cell, column) for cell in cells if not cell.words]
        longest = max(map(len, [*text.heading(column).split(), *(cell.value for cell in shown)]))
        details = max((len(line) for cell in shown for line in (*cell.details, *cell.change)), default=0)
        needed += BETWEEN + max(LETTER * longest, SMALL * details)
    return next(width for width in WIDTHS if width >= needed)


def _capitalised(heading: str) -> str:
    """Capitalise a Latin first letter only: a capital α looks like A."""
    return heading[:1].upper() + heading[1:] if heading[:1].isascii() else heading


def _in_words(table: Table, column: Column) -> bool:
    """Return whether a column without a group holds words, which are aligned left."""
    cells = [row.cells[column.key] for row in table.rows]
    return not column.group and all(cell.words and cell.delta is None for cell in cells)


def side_by_side(
    blocks: Sequence[Block], is_narrow: Callable[[Block], bool] = lambda block: isinstance(block, Figure)
) -> list[list[Block]]:
    """Group the blocks that stand beside each other; every other block is a group by itself.

    Such blocks are narrow neighbours, two narrow tables with the same rows, and a first figure with its
    narrow table or with the sentences that open the report.
    """
    groups: list[list[Block]] = []
    match blocks:
        case [Notes(lead=True), Figure(), *_]:
            groups.append(list(blocks[:2]))
        case [Figure(), Table() as table, *_] if len(table.columns) <= FEW_COLUMNS:
            groups.append(list(blocks[:2]))
    for narrow, group in groupby(blocks[2 if groups else 0 :], is_narrow):
        if narrow:
            groups.append(list(group))
            continue
        for block in group:
            match groups[-1:], block:
                case [[Table() as before]], Table() if _is_beside(before, block):
                    groups[-1].append(block)
                case _:
                    groups.append([block])
    return groups


def _is_beside(table: Table, other: Table) -> bool:
    """Return whether two tables have the same rows and each fits into half a page."""
    rows, of_other = ([row.name for row in one.rows] for one in (table, other))
    return (
        rows == of_other and max(map(_width, (table, other))) <= HALF and not (table.folded or other.folded)
    )


def templates_in(folder: Path, filters: Mapping[str, Any]) -> Environment:
    """Load the templates of a folder, with `filters` added to Jinja's."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment


@cache
def _environment() -> Environment:
    filters = {
        "anchor": text.anchor,
        "best_of": lambda table: {column.key: text.best(table, column) for column in table.columns},
        "capitalised": _capitalised,
        "code_parts": text.code_parts,
        "column_heading": text.heading,
        "entry_name": text.entry_name,
        "fact": text.fact,
        "in_words": _in_words,
        "is_best": text.is_best,
        "kind": lambda block: type(block).__name__,
        "missing": text.missing,
        "row_name": text.row_name,
        "sentence": text.sentence,
        "shown": text.shown,
        "side_by_side": side_by_side,
        "width_class": lambda table: f"w{_width(table)}",
    }
    return templates_in(HERE, filters)
