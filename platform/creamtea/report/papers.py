"""A paper's table or figure as a document: published values, ours with intervals, and verdicts.

Rows and columns are the paper's. Each row has its published values, ours below them, and a verdict for each
claim. Each size of our studies (the paper's, our own) has a section, which also says what the studies in this
database trained: their names do not tell, since `--set` may make a study smaller.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import product
from typing import Any

from sqlalchemy import select

from creamtea.contract.step import Column
from creamtea.document.mistakes import StudyWarning
from creamtea.errors import InputError
from creamtea.methods.architectures import Layered
from creamtea.methods.selections import LexiconSelection, NvsSelection
from creamtea.orders.submission import spec_of
from creamtea.papers import catalogue
from creamtea.papers.catalogue import (
    NO_VALUES,
    SIZES,
    Claim,
    Curve,
    Direction,
    Drawing,
    Exhibit,
    Kind,
    OfAnalysis,
    OfIdiom,
    OfProvenance,
    OfSelection,
    OfSystem,
    Paper,
    Place,
    Size,
    exhibits,
    find_exhibit,
    find_paper,
    members_of,
    number,
    settings_of,
    status_words,
    wanted_cells,
    why_no_value,
)
from creamtea.report import text, vega
from creamtea.report.analyses import BASELINES, MISSED, SETTINGS
from creamtea.report.build import build_report
from creamtea.report.cells import NO_MARK
from creamtea.report.configuration import differing
from creamtea.report.model import (
    ONE_SEED,
    UNMARKED,
    Cell,
    Delta,
    Document,
    Fact,
    Facts,
    Figure,
    Notes,
    Row,
    Section,
    Table,
    Warnings,
)
from creamtea.report.tables import FURTHER
from creamtea.stats.estimate import Bounds, Spread, together, widened
from creamtea.store.database import Database
from creamtea.store.tables import StudyRow
from creamtea.study.spec import Study
from creamtea.wording import counted

# ---------------------------------------------------------------- claims

MARGIN = 0.02  # two values are alike within this share of the other value

RULE = (
    "Verdicts compare two of our values as the paper compares its own, in the direction of the printed "
    "difference, or of the paper's words if it prints no difference. "
    "Holds: our difference has the same direction, and it is significant. If the study has compared the two "
    "values, that means p < 0.05 after Holm's correction by both paired tests (in an analysis, by the paired "
    "bootstrap), and also over segments and seeds if there are several seeds (except an ensemble against its "
    "own models). If it has not, their 95 % intervals (over segments, and over several seeds) must not "
    "overlap. A mean over studies has no p, nor "
    "has a difference between two measures of one model: their paired interval must exclude 0. "
    "Opposite: the other direction, equally clearly. "
    "Undecided: the data cannot tell, or the study does not mark the difference because BLEU is near zero "
    "or because one side has one seed and the other several. One seed says nothing about others. "
    "Without intervals, only the direction is named. "
    "Alike: if the paper says that two values are alike, the interval of our difference (over segments and "
    f"seeds, if it is known) is compared with a margin of {100 * MARGIN:g} % of the other value; the papers "
    "name none. Inside the margin the claim holds, outside is the opposite, and across it is undecided. "
    "In brackets: the 95 % interval of our difference. It is the paired one, over segments and seeds if that "
    "is known; if none was computed, it is the widest that the intervals of both values allow."
)


class Outcome(StrEnum):
    HOLDS = "holds"
    OPPOSITE = "opposite"
    UNDECIDED = "undecided"
    SAME = "same direction, no interval"
    OTHER = "other direction, no interval"
    NO_DIRECTION = "not judged: equal as printed"
    NO_INTERVAL = "not judged: no interval"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class OurValue:
    """A value of ours in the unit of the paper's column, and its paired differences from other rows."""

    cell: Cell
    study: str = ""  # empty if no study is in the database
    table: str = ""  # path in the study's report, with the column
    row: str = ""
    deltas: Mapping[str, Delta] = field(default_factory=dict)  # by the row that it is compared with
    # the value's error over seeds, if it is a mean over studies
    spread: Spread | None = None

    @property
    def bounds(self) -> Bounds | None:
        """The 95 % interval of the value over segments, and over its seeds if it has several."""
        cell, spread = self.cell, self.spread or self.cell.spread
        if cell.value is None or cell.low is None or cell.high is None:
            return None
        return (cell.low, cell.high) if spread is None else widened(cell.value, cell.low, cell.high, spread)


@dataclass(frozen=True)
class Judgement:
    outcome: Outcome
    difference: float | None = None
    low: float | None = None  # 95 %
    high: float | None = None
    note: str = ""  # the study's note on the difference, if it decided


def comparable(own: OurValue, other: OurValue) -> bool:
    """Return whether both values are known and come from one study, so from one size."""
    known = own.cell.value is not None and other.cell.value is not None
    return known and own.study == other.study


def direction_of(own: float | None, other: float | None, stated: Direction) -> Direction:
    """Return the direction of the printed values; the stated one if they are words, equal, or alike."""
    if own is None or other is None or own == other or stated == "alike":
        return stated
    return "higher" if own > other else "lower"


def judge(own: OurValue, other: OurValue, direction: Direction) -> Judgement:
    """Judge a claim by our values: `own` is higher than, lower than or like `other`."""
    difference = _difference(own, other)
    if difference is None:
        return Judgement(Outcome.NOT_RUN)
    value, low, high, differs, note = difference
    agrees = value > 0 if direction == "higher" else value < 0
    if not direction:
        outcome = Outcome.NO_DIRECTION
    elif direction == "alike":
        outcome = Outcome.UNDECIDED if note == ONE_SEED else _alike(low, high, margin_of(other))
    elif low is None or high is None:
        outcome = (Outcome.SAME if agrees else Outcome.OTHER) if value else Outcome.UNDECIDED
    elif not differs:
        outcome = Outcome.UNDECIDED
    else:
        outcome = Outcome.HOLDS if agrees else Outcome.OPPOSITE
    decided_by_note = outcome == Outcome.UNDECIDED and (direction != "alike" or note == ONE_SEED)
    return Judgement(outcome, value, low, high, note if decided_by_note else "")


def margin_of(other: OurValue) -> float:
    """Return the distance from `other` within which a value is alike."""
    return MARGIN * abs(other.cell.value or 0.0)


def _alike(low: float | None, high: float | None, margin: float) -> Outcome:
    if low is None or high is None:
        return Outcome.NO_INTERVAL
    if -margin < low and high < margin:
        return Outcome.HOLDS
    return Outcome.OPPOSITE if low >= margin or high <= -margin else Outcome.UNDECIDED


def _difference(own: OurValue, other: OurValue) -> tuple[float, float | None, float | None, bool, str] | None:
    """Return value, interval, whether it differs from 0, and the study's note on it."""
    a, b = own.cell, other.cell
    if not comparable(own, other) or a.value is None or b.value is None:
        return None
    for compared, with_, sign in ((own, other, 1), (other, own, -1)):
        delta = compared.deltas.get(with_.row) if compared.table == with_.table else None
        if delta is not None and delta.value is not None:
            signed = delta.scaled(sign)
            return sign * delta.value, *signed.bounds, delta.significant, delta.note
    own_bounds, other_bounds = own.bounds, other.bounds
    if own_bounds is None or other_bounds is None:
        return a.value - b.value, None, None, False, ""
    low, high = own_bounds[0] - other_bounds[1], own_bounds[1] - other_bounds[0]
    if min(a.seeds, b.seeds) == 1 < max(a.seeds, b.seeds):
        return a.value - b.value, low, high, False, ONE_SEED
    return a.value - b.value, low, high, low > 0 or high < 0, ""


def mean_of(values: Sequence[OurValue], study: str) -> OurValue:
    """Return the mean over studies (a macro-average) as a value of the whole `study`.

    Every study has a test set of its own, so errors are independent. Each side of the 95 % interval follows
    from a mean of independent normal errors:

        1/n √Σ d_i²,   d_i: the distance of a study's bound from its value

    The intervals cover the choice of segments, not the choice of studies. If every study has several seeds,
    a value also has a standard deviation, and a difference an interval over seeds. A difference is
    significant if its interval excludes 0, unless a study withholds its mark because BLEU is near zero. If
    one study lacks the value, the mean has that study's state; if one lacks seeds, the mean is partial.
    """
    cells = [value.cell for value in values]
    for value in values:
        if value.cell.value is None:
            note = f"{value.study}: {value.cell.note or value.cell.words}"
            return OurValue(Cell(value.cell.state, note, words=value.cell.words), study)
    first = values[0]
    mean, low, high = _interval((cell.value, cell.low, cell.high) for cell in cells)
    lacking = [f"{value.study}: {value.cell.note}" for value in values if value.cell.state == "partial"]
    same_place = all((value.table, value.row) == (first.table, first.row) for value in values)
    deviations = [cell.deviation for cell in cells if cell.deviation is not None]
    deviation = math.hypot(*deviations) / len(cells) if len(deviations) == len(cells) else None
    return OurValue(
        Cell(
            "partial" if lacking else "ok",
            "; ".join(lacking),
            value=mean,
            low=low,
            high=high,
            deviation=deviation,
            seeds=min(cell.seeds for cell in cells),
        ),
        study,
        first.table if same_place else "",
        first.row if same_place else "",
        _mean_deltas(values) if same_place else {},
        _mean_spread([cell.spread for cell in cells]),
    )


def _mean_spread(spreads: Sequence[Spread | None]) -> Spread | None:
    """Return the spread of a mean of independent values; None if one is unknown."""
    known = [spread for spread in spreads if spread is not None]
    if len(known) < len(spreads):
        return None
    return together([replace(spread, square=spread.square / len(known) ** 2) for spread in known])


def _mean_deltas(values: Sequence[OurValue]) -> dict[str, Delta]:
    """Return the means of the comparisons that every study has made."""
    means = {}
    for other in values[0].deltas:
        deltas = [delta for value in values if (delta := value.deltas.get(other)) is not None]
        if len(deltas) < len(values) or any(delta.value is None for delta in deltas):
            continue
        mean, low, high = _interval((delta.value, delta.low, delta.high) for delta in deltas)
        of_mean = Delta("ok", value=mean, low=low, high=high)
        spread = _mean_spread([delta.spread for delta in deltas])
        of_mean = of_mean if spread is None else of_mean.with_seeds(spread)
        unmarked = next((delta.note for delta in deltas if delta.note in (NO_MARK, *UNMARKED)), "")
        significant = of_mean.excludes_zero and not unmarked
        means[other] = replace(of_mean, significant=significant, note=unmarked)
    return means


def _interval(
    triples: Iterable[tuple[float | None, float | None, float | None]],
) -> tuple[float, float | None, float | None]:
    """Return the mean of several values with its interval, from (value, low, high)."""
    values, lows, highs = zip(*triples, strict=True)
    mean = math.fsum(values) / len(values)
    if None in lows or None in highs:
        return mean, None, None
    below = math.hypot(*(value - low for value, low in zip(values, lows, strict=True))) / len(values)
    above = math.hypot(*(high - value for value, high in zip(values, highs, strict=True))) / len(values)
    return mean, mean - below, mean + above


# ---------------------------------------------------------------- our values of a paper's cells


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


def our_values(
    reports: Reports, exhibit: Exhibit, size: Size, row: catalogue.Row, column: catalogue.Column
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
    return sorted(known, key=lambda ours: ours.cell.state not in ("ok", "partial")) or not_run[:1]


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
        delta = Delta(cell.state, cell.note, cell.value, cell.low, cell.high)  # over seeds, too
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
        case OfProvenance():
            tables = _at(document, f"provenance/{place.provenance}")
            name, setting, measure = place.row, place.setting, place.measure
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


# ---------------------------------------------------------------- a table or figure


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
MAX_NAMED = 3  # settings in a warning
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
            more = f" and {counted(len(apart) - MAX_NAMED, 'other')}" if len(apart) > MAX_NAMED else ""
            difference = f"it differs from {collection.file} in {', '.join(apart[:MAX_NAMED])}{more}"
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
    columns = (Column("page", "page", 0), Column("here", "studies here", 0), Column("status", DOCUMENTED, 0))
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
    rows = []
    for row in exhibit.rows:
        rows.append(_row(row.title, "published", columns, map(_published, row.values)))
        ours = []
        for column, printed in zip(exhibit.columns, row.values, strict=True):
            if known := values[row.title, column.title]:
                shown = known[0]
                ours.append(replace(shown.cell, note=shown.cell.note or _note(values, shown.study)))
            elif printed in NO_VALUES:  # the paper has none either
                ours.append(Cell("ok", words=NO_VALUE))
            else:
                why = why_no_value(reports.paper, exhibit, size, row, column)
                ours.append(Cell("absent", why, words="not run"))
        rows.append(_row(row.title, "ours", columns, ours))
        rows += _verdicts(exhibit, row, columns, values)
    table = Table("values", "", exhibit.heading, columns, tuple(rows))
    blocks = (table, *what_ran(reports, exhibit, size), *drawn(reports, exhibit.drawings, size))
    return Section(size, SIZES[size].capitalize(), blocks)


def _row(title: str, setting: str, columns: tuple[Column, ...], cells: Iterable[Cell]) -> Row:
    keys = (column.key for column in columns)
    return Row(title, dict(zip(keys, cells, strict=True)), setting=setting)


def _published(printed: str | None) -> Cell:
    """Return the cell of a value as printed."""
    if printed is None:
        return Cell("ok", NOT_IN_COPY, words="lost")
    return Cell("ok", value=number(printed), words=printed or NO_VALUE)


# ---------------------------------------------------------------- verdicts


def _verdicts(
    exhibit: Exhibit, row: catalogue.Row, columns: tuple[Column, ...], values: Values
) -> Iterator[Row]:
    """Yield a row for each claim about this row."""
    for claim in exhibit.claims:
        if row.title == claim.against or row.title not in (claim.rows or [row.title]):
            continue
        cells = (_verdict(exhibit, claim, row.title, column, values) for column in columns)
        yield _row(row.title, f"verdict against {claim.against or claim.against_column}", columns, cells)


def _verdict(exhibit: Exhibit, claim: Claim, row: str, column: Column, values: Values) -> Cell:
    if column.title == claim.against_column or column.title not in (claim.columns or [column.title]):
        return Cell("ok", words=NO_VALUE)
    other_row, other_column = claim.against or row, claim.against_column or column.title
    ours, others = values[row, column.title], values[other_row, other_column]
    printed = _printed(exhibit, row, column.title), _printed(exhibit, other_row, other_column)
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
