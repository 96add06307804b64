"""The lines of a file of annotated idioms."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from creamtea.document.values import Strict

Span = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)]


class IdiomNote(Strict):
    """An idiom of a test sentence: its characters [from, to) in source and reference, or its translation as a
    text."""

    name: str
    source: Span
    target: Span | str


# what each line of the file is
NOTES = 'a JSON list of {"name": …, "source": [from, to], "target": [from, to] or a text} in each line'
_NOTES = TypeAdapter(list[IdiomNote])


def read_notes(line: str) -> list[IdiomNote]:
    """The idioms of a segment. ValueError that says what is wrong."""
    try:
        return _NOTES.validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"[{part!r}]" for part in first["loc"])
        raise ValueError(f"{where} {first['msg']}".lstrip()) from None
