"""Cells as short text, the same in the terminal, in Markdown and in the web app."""

from __future__ import annotations

import math
from collections.abc import Iterable

from creamtea.contract.columns import Column
from creamtea.report.model import Analysis, AnalysisRow, Cell, Delta, Percent

STATE_WORDS = {
    "pending": "pending",
    "running": "running",
    "failed": "failed",
    "unavailable": "unavailable",
    "cancelled": "cancelled",
    "absent": "none",  # its note says why there is nothing to measure
}

_PERCENT = Column("percent", "percent", 0)


def number(value: float, column: Column) -> str:
    """A value in the column's scale and digits, thousands apart: "34.2", "1,204", "98.5"."""
    return f"{value * column.scale:,.{column.digits}f}".replace("-", "−")


def value(cell: Cell, column: Column) -> str:
    """The number alone, or the words in its place, or what became of it: "unavailable"."""
    if cell.words:
        return cell.words
    return STATE_WORDS[cell.state] if cell.value is None else number(cell.value, column)


def deviation(cell: Cell, column: Column) -> str:
    """As in "± 0.3" over several seeds, or nothing."""
    return "" if cell.deviation is None else f"± {number(cell.deviation, column)}"


def interval(low: float | None, high: float | None, column: Column) -> str:
    """As "[32.9, 35.6]", or nothing where there is none."""
    if low is None or high is None:
        return ""
    return f"[{number(low, column)}, {number(high, column)}]"


def difference(delta: Delta, column: Column) -> list[str]:
    """As "+1.2*", "[0.4, 2.0]" and "p=0.003/0.002" (bootstrap, randomisation), one below the other; or what
    became of the comparison.

    A p-value is rounded down: never "0.050" for one below 0.05.
    """
    if delta.value is None or delta.p_corrected is None:
        return [f"Δ {STATE_WORDS[delta.state]}"]
    sign = "+" if delta.value > 0 else "−" if delta.value < 0 else "±"
    mark = "*" if delta.significant else ""
    p = f"p{_p_value(delta.p_corrected)}"
    if delta.p_randomization_corrected is not None:
        p += f"/{p_value(delta.p_randomization_corrected)}"
    bounds = interval(delta.low, delta.high, column)
    return [f"{sign}{number(abs(delta.value), column)}{mark}", *([bounds] if bounds else []), p]


def p_value(p: float) -> str:
    """As "0.049" or "<0.001": rounded down."""
    return _p_value(p).removeprefix("=")


def _p_value(p: float) -> str:
    if p < 0.001:
        return "<0.001"
    digits = 3 if p < 0.1 else 2
    return f"={math.floor(p * 10**digits) / 10**digits:.{digits}f}"


def percents(cell: Cell) -> list[str]:
    """As "43 % [41, 45]", one for each baseline."""
    return [percent(one) for one in cell.percents.values()]


def percent(of_baseline: Percent) -> str:
    """As "43 % [41, 45]", or "100 %" of the baseline itself."""
    bounds = interval(of_baseline.low, of_baseline.high, _PERCENT)
    return f"{number(of_baseline.value, _PERCENT)} %" + (f" {bounds}" if bounds else "")


def heading(column: Column) -> str:
    return f"{column.title}, {column.unit}" if column.unit else column.title


def not_drawn(name: str, state: str) -> str:
    """Why a figure has nothing of a system: "scones-greedy (pending)"."""
    return f"{name} ({'not measured' if state == 'absent' else STATE_WORDS[state]})"


def row_name(row: AnalysisRow) -> str:
    """As "softmax, beam 4"."""
    return f"{row.name}, {row.setting}" if row.setting else row.name


def analysed(analysis: Analysis) -> str:
    """As "newstest" or "the first 200 sentences of newstest"."""
    if analysis.sentences is None:
        return analysis.test_set
    return f"the first {analysis.sentences:,} sentences of {analysis.test_set}"


def meanings(analysis: Analysis) -> dict[str, str]:
    """What its columns mean, by title."""
    columns = [column for table in analysis.tables for column in table.columns]
    return {column.title: column.note for column in columns if column.note}


def analysis_notes(analyses: Iterable[Analysis]) -> list[str]:
    """What the analyses are about, and what their columns mean: once for all that are alike."""
    names: dict[str, list[str]] = {}
    for analysis in analyses:
        columns = (f"{title}: {note}." for title, note in meanings(analysis).items())
        names.setdefault(" ".join([analysis.about, *columns]), []).append(analysis.name)
    return [f"{', '.join(alike)}: {note}" for note, alike in names.items()]


def one_line(text: str, limit: int = 400) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"


class Footnotes:
    """Numbers the notes of cells in the order in which they first appear."""

    def __init__(self) -> None:
        self.notes: dict[str, int] = {}

    def mark(self, note: str) -> str:
        """As " (2)" for a note, nothing for none."""
        if not note:
            return ""
        return f" ({self.notes.setdefault(one_line(note), len(self.notes) + 1)})"
