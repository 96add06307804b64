"""What is known of a paper's table or figure: its values as printed, and which cells of ours correspond.

Texts of a source may hold names in braces (`scones-greedy+alpha={alpha}`), which the `names` of the row and
of the column fill. A source is of the cells whose row and column have all of its names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from creamtea.document.values import Above0, Name, Positive, Seed, Strict
from creamtea.wording import counted

Size = Literal["paper", "ours"]
Kind = Literal["table", "figure"]
Direction = Literal["", "higher", "lower", "alike"]  # of the first value that a claim compares
Names = dict[str, str]

_NUMBER = re.compile(r"[-−+]?\d[\d,]*(?:\.\d+)?")


def number(printed: str | None) -> float | None:
    """The number that a printed value begins with: 27.72 of "27.72 ± 0.11", 121 of "121M". None for words."""
    match = _NUMBER.match(printed or "")
    return float(match[0].replace(",", "").replace("−", "-")) if match else None


# ---------------------------------------------------------------- studies


class Member(Strict):
    """One study of a collection: the folder of its files, and the values that it replaces."""

    name: Name
    data: str = "DIR"
    overrides: list[str] = []


class Collection(Strict):
    """Studies from one file, one for each language direction, say."""

    title: str
    size: Size
    file: str  # below the root of the distribution's studies: "studies/scones-multi30k.yaml"
    members: Annotated[dict[str, Member], Field(min_length=1)]
    ran: str = ""  # the page of docs/ that has its results
    not_run: str = ""  # why it has none

    @model_validator(mode="after")
    def _ran_or_why_not(self) -> Self:
        if bool(self.ran) == bool(self.not_run):
            raise ValueError("give either `ran` or `not_run`")
        return self

    def command(self, key: str) -> str:
        """What makes and runs the member: "creamtea submit FILE --data DIR --set name=…"."""
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
    """A column as printed. `factor` turns our number into its unit, by default as our reports show it."""

    title: str
    digits: Annotated[int, Field(ge=0, le=6)] = 1
    unit: str = ""
    factor: Above0 | None = None
    names: Names = {}


class Row(Strict):
    """Values as printed, one per column; null where no copy of the paper that we have prints one."""

    title: str
    values: list[str | None]
    names: Names = {}


class OfSystem(Strict):
    """A cell of the table of systems. Of several systems the best by the metric on the test set
    `chosen_on`."""

    test_set: str
    system: str | list[str]
    metric: str
    percent_of: str = ""  # a latency as a percentage of this system's
    per_second: bool = False  # milliseconds per sentence as sentences per second
    chosen_on: str = ""
    choice: dict[str, str] = {}  # show which system was chosen, in these words


class OfAnalysis(Strict):
    """A cell of a table of an analysis: its row (a variant or a system) and the row's setting."""

    analysis: str
    row: str
    setting: str = ""
    measure: str


class OfTraining(Strict):
    variant: str
    seed: Seed = 1
    measure: str


class OfCorpus(Strict):
    corpus: str
    measure: str


class OfSelection(Strict):
    """The numbers that a system's selection holds: k per word of a lexicon, the weights of an NVS head."""

    selection_of: str  # system


class OfIdiom(Strict):
    """The subwords of an idiom's translation that a system's selection misses."""

    test_set: str
    idiom: str
    missed_by: str  # system


Place = OfSystem | OfAnalysis | OfTraining | OfCorpus | OfSelection | OfIdiom


EVERY = "*"


class Source(Strict):
    """Which cells of ours correspond, for the named rows and columns (all where none is named)."""

    collection: str
    member: str  # "*": the mean over all studies of the collection
    cell: Place
    rows: list[str] = []
    columns: list[str] = []


class Claim(Strict):
    """What the paper compares: rows with another row of the same column, or a column with another of the
    same row. Its direction is that of the printed values; `direction` gives it where they have none, or says
    that the two are alike."""

    rows: list[str] = []  # all where none is named, but the one that they are compared with
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
    """A figure or a table of ours: of an analysis or of the report, by its title."""

    collection: str
    members: list[str]
    analysis: str = ""
    title: str
    curves: list[Curve] = []  # drawn among ours


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
    differs: list[str] = []  # what is another quantity here than in the paper
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
