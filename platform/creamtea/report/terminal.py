"""A report in the terminal: one table a test set, then what one must know to read it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from creamtea.report import text
from creamtea.report.grid import STATE_STYLES, cell_text, heading, print_grid
from creamtea.report.human.terminal import print_human
from creamtea.report.model import (
    TRAINING_COLUMNS,
    Analysis,
    CorpusSummary,
    Report,
    Row,
    TestSetTable,
    Training,
)

WIDTH = 180


def make_console() -> Console:
    """The terminal, or, where the output goes to a file or a pipe, WIDTH columns: one whole table."""
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH
    return console


def render(report: Report, console: Console, test_set: str | None = None) -> None:
    """Print the report, or only one of its test sets. Wide tables are split where the console is narrow.

    Text of the study (names, messages) is never read as rich's markup. KeyError for an unknown test set.
    """
    notes = text.Footnotes()
    _print_heading(report, console)
    tables = report.tables if test_set is None else (report.table(test_set),)
    for table in tables:
        _print_table(table, console, notes)
    for campaign in report.human:
        if test_set in (None, campaign.test_set):
            print_human(campaign, console, notes)
    analyses = [one for one in report.analyses if test_set in (None, one.test_set)]
    for analysis in analyses:
        _print_analysis(analysis, console, notes)
    _print_training(report.training, console, notes)
    _print_notes(report, tables, analyses, console, notes)


def _print_heading(report: Report, console: Console) -> None:
    steps = ", ".join(f"{count} {state}" for state, count in sorted(report.steps.items()))
    title = Text(report.study, style="bold")
    style = {"succeeded": "green", "failed": "bold red"}.get(report.state, "yellow")
    title.append(f"  {report.state}", style=style)
    title.append(f"  number {report.id}, {report.created_at:%Y-%m-%d %H:%M} UTC; steps: {steps}", style="dim")
    console.print(title)
    if report.description:
        console.print(Text(report.description, style="italic"))


# ---------------------------------------------------------------- the main table


def _print_table(table: TestSetTable, console: Console, notes: text.Footnotes) -> None:
    counts = [f"{table.segments:,} segments"] if table.segments is not None else ["not prepared yet"]
    if table.idioms:
        counts.append(f"{table.idioms:,} idioms")
    console.print()
    console.print(Text.assemble((table.test_set, "bold"), (f"  {', '.join(counts)}", "dim")))
    columns = [
        (heading(column), [cell_text(row.cells[column.key], column, notes) for row in table.rows])
        for column in table.columns
    ]
    print_grid(console, "system", [_system(row) for row in table.rows], columns, leading=1)


def _system(row: Row) -> Text:
    name = Text(row.system, style="bold")
    if row.baseline:
        name.append(" (baseline)", style="not bold")
    name.append(f"\n{row.description}", style="not bold dim")
    return name


# ---------------------------------------------------------------- analyses


def _print_analysis(analysis: Analysis, console: Console, notes: text.Footnotes) -> None:
    console.print()
    about = f"  {analysis.title}, {text.analysed(analysis)}"
    console.print(Text.assemble((analysis.name, "bold"), (about, "dim")))
    for table in analysis.tables:
        columns = [
            (heading(column), [cell_text(row.cells[column.key], column, notes) for row in table.rows])
            for column in table.columns
        ]
        names = [Text(text.row_name(row)) for row in table.rows]
        print_grid(console, table.heading, names, columns)


# ---------------------------------------------------------------- training, notes


def _print_training(training: Sequence[Training], console: Console, notes: text.Footnotes) -> None:
    columns = [
        (Text(column.title), [cell_text(run.cells[column.key], column, notes) for run in training])
        for column in TRAINING_COLUMNS
    ]
    print_grid(console, "training", [Text(f"{run.variant}, seed {run.seed}") for run in training], columns)


def _print_notes(
    report: Report,
    tables: Sequence[TestSetTable],
    analyses: Sequence[Analysis],
    console: Console,
    notes: text.Footnotes,
) -> None:
    for note, count in notes.notes.items():
        console.print(Text(f"({count}) {note}", style="yellow"))
    lines = [report.significance, report.latency_note]
    lines += dict.fromkeys(
        f"{column.title}: {column.signature or column.note}"
        for table in tables
        for column in table.columns
        if column.signature or column.note
    )
    lines += text.analysis_notes(analyses)
    lines += [corpus_line(corpus) for corpus in report.corpora]
    lines += list(report.provenance.hardware)
    lines.append(
        f"code {report.provenance.code_version}, study config {report.provenance.config_hash[:12]}, seeds "
        + "; ".join(f"{name} {', '.join(map(str, seeds))}" for name, seeds in report.provenance.seeds.items())
    )
    for line in lines:
        console.print(Text(line, style="dim"))
    for failure in report.failures:
        if failure.state == "upstream":
            continue  # their causes are here, and their cells say what they waited for
        places = ", ".join(failure.nodes)
        tries = f" after {failure.attempts} attempts" if failure.attempts > 1 else ""
        what = (f"{failure.state}{tries}: ", STATE_STYLES.get(failure.state, ""))
        console.print(Text.assemble(what, f"{places}: {text.one_line(failure.reason)}"))


def corpus_line(corpus: CorpusSummary) -> str:
    """As "corpus en-de: kept 28,950 of 29,000 training pairs and … (dropped: 40 duplicate, 10 ratio; added
    by repetition: 2,000)"."""
    if not corpus.pairs:
        return (
            f"corpus {corpus.name}: {text.STATE_WORDS.get(corpus.state, corpus.state)} {corpus.note}".rstrip()
        )
    added = corpus.pairs.get("train_added", 0)
    kept = {"train": corpus.pairs.get("train_kept", 0) - added, "dev": corpus.pairs.get("dev_kept", 0)}
    parts = [
        f"{kept[side]:,} of {corpus.pairs.get(f'{side}_read', 0):,} {name} pairs"
        for side, name in (("train", "training"), ("dev", "development"))
    ]
    dropped = ", ".join(f"{count:,} {name}" for name, count in sorted(corpus.dropped.items()) if count)
    more = f"; added by repetition: {added:,}" if added else ""
    return f"corpus {corpus.name}: kept {' and '.join(parts)} (dropped: {dropped or 'none'}{more})"
