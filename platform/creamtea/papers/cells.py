"""Which cells of our studies belong to the cells of a paper's table or figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from creamtea.papers.model import EVERY, Column, Exhibit, Names, Paper, Place, Row, Size, Source

SIZES: Mapping[Size, str] = {"paper": "at the paper's size", "ours": "at our size"}
MAX_DEPTH = 5  # of names within names
NO_VALUES = ("", "-", "–")  # printed where a table has no value


@dataclass(frozen=True)
class Wanted:
    """A cell of ours that belongs to one of the paper's; without braces. Of several members: their mean."""

    collection: str
    members: tuple[str, ...]
    place: Place


def wanted_cells(paper: Paper, exhibit: Exhibit, size: Size, row: Row, column: Column) -> Iterator[Wanted]:
    """The cells of studies of this size; the first is the one to show."""
    for source in exhibit.sources:
        if paper.collections[source.collection].size != size or not _covers(source, row, column):
            continue
        names = column.names | row.names
        try:
            member = _filled(source.member, names)
            place = _filled_place(source.cell, names)
        except KeyError:
            continue
        known = tuple(paper.collections[source.collection].members)
        if member == EVERY or member in known:
            yield Wanted(source.collection, known if member == EVERY else (member,), place)


def members_of(paper: Paper, exhibit: Exhibit) -> list[tuple[str, str]]:
    """The collections with those of their studies that have cells or figures of the exhibit."""
    found = {
        (wanted.collection, member): None
        for size in SIZES
        for row in exhibit.rows
        for column in exhibit.columns
        for wanted in wanted_cells(paper, exhibit, size, row, column)
        for member in wanted.members
    }
    found |= {
        (drawing.collection, member): None for drawing in exhibit.drawings for member in drawing.members
    }
    return list(found)


def share_run(paper: Paper, exhibit: Exhibit, size: Size) -> tuple[int, int]:
    """Count the printed values that a study of this size, which has run, measures; and all of them."""
    cells = [
        any(
            paper.collections[cell.collection].ran for cell in wanted_cells(paper, exhibit, size, row, column)
        )
        for row in exhibit.rows
        for column, printed in zip(exhibit.columns, row.values, strict=True)
        if printed not in NO_VALUES
    ]
    return sum(cells), len(cells)


def _covers(source: Source, row: Row, column: Column) -> bool:
    return row.title in (source.rows or [row.title]) and column.title in (source.columns or [column.title])


def _filled(template: str, names: Names) -> str:
    """With the names in their places, which may hold names in turn. KeyError for one that is missing."""
    for _ in range(MAX_DEPTH):
        if "{" not in template:
            return template
        template = template.format_map(names)
    raise ValueError(f"{template!r}: a name stands for itself")


def _filled_place(place: Place, names: Names) -> Place:
    filled = {
        key: _filled(value, names) if isinstance(value, str) else _filled_list(value, names)
        for key, value in place
        if isinstance(value, str | list)
    }
    return place.model_copy(update=filled)


def _filled_list(values: Sequence[str], names: Names) -> list[str]:
    return [_filled(value, names) for value in values]


def why_no_value(paper: Paper, exhibit: Exhibit, size: Size, row: Row, column: Column) -> str:
    """Why no study of this size has the cell: one of another size has it, or none at all."""
    for other in SIZES:
        wanted = () if other == size else wanted_cells(paper, exhibit, other, row, column)
        for cell in wanted:
            return f"only a study {SIZES[other]} has this cell: {paper.collections[cell.collection].title}"
    return "none of our studies measures this"
