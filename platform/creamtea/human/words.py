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
