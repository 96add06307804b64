"""Print a report in the terminal: its blocks, and tables that fit the console's width."""

from __future__ import annotations

import codecs
import io
import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import assert_never

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text

from creamtea.contract.step import Column
from creamtea.printable import printable_lines
from creamtea.report import text
from creamtea.report.model import (
    Block,
    Cell,
    Choice,
    Document,
    Entry,
    Facts,
    Figure,
    Notes,
    Row,
    Section,
    Table,
    Texts,
    Warnings,
)

WIDTH = 180


class PrintingConsole(Console):
    """A console that shows control characters in texts instead of sending them to the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable_lines(segment.text))


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Replace what an encoding lacks with question marks, but keep minus signs."""
    assert isinstance(error, UnicodeEncodeError)
    lost = error.object[error.start : error.end]
    return "".join("-" if character == "−" else "?" for character in lost), error.end


codecs.register_error("creamtea.replace", _replaced)


def make_console() -> PrintingConsole:
    """Open the terminal; for a file or a pipe, a console of WIDTH columns, which holds a whole table."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal may lack ± and λ
        sys.stdout.reconfigure(errors="creamtea.replace")
    console = PrintingConsole()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH
    return console


def render(report: Document, console: Console, folded: bool = True) -> None:
    """Print every block; without `folded`, skip the blocks that a page folds.

    On a narrow console, wide tables are split. Text of the study (names, messages) is never read as rich's
    markup.
    """
    printer = _Printer(console, folded)
    printer.head(report)
    for section in report.sections:
        printer.block(section)
    if printer.left_out:
        console.print(Text(f"With --full also: {'; '.join(printer.left_out)}.", "dim"))


def render_answer(report: Document, console: Console) -> None:
    """Print the answer again, since a long report has scrolled it away."""
    printer = _Printer(console)
    for section in report.sections:
        if section.key == "answer":
            printer.block(section)


class _Printer:
    def __init__(self, console: Console, folded: bool = True) -> None:
        self.console = console
        self.folded = folded
        self.left_out: list[str] = []  # titles
        self.notes = text.Footnotes()

    def head(self, report: Document) -> None:
        style = {"succeeded": "green", "failed": "bold red"}.get(report.state, "yellow")
        facts = "; ".join(f"{fact.label}: {text.fact(fact)}" for fact in report.facts)
        self._line((report.name, "bold"), (f"  {report.state}", style), (f"  {facts}", "dim"), above=False)
        self._dim(report.about, "italic")

    def block(self, block: Block) -> None:
        if not self.folded and isinstance(block, Section | Table | Texts | Facts) and block.folded:
            parts = block.blocks if isinstance(block, Section) else ()
            self.left_out += [part.title for part in parts if isinstance(part, Table)] or [block.title]
            return
        match block:
            case Section():
                self._section(block)
            case Table():
                self._title(block.title)
                known = len(self.notes.notes)
                print_table(block, self.console, self.notes)
                for note, count in [*self.notes.notes.items()][known:]:
                    self.console.print(Text(f"({count}) {note}", style="yellow"))
                self._dim(block.about)
            case Figure():
                self._dim(f"figure: {text.figure(block)}")
            case Choice():
                self._choice(block)
            case Texts():
                self._title(block.title)
                self._dim(block.about)
                for entry in block.entries:
                    self._entry(entry)
            case Notes():
                for paragraph in block.paragraphs:
                    self._dim(paragraph, "" if block.lead else "dim")
            case Warnings():
                for warning in block.warnings:
                    self.console.print(Text(f"warning: {warning.line()}", style="yellow"))
            case Facts():
                for fact in block.facts:
                    self._dim(f"{fact.label}: {text.fact(fact)}")
            case _:
                assert_never(block)

    def _section(self, section: Section) -> None:
        if section.title:
            facts = f"  {', '.join(section.facts)}" if section.facts else ""
            self._line((section.title, "bold"), (facts, "dim"))
        self._dim(section.about)
        for block in section.blocks:
            self.block(block)

    def _choice(self, choice: Choice) -> None:
        if not choice.figures:
            self._dim(f"figure: {choice.title}: {choice.absent}")
            return
        listed = "; ".join(
            f"{name}: {', '.join(dict.fromkeys(figure.choice[place] for figure in choice.figures))}"
            for place, name in enumerate(choice.names)
        )
        self._dim(f"figures: {choice.title} ({listed})")

    def _entry(self, entry: Entry) -> None:
        self.console.print(Text(text.entry_name(entry)))
        for passage in entry.passages:
            if passage.has_lines:
                self._dim(f"  {passage.label}")
                self._dim(textwrap.indent(passage.text.rstrip(), "    "))
                continue
            self._dim(f"  {passage.label}  {text.one_line(passage.text) or '(empty)'}")

    def _title(self, title: str) -> None:
        if title:
            self._line((title, "bold"))

    def _dim(self, words: str, style: str = "dim") -> None:
        if words:
            self.console.print(Text(words, style))

    def _line(self, *parts: tuple[str, str], above: bool = True) -> None:
        if above:
            self.console.print()
        self.console.print(Text.assemble(*parts))


WIDE = 36  # characters per line of a cell; longer words are not broken
HEADING = 12  # characters per line of a heading; longer words are not broken
STATE_STYLES = {
    "failed": "bold red",
    "unavailable": "yellow",
    "cancelled": "yellow",
    "partial": "yellow",
    "better": "green",
    "worse": "red",
}


Columns = Sequence[tuple[Text, Sequence[Text]]]  # heading, cells


def print_table(table: Table, console: Console, notes: text.Footnotes) -> None:
    """Print one grid with the rows' names at its left; on a narrow console, several below each other."""
    columns = [
        (_heading(column), [_cell(row.cells[column.key], column, notes) for row in table.rows])
        for column in table.columns
    ]
    names = [_name(row) for row in table.rows]
    widest = max(_width(name, console) for name in (Text(table.heading), *names))
    name_width = max(min(widest, console.width // 6), 16)
    leading = int(any("\n" in name.plain for name in names))
    for group in _fitting(columns, console, name_width):
        grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, leading=leading, padding=(0, 0, 0, 1))
        grid.add_column(Text(table.heading), width=name_width, overflow="fold")
        for heading, _ in group:
            grid.add_column(heading, justify="right", no_wrap=True)
        for index, name in enumerate(names):
            grid.add_row(name, *(cells[index] for _, cells in group))
        console.print(grid)


def _heading(column: Column) -> Text:
    """Write the words of a title below each other: the numbers are narrow."""
    lines = textwrap.wrap(column.title, HEADING, break_long_words=False, break_on_hyphens=False)
    return Text("\n".join([*lines, *([column.unit] if column.unit else [])]))


def _name(row: Row) -> Text:
    name = Text(text.row_name(row), style="bold")
    if row.description:
        name.append(f"\n{row.description}", style="not bold dim")
    return name


def _cell(cell: Cell, column: Column, notes: text.Footnotes) -> Text:
    """Write value, deviation, interval, percentages and difference from the baseline below each other."""
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


def _fitting(columns: Columns, console: Console, name_width: int) -> list[Columns]:
    """Divide the columns into as few groups as fit beside the rows' names, about equally wide."""
    widths = [2 + max(_width(cell, console) for cell in (heading, *cells)) for heading, cells in columns]
    space = console.width - name_width - 3  # the box's edges, and the padding before the names
    fewest = len(_breaks(widths, space))
    while len(_breaks(widths, space - 1)) == fewest and space > max(widths, default=0):
        space -= 1
    starts = _breaks(widths, space)
    return [columns[start:end] for start, end in pairwise([*starts, len(columns)])]


def _breaks(widths: Sequence[int], space: int) -> list[int]:
    """Return the index of each group's first column; a group takes columns until the next does not fit."""
    starts, used = [0], 0
    for index, width in enumerate(widths):
        if used and used + width > space:
            starts.append(index)
            used = 0
        used += width
    return starts


def _width(cell: Text, console: Console) -> int:
    return Measurement.get(console, console.options.update(width=1000), cell).maximum
