"""A report as Markdown tables, for docs/results.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from creamtea.contract.columns import Column
from creamtea.report import text
from creamtea.report.human import words
from creamtea.report.model import Analysis, AnalysisTable, Cell, HumanReport, Report, TestSetTable


def to_markdown(report: Report, test_set: str | None = None) -> str:
    """One table a test set and the notes that it needs. KeyError for an unknown test set."""
    notes = text.Footnotes()
    tables = report.tables if test_set is None else (report.table(test_set),)
    analyses = [one for one in report.analyses if test_set in (None, one.test_set)]
    blocks = [_table(table, notes) for table in tables]
    people = [one for one in report.human if test_set in (None, one.test_set)]
    blocks += [block for one in people for block in _human(one, notes)]
    blocks += [_analysis(analysis, table, notes) for analysis in analyses for table in analysis.tables]
    lines = [f"({count}) {note}" for note, count in notes.notes.items()]
    lines += [report.significance, report.latency_note]
    lines += sorted({f"{c.title}: `{c.signature}`" for table in tables for c in table.columns if c.signature})
    lines += [note for one in people for note in _human_notes(one)]
    lines += text.analysis_notes(analyses)
    provenance = report.provenance
    lines += [*provenance.hardware, f"code {provenance.code_version}, config {provenance.config_hash[:12]}"]
    blocks.append("\n".join(f"- {_plain(line)}" if "`" not in line else f"- {line}" for line in lines))
    return "\n\n".join(blocks) + "\n"


def human_markdown(report: HumanReport) -> str:
    """One campaign by itself."""
    notes = text.Footnotes()
    blocks = _human(report, notes)
    lines = [f"({count}) {note}" for note, count in notes.notes.items()] + _human_notes(report)
    return "\n\n".join([*blocks, "\n".join(f"- {_plain(line)}" for line in lines)]) + "\n"


def _human(report: HumanReport, notes: text.Footnotes) -> list[str]:
    blocks = [f"**People: {_plain(report.campaign)}** ({_plain('; '.join(words.about(report)))})"]
    for one in report.tables:
        rows = [(_plain(text.row_name(row)), row.cells) for row in one.table.rows]
        title = f"**{_plain(one.title)}**"
        blocks.append(_grid(title, one.table.heading, one.table.columns, rows, notes))
    for texts in words.judged_differently(report):
        found = [
            f"- {_plain(one.head)}<br>{_plain(text.one_line(one.source))}"
            f"<br>{_plain(text.one_line(one.output)) or '(empty)'}"
            for one in texts.shown
        ]
        blocks.append("\n".join([f"**{texts.title}**", "", *found]))
    return blocks


def _human_notes(report: HumanReport) -> list[str]:
    lines = [f"People ({report.campaign}): {note}" for note in report.notes]
    lines += [f"{one.title}: {one.about}" for one in report.tables if one.about]
    lines += [f"{title}: {note}" for title, note in words.column_notes(report).items()]
    return [*lines, *(f"{texts.title}: {texts.about}" for texts in words.judged_differently(report))]


def _table(table: TestSetTable, notes: text.Footnotes) -> str:
    segments = f"{table.segments:,} segments" if table.segments is not None else "not prepared yet"
    rows = []
    for row in table.rows:
        name = f"**{_plain(row.system)}**" + (" (baseline)" if row.baseline else "")
        rows.append((f"{name}<br>{_plain(row.description)}", row.cells))
    return _grid(f"**{_plain(table.test_set)}** ({segments})", "system", table.columns, rows, notes)


def _analysis(analysis: Analysis, table: AnalysisTable, notes: text.Footnotes) -> str:
    title = f"**{_plain(analysis.name)}** ({_plain(f'{analysis.title}, {text.analysed(analysis)}')})"
    rows = [(_plain(text.row_name(row)), row.cells) for row in table.rows]
    return _grid(title, table.heading, table.columns, rows, notes)


def _grid(
    title: str,
    heading: str,
    columns: Sequence[Column],
    rows: Sequence[tuple[str, Mapping[str, Cell]]],
    notes: text.Footnotes,
) -> str:
    lines = [title, "", _row([heading, *(text.heading(column) for column in columns)])]
    lines.append(_row([":--", *("--:" for _ in columns)]))
    for name, cells in rows:
        lines.append(_row([name, *(_cell(cells[column.key], column, notes) for column in columns)]))
    return "\n".join(lines)


def _cell(cell: Cell, column: Column, notes: text.Footnotes) -> str:
    parts = [text.value(cell, column) + notes.mark(cell.note), text.deviation(cell, column)]
    parts += [text.interval(cell.low, cell.high, column), *text.percents(cell)]
    if cell.delta is not None and (cell.value is not None or cell.delta.value is not None):
        shown, *rest = text.difference(cell.delta, column)
        parts += [shown + notes.mark(cell.delta.note), *rest]
    return "<br>".join(_plain(part) for part in parts if part)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(words: str) -> str:
    """Text as text: what Markdown would read as its own is escaped."""
    return "".join(f"\\{character}" if character in "\\`*_|<>[]#" else character for character in words)
