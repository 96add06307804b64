"""Blocks of a report, found by the tests."""

from typing import Any

from rich.console import Console

from creamtea.report.model import Cell, Document, Entry, Figure, Row, Table, Texts
from creamtea.report.terminal import render


def systems(report: Document, test_set: str = "test") -> Table:
    return report.table(f"systems/{test_set}/systems")


def rows_of(report: Document, test_set: str = "test") -> dict[str, Row]:
    return {row.name: row for row in systems(report, test_set).rows}


def tables(report: Document) -> list[Table]:
    return [block for _, block in report.walk() if isinstance(block, Table)]


def figures(report: Document) -> dict[str, Figure]:
    """By path."""
    return {path: block for path, block in report.walk() if isinstance(block, Figure)}


def figure(report: Document, path: str) -> Figure:
    """The one whose path ends with this."""
    (found,) = [figure for place, figure in figures(report).items() if place.endswith(path)]
    return found


def entries(report: Document, key: str) -> list[Entry]:
    """Of the list of texts with this key."""
    return [
        entry
        for _, block in report.walk()
        if isinstance(block, Texts) and block.key == key
        for entry in block.entries
    ]


def facts(report: Document, path: str) -> dict[str, Any]:
    return {
        fact.label: fact.value
        for place, block in report.walk()
        if place.endswith(path)
        for fact in getattr(block, "facts", ())
    }


def notes(report: Document, path: str) -> tuple[str, ...]:
    (found,) = [block for place, block in report.walk() if place.endswith(path)]
    paragraphs: tuple[str, ...] = getattr(found, "paragraphs")  # noqa: B009 - whichever block it is
    return paragraphs


def cells(report: Document) -> list[Cell]:
    return [cell for table in tables(report) for row in table.rows for cell in row.cells.values()]


def in_terminal(report: Document, width: int) -> str:
    console = Console(width=width, force_terminal=False, color_system=None)
    with console.capture() as capture:
        render(report, console)
    return capture.get()
