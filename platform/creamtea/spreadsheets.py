"""Text in cells of a CSV that a spreadsheet may open.

A spreadsheet takes a cell that begins with = + - @, or with one of these in full width, for a formula and may
run it; it may pass over a tab or a line end before them. Such a text is written with an apostrophe before it,
and so is one that begins with apostrophes and then one of these; reading takes one apostrophe away from
exactly those. Every text comes back as it was.

Files in the layouts of other tools (Appraise, MQM, mt-metrics-eval, Pearmut) have no apostrophes: these tools
would take them for a part of the text.
"""

from __future__ import annotations

import re

_BEGINNINGS = r"[=+\-@\t\r\n＝＋－＠]"
_FORMULA = re.compile(f"'*{_BEGINNINGS}")
_APOSTROPHE = re.compile(f"'+{_BEGINNINGS}")


def text_to_cell(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) else text


def text_from_cell(cell: str) -> str:
    return cell[1:] if _APOSTROPHE.match(cell) else cell
