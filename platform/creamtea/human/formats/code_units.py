"""Places in texts as tools in a browser count them: UTF-16 code units, of which 🦊 has two.

Appraise takes a text apart by JavaScript's `split("")` (EvalView/static/EvalView/js/
direct-assessment-document-mqm-esa.js), Pearmut by a regular expression without the flag `u`
(web/src/utils.ts).
"""

from __future__ import annotations

# what JavaScript's trim() removes: white space and line terminators (ECMA-262, 22.1.3.32)
_TRIMMED = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029"
    "\u202f\u205f\u3000\ufeff"
)


class CodeUnits:
    """Characters of a text and their code units, counted from 0. Characters of `without` have none, nor has
    white space at the ends of a text that is `trimmed`."""

    def __init__(self, text: str, without: str = "", trimmed: bool = False) -> None:
        begin = len(text) - len(text.lstrip(_TRIMMED)) if trimmed else 0
        end = len(text.rstrip(_TRIMMED)) if trimmed else len(text)
        self._first: list[int] = []  # of each character: its first unit
        self._characters: list[int] = []  # of each unit: its character
        for at, character in enumerate(text):
            self._first.append(len(self._characters))
            if begin <= at < end and character not in without:
                self._characters += [at] * (2 if ord(character) > 0xFFFF else 1)
        self._first.append(len(self._characters))

    def __len__(self) -> int:
        return len(self._characters)

    def character(self, unit: int) -> int:
        """Of this unit. ValueError where the text has no such unit."""
        if not 0 <= unit < len(self):
            raise ValueError(f"place {unit} of a text that has 0 to {len(self) - 1}")
        return self._characters[unit]

    def units(self, start: int, end: int) -> tuple[int, int] | None:
        """First and last unit of these characters; None where they have none, or the text has not them."""
        if end + 1 >= len(self._first):
            return None
        first, last = self._first[start], self._first[end + 1] - 1
        return (first, last) if first <= last else None
