"""Analyses that divide a test set: which buckets their steps have measured, in tables and for figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from creamtea.contract.columns import Column
from creamtea.methods.analysis import Measure, RowSetting, TableLayout
from creamtea.report import text
from creamtea.report.cells import Measured
from creamtea.report.model import Cell, Row, Table

MANY_ROWS = 9  # of a table that a page shows when asked for
Groups = Mapping[str, Sequence[Measured]]  # the seeds of a variant or system


def found_buckets(groups: Groups) -> list[RowSetting]:
    """Every bucket that a step has measured, in their order; `words` have the number of its segments."""
    buckets = {
        metric.subject: metric.detail["bucket"]
        for seeds in groups.values()
        for step in seeds
        for metric in step.metrics
        if "bucket" in metric.detail
    }
    ordered = sorted(buckets.items(), key=lambda item: int(item[1]["position"]))
    return [
        RowSetting(
            tuple(subject.split("/")),
            f"{bucket['words']} ({bucket['segments']:,})",
            float(bucket["position"]),
            tick=bucket["words"],
        )
        for subject, bucket in ordered
    ]


def bucket_tables(layout: TableLayout, rows: Sequence[tuple[RowSetting, Row]]) -> list[Table]:
    """One for each kind of buckets: a row for each group, a column for each bucket and measure. `rows` are of
    a group and a bucket each."""
    tables = []
    for kind, title in layout.buckets.items():
        own = [(setting, row) for setting, row in rows if setting.parts[0] == kind]
        if not own:
            continue
        cells: dict[str, dict[str, Cell]] = {}
        columns: dict[str, Column] = {}
        for measure in layout.measures:
            for setting, row in own:
                column = _column(measure, setting)
                columns[column.key] = column
                cells.setdefault(row.name, {})[column.key] = row.cells[measure.column.key]
        tables.append(
            Table(
                kind,
                f"By {title}",
                layout.heading,
                tuple(columns.values()),
                tuple(Row(name, its_cells) for name, its_cells in cells.items()),
                "In brackets: the number of segments of the bucket.",
                folded=len(cells) >= MANY_ROWS,
            )
        )
    return tables


def _column(measure: Measure, setting: RowSetting) -> Column:
    column = measure.column
    key = text.key_of(f"{column.key}-{'-'.join(setting.parts)}")
    return replace(column, key=key, title=f"{column.title}, {setting.words}")
