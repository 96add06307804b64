"""Errors in an output, as raters mark them and as metrics find them.

Positions are characters of the output (Unicode code points, as Python counts them), the last one included,
as Appraise and Pearmut export them. An omission has no place in the output.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from creamtea.document.mistakes import mistakes_in_line
from creamtea.document.values import Strict

SPANS_FILE = "error_spans.jsonl"  # of a step `score` whose scorer finds errors: {"index", "spans"} by segment
MAX_SPANS = 1000  # errors of an output
Severity = Literal["undecided", "neutral", "minor", "major", "critical"]
Position = Annotated[int, Field(ge=0, le=10**6)]


class ErrorSpan(Strict):
    """An omission without `start` and `end`."""

    start: Position | None = None
    end: Position | None = None  # of the last character
    severity: Severity
    category: Annotated[list[str], Field(max_length=5)] = Field(default_factory=list)  # from wide to narrow

    @model_validator(mode="after")
    def _check(self) -> ErrorSpan:
        if (self.start is None) != (self.end is None):
            raise ValueError("has a start without an end, or the other way")
        if self.start is not None and self.end is not None and self.start > self.end:
            raise ValueError("ends before it begins")
        return self


class _Found(Strict):
    spans: Annotated[list[ErrorSpan], Field(max_length=MAX_SPANS)]


def read_error_spans(spans: Any, output: str) -> list[dict[str, Any]]:
    """The errors that a program has found in an output, in one way of writing. ValueError for what cannot be
    errors of it."""
    try:
        found = _Found.model_validate({"spans": spans})
    except ValidationError as error:
        raise ValueError(mistakes_in_line(error, _Found, {"spans": spans})) from None
    for span in found.spans:
        if span.end is not None and span.end >= len(output):
            raise ValueError(f"an error ends at character {span.end} of an output of {len(output)}")
    return [span.model_dump(mode="json", exclude_defaults=True) for span in found.spans]
