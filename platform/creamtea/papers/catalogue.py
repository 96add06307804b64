"""The tables and figures of three papers as data, and which cells of our studies belong to their cells.

A folder for each paper has a YAML file for each table and figure: its values as printed, and their sources in
our studies. A source may have names in braces (`scones-greedy+alpha={alpha}`), which the `names` of the row
and of the column replace. It belongs to the cells whose row and column have all of its names.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from creamtea.document.document import read_document
from creamtea.document.mistakes import StudyErrors
from creamtea.document.values import Above0, Name, Positive, Strict
from creamtea.errors import InputError
from creamtea.wording import counted

Size = Literal["paper", "ours"]
Kind = Literal["table", "figure"]
Direction = Literal["", "higher", "lower", "alike"]  # of a claim's first value
Names = dict[str, str]

_NUMBER = re.compile(r"[-−+]?\d[\d,]*(?:\.\d+)?")


def number(printed: str | None) -> float | None:
    """Return the number that a printed value begins with; None for words.

    27.72 for "27.72 ± 0.11", 121 for "121M".
    """
    match = _NUMBER.match(printed or "")
    return float(match[0].replace(",", "").replace("−", "-")) if match else None


# ---------------------------------------------------------------- studies


class Member(Strict):
    """One study of a collection: the folder of its files, and the values that it overrides."""

    name: Name
    data: str = "DIR"
    overrides: list[str] = []


class Collection(Strict):
    """Studies from one file, for example one for each language direction."""

    title: str
    size: Size
    file: str  # below the root of the distribution's studies: "studies/scones-multi30k.yaml"
    members: Annotated[dict[str, Member], Field(min_length=1)]
    ran: str = ""  # the page of docs/ that has its results
    not_run: str = ""  # why it has no results

    @model_validator(mode="after")
    def _ran_or_why_not(self) -> Self:
        if bool(self.ran) == bool(self.not_run):
            raise ValueError("give either `ran` or `not_run`")
        return self

    def command(self, key: str) -> str:
        """Return the command that runs the member: "creamtea submit FILE --data DIR --set name=…"."""
        member = self.members[key]
        verb = "submit" if self.size == "paper" else "run"
        overrides = [f"--set {_quoted(override)}" for override in member.overrides]
        return " ".join([f"creamtea {verb} {self.file} --data {member.data}", *overrides])


def _quoted(override: str) -> str:
    return f"'{override}'" if re.search(r"[\s{}\[\]*]", override) else override


class Paper(Strict):
    title: str
    short: str  # "SCONES"
    authors: str
    year: Positive
    collections: dict[Name, Collection]


# ---------------------------------------------------------------- a table or a figure


class Column(Strict):
    """A column as printed. `factor` converts our number to its unit (by default, our reports' unit)."""

    title: str
    digits: Annotated[int, Field(ge=0, le=6)] = 1
    unit: str = ""
    factor: Above0 | None = None
    names: Names = {}


class Row(Strict):
    """Values as printed, one per column; null if none of our copies of the paper prints the value."""

    title: str
    values: list[str | None]
    names: Names = {}


class OfSystem(Strict):
    """A cell of the table of systems. Several systems stand for the best on the test set `chosen_on`."""

    test_set: str
    system: str | list[str]
    metric: str
    percent_of: str = ""  # show a latency as a percentage of this system's
    per_second: bool = False  # show milliseconds per sentence as sentences per second
    chosen_on: str = ""
    choice: dict[str, str] = {}  # show which system was chosen, in these words


class OfAnalysis(Strict):
    """A cell of a table of an analysis: its row (a variant or a system) and the row's setting."""

    analysis: str
    row: str
    setting: str = ""
    measure: str


class OfProvenance(Strict):
    """A cell of the table of trainings or of corpora."""

    provenance: Literal["trainings", "corpora"]
    row: str
    setting: str = ""
    measure: str


class OfSelection(Strict):
    """The numbers that a system's selection holds: k per word of a lexicon, the weights of an NVS head."""

    selection_of: str  # system


class OfIdiom(Strict):
    """The subwords of an idiom's translation that a system's selection misses."""

    test_set: str
    idiom: str
    missed_by: str  # system


Place = OfSystem | OfAnalysis | OfProvenance | OfSelection | OfIdiom

EVERY = "*"


class Source(Strict):
    """Our cells that correspond to the paper's, for the named rows and columns (by default, for all)."""

    collection: str
    member: str  # "*": the mean over all studies of the collection
    cell: Place
    rows: list[str] = []
    columns: list[str] = []


class Claim(Strict):
    """A comparison that the paper makes: rows with another row, or columns with another column.

    The printed values give its direction; `direction` gives it if they have none, or says that both are
    alike.
    """

    rows: list[str] = []  # default: all rows except `against`
    columns: list[str] = []
    against: str = ""  # a row
    against_column: str = ""
    direction: Direction = ""

    @model_validator(mode="after")
    def _against_one(self) -> Self:
        if bool(self.against) == bool(self.against_column):
            raise ValueError("give either `against` or `against_column`")
        return self


class Curve(Strict):
    """Points of a figure that the paper prints: y by x, as printed."""

    name: str
    points: dict[str, str]


class Drawing(Strict):
    """A figure or a table of ours, in the report or in one of its analyses, by its title."""

    collection: str
    members: list[str]
    analysis: str = ""
    title: str
    curves: list[Curve] = []  # drawn with our curves


class Exhibit(Strict):
    """A table or a figure."""

    kind: Kind
    number: Positive
    page: Positive  # of the paper, counted from its first
    section: str
    title: str
    heading: str
    columns: Annotated[list[Column], Field(min_length=1)]
    rows: Annotated[list[Row], Field(min_length=1)]
    result: bool = True  # false: a setting or a list, which nothing can confirm
    sources: list[Source] = []
    claims: list[Claim] = []
    drawings: list[Drawing] = []
    differs: list[str] = []  # which quantities differ from the paper's
    missing: str = ""  # what none of our studies measures, and why

    @property
    def key(self) -> str:
        return f"{self.kind}-{self.number}"

    @property
    def label(self) -> str:
        return f"{self.kind.capitalize()} {self.number}"

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        rows, columns = [row.title for row in self.rows], [column.title for column in self.columns]
        for kind, titles in (("row", rows), ("column", columns)):
            if len(set(titles)) < len(titles):
                raise ValueError(f"two {kind}s have one title")
        for row in self.rows:
            if len(row.values) != len(columns):
                values = counted(len(row.values), "value")
                raise ValueError(f"row {row.title!r} has {values} for {counted(len(columns), 'column')}")
        for source in self.sources:
            _known("row", source.rows, rows)
            _known("column", source.columns, columns)
        for claim in self.claims:
            _known("row", filter(None, [claim.against, *claim.rows]), rows)
            _known("column", filter(None, [claim.against_column, *claim.columns]), columns)
        return self


def _known(kind: str, used: Iterable[str], titles: Sequence[str]) -> None:
    for title in used:
        if title not in titles:
            raise ValueError(f"there is no {kind} {title!r}")


HERE = Path(__file__).parent
NAMES = ("scones", "nvs", "entmax")

Model = TypeVar("Model", bound=BaseModel)


@cache
def papers() -> Mapping[str, Paper]:
    return MappingProxyType({name: _read(HERE / name / "paper.yaml", Paper) for name in NAMES})


@cache
def exhibits(name: str) -> tuple[Exhibit, ...]:
    """Return the tables, then the figures of a paper, by their numbers."""
    files = [path for path in (HERE / name).glob("*.yaml") if path.stem != "paper"]
    read = [_exhibit(path) for path in files]
    return tuple(sorted(read, key=lambda exhibit: (exhibit.kind == "figure", exhibit.number)))


def find_paper(name: str) -> Paper:
    """Return a paper. Raises InputError naming the papers."""
    if name not in papers():
        raise InputError(f"no paper {name!r}; the papers are {', '.join(NAMES)}")
    return papers()[name]


def find_exhibit(name: str, kind: Kind, number: int) -> Exhibit:
    """Return a table or figure. Raises InputError naming the paper's tables or figures."""
    paper = find_paper(name)
    of_kind = [exhibit for exhibit in exhibits(name) if exhibit.kind == kind]
    for exhibit in of_kind:
        if exhibit.number == number:
            return exhibit
    listed = ", ".join(exhibit.label for exhibit in of_kind or exhibits(name))
    raise InputError(f"the {paper.short} paper has no {kind} {number} with results; it has {listed}")


@cache
def settings_of(file: str, overrides: tuple[str, ...]) -> Mapping[str, Any] | None:
    """Return the spec of a collection's study as distributed; None if the studies are not installed."""
    from creamtea.study.loader import load_study  # slow to import: it has all methods

    for root in (HERE.parents[2], Path(sys.prefix) / "share" / "creamtea"):  # a checkout, a wheel
        if (root / file).is_file():
            return load_study(root / file, overrides).spec
    return None


def _exhibit(path: Path) -> Exhibit:
    read = _read(path, Exhibit)
    if read.key != path.stem:
        raise ValueError(f"{path} holds {read.key}")
    return read


def _read(path: Path, model: type[Model]) -> Model:
    document = read_document(path)
    if document.mistakes:
        raise StudyErrors([mistake.line() for mistake in document.mistakes], document.name)
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        raise ValueError(f"{path}: {error}") from None


SIZES: Mapping[Size, str] = {"paper": "at the paper's size", "ours": "at our size"}
MAX_DEPTH = 5  # of names within names
NO_VALUES = ("", "-", "–")  # printed in a table for no value


@dataclass(frozen=True)
class WantedCell:
    """A cell of ours that belongs to a cell of the paper. Several members stand for their mean."""

    collection: str
    members: tuple[str, ...]
    place: Place


def wanted_cells(
    paper: Paper, exhibit: Exhibit, size: Size, row: Row, column: Column
) -> Iterator[WantedCell]:
    """Yield the cells of studies of this size; the first is the one to show."""
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
            yield WantedCell(source.collection, known if member == EVERY else (member,), place)


def members_of(paper: Paper, exhibit: Exhibit) -> list[tuple[str, str]]:
    """Return (collection, member) of each study that has cells or figures of the exhibit."""
    members = {
        (wanted.collection, member): None
        for size in SIZES
        for row in exhibit.rows
        for column in exhibit.columns
        for wanted in wanted_cells(paper, exhibit, size, row, column)
        for member in wanted.members
    }
    members |= {
        (drawing.collection, member): None for drawing in exhibit.drawings for member in drawing.members
    }
    return list(members)


def share_run(paper: Paper, exhibit: Exhibit, size: Size) -> tuple[int, int]:
    """Count the printed values that studies of this size have measured, and all printed values."""
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
    """Replace the names in braces, also within names. KeyError for a missing name."""
    for _ in range(MAX_DEPTH):
        if "{" not in template:
            return template
        template = template.format_map(names)
    raise ValueError(f"{template!r}: a name stands for itself")


def _filled_place(place: Place, names: Names) -> Place:
    filled = {
        key: _filled(value, names) if isinstance(value, str) else [_filled(entry, names) for entry in value]
        for key, value in place
        if isinstance(value, str | list)
    }
    return place.model_copy(update=filled)


def why_no_value(paper: Paper, exhibit: Exhibit, size: Size, row: Row, column: Column) -> str:
    """Say why no study of this size has the cell: one of another size has it, or no study has it."""
    for other in SIZES:
        wanted = () if other == size else wanted_cells(paper, exhibit, other, row, column)
        for cell in wanted:
            return f"only a study {SIZES[other]} has this cell: {paper.collections[cell.collection].title}"
    return "none of our studies measures this"


class Status(StrEnum):
    PAPER_SIZE = f"run {SIZES['paper']}"
    OUR_SIZE = f"run {SIZES['ours']}"
    NOT_RUN = "specified, not run"
    NOT_SPECIFIED = "not specified"
    NO_RESULT = "not a result"


def status_of(paper: Paper, exhibit: Exhibit) -> Status:
    """Return the size at which the exhibit's collections ran; it does not tell what came out."""
    used = collections_of(paper, exhibit).values()
    if not exhibit.result:
        return Status.NO_RESULT
    for size, status in (("paper", Status.PAPER_SIZE), ("ours", Status.OUR_SIZE)):
        if any(collection.size == size and collection.ran for collection in used):
            return status
    return Status.NOT_RUN if used else Status.NOT_SPECIFIED


def status_words(paper: Paper, exhibit: Exhibit) -> str:
    """Name the status, with the share of the paper's cells that ran: "run at our size: 15 of 156 cells"."""
    status = status_of(paper, exhibit)
    if status not in (Status.PAPER_SIZE, Status.OUR_SIZE):
        return status
    size: Size = "paper" if status == Status.PAPER_SIZE else "ours"
    run, cells = share_run(paper, exhibit, size)
    used = [paper.collections[drawing.collection] for drawing in exhibit.drawings]
    drawn = any(collection.size == size and collection.ran for collection in used)
    return f"{status}: {run} of {cells} cells" + (", and the figure" if drawn else "")


def collections_of(paper: Paper, exhibit: Exhibit) -> dict[str, Collection]:
    """Return the collections with cells or figures of the exhibit, by name."""
    parts: tuple[Source | Drawing, ...] = (*exhibit.sources, *exhibit.drawings)
    names = dict.fromkeys(part.collection for part in parts)
    return {name: paper.collections[name] for name in names}
