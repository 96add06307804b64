"""Cells as short text, the same in the terminal, in Markdown and in the web app."""

from __future__ import annotations

from creamtea.report.model import Cell, Column, Delta

STATE_WORDS = {
    "pending": "not run yet",
    "running": "running",
    "failed": "failed",
    "unavailable": "unavailable",
    "cancelled": "cancelled",
    "absent": "none",
}


def number(value: float, column: Column) -> str:
    """A value in the column's scale and digits, thousands apart: "34.2", "1,204", "98.5"."""
    return f"{value * column.scale:,.{column.digits}f}"


def value(cell: Cell, column: Column) -> str:
    """ "34.2", "34.2 ± 0.3" for several seeds, or what became of it: "unavailable"."""
    if cell.value is None:
        return STATE_WORDS[cell.state]
    shown = number(cell.value, column)
    if cell.deviation is not None:
        shown += f" ± {number(cell.deviation, column)}"
    return shown


def interval(low: float | None, high: float | None, column: Column) -> str:
    """ "[32.9, 35.6]", or nothing where there is none."""
    if low is None or high is None:
        return ""
    return f"[{number(low, column)}, {number(high, column)}]"


def difference(delta: Delta, column: Column) -> str:
    """ "+1.2* (p 0.003)", or what became of the comparison."""
    if delta.value is None or delta.p_corrected is None:
        return f"Δ {STATE_WORDS[delta.state]}"
    sign = "+" if delta.value > 0 else "−" if delta.value < 0 else "±"
    mark = "*" if delta.significant else ""
    return f"{sign}{number(abs(delta.value), column)}{mark} ({p_value(delta.p_corrected)})"


def p_value(p: float) -> str:
    return "p <0.001" if p < 0.001 else f"p {p:.3f}" if p < 0.1 else f"p {p:.2f}"


def percent(cell: Cell) -> str:
    """ "43 %" of the baseline, or nothing."""
    return "" if cell.percent is None else f"{cell.percent:.0f} %"


def heading(column: Column) -> str:
    return f"{column.title}, {column.unit}" if column.unit else column.title


def one_line(text: str, limit: int = 400) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"


class Footnotes:
    """Numbers the notes of cells in the order in which they first appear."""

    def __init__(self) -> None:
        self.notes: dict[str, int] = {}

    def mark(self, note: str) -> str:
        """ " (2)" for a note, nothing for none."""
        if not note:
            return ""
        return f" ({self.notes.setdefault(one_line(note), len(self.notes) + 1)})"
