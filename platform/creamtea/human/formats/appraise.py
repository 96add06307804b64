"""Ratings that Appraise exported, in the layouts of the WMT releases: one line per score, no header.

| fields | what they are | where |
|---|---|---|
| 9 | user, system, segment, type, source language, target language, score, start, end | segment by segment |
| 11 | the same, with document and "is it a document's score" (True, False) before start | by document |
| 12 | the same, with the marked errors (JSON) before start | ESA and MQM campaigns |
| 12 | HIT, worker, source, target, "ad", HIT number, system, rating, type, segment, score, seconds | MTurk, |
|    | a header, fields parted by tabs and blanks | crowd DA |

`--batch-info` adds two fields at the end, the numbers of batch and item, and where pairs were rated a third,
the output's place in its pair. Of a width with two meanings, the one is meant that has numbers as start and
end.

Sources: https://github.com/wmt-conference/wmt22-news-systems/tree/main/humaneval (header.SegLvl.csv,
header.DocLvl.csv; ad-*.csv of the MTurk layout),
https://github.com/wmt-conference/wmt23-news-systems/blob/main/humaneval/DA+SQM/CSV-format.md and
`ExportSystemScoresToCSV` of https://github.com/AppraiseDev/Appraise.

Types: TGT (SYSTEM) is a rated output; BAD (BAD_REF) a bad reference and CHK, REP (REPEAT) a repeat, each of
the same system's output of that segment; REF is the human translation shown in place of the system that its
line names: it counts for a system of its own, "reference". Scores of whole documents and of practice
(documents with "tutorial" in their names) are left out, and counted. So are lines that repeat an earlier one
but for their end: one page, sent twice. A rater who opens an output again and rates it gives a second opinion
(WMT's scripts average them), on an item of its own.

Places of errors are those of Appraise's page: indices of a JavaScript string, from 0, the last one included,
in the text without white space at its ends (`code_units`). Errors that were marked beforehand (ESA with AI)
have no `error_type` while the rater leaves them where they are, and their `end_i` is one past the last
character; those behind the text are omissions. What the rater deleted is not in the file.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from creamtea.errors import InputError
from creamtea.human.formats.columns import checked_name, checked_text, checked_whole
from creamtea.human.formats.elsewhere import given_cost
from creamtea.human.formats.files import csv_records, other_separator, read_text
from creamtea.human.formats.losses import known_keys
from creamtea.human.formats.statistics import RaterStatistics
from creamtea.human.protocols.da import Da
from creamtea.store.item_kinds import ItemKind
from creamtea.wording import counted, option
from creamtea.words import meant

REFERENCE = "reference"
KINDS = {
    "TGT": ItemKind.RATED,
    "REF": ItemKind.RATED,
    "BAD": ItemKind.BAD_REFERENCE,
    "CHK": ItemKind.REPEAT,
    "REP": ItemKind.REPEAT,
}
MTURK_TYPES = {"SYSTEM": "TGT", "BAD_REF": "BAD", "REPEAT": "REP", "REF": "REF"}
MTURK_HEADER = "HITId"
APPRAISE = ("user", "system", "segment", "type", "source language", "target language", "score")
TIMES = ("start", "end")
BATCH = ("batch", "number of the item", "place in the pair")  # --batch-info; the third only of pairs
LAYOUTS = [
    (*APPRAISE, *before, *TIMES, *BATCH[:more])
    for before in ((), ("document", "is document"), ("document", "is document", "errors"))
    for more in (0, 2, 3)
]
MTURK = (
    "HIT",
    "user",
    "source language",
    "target language",
    "item",
    "HIT number",
    "system",
    "rating",
    "type",
    "segment",
    "score",
    "seconds",
)
# PAIR-HIT-DOCUMENT-ITEM.N_N of the documents of 2021, whose item is of one HIT and system
MTURK_PLACE = re.compile(r"[^-]+-[^-]+-\d+-(?P<document>\d+)-\d+\.\d+_(?P<segment>\d+)")
DAY = 24 * 3600
PART = "#"  # DOCUMENT#SYSTEM
PRACTICE = "tutorial"  # in the name of a document
FILLING = ("incomplete", "dup")  # DOCUMENT#dup: documents that fill a task up, which WMT 2024 leaves out
ERROR_KEYS = ("start_i", "end_i", "severity", "error_type", "score")
MISSING = "missing"  # where an omission is marked
WHOLE = 1e-3  # how far from a whole number a score turned back may be: statistics have five digits

HEADERS = ("username", "UserID")  # first words of the releases' headers

T = TypeVar("T")


@dataclass(frozen=True)
class Rated:
    """One score as the file has it."""

    line: int
    rater: str
    system: str
    kind: ItemKind
    segment: int
    document: str
    score: int  # from 0 to 100
    errors: Sequence[Mapping[str, Any]]  # marked
    source_language: str
    target_language: str
    start: datetime | None
    end: datetime | None
    batch: bool = False  # with numbers of batch and item

    @property
    def pair(self) -> tuple[str, str]:
        return self.source_language, self.target_language

    @property
    def active_ms(self) -> int | None:
        return None if self.start is None or self.end is None else milliseconds(self.start, self.end)


@dataclass(frozen=True)
class Placed:
    """Ratings by their segments within documents."""

    ratings: tuple[Rated, ...]
    per_document: bool  # whether the campaign calls documents DOCUMENT#SYSTEM
    guessed: int = 0  # ratings of parts that may be a document's beginning or its end


@dataclass(frozen=True)
class AppraiseFile:
    name: str
    placed: Placed
    sent_twice: tuple[int, ...]  # lines that differ from an earlier one at most in their end, left out
    left_out: Mapping[tuple[str, str], Counter[str]]  # by language pair: what else
    crowd: bool  # of Mechanical Turk
    has_errors: bool  # whether the lines have a field for marked errors

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return sorted({rating.pair for rating in self.placed.ratings})


def milliseconds(start: datetime, end: datetime) -> int | None:
    """From one to the other; None for what no rater spends on one output: 0, less, or more than a day."""
    passed = round((end - start).total_seconds() * 1000)
    return passed if 0 < passed <= DAY * 1000 else None


def read_appraise(path: Path, statistics: Mapping[str, RaterStatistics] | None = None) -> AppraiseFile:
    """The scores in the file. InputError with file, line, field, what was found and what is allowed.

    Where documents are called DOCUMENT#SYSTEM (ESA and MQM campaigns), segments are counted within them from
    1. `statistics`: of the raters, by whose means and deviations the file's scores were standardised (z).
    """
    ratings: list[Rated] = []
    sent_twice: list[int] = []
    left_out: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    names: tuple[str, ...] = ()
    known: set[tuple[str, ...]] = set()
    for line, names, cells in _lines(path):
        sent = tuple(cell for name, cell in zip(names, cells, strict=True) if name != "end")
        if sent in known:
            sent_twice.append(line)
            continue
        known.add(sent)
        reading = _Reading(f"{path.name}, line {line}", _fields(names, cells))
        if (why := reading.left_out()) is not None:
            left_out[reading.pair][why] += 1
            continue
        if statistics is not None:
            reading = reading.with_raw_score(statistics)
        ratings.append(reading.rated(line, left_out[reading.pair]))
    if not ratings:
        raise InputError(f"{path.name}: no scores of segments in it")
    crowd, has_errors = "HIT" in names, "errors" in names
    placed = within_documents(ratings)
    return AppraiseFile(path.name, placed, tuple(sent_twice), left_out, crowd, has_errors)


def _lines(path: Path) -> Iterator[tuple[int, tuple[str, ...], list[str]]]:
    """(line, names of the fields, fields): Appraise's are parted by commas, MTurk's by tabs and blanks."""
    records = csv_records(path)
    first = next(records, None)
    if first is None:
        raise InputError(f"{path.name}: an empty file")
    if first[1][0].split()[0:1] == [MTURK_HEADER]:
        for line, text in enumerate(read_text(path).split("\n")[1:], start=2):
            if cells := [cell.strip('"') for cell in text.replace(",", " ").split()]:
                yield line, MTURK, _of_crowd(path.name, line, cells)
        return
    if first[1][0] in HEADERS:
        first = next(records, None)  # the releases keep the header in a file of its own; it may be put on top
    while first is not None:
        line, cells = first
        yield line, _layout(path.name, line, cells), cells
        first = next(records, None)


def _layout(file: str, line: int, cells: list[str]) -> tuple[str, ...]:
    """The names of the fields."""
    fitting = [layout for layout in LAYOUTS if len(layout) == len(cells)]
    if not fitting:
        if (wrong := other_separator(cells, {len(layout) for layout in LAYOUTS})) is not None:
            raise InputError(f"{file}, line {line}: {wrong}")
        raise InputError(
            f"{file}, line {line}: found {counted(len(cells), 'field')}; allowed: 9 or 11 or 12, and 2 or 3 "
            "more with Appraise's --batch-info (docs/exchange.md)"
        )
    numbered = (one for one in fitting if all(_is_number(cells[one.index(time)]) for time in TIMES))
    return next(numbered, fitting[-1])


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _of_crowd(file: str, line: int, cells: list[str]) -> list[str]:
    if len(cells) != len(MTURK):
        raise InputError(f"{file}, line {line}: found {counted(len(cells), 'field')}; allowed: {len(MTURK)}")
    return cells


def _fields(names: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    """A line's; the crowd's files may have the document within the segment."""
    fields = dict(zip(names, cells, strict=True))
    place = MTURK_PLACE.fullmatch(fields["segment"]) if "HIT" in fields else None
    return fields if place is None else {**fields, **place.groupdict()}


@dataclass(frozen=True)
class _Reading:
    """The fields of a line by their names."""

    place: str
    cells: dict[str, str]

    @property
    def pair(self) -> tuple[str, str]:
        return self.cells["source language"], self.cells["target language"]

    def left_out(self) -> str | None:
        """What the line is that no campaign keeps; None for a score of an output."""
        document = self.cells.get("document", "")
        if "is document" in self.cells and self.field("is document", _truth, "True or False"):
            return "scores of whole documents"
        if PRACTICE in document:
            return "scores of practice (tutorials)"
        if any(part.startswith(FILLING) for part in document.split(PART)[1:]):
            return "scores of documents that fill a task up (#incomplete, #dup)"
        return None

    def field(self, name: str, parse: Callable[[str], T], allowed: str) -> T:
        try:
            return parse(self.cells[name])
        except ValueError:
            cell = self.cells[name]
            raise InputError(f"{self.place}, field {name}: found {cell[:60]!r}; allowed: {allowed}") from None

    def with_raw_score(self, statistics: Mapping[str, RaterStatistics]) -> _Reading:
        """With the score that was given, z · s + μ, instead of z."""
        rater = self.cells["user"]
        if rater not in statistics:
            rater = meant(rater, statistics)
        if rater not in statistics:
            raise InputError(
                f"{self.place}: no mean and deviation of {rater!r} in {option('rater-statistics')}",
                about="rater-statistics",
            )
        z = self.field("score", float, "a number (z)")
        score = z * statistics[rater].deviation + statistics[rater].mean
        if not math.isfinite(score) or abs(score - round(score)) > WHOLE:
            raise InputError(
                f"{self.place}, field score: z {z:g} of {rater} is a score of {score:.3f}; allowed: a whole "
                f"number ({option('rater-statistics')} must be those by which the file was standardised)",
                about="rater-statistics",
            )
        return replace(self, cells={**self.cells, "score": str(round(score))})

    def rated(self, line: int, left: Counter[str]) -> Rated:
        mturk = "HIT" in self.cells
        types = MTURK_TYPES if mturk else {name: name for name in KINDS}
        kind = self.field("type", lambda cell: types[_known(cell, types)], f"one of {', '.join(types)}")
        scale = (
            f"a whole number from 0 to 100 ({option('rater-statistics')} FILE turns standardised scores back)"
        )
        name = "text that is not blank"
        moment = "seconds since 1970"
        return Rated(
            line=line,
            rater=self.field("user", checked_name, name),
            system=REFERENCE if kind == "REF" else self.field("system", checked_name, name),
            kind=KINDS[kind],
            segment=self.field("segment", checked_whole, "a whole number"),
            document=self.field("document", checked_text, "text") if "document" in self.cells else "",
            score=self.field("score", Da.scale.step_of, scale),
            errors=self._errors(left),
            source_language=self.field("source language", checked_name, name),
            target_language=self.field("target language", checked_name, name),
            start=None if mturk else self.field("start", _moment, moment),
            end=None if mturk else self.field("end", _moment, moment),
            batch="batch" in self.cells,
        )

    def _errors(self, left: Counter[str]) -> list[dict[str, Any]]:
        """The marked errors as spans, with places as Appraise counts; `prefilled` says that an error was
        marked beforehand. `left` counts what is not kept of them."""
        written = self.cells.get("errors", "").strip()
        try:
            marked = json.loads(written) if written else []
            return [_span(**known_keys(error, ERROR_KEYS, "errors", left)) for error in marked]
        except (TypeError, AttributeError, RecursionError, json.JSONDecodeError):
            allowed = "a JSON list of errors with start_i, end_i, severity and error_type"
            raise InputError(
                f"{self.place}, field errors: found {written[:60]!r}; allowed: {allowed}"
            ) from None
        except ValueError as error:
            raise InputError(f"{self.place}, field errors: {error}") from None


_NO_TYPE: Any = object()


def _span(
    start_i: int | str,
    end_i: int | str,
    severity: str,
    error_type: Any = _NO_TYPE,
    score: float | None = None,
) -> dict[str, Any]:
    """ValueError for places that no error has."""
    place = {}
    if not start_i == end_i == MISSING:
        if not (type(start_i) is int and type(end_i) is int and 0 <= start_i <= end_i):
            raise ValueError(
                f"found an error from {start_i!r} to {end_i!r}; allowed: its first and its last character, "
                f"counted from 0, or {MISSING!r} for both"
            )
        place = {"start": start_i, "end": end_i}
    prefilled = {"prefilled": True} if error_type is _NO_TYPE else {}
    names = () if error_type is _NO_TYPE or error_type is None else error_type
    category = [names] if isinstance(names, str) else list(names)
    return {**place, "severity": severity, "category": category, **given_cost(score), **prefilled}


def within_documents(ratings: Sequence[Rated]) -> Placed:
    """ESA and MQM campaigns call a document DOCUMENT#SYSTEM (a bad reference DOCUMENT#SYSTEM#bad1) and number
    a rater's items throughout, a document's one after another. Here a segment is its place in the part of
    the document that the campaign has, from 1, so that systems share segments. Others stay as they are: files
    of 2024 number a segment as the test set does, DOCUMENT#bad1, too.

    A document that did not fit into a rater's hundred items goes on with the next rater: where the parts of
    several raters have together the length that the document has elsewhere, they are its beginning, its
    middle and its end in the order of the raters' names. (In WMT 2023's ESA campaign there are 32 such
    parts of 16 documents; all have the published scores that way.) A part without the rest is the beginning,
    which is a guess where the rater's items begin with it.
    """
    if not any(_of_system(rating) for rating in ratings):
        named = (replace(rating, document=rating.document.partition(PART)[0]) for rating in ratings)
        return Placed(tuple(named), per_document=False)
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    begins: dict[str, int] = {}  # rater → the number of their first item
    for rating in ratings:
        groups[rating.document, rating.rater].append(rating.segment)
        begins[rating.rater] = min(begins.get(rating.rater, rating.segment), rating.segment)
    spans = {key: (min(segments), max(segments) - min(segments) + 1) for key, segments in groups.items()}
    longest: dict[str, int] = defaultdict(int)
    raters: dict[str, list[str]] = defaultdict(list)
    for (document, rater), (_, length) in sorted(spans.items()):
        name = document.partition(PART)[0]
        longest[name] = max(longest[name], length)
        raters[document].append(rater)
    first = {key: number for key, (number, _) in spans.items()}
    guessed = 0
    for document, people in raters.items():
        lengths = [spans[document, rater][1] for rater in people]
        whole = longest[document.partition(PART)[0]]
        if len(people) > 1 and sum(lengths) == whole:
            for at, rater in enumerate(people):
                first[document, rater] -= sum(lengths[:at])
            continue
        for rater, length in zip(people, lengths, strict=True):
            if length < whole and first[document, rater] == begins[rater]:
                guessed += len(groups[document, rater])
    placed = (
        replace(
            rating,
            document=rating.document.partition(PART)[0],
            segment=rating.segment - first[rating.document, rating.rater] + 1,
        )
        if PART in rating.document
        else rating
        for rating in ratings
    )
    return Placed(tuple(placed), per_document=True, guessed=guessed)


def _of_system(rating: Rated) -> bool:
    """DOCUMENT#SYSTEM; the system may have a prefix beside it (wmt23.SYSTEM)."""
    parts = rating.document.split(PART)
    return len(parts) > 1 and bool(parts[1]) and rating.system.endswith(parts[1])


def _known(cell: str, known: dict[str, str]) -> str:
    if cell not in known:
        raise ValueError
    return cell


def _truth(cell: str) -> bool:
    if cell not in ("True", "False"):
        raise ValueError
    return cell == "True"


def _moment(cell: str) -> datetime:
    try:
        return datetime.fromtimestamp(float(cell), UTC)
    except (OverflowError, OSError):
        raise ValueError from None


def occurrences(ratings: tuple[Rated, ...]) -> Iterator[tuple[Rated, int]]:
    """Each score with how many times its rater had rated that output (of that kind) before."""
    seen: dict[tuple[str, ...], int] = defaultdict(int)
    for rating in ratings:
        key = (rating.rater, rating.kind, rating.document, str(rating.segment), rating.system)
        yield rating, seen[key]
        seen[key] += 1
