"""The tables of a report: a Streamlit component that draws and sorts in the browser.

Every text reaches the page as data and is set by `textContent`; `st.dataframe` would draw on a canvas,
which neither wraps nor reads out, and Markdown tables interpret names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from creamtea.contract.columns import Column
from creamtea.report import text
from creamtea.report.model import AnalysisTable, Cell, TestSetTable

HERE = Path(__file__).parent


@cache
def _component() -> Callable[..., Any]:
    html, css, js = (
        (HERE / f"comparison.{end}").read_text(encoding="utf-8") for end in ("html", "css", "js")
    )
    return st.components.v2.component("creamtea_comparison", html=html, css=css, js=js)


def comparison(table: TestSetTable, key: str) -> None:
    """Show a test set's table: a row a system, intervals and differences under the values."""
    rows = [Shown(row.system, row.description, row.baseline, row.cells) for row in table.rows]
    _component()(key=key, data=as_data("System", table.columns, rows))


def analysis_table(table: AnalysisTable, key: str) -> None:
    """Show a table of an analysis: a row a variant (or system) and setting. The best values are marked
    where rows do not differ in their settings too."""
    rows = [Shown(row.name, row.setting, False, row.cells) for row in table.rows]
    comparable = not any(row.setting for row in table.rows)
    _component()(key=key, data=as_data(table.heading.capitalize(), table.columns, rows, comparable))


@dataclass(frozen=True)
class Shown:
    """A row of either table."""

    name: str
    description: str
    baseline: bool
    cells: Mapping[str, Cell]


def as_data(
    heading: str, columns: Sequence[Column], rows: Sequence[Shown], comparable: bool = True
) -> dict[str, Any]:
    """A table as the component wants it: ready texts, and numbers to sort by."""
    best = {column.key: _best(rows, column) if comparable else None for column in columns}
    return {
        "heading": heading,
        "columns": [
            {
                "title": text.heading(column),
                "note": column.signature or column.note,
                "better": column.better,
            }
            for column in columns
        ],
        "rows": [
            {
                "name": row.name,
                "description": row.description,
                "baseline": row.baseline,
                "cells": [_cell(row.cells[column.key], column, best[column.key]) for column in columns],
            }
            for row in rows
        ],
    }


def _best(rows: Sequence[Shown], column: Column) -> float | None:
    values = [value for row in rows if (value := row.cells[column.key].value) is not None]
    if not column.better or len(set(values)) < 2:
        return None
    return max(values) if column.better == "higher" else min(values)


def _cell(cell: Cell, column: Column, best: float | None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "text": text.value(cell, column),
        "sort": cell.value,
        "state": cell.state,
        "best": cell.value is not None and cell.value == best,
        "note": text.one_line(cell.note) if cell.note else "",
        "lines": [line for line in _lines(cell, column) if line],
    }
    if cell.delta is not None and (cell.value is not None or cell.delta.value is not None):
        shown["deltas"] = text.difference(cell.delta, column)
        shown["change"] = _change(cell, column)
        if cell.delta.note and not shown["note"]:
            shown["note"] = text.one_line(cell.delta.note)
    return shown


def _lines(cell: Cell, column: Column) -> tuple[str, ...]:
    return (
        text.deviation(cell, column),
        text.interval(cell.low, cell.high, column),
        *text.percents(cell),
    )


def _change(cell: Cell, column: Column) -> str:
    """ "better" or "worse" for a significant difference, "" otherwise."""
    delta = cell.delta
    if delta is None or not delta.significant or delta.value is None or not column.better:
        return ""
    return "better" if (delta.value > 0) == (column.better == "higher") else "worse"
