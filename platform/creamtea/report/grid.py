"""Tables in the terminal: cells as text of several lines, and grids that fit the console's width."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from creamtea.contract.columns import Column
from creamtea.report import text
from creamtea.report.model import Cell, Delta

STATE_STYLES = {"failed": "bold red", "unavailable": "yellow", "cancelled": "yellow", "partial": "yellow"}


def heading(column: Column) -> Text:
    """Titles of several words below each other: the numbers are narrow."""
    return Text("\n".join([*column.title.split(" ", 1), *([column.unit] if column.unit else [])]))


def cell_text(cell: Cell, column: Column, notes: text.Footnotes) -> Text:
    """Value, deviation, interval, percentages and difference from the baseline below each other."""
    style = STATE_STYLES.get(cell.state, "")
    lines = [Text(text.value(cell, column) + notes.mark(cell.note), style)]
    if spread := text.deviation(cell, column):
        lines.append(Text(spread, "dim"))
    if bounds := text.interval(cell.low, cell.high, column):
        lines.append(Text(bounds, "dim"))
    lines += [Text(relative, "dim") for relative in text.percents(cell)]
    # a difference that has no value because its score has none would say the same twice
    if cell.delta is not None and (cell.value is not None or cell.delta.value is not None):
        style = _delta_style(cell.delta, column)
        shown, *rest = text.difference(cell.delta, column)
        lines += [Text(line, style) for line in (shown + notes.mark(cell.delta.note), *rest)]
    return Text("\n").join(lines)


def _delta_style(delta: Delta, column: Column) -> str:
    if delta.value is None:
        return STATE_STYLES.get(delta.state, "")
    if not delta.significant:
        return "dim"
    return "green" if (delta.value > 0) == (column.better == "higher") else "red"


Columns = Sequence[tuple[Text, Sequence[Text]]]  # heading, cells


def print_grid(
    console: Console, title: str, names: Sequence[Text], columns: Columns, leading: int = 0
) -> None:
    """One table with the rows' names at its left, or several below each other on a narrow console."""
    widest = max((_width(name, console) for name in names), default=0)
    name_width = max(min(widest, console.width // 6), 16)
    for group in _fitting(columns, console, name_width):
        grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, leading=leading, padding=(0, 0, 0, 1))
        grid.add_column(title, width=name_width, overflow="fold")
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
