"""Build the document of a paper's table or figure: published values, ours with intervals, verdicts.

Rows and columns are the paper's. Each row has its published values, ours below them, and a verdict for each
claim. Each size of our studies (the paper's, our own) has a section, which also says what the studies in this
database trained: their names do not tell, since `--set` may make a study smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

from creamtea.contract.step import Column
from creamtea.document.mistakes import StudyWarning
from creamtea.papers.catalogue import (
    NO_VALUES,
    SIZES,
    Claim,
    Curve,
    Drawing,
    Exhibit,
    Kind,
    Size,
    exhibits,
    find_exhibit,
    find_paper,
    members_of,
    number,
    settings_of,
    status_words,
    why_no_value,
)
from creamtea.papers.catalogue import Column as PaperColumn
from creamtea.papers.catalogue import Row as PaperRow
from creamtea.report import text, vega
from creamtea.report.configuration import differing
from creamtea.report.model import Cell, Document, Fact, Facts, Figure, Notes, Row, Section, Table, Warnings
from creamtea.report.papers.claims import (
    RULE,
    Judgement,
    OurValue,
    Outcome,
    comparable,
    direction_of,
    judge,
)
from creamtea.report.papers.ours import Reports, StudyReport, our_values
from creamtea.store.database import Database
from creamtea.wording import counted


def drawn(reports: Reports, drawings: Sequence[Drawing], size: Size) -> tuple[Figure | Table, ...]:
    """Return one figure for each study; an empty one with the reason if the study is not in the database."""
    figures: list[Figure | Table] = []
    for drawing in drawings:
        collection = reports.paper.collections[drawing.collection]
        if collection.size != size:
            continue
        for member in drawing.members:
            study = collection.members[member].name
            report = reports.read(drawing.collection, member)
            blocks = report.document.walk() if isinstance(report, StudyReport) else ()
            fitting = (
                block
                for path, block in blocks
                if isinstance(block, Figure | Table) and block.title == drawing.title
                if not drawing.analysis or f"/{drawing.analysis}/" in path
            )
            why = "not run" if report is None else "no such figure"
            block = next(fitting, Figure("", "", {}, (), (f"{study} ({why})",)))
            shown = with_curves(block, drawing.curves) if isinstance(block, Figure) else block
            title = f"{drawing.title}: {study}"
            figures.append(replace(shown, key=f"{study}-{len(figures)}", title=title))
    return tuple(figures)


def with_curves(figure: Figure, curves: Sequence[Curve]) -> Figure:
    """Add the curves that the paper prints to a figure of curves by group."""
    if not curves or not figure.rows:
        return figure
    published_rows = (
        {"group": curve.name, "x": number(x), "y": number(y), "low": None, "high": None, "label": "published"}
        for curve in curves
        for x, y in curve.points.items()
    )
    published = vega.greys(curve.name for curve in curves)
    spec = deepcopy(figure.spec)
    for layer in spec["layer"]:
        for channel, added in vega.by_style("group", published, "color", "shape", "strokeDash").items():
            if channel_encoding := layer["encoding"].get(channel):
                # a new encoding, because the layers of a figure share one
                scale = {
                    end: [*channel_encoding["scale"][end], *added["scale"][end]]
                    for end in ("domain", "range")
                }
                legend = (channel_encoding["legend"] or {}) | {"values": scale["domain"]}
                layer["encoding"][channel] = channel_encoding | {"scale": scale, "legend": legend}
    return replace(figure, spec=spec, rows=(*figure.rows, *published_rows))


UNFINISHED = "none has finished"
SHOWN = 3  # settings named in a warning
# sections whose common entries are compared: an entry that a study lacks is not in its tables
_ENTRIES = ("corpora", "subwords", "variants", "systems", "test_sets", "analyses")


def what_ran(reports: Reports, exhibit: Exhibit, size: Size) -> tuple[Facts | Warnings, ...]:
    """List the trainings of each study of this size in the database; empty if there is none.

    Warns of a study whose settings differ from the distributed study of that name.
    """
    facts, warnings = [], []
    for name, member in members_of(reports.paper, exhibit):
        collection = reports.paper.collections[name]
        report = reports.read(name, member) if collection.size == size else None
        if not isinstance(report, StudyReport):
            continue
        study = f"{report.spec.name}, number {report.number}"
        facts.append(Fact(f"trained here by {study}", trained(report.document) or UNFINISHED))
        ours = settings_of(collection.file, tuple(collection.members[member].overrides))
        apart = settings_apart(report.spec.model_dump(mode="json"), ours) if ours else []
        if apart:
            more = f" and {counted(len(apart) - SHOWN, 'other')}" if len(apart) > SHOWN else ""
            difference = f"it differs from {collection.file} in {', '.join(apart[:SHOWN])}{more}"
            remedy = f"It may be a study of another size. `{collection.command(member)}` runs ours."
            warnings.append(StudyWarning("other-settings", study, difference, remedy))
    shown_warnings = (Warnings("warnings", tuple(warnings)),) if warnings else ()
    return (*shown_warnings, Facts("ran", "", tuple(facts))) if facts else ()


def settings_apart(own: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return where entries of both studies differ: "variants.softmax.training.max_updates"."""
    apart = []
    for section in _ENTRIES:
        mine, theirs = own.get(section) or {}, other.get(section) or {}
        for entry in [name for name in theirs if name in mine]:
            places = differing([theirs[entry], mine[entry]], f"{section}.{entry}")
            apart += [place for place, _ in places]
    return apart


def trained(document: Document) -> str:
    """Summarise trainings: "30 models, 1,000 to 9,000 updates, 11,213,824 parameters; 54,000 training pairs".

    Empty while no training has finished.
    """
    updates = list(_values(document, "trainings", "updates"))
    if not updates:
        return ""
    parts = [
        f"{counted(len(updates), 'model')}",
        f"{_range(updates)} updates",
        f"{_range(list(_values(document, 'trainings', 'parameters')))} parameters",
    ]
    pairs = list(_values(document, "corpora", "train_kept"))
    return ", ".join(parts) + (f"; {_range(pairs)} training pairs" if pairs else "")


def _values(document: Document, table: str, column: str) -> Iterator[float]:
    for row in document.table(f"provenance/{table}").rows:
        if (cell := row.cells.get(column)) is not None and cell.value is not None:
            yield cell.value


def _range(values: list[float]) -> str:
    bounds = dict.fromkeys(text.number(bound, Column("n", "n", 0)) for bound in (min(values), max(values)))
    return " to ".join(bounds)


NO_VALUE = "–"  # neither the paper nor we have a value
DOCUMENTED = "in creamtea's documentation"  # runs by creamtea's authors, not in this database
NOT_IN_COPY = "no copy of the paper that we have prints this value"


# our values of a table, by the titles of a row and a column; the first of several is shown
Values = Mapping[tuple[str, str], Sequence[OurValue]]


def _note(values: Values, study: str) -> str:
    """Return "of STUDY" if the table's first value comes from another study, else nothing."""
    first = next((ours[0].study for ours in values.values() if ours and ours[0].study), study)
    return "" if study in ("", first) else f"of {study}"


def build_exhibit(database: Database, paper: str, kind: Kind, asked: int) -> Document:
    """Build a table or figure of a paper beside our studies. Raises InputError for an unknown one."""
    known_paper, exhibit = find_paper(paper), find_exhibit(paper, kind, asked)
    return exhibit_document(Reports(database, known_paper), exhibit)


def exhibit_document(reports: Reports, exhibit: Exhibit) -> Document:
    """Build an exhibit's document from reports that several exhibits share."""
    paper, members = reports.paper, members_of(reports.paper, exhibit)
    sections = [_size_section(reports, exhibit, size) for size in _sizes(reports, exhibit)]
    reading = [*exhibit.differs, *([exhibit.missing] if exhibit.missing else [])]
    reading += [RULE] if exhibit.claims else []
    return Document(
        kind="paper",
        name=f"{paper.short}, {exhibit.label}",
        number=exhibit.number,
        state=f"studies here: {sum(reports.has(*member) for member in members)} of {len(members)}",
        about=exhibit.title,
        facts=(
            Fact("paper", f"{paper.authors} {paper.year}"),
            Fact("page", exhibit.page),
            Fact("section", exhibit.section),
            Fact(DOCUMENTED, status_words(paper, exhibit)),
        ),
        test_sets=(),
        sections=(
            *sections,
            Section("reading", "", (Notes("notes", tuple(reading)),)),
            *_studies_section(reports, exhibit),
        ),
    )


@dataclass(frozen=True)
class ListedExhibit:
    exhibit: Exhibit
    status: str
    studies: int  # number of studies with its cells
    here: int  # how many of them are in the database


def list_exhibits(database: Database, paper: str) -> list[ListedExhibit]:
    """List the tables and figures of a paper, without building a report."""
    reports = Reports(database, find_paper(paper))
    listed = []
    for exhibit in exhibits(paper):
        members = members_of(reports.paper, exhibit)
        here = sum(reports.has(*member) for member in members)
        listed.append(ListedExhibit(exhibit, status_words(reports.paper, exhibit), len(members), here))
    return listed


def build_list(database: Database, paper: str) -> Document:
    """Build a table of a paper's tables and figures: status, and how many of its studies are here."""
    known_paper = find_paper(paper)
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
        name=known_paper.short,
        number=known_paper.year,
        state=f"{len(rows)} tables and figures",
        about=known_paper.title,
        facts=(Fact("paper", f"{known_paper.authors} {known_paper.year}"),),
        test_sets=(),
        sections=(Section("list", "", (table,)),),
    )


def _sizes(reports: Reports, exhibit: Exhibit) -> list[Size]:
    """Return the sizes with a study in the database; else the size to run first."""
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
    values = {
        (row.title, column.title): our_values(reports, exhibit, size, row, column)
        for row in exhibit.rows
        for column in exhibit.columns
    }
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
    """Return the cell of a value as printed."""
    if printed is None:
        return Cell("ok", NOT_IN_COPY, words="lost")
    return Cell("ok", value=number(printed), words=printed or NO_VALUE)


def _ours(
    values: Values, row: PaperRow, column: PaperColumn, printed: str | None, why_none: Callable[[], str]
) -> Cell:
    if ours := values[row.title, column.title]:
        shown = ours[0]
        return replace(shown.cell, note=shown.cell.note or _note(values, shown.study))
    if printed in NO_VALUES:  # the paper has none either
        return Cell("ok", words=NO_VALUE)
    return Cell("absent", why_none(), words="not run")


# ---------------------------------------------------------------- verdicts


def _verdicts(exhibit: Exhibit, row: PaperRow, columns: tuple[Column, ...], values: Values) -> Iterator[Row]:
    """Yield a row for each claim about this row."""
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
    ours, others = values[row.title, place.title], values[other_row, other_column]
    printed = _printed(exhibit, row.title, place.title), _printed(exhibit, other_row, other_column)
    direction = direction_of(number(printed[0]), number(printed[1]), claim.direction)
    pair = next((pair for pair in product(ours, others) if comparable(*pair)), None)
    if pair is None:
        values_known = ours and others and None not in (ours[0].cell.value, others[0].cell.value)
        note = f"one value is from {ours[0].study}, one from {others[0].study}" if values_known else ""
        return _verdict_cell(Judgement(Outcome.NOT_RUN, note=note), column)
    judgement = judge(*pair, direction)
    note = judgement.note or _note(values, pair[0].study)
    return _verdict_cell(replace(judgement, note=note), column)


def _printed(exhibit: Exhibit, row: str, column: str) -> str | None:
    values = next(entry.values for entry in exhibit.rows if entry.title == row)
    return values[[entry.title for entry in exhibit.columns].index(column)]


def _verdict_cell(judgement: Judgement, column: Column) -> Cell:
    """Show a verdict: "holds: +0.6" with the interval of our difference."""
    if judgement.difference is None:
        return Cell("absent", judgement.note, words=str(judgement.outcome))
    sign = "+" if judgement.difference > 0 else ""
    words = f"{judgement.outcome}: {sign}{text.number(judgement.difference, column)}"
    return Cell(
        "ok", judgement.note, judgement.difference, low=judgement.low, high=judgement.high, words=words
    )


# ---------------------------------------------------------------- the studies


def _studies_section(reports: Reports, exhibit: Exhibit) -> Iterator[Section]:
    facts = []
    for name, key in members_of(reports.paper, exhibit):
        collection, report = reports.paper.collections[name], reports.read(name, key)
        state = "not in this database" if report is None else "unreadable"
        if isinstance(report, StudyReport):
            state = f"number {report.number}, {report.state}"
        study = f"{collection.members[key].name} ({state})"
        facts.append(Fact(study, collection.command(key), code=True))
    if facts:
        yield Section("studies", "Our studies", (Facts("commands", "", tuple(facts)),), folded=True)
