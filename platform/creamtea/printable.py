"""Text that is not ours, on its way to a terminal.

A terminal obeys control characters: a name with some of them could move the cursor, and replace what was
printed above it. Outputs of models, names in bundles and messages of steps may hold any.
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
