"""Words in any script: runs of letters and digits, with the marks that belong to them.

Python's `\\w` has no marks (the vowel signs of Hindi, the vowels of Arabic, combining accents): by it alone
"हिन्दी" would be six pieces. Patterns are therefore matched against a text in which one sign stands for every
mark.
"""

from __future__ import annotations

import unicodedata

MARK = "\u0300"  # stands for any mark
WORD = rf"\w[\w{MARK}]*"  # of the result of `with_one_mark`
_JOINERS = "\u200c\u200d"  # inside words of Persian and of India's scripts


def with_one_mark(text: str) -> str:
    """The text with MARK in place of every mark and joiner; each character keeps its position."""
    return text if text.isascii() else text.translate(_ONE_MARK)


class _OneMark(dict[int, int]):
    """By code point, looked up once for each character."""

    def __missing__(self, code: int) -> int:
        is_mark = chr(code) in _JOINERS or unicodedata.category(chr(code)).startswith("M")
        self[code] = ord(MARK) if is_mark else code
        return self[code]


_ONE_MARK = _OneMark()
