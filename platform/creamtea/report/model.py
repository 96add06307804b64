"""The model of a report: a document of blocks, built once from the database's rows.

A printer (terminal, Markdown, HTML, page, JSON) shows every block and computes nothing. A cell is never empty
without a reason: it has a value or words, or a state other than "ok" and a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from creamtea.contract.step import Column
from creamtea.document.mistakes import StudyWarning
from creamtea.stats.estimate import Spread, p_with_seeds, spread_of_mean, widened

CONTENTS_LEVELS = 2  # levels of headings in a table of contents

# ---------------------------------------------------------------- cells


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


SEEDS_MISSING = "not marked: the score of a seed is missing, and with it the interval over seeds"
ONE_SEED = (
    "not marked: one side has a single seed or is an ensemble and the other has several seeds, so the first "
    "side's variation over seeds is unknown"
)
UNMARKED = (SEEDS_MISSING, ONE_SEED)  # differences with these notes are never marked


@dataclass(frozen=True)
class PValue:
    """The two-sided p-value of one test; None if the test gives none."""

    value: float | None = None
    corrected: float | None = None  # Holm's, over the comparisons of a test set and metric


@dataclass(frozen=True)
class Delta:
    """A system's difference on one metric from the system it is compared with, paired over segments.

    `p_values` are named by their test. For a metric: "bootstrap" and "randomization" (absent from comparisons
    of an earlier version); for human scores: "t" and "signed_rank". Fields `seeds_*` and `p_seeds` cover
    segments and seeds, if either side has several.
    """

    state: str
    note: str = ""
    value: float | None = None
    low: float | None = None  # 95 %
    high: float | None = None
    seeds_low: float | None = None  # 95 %, with seeds
    seeds_high: float | None = None
    spread: Spread | None = None  # the error over seeds alone
    p_values: Mapping[str, PValue] = field(default_factory=dict)
    p_sacrebleu: float | None = None  # of the bootstrap, as sacreBLEU prints it
    p_seeds: float | None = None  # with seeds
    p_seeds_corrected: float | None = None
    significant: bool = False  # all its corrected p-values are below SIGNIFICANT

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """The interval over segments and seeds if it is known, else over segments alone."""
        known = self.seeds_low is not None
        return (self.seeds_low, self.seeds_high) if known else (self.low, self.high)

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval of `bounds` excludes 0; False without an interval."""
        low, high = self.bounds
        return low is not None and high is not None and (low > 0 or high < 0)

    def scaled(self, factor: float) -> Delta:
        """Return the difference times `factor`; a factor of −1 swaps the two systems."""
        ends = (self.low, self.high, self.seeds_low, self.seeds_high)
        low, high, seeds_low, seeds_high = (_times(end, factor) for end in ends)
        if factor < 0:
            low, high, seeds_low, seeds_high = high, low, seeds_high, seeds_low
        of_segments = replace(self, value=_times(self.value, factor), low=low, high=high)
        spread = self.spread and replace(self.spread, square=self.spread.square * factor**2)
        return replace(of_segments, seeds_low=seeds_low, seeds_high=seeds_high, spread=spread)

    def with_seeds(self, spread: Spread) -> Delta:
        """Add the error over seeds to the error over segments."""
        if self.value is None or self.low is None or self.high is None:
            return self
        known = self.value, self.low, self.high
        low, high = widened(*known, spread)
        p = p_with_seeds(*known, spread)
        return replace(self, seeds_low=low, seeds_high=high, p_seeds=p, spread=spread)


@dataclass(frozen=True)
class Percent:
    """A time as a percentage of a baseline's time, measured in alternating repetitions."""

    value: float
    low: float | None = None  # 95 %; none for the baseline itself
    high: float | None = None


@dataclass(frozen=True)
class Cell:
    """A value, or the reason why there is none.

    `state` is "ok", "partial" (a mean over some of the seeds), or one of `text.STATE_WORDS`: then there is no
    value, and `note` says why.
    """

    state: str
    note: str = ""
    value: float | None = None  # mean over seeds
    low: float | None = None  # 95 % interval; with several seeds, the mean of their bounds
    high: float | None = None
    deviation: float | None = None  # sample standard deviation over seeds
    seeds: int = 0  # number of seeds with a value
    percents: dict[str, Percent] = field(default_factory=dict)  # by latency baseline, in order
    delta: Delta | None = None
    words: str = ""  # shown in place of the number: a verdict, a p-value, a range of ranks
    by_definition: bool = False  # the same whatever the system does, so never marked as best

    @property
    def spread(self) -> Spread | None:
        """The mean's error over seeds; None if only one seed has a value."""
        return None if self.deviation is None else spread_of_mean(self.deviation, self.seeds)

    def scaled(self, factor: float) -> Cell:
        """Return the cell in another unit."""
        numbers = (self.value, self.low, self.high, self.deviation)
        value, low, high, deviation = (_times(number, factor) for number in numbers)
        return replace(self, value=value, low=low, high=high, deviation=deviation)


# ---------------------------------------------------------------- blocks


@dataclass(frozen=True)
class Row:
    name: str  # of a system, a variant, a rater …
    cells: dict[str, Cell]  # by column key
    setting: str = ""  # tells rows with the same name apart: "beam 4"
    description: str = ""  # what a system decodes with
    baseline: bool = False  # compared with nothing in this table
    against: str = ""  # what it is compared with


@dataclass(frozen=True)
class ColumnGroup:
    """Columns that a reader shows and hides together."""

    title: str
    one_of: str  # groups with the same word are shown one at a time; "" for none
    shown: bool  # initially


@dataclass(frozen=True)
class Table:
    key: str
    title: str
    heading: str  # of the rows' names: "variant, beam"
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    about: str = ""
    folded: bool = False  # on a page, hidden until opened

    def groups(self) -> list[ColumnGroup]:
        """Return the groups of the columns, in their order; empty if there is nothing to choose."""
        groups: dict[str, ColumnGroup] = {}
        begun: set[str] = set()
        for column in self.columns:
            if column.group and column.group not in groups:
                shown = not column.one_of or column.one_of not in begun
                groups[column.group] = ColumnGroup(column.group, column.one_of, shown)
                begun.add(column.one_of)
        return list(groups.values()) if len(groups) > 1 else []


Spec = dict[str, Any]  # of Vega-Lite


@dataclass(frozen=True)
class Figure:
    key: str
    title: str
    spec: Spec  # without its title and its data
    rows: tuple[dict[str, Any], ...]  # its data, a row per point; empty if there is nothing to draw
    missing: tuple[str, ...] = ()  # what is not drawn, and why: "scones (pending)"
    about: str = ""
    choice: tuple[str, ...] = ()  # the options that show it, if it belongs to a choice


@dataclass(frozen=True)
class Choice:
    """Figures that a page shows one at a time; figures with the same `choice` stand side by side."""

    key: str
    title: str
    names: tuple[str, ...]  # what a reader chooses: ("Metric",)
    figures: tuple[Figure, ...]  # their `choice` has a value for each name
    absent: str  # why there are no figures


@dataclass(frozen=True)
class Passage:
    """A text of a user, a model or a step."""

    label: str
    text: str
    language: str = ""  # empty for a message

    @property
    def has_lines(self) -> bool:
        """Whether a printer keeps the line breaks: in messages, not in text of a language."""
        return not self.language and "\n" in self.text.strip()


@dataclass(frozen=True)
class Entry:
    """A text in a list, with the numbers that put it there."""

    name: str
    numbers: tuple[tuple[Column, Cell], ...]
    passages: tuple[Passage, ...]


@dataclass(frozen=True)
class Texts:
    key: str
    title: str
    about: str
    entries: tuple[Entry, ...]
    folded: bool = False


@dataclass(frozen=True)
class Notes:
    """Text that explains the blocks beside it; a `lead` opens the report."""

    key: str
    paragraphs: tuple[str, ...]
    lead: bool = False


@dataclass(frozen=True)
class Warnings:
    """Reasons to doubt the results, in a box that nobody overlooks."""

    key: str
    warnings: tuple[StudyWarning, ...]


@dataclass(frozen=True)
class Fact:
    label: str
    value: str | int | datetime | tuple[str, ...]
    code: bool = False  # a hash, a signature


@dataclass(frozen=True)
class Facts:
    key: str
    title: str
    facts: tuple[Fact, ...]
    folded: bool = False


@dataclass(frozen=True)
class Section:
    """Blocks under one heading; an untitled section has the headings of its blocks."""

    key: str
    title: str
    blocks: tuple[Block, ...]
    about: str = ""
    facts: tuple[str, ...] = ()  # beside the heading: "2,000 segments"
    test_set: str = ""  # if all blocks are about one test set
    folded: bool = False

    def only(self, test_set: str) -> Section | None:
        """Return the section without other test sets' sections; None if nothing is left."""
        if self.test_set not in ("", test_set):
            return None
        blocks = (block.only(test_set) if isinstance(block, Section) else block for block in self.blocks)
        kept = tuple(block for block in blocks if block is not None)
        had, has = (any(isinstance(block, Section) for block in blocks) for blocks in (self.blocks, kept))
        return None if had and not has else replace(self, blocks=kept)


Block = Section | Table | Figure | Choice | Texts | Notes | Warnings | Facts
Kind = TypeVar("Kind", Section, Table)


# ---------------------------------------------------------------- documents


@dataclass(frozen=True)
class Heading:
    """An entry of a table of contents."""

    level: int  # from 1
    title: str
    path: str  # of its block


@dataclass(frozen=True)
class Document:
    """The report of a study or a campaign, or a paper's table or figure beside ours.

    Keys are unique among neighbours, so that a block has a path.
    """

    kind: str  # "study", "campaign" or "paper"
    name: str
    number: int  # in the database, or in its paper
    state: str
    about: str
    facts: tuple[Fact, ...]
    test_sets: tuple[str, ...]
    sections: tuple[Section, ...]

    def walk(self) -> Iterator[tuple[str, Block]]:
        """Yield every block with its path, a section before its blocks."""
        return _walk(self.sections, "")

    def contents(self) -> list[Heading]:
        """Return the entries of a table of contents: sections and their blocks, two levels of headings."""
        return list(_headings(self.sections, "", 1))

    def warnings(self) -> list[StudyWarning]:
        return [
            warning for _, block in self.walk() if isinstance(block, Warnings) for warning in block.warnings
        ]

    def table(self, path: str) -> Table:
        """Return the one table whose path ends with this one: "means", "systems/test". KeyError otherwise."""
        return self._one(path, Table)

    def section(self, path: str) -> Section:
        """Return the one section whose path ends with this one. KeyError otherwise."""
        return self._one(path, Section)

    def _one(self, path: str, kind: type[Kind]) -> Kind:
        at_path = (block for place, block in self.walk() if f"/{place}".endswith(f"/{path}"))
        matches = [block for block in at_path if isinstance(block, kind)]
        if len(matches) != 1:
            raise KeyError(f"{len(matches)} {kind.__name__.lower()}s end with {path!r}")
        return matches[0]

    def only(self, test_set: str, keep: Callable[[Section], bool] = lambda _: False) -> Document:
        """Remove what belongs to other test sets, except top sections that `keep` accepts."""
        sections = (section if keep(section) else section.only(test_set) for section in self.sections)
        kept = tuple(section for section in sections if section is not None)
        return replace(self, test_sets=(test_set,), sections=kept)


def _walk(blocks: tuple[Block, ...] | tuple[Section, ...], above: str) -> Iterator[tuple[str, Block]]:
    for block in blocks:
        path = f"{above}/{block.key}" if above else block.key
        yield path, block
        if isinstance(block, Section):
            yield from _walk(block.blocks, path)
        elif isinstance(block, Choice):
            yield from _walk(block.figures, path)


def _headings(blocks: Iterable[Block], above: str, level: int) -> Iterator[Heading]:
    """Yield the headings; an untitled section is replaced by the headings of its blocks."""
    for block in blocks:
        if not isinstance(block, Section | Choice) or level > CONTENTS_LEVELS:
            continue
        path = f"{above}/{block.key}" if above else block.key
        if block.title:
            yield Heading(level, block.title, path)
        if isinstance(block, Section):
            yield from _headings(block.blocks, path, level + bool(block.title))


def column_meanings(columns: Iterable[Column]) -> tuple[Facts, ...]:
    """Explain columns by their signatures or notes, under their titles. Empty if no column has either."""
    explained: dict[tuple[str, bool], dict[str, None]] = {}  # two tables may use one title
    for column in columns:
        if words := column.signature or column.note:
            explained.setdefault((column.title, bool(column.signature)), {})[words] = None
    facts = tuple(Fact(title, "; ".join(words), code) for (title, code), words in explained.items())
    return (Facts("columns", "What the columns mean", facts, folded=True),) if facts else ()
