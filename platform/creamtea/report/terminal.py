"""A report in the terminal."""

from __future__ import annotations

import io
import os
import sys
import textwrap
from collections.abc import Iterable
from typing import assert_never

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from creamtea.printable import printable_lines
from creamtea.report import text
from creamtea.report.grid import print_table
from creamtea.report.model import (
    Block,
    Choice,
    Document,
    Entry,
    Facts,
    Figure,
    Notes,
    Section,
    Table,
    Texts,
    Warnings,
)

WIDTH = 180


class PrintingConsole(Console):
    """One whose terminal obeys nothing in the texts that it prints (`creamtea.printable`)."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable_lines(segment.text))


def make_console() -> PrintingConsole:
    """The terminal, or, where the output goes to a file or a pipe, WIDTH columns: one whole table."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # in a terminal that has no ± or λ a report is still read
        sys.stdout.reconfigure(errors="replace")
    console = PrintingConsole()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH
    return console


def render(report: Document, console: Console, folded: bool = True) -> None:
    """Print every block, or without `folded` those that a page shows unasked.

    Wide tables are split where the console is narrow. Text of the study (names, messages) is never read
    as rich's markup.
    """
    printer = _Printer(console, folded)
    printer.head(report)
    for section in report.sections:
        printer.block(section)
    if printer.left_out:
        console.print(Text(f"With --full also: {'; '.join(printer.left_out)}.", "dim"))
    for note, count in printer.notes.notes.items():
        console.print(Text(f"({count}) {note}", style="yellow"))


def render_answer(report: Document, console: Console) -> None:
    """Print what came out once more, where a long report has scrolled it away."""
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
                print_table(block, self.console, self.notes)
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
        listed = "; ".join(f"{name}: {', '.join(words)}" for name, words in text.options(choice).items())
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
