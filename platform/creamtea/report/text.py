"""Cells, facts and figures in words, the same for every printer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_DOWN, Decimal

from creamtea.contract.step import Column
from creamtea.report.model import Cell, Delta, Entry, Fact, Figure, Percent, Row, Table
from creamtea.wording import counted, with_minus

STATE_WORDS = {  # the states of cells without a value
    "pending": "pending",
    "running": "running",
    "failed": "failed",
    "unavailable": "unavailable",
    "cancelled": "cancelled",
    "absent": "none",  # not part of the study, or nothing to measure
}

ENDED_WITHOUT = ("failed", "unavailable", "cancelled")  # final states of steps without a result

_PERCENT = Column("percent", "percent", 0)


# ---------------------------------------------------------------- numbers


def number(value: float, column: Column) -> str:
    """Format a value in the column's scale and digits, with thousands separated: "34.2", "1,204"."""
    return with_minus(f"{value * column.scale:,.{column.digits}f}")


def value(cell: Cell, column: Column) -> str:
    """Return the number alone, or the words in its place, or the state of a missing one: "unavailable"."""
    if cell.words:
        return cell.words
    return STATE_WORDS[cell.state] if cell.value is None else number(cell.value, column)


def interval(low: float | None, high: float | None, column: Column) -> str:
    """Format an interval: "[32.9, 35.6]", or nothing without bounds."""
    if low is None or high is None:
        return ""
    return f"[{number(low, column)}, {number(high, column)}]"


def difference(delta: Delta, column: Column) -> list[str]:
    """Format a difference as lines: value, interval, p-values, and the same with seeds; or a state.

    The lines are "+1.2*", "[0.4, 2.0]", "p=0.003/0.002" (one p-value per test, "–" if it has none), "with
    seeds", "[−0.1, 2.5]" and "p=0.061". P-values are rounded down: a value below 0.05 never shows as "0.050".
    """
    if delta.value is None:
        return [f"Δ {STATE_WORDS[delta.state]}"]
    shown = [
        signed(delta.value, column) + "*" * delta.significant,
        interval(delta.low, delta.high, column),
        _p_values([p.corrected for p in delta.p_values.values()]),
    ]
    if delta.p_seeds_corrected is not None:
        bounds = interval(delta.seeds_low, delta.seeds_high, column)
        shown += ["with seeds", bounds, _p_values([delta.p_seeds_corrected])]
    return [line for line in shown if line]


def signed(value: float, column: Column) -> str:
    """Format a difference with its sign: "+1.2", "−0.3", "±0.0"."""
    sign = "+" if value > 0 else "−" if value < 0 else "±"
    return f"{sign}{number(abs(value), column)}"


def _p_values(p_values: Sequence[float | None]) -> str:
    """Format p-values: "p=0.003/<0.001", or nothing if there are none."""
    shown = "/".join("–" if p is None else p_value(p) for p in p_values)
    return f"p{'' if shown.startswith('<') else '='}{shown}" if shown else ""


def p_value(p: float) -> str:
    """Format a p-value, rounded down: "0.049" or "<0.001"."""
    if p < 0.001:
        return "<0.001"
    last_digit = "0.001" if p < 0.1 else "0.01"
    # round the digits that Python prints: as a float, 0.29 * 100 is less than 29
    return str(Decimal(str(p)).quantize(Decimal(last_digit), ROUND_DOWN))


def percent(of_baseline: Percent) -> str:
    """Format a percentage: "43 % [41, 45]", or "100 %" of the baseline itself."""
    bounds = interval(of_baseline.low, of_baseline.high, _PERCENT)
    return f"{number(of_baseline.value, _PERCENT)} %" + (f" {bounds}" if bounds else "")


# ---------------------------------------------------------------- cells


@dataclass(frozen=True)
class ShownCell:
    """A cell as every printer shows it."""

    value: str
    note: str  # on one line
    state: str
    details: tuple[str, ...]  # deviation, interval, percentages
    change: tuple[str, ...]  # difference from the baseline, its interval, p-values
    change_note: str
    change_state: str  # as `change_state` returns it

    def lines(self, notes: Footnotes) -> list[str]:
        """Return value, details and difference; the marks of their notes follow value and difference."""
        lines = [self.value + notes.mark(self.note), *self.details]
        if self.change:
            first, *rest = self.change
            lines += [first + notes.mark(self.change_note), *rest]
        return lines


def shown(cell: Cell, column: Column) -> ShownCell:
    deviation = "" if cell.deviation is None else f"± {number(cell.deviation, column)}"
    details = (deviation, interval(cell.low, cell.high, column), *map(percent, cell.percents.values()))
    # if neither score nor difference has a value, the score's reason is enough
    delta = cell.delta if cell.value is not None or (cell.delta and cell.delta.value is not None) else None
    return ShownCell(
        value=value(cell, column),
        note=one_line(cell.note),
        state=cell.state,
        details=tuple(filter(None, details)),
        change=tuple(difference(delta, column)) if delta else (),
        change_note=one_line(delta.note) if delta else "",
        change_state=change_state(delta, column) if delta else "",
    )


def change_state(delta: Delta, column: Column) -> str:
    """Return "better" or "worse" if significant, the state of a comparison without a value, or ""."""
    if delta.value is None:
        return delta.state
    if not delta.significant or not column.better:
        return ""
    return "better" if (delta.value > 0) == (column.better == "higher") else "worse"


def heading(column: Column) -> str:
    return f"{column.title}, {column.unit}" if column.unit else column.title


def row_name(row: Row) -> str:
    """Name a row: "softmax, beam 4", "softmax-greedy (baseline)"."""
    name = f"{row.name}, {row.setting}" if row.setting else row.name
    return f"{name} (baseline)" if row.baseline else name


def best(table: Table, column: Column) -> float | None:
    """Return the best value of a column; None if rows differ in their settings or all values look equal.

    Values that hold by definition do not count.
    """
    cells = [row.cells[column.key] for row in table.rows]
    values = [cell.value for cell in cells if cell.value is not None and not cell.by_definition]
    look_equal = len({number(value, column) for value in values}) < 2
    if not column.better or look_equal or any(row.setting for row in table.rows):
        return None
    return max(values) if column.better == "higher" else min(values)


def is_best(cell: Cell, column: Column, best: float | None) -> bool:
    """Return whether a cell looks as good as the best one of its column."""
    if cell.value is None or best is None or cell.by_definition:
        return False
    return number(cell.value, column) == number(best, column)


# ---------------------------------------------------------------- other blocks


def entry_name(entry: Entry) -> str:
    """Name an entry: "segment 12, beam: human score 5.20, COMET 0.6120, gap +2.1"."""
    listed = ", ".join(
        f"{column.title} {value(cell, column)}{column.unit and f' {column.unit}'}"
        for column, cell in entry.numbers
    )
    return f"{entry.name}: {listed}" if listed else entry.name


def fact(stated: Fact) -> str:
    match stated.value:
        case datetime():
            return f"{stated.value:%Y-%m-%d %H:%M} UTC"
        case tuple():
            return "; ".join(stated.value)
        case _:
            return str(stated.value)


def not_drawn(name: str, state: str) -> str:
    """Name a system that a figure lacks, and why: "scones-greedy (pending)"."""
    return f"{name} ({'not measured' if state == 'absent' else STATE_WORDS[state]})"


def missing(figure: Figure) -> str:
    """List what is not drawn: "not drawn: scones-greedy (pending)", or nothing."""
    return f"not drawn: {', '.join(figure.missing)}" if figure.missing else ""


def figure(figure: Figure) -> str:
    """Describe a figure in words: "BLEU over beam width (8 points; not drawn: scones (pending))"."""
    layers = figure.spec.get("layer", [])
    axes = [layers[0]["encoding"].get(axis, {}) for axis in ("x", "y")] if layers else []
    fields = [axis["field"] for axis in axes if "field" in axis]
    # rows of missing systems have no coordinates
    count = sum(all(row.get(field) is not None for field in fields) for row in figure.rows)
    points = counted(count, "point") if count else "nothing to draw"
    return f"{figure.title} ({'; '.join(filter(None, [points, missing(figure), figure.about]))})"


def code_parts(words: str) -> list[tuple[str, bool]]:
    """Split a text with `code` in it into parts, and say which are code."""
    parts = words.split("`")
    if len(parts) % 2 == 0:  # an unpaired mark
        return [(words, False)]
    return [(part, bool(number % 2)) for number, part in enumerate(parts) if part]


def sentence(words: str) -> str:
    """Make a sentence of a clause: "No latency run in this study." """
    return f"{words[:1].upper()}{words[1:]}."


def key_of(title: str) -> str:
    """Make a key of a title: "bleu-over-beam-width"."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def anchor(path: str) -> str:
    """Return the address of a block inside its page, from its path: "human-tasting"."""
    return re.sub(r"[\W_]+", "-", path).strip("-").lower() or "section"


def one_line(text: str, limit: int = 400) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"


class Footnotes:
    """Number the notes of cells in the order in which they first appear."""

    def __init__(self) -> None:
        self.notes: dict[str, int] = {}

    def mark(self, note: str) -> str:
        """Return the mark of a note, such as " (2)"; nothing for no note."""
        if not note:
            return ""
        return f" ({self.notes.setdefault(note, len(self.notes) + 1)})"
