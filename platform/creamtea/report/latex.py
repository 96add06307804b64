"""A table as LaTeX (booktabs), for a paper: \\input it inside a table environment."""

from __future__ import annotations

import re
from itertools import zip_longest

from creamtea.report import text
from creamtea.report.model import Table

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
    "[": "{[}",  # after a line's end LaTeX would read it as a length
    "]": "{]}",
    "*": "{*}",  # likewise
    "…": r"\dots{}",
    # not in the fonts of pdfLaTeX
    "−": "$-$",
    "▁": r"\_",  # as SentencePiece writes blanks
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
    """Values with intervals and differences below them in small type; notes of cells below the table."""
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
            cell = text.shown(row.cells[column.key], column)
            first, *rest = cell.change or [""]
            change = [first + notes.mark(cell.change_note), *rest] if cell.change else []
            columns.append([cell.value + notes.mark(cell.note), *cell.details, *change])
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
