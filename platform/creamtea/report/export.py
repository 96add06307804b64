"""Files of a report for papers and spreadsheets: tables as CSV and LaTeX, figures as SVG, PNG and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any

from creamtea.contract.columns import Column
from creamtea.new_folder import new_folder
from creamtea.report.latex import to_latex
from creamtea.report.model import Cell, Document, Figure, Table
from creamtea.spreadsheets import text_to_cell


class Format(StrEnum):
    CSV = "csv"
    LATEX = "latex"
    SVG = "svg"
    PNG = "png"


MAX_STEM = 120  # bytes of a file's name before its ending; file systems have room for 255 of a name


@dataclass(frozen=True)
class ExportFile:
    name: str
    mime: str
    make: Callable[[], bytes]


def files_of(block: Table | Figure, stem: str) -> dict[str, ExportFile]:
    """What a block can be exported as, by format, with names of this stem; a file is made when asked for."""
    if isinstance(block, Table):
        return {
            "csv": ExportFile(f"{stem}.csv", "text/csv", lambda: table_csv(block).encode()),
            "latex": ExportFile(f"{stem}.tex", "text/x-tex", lambda: to_latex(block).encode()),
        }
    if not block.rows:
        return {}

    def draw(kind: str) -> bytes:
        from creamtea.report import drawing  # it takes a second to load

        return drawing.png(block) if kind == "png" else drawing.svg(block).encode()

    return {
        "csv": ExportFile(f"{stem}.csv", "text/csv", lambda: figure_csv(block).encode()),
        "svg": ExportFile(f"{stem}.svg", "image/svg+xml", lambda: draw("svg")),
        "png": ExportFile(f"{stem}.png", "image/png", lambda: draw("png")),
    }


def export(report: Document, folder: Path, formats: Sequence[str] = tuple(Format)) -> list[Path]:
    """Write every table and figure in these formats into a folder that is new or empty. Returns the files.

    InputError for another folder, before anything is drawn, and as `new_folder`.
    """
    written: list[Path] = []
    with new_folder(folder, "--export"):
        for name, file in _files(report, formats):
            written.append(folder / name)
            written[-1].write_bytes(file.make())
    return written


def _files(report: Document, formats: Sequence[str]) -> Iterator[tuple[str, ExportFile]]:
    """Each file under a name that stays unique on file systems that ignore case."""
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
    """A file name without its ending, from a path of names of any characters; repeated names once."""
    words = "-".join(dict.fromkeys(path.split("/")))
    stem = re.sub(r"[^\w.+=,-]+", "-", words).strip(".-")
    return stem.encode()[:MAX_STEM].decode(errors="ignore") or "report"


# ---------------------------------------------------------------- CSV


def table_csv(table: Table) -> str:
    """A row for each row, at full precision: shares from 0 to 1, whatever the table's unit. A column of the
    table has columns of its own for all that its cells hold: KEY, KEY_low, KEY_high, KEY_words …; KEY__words
    where another column of the table is called KEY_words."""
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
    kept = {"name", *keys}
    kept |= {
        name
        for row in values
        for name, value in row.items()
        if value is not False and value not in (None, "")
    }
    return _csv([name for name in fields if name in kept], values)


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
        values |= {f"_delta_{name}": getattr(delta, name) for name in ("p_seeds_corrected", "significant")}
    return values | {"_state": cell.state if cell.state != "ok" else "", "_note": cell.note}


def figure_csv(figure: Figure) -> str:
    """The figure's data, in the units of its axes."""
    fields = list(dict.fromkeys(field for row in figure.rows for field in row if field != "lift"))
    return _csv(fields, figure.rows)


def _csv(fields: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(map(_plain, fields))
    writer.writerows([_plain(row.get(field)) for field in fields] for row in rows)
    return out.getvalue()


def _plain(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula stays text."""
    return text_to_cell(value) if isinstance(value, str) else value
