"""Build the document of a paper's table or figure: published values, ours with intervals, verdicts.

The rows are the paper's, each with its published values, ours below them, and a verdict for each claim; the
columns are the paper's. A section for each size of our studies: the paper's own, and ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from creamtea.contract.columns import Column
from creamtea.papers.catalogue import exhibits, find_exhibit, find_paper
from creamtea.papers.cells import NO_VALUES, SIZES, members_of, why_no_value
from creamtea.papers.model import Claim, Exhibit, Kind, Size, number
from creamtea.papers.model import Column as PaperColumn
from creamtea.papers.model import Row as PaperRow
from creamtea.papers.status import status_words
from creamtea.report import text
from creamtea.report.model import Cell, Document, Fact, Facts, Notes, Row, Section, Table
from creamtea.report.papers.figures import drawn
from creamtea.report.papers.ours import Reports, StudyReport, our_values
from creamtea.report.papers.ran import what_ran
from creamtea.report.papers.verdict import (
    RULE,
    Judgement,
    Ours,
    Outcome,
    comparable,
    direction_of,
    judge,
)
from creamtea.store.database import Database

NO_VALUE = "–"  # neither the paper nor we have one
DOCUMENTED = "in creamtea's documentation"  # what its authors have run, whatever the database has
NOT_IN_COPY = "no copy of the paper that we have prints this value"


@dataclass(frozen=True)
class Values:
    """Ours of a table, by the titles of a row and a column. Of several studies the first is shown."""

    cells: Mapping[tuple[str, str], Sequence[Ours]]

    def note(self, study: str) -> str:
        """Which study it is, where the table's first value is of another."""
        first = next((ours[0].study for ours in self.cells.values() if ours and ours[0].study), study)
        return "" if study in ("", first) else f"of {study}"


def build_exhibit(database: Database, paper: str, kind: Kind, asked: int) -> Document:
    """A table or figure of a paper beside our studies in the database. InputError for an unknown one."""
    found, exhibit = find_paper(paper), find_exhibit(paper, kind, asked)
    return exhibit_document(Reports(database, found), exhibit)


def exhibit_document(reports: Reports, exhibit: Exhibit) -> Document:
    """As `build_exhibit`, with reports that several exhibits share."""
    found, members = reports.paper, members_of(reports.paper, exhibit)
    sections = [_size_section(reports, exhibit, size) for size in _sizes(reports, exhibit)]
    reading = [*exhibit.differs, *([exhibit.missing] if exhibit.missing else [])]
    reading += [RULE] if exhibit.claims else []
    return Document(
        kind="paper",
        name=f"{found.short}, {exhibit.label}",
        number=exhibit.number,
        state=f"studies here: {sum(reports.has(*member) for member in members)} of {len(members)}",
        about=exhibit.title,
        facts=(
            Fact("paper", f"{found.authors} {found.year}"),
            Fact("page", exhibit.page),
            Fact("section", exhibit.section),
            Fact(DOCUMENTED, status_words(found, exhibit)),
        ),
        test_sets=(),
        sections=(
            *sections,
            Section("reading", "", (Notes("notes", tuple(reading)),)),
            *_studies_section(reports, exhibit),
        ),
    )


@dataclass(frozen=True)
class Listed:
    exhibit: Exhibit
    status: str
    studies: int  # that have its cells
    here: int  # of them in the database


def list_exhibits(database: Database, paper: str) -> list[Listed]:
    """The tables and figures of a paper. No report is built for it."""
    reports = Reports(database, find_paper(paper))
    listed = []
    for exhibit in exhibits(paper):
        members = members_of(reports.paper, exhibit)
        here = sum(reports.has(*member) for member in members)
        listed.append(Listed(exhibit, status_words(reports.paper, exhibit), len(members), here))
    return listed


def build_list(database: Database, paper: str) -> Document:
    """The tables and figures of a paper, each with its status and how many of its studies are here."""
    found = find_paper(paper)
    columns = (
        Column("page", "page", 0),
        Column("here", "studies here", 0),
        Column("status", DOCUMENTED, 0),
    )
    rows = tuple(
        Row(
            listed.exhibit.label,
            {
                "page": Cell("ok", value=float(listed.exhibit.page)),
                "here": Cell("ok", words=f"{listed.here} of {listed.studies}"),
                "status": Cell("ok", words=listed.status),
            },
            description=listed.exhibit.title,
        )
        for listed in list_exhibits(database, paper)
    )
    table = Table("exhibits", "", "table or figure", columns, rows)
    return Document(
        kind="paper",
        name=found.short,
        number=found.year,
        state=f"{len(rows)} tables and figures",
        about=found.title,
        facts=(Fact("paper", f"{found.authors} {found.year}"),),
        test_sets=(),
        sections=(Section("list", "", (table,)),),
    )


def _sizes(reports: Reports, exhibit: Exhibit) -> list[Size]:
    """Those with a study in the database; while there is none, the one to run first."""
    members = members_of(reports.paper, exhibit)
    sizes = [reports.paper.collections[name].size for name, _ in members]
    here = [size for size, member in zip(sizes, members, strict=True) if reports.has(*member)]
    first: Size = "paper" if sizes and "ours" not in sizes else "ours"
    return [size for size in SIZES if size in (here or [first])]


# ---------------------------------------------------------------- the table


def _size_section(reports: Reports, exhibit: Exhibit, size: Size) -> Section:
    columns = tuple(
        Column(f"c{place}", column.title, column.digits, unit=column.unit)
        for place, column in enumerate(exhibit.columns)
    )
    values = Values(
        {
            (row.title, column.title): our_values(reports, exhibit, size, row, column)
            for row in exhibit.rows
            for column in exhibit.columns
        }
    )
    known = (reports.paper, exhibit, size)
    rows = []
    for row in exhibit.rows:
        rows.append(_row(row.title, "published", columns, map(_published, row.values)))
        ours = (
            _ours(values, row, column, printed, partial(why_no_value, *known, row, column))
            for column, printed in zip(exhibit.columns, row.values, strict=True)
        )
        rows.append(_row(row.title, "ours", columns, ours))
        rows += _verdicts(exhibit, row, columns, values)
    table = Table("values", "", exhibit.heading, columns, tuple(rows))
    blocks = (table, *what_ran(reports, exhibit, size), *drawn(reports, exhibit.drawings, size))
    return Section(size, SIZES[size].capitalize(), blocks)


def _row(title: str, setting: str, columns: tuple[Column, ...], cells: Iterator[Cell]) -> Row:
    return Row(
        title, {column.key: cell for column, cell in zip(columns, cells, strict=True)}, setting=setting
    )


def _published(printed: str | None) -> Cell:
    """As printed."""
    if printed is None:
        return Cell("ok", NOT_IN_COPY, words="lost")
    return Cell("ok", value=number(printed), words=printed or NO_VALUE)


def _ours(
    values: Values, row: PaperRow, column: PaperColumn, printed: str | None, why_none: Callable[[], str]
) -> Cell:
    if ours := values.cells[row.title, column.title]:
        shown = ours[0]
        return replace(shown.cell, note=shown.cell.note or values.note(shown.study))
    if printed in NO_VALUES:  # the paper has none either
        return Cell("ok", words=NO_VALUE)
    return Cell("absent", why_none(), words="not run")


# ---------------------------------------------------------------- verdicts


def _verdicts(exhibit: Exhibit, row: PaperRow, columns: tuple[Column, ...], values: Values) -> Iterator[Row]:
    """A row for each of the claims about this row."""
    for claim in exhibit.claims:
        if row.title == claim.against or row.title not in (claim.rows or [row.title]):
            continue
        cells = (
            _verdict(exhibit, claim, row, place, column, values)
            for place, column in zip(exhibit.columns, columns, strict=True)
        )
        yield _row(row.title, f"verdict against {claim.against or claim.against_column}", columns, cells)


def _verdict(
    exhibit: Exhibit, claim: Claim, row: PaperRow, place: PaperColumn, column: Column, values: Values
) -> Cell:
    if place.title == claim.against_column or place.title not in (claim.columns or [place.title]):
        return Cell("ok", words=NO_VALUE)
    other_row, other_column = claim.against or row.title, claim.against_column or place.title
    ours, others = values.cells[row.title, place.title], values.cells[other_row, other_column]
    printed = _printed(exhibit, row.title, place.title), _printed(exhibit, other_row, other_column)
    direction = direction_of(number(printed[0]), number(printed[1]), claim.direction)
    pair = next((pair for pair in product(ours, others) if comparable(*pair)), None)
    if pair is None:
        values_known = ours and others and None not in (ours[0].cell.value, others[0].cell.value)
        note = f"one value is of {ours[0].study}, one of {others[0].study}" if values_known else ""
        return _verdict_cell(Judgement(Outcome.NOT_RUN, note=note), column)
    judgement = judge(*pair, direction)
    note = judgement.note or values.note(pair[0].study)
    return _verdict_cell(replace(judgement, note=note), column)


def _printed(exhibit: Exhibit, row: str, column: str) -> str | None:
    values = next(entry.values for entry in exhibit.rows if entry.title == row)
    return values[[entry.title for entry in exhibit.columns].index(column)]


def _verdict_cell(judgement: Judgement, column: Column) -> Cell:
    """As "holds: +0.6" with the interval of our difference."""
    if judgement.difference is None:
        return Cell("absent", judgement.note, words=str(judgement.outcome))
    sign = "+" if judgement.difference > 0 else ""
    words = f"{judgement.outcome}: {sign}{text.number(judgement.difference, column)}"
    return Cell(
        "ok", judgement.note, judgement.difference, low=judgement.low, high=judgement.high, words=words
    )


# ---------------------------------------------------------------- the studies


def _studies_section(reports: Reports, exhibit: Exhibit) -> Iterator[Section]:
    facts = tuple(
        Fact(
            f"{collection.members[key].name} ({_state(reports, name, key)})",
            collection.command(key),
            code=True,
        )
        for name, key in members_of(reports.paper, exhibit)
        for collection in [reports.paper.collections[name]]
    )
    if facts:
        yield Section("studies", "Our studies", (Facts("commands", "", facts),), folded=True)


def _state(reports: Reports, collection: str, member: str) -> str:
    report = reports.read(collection, member)
    if report is None:
        return "not in this database"
    return f"number {report.number}, {report.state}" if isinstance(report, StudyReport) else "unreadable"
