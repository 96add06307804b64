"""Numbers of rows, as people and addresses write them."""

from __future__ import annotations

MAX_ID = 2**31 - 1  # the largest that a column of the database holds


def row_id(text: str) -> int | None:
    """The number of a row that is written there; None for what is none."""
    if not (text.isascii() and text.isdigit() and len(text) < 11):
        return None
    return number if (number := int(text)) <= MAX_ID else None
