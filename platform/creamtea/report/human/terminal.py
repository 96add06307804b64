"""People's judgements in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from creamtea.report import text
from creamtea.report.grid import cell_text, heading, print_grid
from creamtea.report.human import words
from creamtea.report.model import HumanReport, HumanTable


def print_human(report: HumanReport, console: Console, notes: text.Footnotes) -> None:
    """Every table of a campaign, and the outputs that are judged differently."""
    console.print()
    told = "; ".join(words.about(report))
    console.print(Text.assemble((f"People: {report.campaign}", "bold"), (f"  {told}", "dim")))
    for one in report.tables:
        _print_table(one, console, notes)
    texts = words.judged_differently(report)
    for listed in texts:
        console.print()
        console.print(Text(listed.title, "bold"))
        for found in listed.shown:
            console.print(Text(found.head))
            console.print(Text(f"  source  {found.source or '(empty)'}", "dim"))
            console.print(Text(f"  output  {found.output or '(empty)'}", "dim"))
    lines = [*report.notes, *(f"{title}: {note}" for title, note in words.column_notes(report).items())]
    lines += [f"{listed.title}: {listed.about}" for listed in texts]
    for line in lines:
        console.print(Text(line, "dim"))


def _print_table(one: HumanTable, console: Console, notes: text.Footnotes) -> None:
    console.print()
    console.print(Text(one.title, "bold"))
    columns = [
        (heading(column), [cell_text(row.cells[column.key], column, notes) for row in one.table.rows])
        for column in one.table.columns
    ]
    names = [Text(text.row_name(row)) for row in one.table.rows]
    print_grid(console, one.table.heading, names, columns)
    if one.about:
        console.print(Text(one.about, "dim"))
