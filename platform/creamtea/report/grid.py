"""Tables in the terminal: cells as text of several lines, and grids that fit the console's width."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import pairwise

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as Grid
from rich.text import Text

from creamtea.contract.columns import Column
from creamtea.report import text
from creamtea.report.model import Cell, Row, Table

WIDE = 36  # characters of a line of words in a cell, but for longer words
HEADING = 12  # characters of a line of a heading, but for longer words
STATE_STYLES = {
    "failed": "bold red",
    "unavailable": "yellow",
    "cancelled": "yellow",
    "partial": "yellow",
    "better": "green",
    "worse": "red",
}


def print_table(table: Table, console: Console, notes: text.Footnotes) -> None:
    columns = [
        (_heading(column), [_cell(row.cells[column.key], column, notes) for row in table.rows])
        for column in table.columns
    ]
    _print_grid(console, table.heading, [_name(row) for row in table.rows], columns)


def _heading(column: Column) -> Text:
    """Titles of several words below each other: the numbers are narrow."""
    lines = textwrap.wrap(column.title, HEADING, break_long_words=False, break_on_hyphens=False)
    return Text("\n".join([*lines, *([column.unit] if column.unit else [])]))


def _name(row: Row) -> Text:
    name = Text(text.row_name(row), style="bold")
    if row.description:
        name.append(f"\n{row.description}", style="not bold dim")
    return name


def _cell(cell: Cell, column: Column, notes: text.Footnotes) -> Text:
    """Value, deviation, interval, percentages and difference from the baseline below each other."""
    shown = text.shown(cell, column)
    style, value = STATE_STYLES.get(shown.state, ""), shown.value + notes.mark(shown.note)
    wrapped = textwrap.wrap(value, WIDE, break_long_words=False, break_on_hyphens=False)
    lines = [Text(line, style) for line in wrapped]
    lines += [Text(line, "dim") for line in shown.details]
    if shown.change:
        first, *rest = shown.change
        style = STATE_STYLES.get(shown.change_state, "dim")
        lines += [Text(line, style) for line in (first + notes.mark(shown.change_note), *rest)]
    return Text("\n").join(lines)


Columns = Sequence[tuple[Text, Sequence[Text]]]  # heading, cells


def _print_grid(console: Console, title: str, names: Sequence[Text], columns: Columns) -> None:
    """One table with the rows' names at its left, or several below each other on a narrow console."""
    widest = max(_width(name, console) for name in (Text(title), *names))
    name_width = max(min(widest, console.width // 6), 16)
    leading = int(any("\n" in name.plain for name in names))
    for group in _fitting(columns, console, name_width):
        grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, leading=leading, padding=(0, 0, 0, 1))
        grid.add_column(Text(title), width=name_width, overflow="fold")
        for heading, _ in group:
            grid.add_column(heading, justify="right", no_wrap=True)
        for index, name in enumerate(names):
            grid.add_row(name, *(cells[index] for _, cells in group))
        console.print(grid)


def _fitting(columns: Columns, console: Console, name_width: int) -> list[Columns]:
    """The columns in as few groups as fit beside the rows' names, about equally wide."""
    widths = [2 + max(_width(cell, console) for cell in (heading, *cells)) for heading, cells in columns]
    space = console.width - name_width - 3  # the box's edges, and the padding before the names
    fewest = len(_breaks(widths, space))
    while len(_breaks(widths, space - 1)) == fewest and space > max(widths, default=0):
        space -= 1
    starts = _breaks(widths, space)
    return [columns[start:end] for start, end in pairwise([*starts, len(columns)])]


def _breaks(widths: Sequence[int], space: int) -> list[int]:
    """Where groups begin, each filled while there is space for one more."""
    starts, used = [0], 0
    for index, width in enumerate(widths):
        if used and used + width > space:
            starts.append(index)
            used = 0
        used += width
    return starts


def _width(cell: Text, console: Console) -> int:
    return Measurement.get(console, console.options.update(width=1000), cell).maximum
