"""Find our cells of a paper's table in the reports of our studies, in the units of the paper."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from sqlalchemy import select

from creamtea.contract.step import Column
from creamtea.errors import InputError
from creamtea.methods.architectures import Layered
from creamtea.methods.selections import LexiconSelection, NvsSelection
from creamtea.orders.submission import spec_of
from creamtea.papers.catalogue import (
    Column as PaperColumn,
)
from creamtea.papers.catalogue import (
    Exhibit,
    OfAnalysis,
    OfCorpus,
    OfIdiom,
    OfSelection,
    OfSystem,
    OfTraining,
    Paper,
    Place,
    Size,
    wanted_cells,
)
from creamtea.papers.catalogue import Row as PaperRow
from creamtea.report import text
from creamtea.report.analyses import BASELINES, MISSED, SETTINGS
from creamtea.report.build import build_report
from creamtea.report.model import Cell, Delta, Document, Row, Section, Table
from creamtea.report.papers.claims import OurValue, mean_of
from creamtea.report.tables import FURTHER
from creamtea.store.database import Database
from creamtea.store.tables import StudyRow
from creamtea.study.spec import Study


def percent_of(cell: Cell, of: str) -> Cell:
    if cell.value is None:
        return replace(cell, percents={}, delta=None)
    percent = cell.percents.get(of)
    if percent is None:
        return Cell("absent", f"the study gives no percentage of {of}", words="none")
    return Cell("ok", value=percent.value, low=percent.low, high=percent.high)


def per_second(cell: Cell) -> Cell:
    """Convert milliseconds per sentence to sentences per second."""

    def rate(milliseconds: float | None) -> float | None:
        return 1000.0 / milliseconds if milliseconds else None

    return replace(
        cell, value=rate(cell.value), low=rate(cell.high), high=rate(cell.low), deviation=None, percents={}
    )


def selection_size(spec: Study, system: str) -> int | None:
    """Count the numbers that a system's selection holds (NVS paper, Table 7).

    A lexicon has k for each of V subwords; an NVS head of a model of width d has V × d + V. None if the study
    has no such system, or the paper counts none of its kind.
    """
    chosen = spec.systems.get(system)
    if chosen is None or not chosen.variant:
        return None
    variant = spec.variants[chosen.variant]
    vocabulary = int(spec.subwords[variant.subwords].vocabulary)
    match chosen.selection, variant.architecture:
        case LexiconSelection(k=k, frequent=0), _:
            return k * vocabulary
        case NvsSelection(), Layered(width=width):
            return vocabulary * (width + 1)
    return None


SHOWN = ("ok", "partial")  # states of a cell with a value


@dataclass(frozen=True)
class StudyReport:
    number: int
    state: str
    spec: Study
    document: Document


class Reports:
    """The newest finished report of each study that a paper's collections name, built once.

    For a study that never finished, the newest report counts.
    """

    def __init__(self, database: Database, paper: Paper) -> None:
        self.paper = paper
        self._database = database
        self._read: dict[str, StudyReport | str | None] = {}

    def read(self, collection: str, member: str) -> StudyReport | str | None:
        """Return the report, or why it cannot be read; None if the database has no such study."""
        name = self.paper.collections[collection].members[member].name
        if name not in self._read:
            self._read[name] = self._find(name)
        return self._read[name]

    def has(self, collection: str, member: str) -> bool:
        """Return whether the database has the study, without building its report."""
        return self.paper.collections[collection].members[member].name in self._names

    @cached_property
    def _names(self) -> set[str]:
        with self._database.session() as session:
            return set(session.scalars(select(StudyRow.name).distinct()))

    def _find(self, name: str) -> StudyReport | str | None:
        finished_first = (StudyRow.state != "succeeded", StudyRow.id.desc())
        wanted = select(StudyRow).where(StudyRow.name == name).order_by(*finished_first).limit(1)
        with self._database.session() as session:
            row = session.scalar(wanted)
            if row is None:
                return None
        try:
            document = build_report(self._database, row.id, complete=False)
            return StudyReport(row.id, row.state, spec_of(row), document)
        except InputError as error:
            return str(error)


# ---------------------------------------------------------------- our values


def our_values(
    reports: Reports, exhibit: Exhibit, size: Size, row: PaperRow, column: PaperColumn
) -> list[OurValue]:
    """Return our values for a cell, one per source whose studies are all in the database, known values first.

    If no source is complete, return a cell that says what the first source lacks. Empty if no study of this
    size has the cell.
    """
    known: list[OurValue] = []
    not_run: list[OurValue] = []
    for wanted in wanted_cells(reports.paper, exhibit, size, row, column):
        collection = reports.paper.collections[wanted.collection]
        values: dict[str, OurValue | None] = {}
        for member in wanted.members:
            study, report = collection.members[member].name, reports.read(wanted.collection, member)
            values[study] = None if report is None else _value(report, study, wanted.place, column.factor)
        present = [value for value in values.values() if value is not None]
        if len(present) == len(values):
            known.append(present[0] if len(present) == 1 else mean_of(present, collection.title))
            continue
        missing = [study for study, value in values.items() if value is None]
        note = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not in this database"
        not_run.append(OurValue(Cell("absent", note, words="not run")))
    return sorted(known, key=lambda ours: ours.cell.state not in SHOWN) or not_run[:1]


def _value(report: StudyReport | str, study: str, place: Place, factor: float | None) -> OurValue:
    """Return a study's value; `report` may say why it cannot be read."""
    if isinstance(report, str):
        return OurValue(Cell("unavailable", report), study)
    chosen_of = ""
    if isinstance(place, OfSelection):
        size = selection_size(report.spec, place.selection_of)
        return _absent(report, study) if size is None else OurValue(Cell("ok", value=float(size)), study)
    if isinstance(place, OfSystem) and place.chosen_on:
        chosen = _best(report.document, place)
        if isinstance(chosen, Cell):
            return OurValue(chosen, study)
        chosen_of = f"{chosen.system}, the best on {place.chosen_on}"
        place = chosen
        if place.choice and isinstance(place.system, str):
            return OurValue(Cell("ok", words=place.choice[place.system]), study)
    found = find_cell(report.document, place)
    if found is None:
        return _absent(report, study, "not listed" if isinstance(place, OfIdiom) else "none")
    path, row, own_column = found
    cell = row.cells[own_column.key]
    if chosen_of and cell.state == "ok":
        cell = replace(cell, note=chosen_of)
    scale = own_column.scale if factor is None else factor
    if isinstance(place, OfSystem) and place.percent_of:
        return OurValue(percent_of(cell, place.percent_of), study)
    if isinstance(place, OfSystem) and place.per_second:
        return OurValue(per_second(cell), study)
    table, own_row, deltas = _measures_compared(report.document, path, row, own_column) or (
        f"{path}/{own_column.key}",
        ", ".join(filter(None, (row.name, row.setting))),
        _deltas(report.document, path, row, own_column),
    )
    # percentages and differences belong to the study's own table only
    shown = replace(cell.scaled(scale), percents={}, delta=None)
    return OurValue(shown, study, table, own_row, {other: d.scaled(scale) for other, d in deltas.items()})


def _absent(report: StudyReport, study: str, words: str = "none") -> OurValue:
    return OurValue(Cell("absent", f"{study}, number {report.number}, has no such cell", words=words), study)


def _measures_compared(
    document: Document, path: str, row: Row, own: Column
) -> tuple[str, str, dict[str, Delta]] | None:
    """Return a measure's table and row, and its paired difference from another measure of the same row.

    A third column of the row holds that difference.
    """
    columns = [column for _, table in _at(document, path) for column in table.columns]
    for column in columns:
        if column.less is None or own.key not in column.less or column.key not in row.cells:
            continue
        cell = row.cells[column.key]
        delta = Delta(cell.state, cell.note, cell.value, cell.low, cell.high)
        if cell.spread is not None:
            delta = delta.with_seeds(cell.spread)
        delta = replace(delta, significant=delta.excludes_zero)
        place, other = (f"{row.name} {row.setting} {key}" for key in (own.key, column.less[1]))
        return path, place, {other: delta} if place != other else {}
    return None


def _deltas(document: Document, path: str, row: Row, column: Column) -> dict[str, Delta]:
    """Return a row's differences in a column, by the row that it is compared with.

    They come from its table, from the table of further comparisons beside it, and from an analysis' tables of
    differences.
    """
    beside = (path, f"{path.rpartition('/')[0]}/{FURTHER}", f"{path}-{BASELINES}", f"{path}-{SETTINGS}")
    return {
        compared.against: delta
        for place in beside
        for _, table in _at(document, place)
        for compared in table.rows
        if compared.name == row.name and compared.against and column.key in compared.cells
        if compared.setting == row.setting or compared.setting.startswith(f"{row.setting} against".lstrip())
        if (delta := compared.cells[column.key].delta) is not None
    }


def find_cell(document: Document, place: Place) -> tuple[str, Row, Column] | None:
    """Return the path of a table, a row and a column; None if the study lacks one of them."""
    name, setting = "", ""
    match place:
        case OfSystem():
            tables = _at(document, f"systems/{place.test_set}/systems")
            name, measure = str(place.system), place.metric
        case OfAnalysis():
            tables = [  # of the analysis: analyses/KIND/NAME/…
                (f"{path}/{inner.key}", inner)
                for path, block in document.walk()
                if isinstance(block, Section) and path.startswith("analyses/") and block.key == place.analysis
                for inner in block.blocks
                if isinstance(inner, Table)
            ]
            name, setting, measure = place.row, place.setting, place.measure
        case OfTraining():
            tables = _at(document, "provenance/trainings")
            name, setting, measure = place.variant, f"seed {place.seed}", place.measure
        case OfCorpus():
            tables = _at(document, "provenance/corpora")
            name, measure = place.corpus, place.measure
        case OfIdiom():
            tables = _at(document, f"systems/{place.test_set}/{text.key_of(MISSED.title)}")
            name, measure = place.idiom, place.missed_by
        case OfSelection():
            return None
    for path, table in tables:
        column = next((column for column in table.columns if column.key == measure), None)
        row = next((row for row in table.rows if (row.name, row.setting) == (name, setting)), None)
        if column is not None and row is not None:
            return path, row, column
    return None


def _at(document: Document, wanted: str) -> list[tuple[str, Table]]:
    return [(path, block) for path, block in document.walk() if path == wanted and isinstance(block, Table)]


def _best(document: Document, place: OfSystem) -> OfSystem | Cell:
    """Return the place with its best system on `chosen_on`, or a cell that says which value is missing."""
    scores: dict[str, float] = {}
    for system in [place.system] if isinstance(place.system, str) else place.system:
        found = find_cell(document, place.model_copy(update={"test_set": place.chosen_on, "system": system}))
        cell = found[1].cells[found[2].key] if found else Cell("absent", "it is not in the study")
        if found is None or cell.value is None:
            note = f"the best on {place.chosen_on} is not known: {system}: {cell.note or cell.state}"
            return Cell(cell.state, note, words="not chosen")
        scores[system] = -cell.value if found[2].better == "lower" else cell.value
    return place.model_copy(update={"system": max(scores, key=scores.__getitem__)})
