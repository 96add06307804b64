"""A report for other programs: JSON values, tables as CSV and LaTeX, figures as SVG, PNG and CSV."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from creamtea.contract.step import Column
from creamtea.files import new_folder
from creamtea.printable import csv_of, text_to_cell
from creamtea.report import text, vega
from creamtea.report.model import Block, Cell, Document, Figure, Table
from creamtea.report.vega import vega_lite


def to_values(value: Any) -> Any:
    """Convert a document or a part of it to JSON values; a block names its type, times are in ISO 8601."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = {field.name: to_values(getattr(value, field.name)) for field in dataclasses.fields(value)}
        if isinstance(value, Figure):
            named["spec"] = to_values(vega_lite(value)) if value.rows else None
            del named["rows"]  # the specification contains them
        return {"type": type(value).__name__.lower(), **named} if isinstance(value, Block) else named
    if isinstance(value, dict):
        return {str(key): to_values(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_values(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return value


class Format(StrEnum):
    CSV = "csv"
    LATEX = "latex"
    SVG = "svg"
    PNG = "png"


MAX_STEM = 120  # bytes of a file's name before its ending; file systems allow 255 bytes per name


@dataclass(frozen=True)
class ExportFile:
    name: str
    mime: str
    make: Callable[[], bytes]


def files_of(block: Table | Figure, stem: str) -> dict[str, ExportFile]:
    """Return the files that a block can be exported as, by format; a file is made on demand."""
    if isinstance(block, Table):
        return {
            "csv": ExportFile(f"{stem}.csv", "text/csv", lambda: table_csv(block).encode()),
            "latex": ExportFile(f"{stem}.tex", "text/x-tex", lambda: to_latex(block).encode()),
        }
    if not block.rows:
        return {}
    return {
        "csv": ExportFile(f"{stem}.csv", "text/csv", lambda: figure_csv(block).encode()),
        "svg": ExportFile(f"{stem}.svg", "image/svg+xml", lambda: vega.svg(block).encode()),
        "png": ExportFile(f"{stem}.png", "image/png", lambda: vega.png(block)),
    }


def export(report: Document, folder: Path, formats: Sequence[str] = tuple(Format)) -> list[Path]:
    """Write every table and figure into a new folder. Raises the InputErrors of `new_folder`."""
    written: list[Path] = []
    with new_folder(folder, "--export"):
        for name, file in _files(report, formats):
            written.append(folder / name)
            written[-1].write_bytes(file.make())
    return written


def _files(report: Document, formats: Sequence[str]) -> Iterator[tuple[str, ExportFile]]:
    """Yield each file with a name that stays unique on file systems that ignore case."""
    used: set[str] = set()
    for path, block in report.walk():
        if not isinstance(block, Table | Figure):
            continue
        name = unused = file_stem(path)
        number = 2
        while unused.lower() in used:
            unused, number = f"{name}-{number}", number + 1
        used.add(unused.lower())
        for kind, file in files_of(block, unused).items():
            if kind in formats:
                yield file.name, file


def file_stem(path: str) -> str:
    """Return a file name without its ending, from a path of any characters; repeated parts appear once."""
    words = "-".join(dict.fromkeys(path.split("/")))
    stem = re.sub(r"[^\w.+=,-]+", "-", words).strip(".-")
    return stem.encode()[:MAX_STEM].decode(errors="ignore") or "report"


# ---------------------------------------------------------------- CSV


def table_csv(table: Table) -> str:
    """Write a table as CSV at full precision: shares from 0 to 1, whatever the table's unit.

    A column KEY of the table becomes the columns KEY, KEY_low, KEY_high, KEY_words …, as far as its cells
    have such values. If the table also has a column named KEY_words, the cells' words become KEY__words.
    """
    keys = {column.key for column in table.columns}

    def field(column: Column, suffix: str) -> str:
        name = f"{column.key}{suffix}"
        return f"{column.key}_{suffix}" if suffix and name in keys else name

    values: list[dict[str, Any]] = [
        {"name": row.name, "setting": row.setting, "description": row.description} for row in table.rows
    ]
    fields = ["name", "setting", "description"]
    for column in table.columns:
        cells = [_cell_values(row.cells[column.key]) for row in table.rows]
        fields += [field(column, suffix) for suffix in dict.fromkeys(["", *chain.from_iterable(cells)])]
        for row_values, cell in zip(values, cells, strict=True):
            row_values |= {field(column, suffix): value for suffix, value in cell.items()}
    # a field without a value in any row is omitted, except the columns of the table themselves
    used = {"name", *keys}
    used |= {
        name
        for row in values
        for name, value in row.items()
        if value is not False and value not in (None, "")
    }
    return _csv([name for name in fields if name in used], values)


def _cell_values(cell: Cell) -> dict[str, Any]:
    values: dict[str, Any] = {
        "": cell.value,
        "_low": cell.low,
        "_high": cell.high,
        "_deviation": cell.deviation,
        "_seeds": cell.seeds or None,
        "_words": cell.words,
    }
    for name, percent in cell.percents.items():
        values |= {
            f"_percent_of_{name}": percent.value,
            f"_percent_of_{name}_low": percent.low,
            f"_percent_of_{name}_high": percent.high,
        }
    if cell.delta is not None:
        delta = cell.delta
        values |= {
            f"_delta_{name}": getattr(delta, name)
            for name in ("value", "low", "high", "seeds_low", "seeds_high")
        }
        values |= {f"_delta_p_{test}_corrected": p.corrected for test, p in delta.p_values.items()}
        last = ("p_seeds_corrected", "significant", "note")
        values |= {f"_delta_{name}": getattr(delta, name) for name in last}
    return values | {"_state": cell.state if cell.state != "ok" else "", "_note": cell.note}


def figure_csv(figure: Figure) -> str:
    """Write the figure's data as CSV, in the units of its axes."""
    fields = list(dict.fromkeys(field for row in figure.rows for field in row if field != "lift"))
    return _csv(fields, figure.rows)


def _csv(fields: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    cells = ([row.get(field) for field in fields] for row in rows)
    return csv_of(map(_plain, row) for row in (fields, *cells))


def _plain(value: Any) -> Any:
    """Keep text as text if a spreadsheet would take it for a formula."""
    return text_to_cell(value) if isinstance(value, str) else value


_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",  # \textquotedbl is an error without T1 fonts
    "`": r"\textasciigrave{}",
    "[": "{[}",  # LaTeX would read it as a length after the end of a line
    "]": "{]}",
    "*": "{*}",  # likewise
    "…": r"\dots{}",
    # not in the fonts of pdfLaTeX
    "−": "$-$",
    "▁": r"\_",  # SentencePiece's blank
    "±": r"$\pm$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "→": r"$\rightarrow$",
    "ℓ": r"$\ell$",
    "Δ": r"$\Delta$",
    "α": r"$\alpha$",
    "γ": r"$\gamma$",
    "δ": r"$\delta$",
    "ε": r"$\varepsilon$",
    "λ": r"$\lambda$",
    "ρ": r"$\rho$",
    "σ": r"$\sigma$",
    "τ": r"$\tau$",
}
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]+")


def to_latex(table: Table) -> str:
    """Write a table with intervals and differences in small type below the values, and notes at its end."""
    notes = text.Footnotes()
    lines = [
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        _line([table.heading, *(text.heading(column) for column in table.columns)]),
        r"\midrule",
    ]
    for number, row in enumerate(table.rows):
        lines += [r"\addlinespace"] if number else []
        columns = [[text.row_name(row), row.description]]
        for column in table.columns:
            columns.append(text.shown(row.cells[column.key], column).lines(notes))
        for height, parts in enumerate(zip_longest(*columns, fillvalue="")):
            if any(parts):
                lines.append(_line(list(parts), small=height > 0))
    lines += [r"\bottomrule", r"\end{tabular}"]
    about = [_escape(table.about)] if table.about else []
    listed = [*about, *(f"({count}) {_escape(note)}" for note, count in notes.notes.items())]
    lines += [rf"\par{{\footnotesize {words}}}" for words in listed]
    return "\n".join(lines) + "\n"


def _line(cells: list[str], small: bool = False) -> str:
    size = r"\scriptsize " if small else ""
    return " & ".join(f"{size}{_escape(cell)}" if cell else "" for cell in cells) + r" \\"


def _escape(words: str) -> str:
    plain = _CONTROL.sub(" ", words)
    return "".join(_ESCAPES.get(character, character) for character in plain)
