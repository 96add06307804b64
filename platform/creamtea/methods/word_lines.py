"""The lines of SIGMORPHON's tab-separated files of words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from creamtea.document.mistakes import shown
from creamtea.wording import counted
from creamtea.words import normalise


class WordLine(NamedTuple):
    """`target`: its phones, or a form of it, which the tags name. All texts are normalised."""

    word: str
    target: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class WordLines:
    """What each line of a file is: a word, what it becomes, and perhaps tags separated by semicolons."""

    columns: tuple[str, ...]

    @property
    def wanted(self) -> str:
        return " TAB ".join(self.columns)

    @property
    def allowed(self) -> str:
        return f"{self.wanted} in each line" + ", tags with ; between them" * (len(self.columns) > 2)

    def read(self, line: str) -> WordLine:
        """ValueError that says what is wrong."""
        fields = [normalise(field) for field in line.split("\t")]
        if not any(fields):
            raise ValueError("an empty line")
        if (count := len(fields)) != len(self.columns):
            raise ValueError(f"{counted(count, 'column')} where {len(self.columns)} belong")
        for column, field in zip(self.columns, fields, strict=True):
            if not field:
                raise ValueError(f"nothing where {column} belong{'s' * (not column.endswith('s'))}")
            if "<" in field or ">" in field:
                raise ValueError(f"< or > in {column}, which mark languages and tags")
        word, target, *tags = fields
        return WordLine(word, target, _tags(tags[0]) if tags else ())


def _tags(text: str) -> tuple[str, ...]:
    """Published files have blanks beside semicolons, "ADJ;ABL; PL", which mean nothing."""
    tags = tuple(tag.strip() for tag in text.split(";"))
    if not all(tags):
        raise ValueError(f"an empty tag in {shown(text)}")
    for tag in tags:
        if " " in tag:
            raise ValueError(f"a blank in the tag {shown(tag)}")
    return tags


PRONUNCIATIONS = WordLines(("word", "phones"))
INFLECTIONS = WordLines(("lemma", "form", "tags"))
