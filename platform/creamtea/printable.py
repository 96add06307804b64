"""Text from outside on its way to a terminal or a spreadsheet: outputs, names in bundles, messages of steps.

A terminal obeys control characters: a name with some of them could move the cursor, and replace what was
printed above it.

A spreadsheet takes a cell that begins with = + - @, or with one of these in full width, for a formula and may
run it; it may pass over a tab or a line end before them. Such a text is written with an apostrophe before it,
and so is one that begins with apostrophes and then one of these; reading takes one apostrophe away from
exactly those. Every text comes back as it was. Files in the layouts of other tools (Appraise, MQM,
mt-metrics-eval, Pearmut) have no apostrophes: these tools would take them for a part of the text.
"""

from __future__ import annotations

import re

# C0 and C1 controls but for tabs, the embeddings, overrides and isolates that turn the direction of text, and
# lone surrogates, which no output takes
_OBEYED = re.compile("[\0-\x08\n-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT = {"\n": r"\n", "\r": r"\r"}


def printable(text: str) -> str:
    """The text on one line, with what a terminal would obey in the escapes of JSON: `\\n`, `\\u001b`. JSON
    therefore keeps its values."""
    return _OBEYED.sub(lambda found: _SHORT.get(found[0], f"\\u{ord(found[0]):04x}"), text)


def printable_lines(text: str) -> str:
    """The same, with every line feed as it is."""
    return "\n".join(map(printable, text.split("\n")))


def is_utf8(text: str) -> bool:
    """False with half of a surrogate pair in it, by which Python stands for another byte in a file's name."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_BEGINNINGS = r"[=+\-@\t\r\n＝＋－＠]"
_FORMULA = re.compile(f"'*{_BEGINNINGS}")
_APOSTROPHE = re.compile(f"'+{_BEGINNINGS}")


def text_to_cell(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) else text


def text_from_cell(cell: str) -> str:
    return cell[1:] if _APOSTROPHE.match(cell) else cell
