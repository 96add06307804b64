"""SIGMORPHON's tab-separated files of words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from creamtea.errors import StepError
from creamtea_workers.corpora.files import Files, Pair
from creamtea_workers.corpora.segments import Prepared, Segment
from creamtea_workers.corpora.text import normalise


def rows(files: Files, name: str, columns: Sequence[str]) -> Iterator[list[str]]:
    """The fields of each line of a file, normalised. StepError names a line that has not these columns."""
    wanted, number = " TAB ".join(columns), 0
    for number, line in enumerate(files.lines(name), start=1):
        fields = [normalise(field) for field in line.split("\t")]
        place = f"{name}, line {number}"
        if len(fields) != len(columns):
            raise StepError(f"{place}: {len(fields)} columns where {len(columns)} belong; a line is {wanted}")
        for column, field in zip(columns, fields, strict=True):
            if not field:
                raise StepError(f"{place}: nothing where {column} belongs; a line is {wanted}")
            if "<" in field or ">" in field:
                raise StepError(f"{place}: < or > in {column}, which mark languages and tags: take them out")
        yield fields
    if not number:
        raise StepError(f"{name} is empty: it needs at least one line")


def of_groups(words: Iterable[tuple[str, Sequence[Pair]]]) -> Prepared:
    """A test set of the words of each language."""
    grouped = [(Segment(*pair, []), language) for language, pairs in words for pair in pairs]
    return Prepared([segment for segment, _ in grouped], groups=[language for _, language in grouped])
