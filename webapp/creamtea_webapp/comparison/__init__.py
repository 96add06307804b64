"""The tables of a report: a Streamlit component that draws and sorts in the browser.

Every text reaches the page as data and is set by `textContent`; `st.dataframe` would draw on a canvas,
which neither wraps nor reads out, and Markdown tables interpret names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from creamtea.contract.columns import Column
from creamtea.report import text
from creamtea.report.model import Cell, Table

HERE = Path(__file__).parent


@cache
def _component() -> Callable[..., Any]:
    html, css, js = (
        (HERE / f"comparison.{end}").read_text(encoding="utf-8") for end in ("html", "css", "js")
    )
    return st.components.v2.component("creamtea_comparison", html=html, css=css, js=js)


def show_table(table: Table, key: str) -> None:
    """One row per system, variant or rater; intervals and differences under the values."""
    _component()(key=key, data=as_data(table))


def as_data(table: Table) -> dict[str, Any]:
    """What the component needs of a table: texts to show, and numbers to sort by."""
    best = {column.key: text.best(table, column) for column in table.columns}
    groups = table.groups()
    titles = [group.title for group in groups]
    return {
        "groups": [{"title": group.title, "oneOf": group.one_of, "shown": group.shown} for group in groups],
        "label": table.title or f"Table by {table.heading}",
        "heading": _capitalised(table.heading),
        "columns": [
            {
                "title": text.heading(column),
                "note": column.signature or column.note,
                "better": column.better,
                "group": titles.index(column.group) if column.group in titles else -1,
            }
            for column in table.columns
        ],
        "rows": [
            {
                "name": row.name,
                "description": row.setting or row.description,
                "baseline": row.baseline,
                "cells": [_cell(row.cells[column.key], column, best[column.key]) for column in table.columns],
            }
            for row in table.rows
        ],
    }


def _capitalised(heading: str) -> str:
    """Only a Latin letter: a capital α looks like A."""
    return heading[:1].upper() + heading[1:] if heading[:1].isascii() else heading


def _cell(cell: Cell, column: Column, best: float | None) -> dict[str, Any]:
    shown = text.shown(cell, column)
    return {
        "text": shown.value,
        "sort": cell.value,
        "words": bool(cell.words),
        "state": shown.state,
        "best": text.is_best(cell, column, best),
        "note": shown.note,
        "lines": shown.details,
        "deltas": shown.change,
        "deltaNote": shown.change_note,
        "change": shown.change_state,
    }
