"""Foreign text on its way to a terminal or a spreadsheet: outputs, names in bundles, steps' messages.

A terminal obeys control characters: a name with control characters could move the cursor and overwrite
earlier lines.

A spreadsheet treats a cell that begins with = + - @ (or a full-width form) as a formula and may run it, even
after a tab or a line end. Writing adds an apostrophe before such a text, and before a text of apostrophes
followed by such a character. Reading removes one apostrophe from exactly these texts, so that every text
comes back unchanged. Files in the formats of other tools (Appraise, MQM, mt-metrics-eval, Pearmut) get no
apostrophes, which those tools would take as part of the text.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

# C0 and C1 controls except tabs; embeddings, overrides and isolates, which change the direction of text; and
# lone surrogates, which cannot be encoded
_OBEYED = re.compile("[\0-\x08\n-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT = {"\n": r"\n", "\r": r"\r"}


def printable(text: str) -> str:
    r"""Return the text on one line, with control characters escaped as in JSON: `\\n`, `\\u001b`.

    So JSON text keeps its values.
    """
    return _OBEYED.sub(lambda found: _SHORT.get(found[0], f"\\u{ord(found[0]):04x}"), text)


def printable_lines(text: str) -> str:
    """Make each line printable, and keep the line feeds."""
    return "\n".join(map(printable, text.split("\n")))


def is_utf8(text: str) -> bool:
    """Return False if the text has a lone surrogate, with which Python replaces an undecodable byte."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_BEGINNINGS = r"[=+\-@\t\r\n＝＋－＠]"
_FORMULA = re.compile(f"'*{_BEGINNINGS}")
_APOSTROPHE = re.compile(f"'+{_BEGINNINGS}")


def csv_of(rows: Iterable[Iterable[Any]], line_end: str = "\r\n") -> str:
    """Return rows of cells as CSV (RFC 4180, unless lines end otherwise)."""
    out = io.StringIO()
    csv.writer(out, lineterminator=line_end).writerows(rows)
    return out.getvalue()


def text_to_cell(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) else text


def text_from_cell(cell: str) -> str:
    return cell[1:] if _APOSTROPHE.match(cell) else cell
