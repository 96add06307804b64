"""Words of a text, where its script parts them by spaces; its characters where it does not."""

from __future__ import annotations

from creamtea.words import UNSPACED, characters


def words(text: str) -> list[str]:
    """Words, punctuation at them included; each character of Chinese, Japanese, Thai, Lao, Khmer and Burmese
    on its own, with its marks."""
    if not UNSPACED.search(text):
        return text.split()
    pieces = (f" {piece} " if UNSPACED.match(piece) else piece for piece in characters(text))
    return "".join(pieces).split()


def edits(before: list[str], after: list[str]) -> int:
    """The least number of words to insert, delete and replace (Levenshtein 1966)."""
    row = list(range(len(after) + 1))
    for number, old in enumerate(before, start=1):
        diagonal, row[0] = row[0], number
        for at, new in enumerate(after, start=1):
            diagonal, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, diagonal + (old != new))
    return row[-1]
