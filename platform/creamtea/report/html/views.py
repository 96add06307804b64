"""Parts of a report as the page's template wants them: ready texts, nothing left to compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from creamtea.contract.columns import Column
from creamtea.report import text
from creamtea.report.human import words
from creamtea.report.model import TRAINING_COLUMNS, Analysis, Cell, HumanReport, Report, TestSetTable


@dataclass(frozen=True)
class ShownCell:
    value: str
    lines: tuple[str, ...]  # deviation, interval, percentages
    change: tuple[str, ...]  # difference, its interval and p-values
    mood: str  # "better" or "worse" where the difference is significant, else the cell's state or ""


@dataclass(frozen=True)
class ShownRow:
    name: str
    description: str
    cells: tuple[ShownCell, ...]


@dataclass(frozen=True)
class Grid:
    title: str
    facts: str
    about: str
    heading: str
    columns: tuple[str, ...]
    rows: tuple[ShownRow, ...]


@dataclass(frozen=True)
class People:
    title: str
    facts: tuple[str, ...]
    grids: tuple[Grid, ...]
    texts: tuple[words.Texts, ...]
    notes: tuple[str, ...]
    source_language: str
    target_language: str


def main_table(table: TestSetTable, notes: text.Footnotes) -> Grid:
    counts = [f"{table.segments:,} segments" if table.segments is not None else "not prepared yet"]
    if table.idioms:
        counts.append(f"{table.idioms:,} idioms")
    rows = [
        (f"{row.system} (baseline)" if row.baseline else row.system, row.description, row.cells)
        for row in table.rows
    ]
    return grid(table.test_set, "system", table.columns, rows, notes, facts=", ".join(counts))


def analysis_grids(analysis: Analysis, notes: text.Footnotes) -> list[Grid]:
    return [
        grid("", table.heading, table.columns, [(text.row_name(r), "", r.cells) for r in table.rows], notes)
        for table in analysis.tables
    ]


def training(report: Report, notes: text.Footnotes) -> Grid:
    rows = [(f"{run.variant}, seed {run.seed}", "", run.cells) for run in report.training]
    return grid("Trainings", "training", TRAINING_COLUMNS, rows, notes)


def people(report: HumanReport, notes: text.Footnotes) -> People:
    return People(
        title=f"People: {report.campaign}",
        facts=tuple(words.about(report)),
        grids=tuple(
            grid(
                one.title,
                one.table.heading,
                one.table.columns,
                [(row.name, row.setting, row.cells) for row in one.table.rows],
                notes,
                about=one.about,
            )
            for one in report.tables
        ),
        texts=tuple(words.judged_differently(report)),
        notes=(
            *report.notes,
            *(f"{title}: {note}" for title, note in words.column_notes(report).items()),
        ),
        source_language=report.source_language,
        target_language=report.target_language,
    )


def grid(
    title: str,
    heading: str,
    columns: Sequence[Column],
    rows: Sequence[tuple[str, str, Mapping[str, Cell]]],
    notes: text.Footnotes,
    facts: str = "",
    about: str = "",
) -> Grid:
    return Grid(
        title,
        facts,
        about,
        heading,
        tuple(text.heading(column) for column in columns),
        tuple(
            ShownRow(name, description, tuple(cell(cells[column.key], column, notes) for column in columns))
            for name, description, cells in rows
        ),
    )


def cell(shown: Cell, column: Column, notes: text.Footnotes) -> ShownCell:
    value = text.value(shown, column) + notes.mark(shown.note)
    lines = (
        text.deviation(shown, column),
        text.interval(shown.low, shown.high, column),
        *text.percents(shown),
    )
    change: tuple[str, ...] = ()
    mood = "" if shown.state == "ok" else shown.state
    delta = shown.delta
    if delta is not None and (shown.value is not None or delta.value is not None):
        first, *rest = text.difference(delta, column)
        change = (first + notes.mark(delta.note), *rest)
        if delta.significant and delta.value is not None and column.better:
            mood = "better" if (delta.value > 0) == (column.better == "higher") else "worse"
    return ShownCell(value, tuple(line for line in lines if line), change, mood)
