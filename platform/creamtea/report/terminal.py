"""A report in the terminal: one table a test set, then what one must know to read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from creamtea.report import text
from creamtea.report.model import Cell, Column, CorpusSummary, Delta, Report, Row, TestSetTable, Training

STATE_STYLES = {"failed": "bold red", "unavailable": "yellow", "cancelled": "yellow", "partial": "yellow"}
TRAINING_COLUMNS = (
    Column("updates", "updates", 0),
    Column("dev_loss", "dev loss", 3),
    Column("dev_bleu", "dev BLEU", 1),
    Column("seconds", "seconds", 0),
    Column("tokens_per_second", "tokens/s", 0),
    Column("parameters", "parameters", 0),
    Column("left_out", "left out", 0),
)


def render(report: Report, console: Console, test_set: str | None = None) -> None:
    """Print the report, or only one of its test sets. Wide tables are split where the console is narrow.

    Text of the study (names, messages) is never read as rich's markup. KeyError for an unknown test set.
    """
    notes = text.Footnotes()
    _heading(report, console)
    tables = report.tables if test_set is None else (report.table(test_set),)
    for table in tables:
        _print_table(table, console, notes)
    _print_training(report.training, console, notes)
    _print_notes(report, tables, console, notes)


def _heading(report: Report, console: Console) -> None:
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
    systems = [_system(row) for row in table.rows]
    columns = [
        (column, [_cell(row, row.cells[column.key], column, notes) for row in table.rows])
        for column in table.columns
    ]
    for group in _fitting(columns, systems, console):
        grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, leading=1)
        grid.add_column("system", overflow="fold", min_width=12)
        for column, _ in group:
            grid.add_column(text.heading(column), justify="right", no_wrap=True)
        for index, system in enumerate(systems):
            grid.add_row(system, *(cells[index] for _, cells in group))
        console.print(grid)


def _system(row: Row) -> Text:
    name = Text(row.system, style="bold")
    if row.baseline:
        name.append(" (baseline)", style="not bold")
    name.append(f"\n{row.description}", style="not bold dim")
    return name


def _cell(row: Row, cell: Cell, column: Column, notes: text.Footnotes) -> Text:
    """Value, interval and difference from the baseline below each other."""
    shown = Text(justify="right")
    shown.append(text.value(cell, column) + notes.mark(cell.note), STATE_STYLES.get(cell.state, ""))
    if bounds := text.interval(cell.low, cell.high, column):
        shown.append(f"\n{bounds}", "dim")
    if relative := text.percent(cell):
        shown.append(f"\n{relative}", "dim")
    # a difference that has no value because its score has none would say the same twice
    if cell.delta is not None and (cell.value is not None or cell.delta.value is not None):
        style = _delta_style(cell.delta, column)
        shown.append(f"\n{text.difference(cell.delta, column)}{notes.mark(cell.delta.note)}", style)
    return shown


def _delta_style(delta: Delta, column: Column) -> str:
    if delta.value is None:
        return STATE_STYLES.get(delta.state, "")
    if not delta.significant:
        return "dim"
    return "green" if (delta.value > 0) == (column.better == "higher") else "red"


Columns = Sequence[tuple[Column, list[Text]]]


def _fitting(columns: Columns, systems: list[Text], console: Console) -> Iterable[Columns]:
    """The columns in groups that fit the console's width beside the systems' names."""
    name = min(max(_width(system, console) for system in systems), max(14, console.width // 4))
    group: list[tuple[Column, list[Text]]] = []
    used = name
    for column, cells in columns:
        width = 2 + max(len(text.heading(column)), *(_width(cell, console) for cell in cells))
        if group and used + width > console.width:
            yield group
            group, used = [], name
        group.append((column, cells))
        used += width
    yield group


def _width(cell: Text, console: Console) -> int:
    return Measurement.get(console, console.options.update(width=1000), cell).maximum


# ---------------------------------------------------------------- training, notes


def _print_training(training: Sequence[Training], console: Console, notes: text.Footnotes) -> None:
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column("training", overflow="fold", min_width=12)
    for column in TRAINING_COLUMNS:
        grid.add_column(column.title, justify="right")
    for run in training:
        cells = [run.cells[column.key] for column in TRAINING_COLUMNS]
        shown = [
            Text(text.value(cell, column) + notes.mark(cell.note), STATE_STYLES.get(cell.state, ""))
            for cell, column in zip(cells, TRAINING_COLUMNS, strict=True)
        ]
        grid.add_row(Text(f"{run.variant}, seed {run.seed}"), *shown)
    console.print(grid)


def _print_notes(
    report: Report, tables: Sequence[TestSetTable], console: Console, notes: text.Footnotes
) -> None:
    for note, count in notes.notes.items():
        console.print(Text(f"({count}) {note}", style="yellow"))
    lines = [report.significance, report.latency_note]
    lines += sorted({f"{c.title}: {c.signature}" for table in tables for c in table.columns if c.signature})
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
    """ "corpus train: kept 28,950 of 29,000 training pairs (dropped: 40 duplicate, 10 ratio); dev …"."""
    if not corpus.pairs:
        return (
            f"corpus {corpus.name}: {text.STATE_WORDS.get(corpus.state, corpus.state)} {corpus.note}".rstrip()
        )
    parts = [
        f"{corpus.pairs.get(f'{side}_kept', 0):,} of {corpus.pairs.get(f'{side}_read', 0):,} {name} pairs"
        for side, name in (("train", "training"), ("dev", "development"))
    ]
    dropped = ", ".join(f"{count:,} {name}" for name, count in sorted(corpus.dropped.items()) if count)
    return f"corpus {corpus.name}: kept {' and '.join(parts)} (dropped: {dropped or 'none'})"
