"""The comparison table: a Streamlit component that draws and sorts in the browser.

Every text reaches the page as data and is set by `textContent`; `st.dataframe` would draw on a canvas,
which neither wraps nor reads out, and Markdown tables interpret names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from creamtea.report import text
from creamtea.report.model import Cell, Column, Row, TestSetTable

HERE = Path(__file__).parent


@cache
def _component() -> Callable[..., Any]:
    html, css, js = (
        (HERE / f"comparison.{end}").read_text(encoding="utf-8") for end in ("html", "css", "js")
    )
    return st.components.v2.component("creamtea_comparison", html=html, css=css, js=js)


def comparison(table: TestSetTable, key: str) -> None:
    """Show a test set's table: a row a system, intervals and differences under the values."""
    _component()(key=key, data=as_data(table))


def as_data(table: TestSetTable) -> dict[str, Any]:
    """The table as the component wants it: ready texts, and numbers to sort by."""
    best = {column.key: _best(table.rows, column) for column in table.columns}
    return {
        "columns": [
            {"title": text.heading(column), "note": column.signature, "better": column.better}
            for column in table.columns
        ],
        "rows": [
            {
                "name": row.system,
                "description": row.description,
                "baseline": row.baseline,
                "cells": [_cell(row.cells[column.key], column, best[column.key]) for column in table.columns],
            }
            for row in table.rows
        ],
    }


def _best(rows: tuple[Row, ...], column: Column) -> float | None:
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
        "lines": [line for line in (text.interval(cell.low, cell.high, column), text.percent(cell)) if line],
    }
    if cell.delta is not None and (cell.value is not None or cell.delta.value is not None):
        shown["delta"] = text.difference(cell.delta, column)
        shown["change"] = _change(cell, column)
        if cell.delta.note and not shown["note"]:
            shown["note"] = text.one_line(cell.delta.note)
    return shown


def _change(cell: Cell, column: Column) -> str:
    """ "better" or "worse" for a significant difference, "" otherwise."""
    delta = cell.delta
    if delta is None or not delta.significant or delta.value is None or not column.better:
        return ""
    return "better" if (delta.value > 0) == (column.better == "higher") else "worse"
