"""Errors in an output, marked by raters or found by metrics.

Positions are characters of the output (Unicode code points, as Python counts them); `end` is the last
character, as in exports of Appraise and Pearmut. An omission and a special mark have no place in the output.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from creamtea.document.mistakes import mistakes_in_line
from creamtea.document.values import Strict

SPANS_FILE = "error_spans.jsonl"  # of step `score`, if its scorer finds errors: lines {"index", "spans"}
MAX_SPANS = 1000  # errors per output
Severity = Literal["undecided", "neutral", "minor", "major", "critical"]
SEVERITIES: tuple[str, ...] = get_args(Severity)
OF_ERRORS = ("minor", "major", "critical")  # severities of errors: neither neutral nor undecided
Position = Annotated[int, Field(ge=0, le=10**6)]


@lru_cache(maxsize=4096)
def name_key(name: str) -> str:
    """Return the letters and digits of a name, without case: names with the same key are the same name.

    Tools and files spell a severity or category as "Non-translation!", "Non_translation" and so on.
    """
    written = unicodedata.normalize("NFKC", name).casefold()
    return "".join(character for character in written if unicodedata.category(character)[0] in "LMN")


def as_severity(written: Any) -> Any:
    """Return the severity with this spelling; return `written` unchanged if there is none."""
    key = name_key(written) if isinstance(written, str) else ""
    return key if key in SEVERITIES else written


def is_no_error(written: Any) -> bool:
    """Return True for a severity that means "no error"."""
    return isinstance(written, str) and name_key(written) == "noerror"


class ErrorSpan(Strict):
    """A marked error; an omission and a special mark have neither `start` nor `end`."""

    start: Position | None = None
    end: Position | None = None  # the last character
    severity: Annotated[Severity, BeforeValidator(as_severity)]
    category: Annotated[list[str], Field(max_length=5)] = Field(default_factory=list)  # from wide to narrow
    # the name of a mark other than an omission, such as "instructions fault"
    special_mark: Annotated[str, Field(min_length=1, max_length=80)] | None = None

    @model_validator(mode="after")
    def _check(self) -> ErrorSpan:
        if (self.start is None) != (self.end is None):
            raise ValueError("has only one of start and end")
        if self.start is not None and self.end is not None and self.start > self.end:
            raise ValueError("ends before it begins")
        if self.special_mark is not None and self.start is not None:
            raise ValueError(f"is the special mark {self.special_mark!r}, which has no place")
        return self


class _ErrorSpans(Strict):
    spans: Annotated[list[ErrorSpan], Field(max_length=MAX_SPANS)]


def read_error_spans(spans: Any, output: str) -> list[dict[str, Any]]:
    """Read the errors that a program found in an output; return them in a uniform format.

    Raises ValueError for anything that cannot be an error of this output.
    """
    try:
        checked = _ErrorSpans.model_validate({"spans": spans})
    except ValidationError as error:
        raise ValueError(mistakes_in_line(error, _ErrorSpans, {"spans": spans})) from None
    for span in checked.spans:
        if span.end is not None and span.end >= len(output):
            raise ValueError(f"an error ends at character {span.end} of an output of {len(output)}")
    return [span.model_dump(mode="json", exclude_defaults=True) for span in checked.spans]


# the characters that JavaScript's trim() removes: white space and line terminators (ECMA-262, 22.1.3.32)
_TRIMMED = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029"
    "\u202f\u205f\u3000\ufeff"
)


class CodeUnits:
    """Characters of a text and their UTF-16 code units, counted from 0: 🦊 has two.

    Tools in a browser count positions in code units: Appraise splits a text by JavaScript's `split("")`
    (EvalView/static/EvalView/js/direct-assessment-document-mqm-esa.js), Pearmut by a regular expression
    without the flag `u` (web/src/utils.ts). If `trimmed`, white space at the ends of the text has no units.
    """

    def __init__(self, text: str, trimmed: bool = False) -> None:
        begin = len(text) - len(text.lstrip(_TRIMMED)) if trimmed else 0
        end = len(text.rstrip(_TRIMMED)) if trimmed else len(text)
        self._first: list[int] = []  # by character: its first unit
        self._characters: list[int] = []  # by unit: its character
        for position, character in enumerate(text):
            self._first.append(len(self._characters))
            if begin <= position < end:
                self._characters += [position] * (2 if ord(character) > 0xFFFF else 1)
        self._first.append(len(self._characters))

    def __len__(self) -> int:
        return len(self._characters)

    def character(self, unit: int) -> int:
        """Return the character of a unit. Raise ValueError if the text has no such unit."""
        if not 0 <= unit < len(self):
            raise ValueError(f"place {unit} of a text that has 0 to {len(self) - 1}")
        return self._characters[unit]

    def units(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the first and last unit of these characters; None if there are none."""
        if end + 1 >= len(self._first):
            return None
        first, last = self._first[start], self._first[end + 1] - 1
        return (first, last) if first <= last else None
