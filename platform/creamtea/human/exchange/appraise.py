"""Ratings that Appraise exported, in the layouts of the WMT releases: one line per score, no header.

| fields | what they are | where |
|---|---|---|
| 9 | user, system, segment, type, source language, target language, score, start, end | segment by segment |
| 11 | the same, with document and "is it a document's score" (True, False) before start | by document |
| 12 | the same, with the marked errors (JSON) before start | ESA and MQM campaigns |
| 12 | HIT, worker, source, target, "ad", HIT number, system, rating, type, segment, score, seconds | MTurk, |
|    | a header, fields parted by tabs and blanks | crowd DA |

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
in the text without white space at its ends (`code_units`).
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from creamtea.errors import InputError
from creamtea.human.exchange.columns import checked_name, checked_text, checked_whole
from creamtea.human.exchange.elsewhere import given_cost
from creamtea.human.exchange.files import csv_records, other_separator, read_text
from creamtea.human.exchange.statistics import RaterStatistics
from creamtea.human.protocols.base import Protocol
from creamtea.human.protocols.da import Da
from creamtea.store.item_kinds import ItemKind
from creamtea.wording import counted, option

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
LAYOUTS: dict[int, tuple[str, ...]] = {
    9: (*APPRAISE, "start", "end"),
    11: (*APPRAISE, "document", "is document", "start", "end"),
    12: (*APPRAISE, "document", "is document", "errors", "start", "end"),
}
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
    answer: int | dict[str, Any]  # a step, or a payload with the marked errors
    errors: int  # marked
    source_language: str
    target_language: str
    start: datetime | None
    end: datetime | None

    @property
    def active_ms(self) -> int | None:
        return None if self.start is None or self.end is None else milliseconds(self.start, self.end)


@dataclass(frozen=True)
class AppraiseFile:
    name: str
    ratings: tuple[Rated, ...]
    sent_twice: tuple[int, ...]  # lines that differ from an earlier one at most in their end, left out
    document_scores: int  # left out
    practice: int  # scores of tutorials, left out
    filling: int  # scores of documents that fill a task up, left out
    crowd: bool  # of Mechanical Turk

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return sorted({(rating.source_language, rating.target_language) for rating in self.ratings})


def milliseconds(start: datetime, end: datetime) -> int | None:
    """From one to the other; None for what no rater spends on one output: 0, less, or more than a day."""
    passed = round((end - start).total_seconds() * 1000)
    return passed if 0 < passed <= DAY * 1000 else None


def read_appraise(
    path: Path, protocol: Protocol, statistics: Mapping[str, RaterStatistics] | None = None
) -> AppraiseFile:
    """The scores in the file. InputError with file, line, field, what was found and what is allowed.

    Marked errors are read where the `protocol` has them, and counted elsewhere. Where documents are called
    DOCUMENT#SYSTEM (ESA and MQM campaigns), segments are counted within them from 1. `statistics`: of the
    raters, by whose means and deviations the file's scores were standardised (z).
    """
    ratings: list[Rated] = []
    sent_twice: list[int] = []
    document_scores = practice = filling = 0
    names: tuple[str, ...] = ()
    known: set[tuple[str, ...]] = set()
    for line, names, cells in _lines(path):
        sent = tuple(cell for name, cell in zip(names, cells, strict=True) if name != "end")
        if sent in known:
            sent_twice.append(line)
            continue
        known.add(sent)
        reading = _Reading(f"{path.name}, line {line}", _fields(names, cells))
        if "is document" in names and reading.field("is document", _truth, "True or False"):
            document_scores += 1
            continue
        if PRACTICE in reading.cells.get("document", ""):
            practice += 1
            continue
        if any(part.startswith(FILLING) for part in reading.cells.get("document", "").split(PART)[1:]):
            filling += 1
            continue
        if statistics is not None:
            reading = reading.with_raw_score(statistics)
        ratings.append(reading.rated(line, protocol))
    if not ratings:
        raise InputError(f"{path.name}: no scores of segments in it")
    placed = within_documents(ratings)
    return AppraiseFile(
        path.name, tuple(placed), tuple(sent_twice), document_scores, practice, filling, crowd="HIT" in names
    )


def _lines(path: Path) -> Iterator[tuple[int, tuple[str, ...], list[str]]]:
    """(line, names of the fields, fields): Appraise's are parted by commas, MTurk's by tabs and blanks."""
    records = csv_records(path)
    first = next(records, None)
    if first is None:
        raise InputError(f"{path.name}: an empty file")
    if first[1][0].split()[0:1] == [MTURK_HEADER]:
        for line, text in enumerate(read_text(path).split("\n")[1:], start=2):
            if cells := [cell.strip('"') for cell in text.replace(",", " ").split()]:
                yield line, MTURK, _counted(path.name, line, cells, (len(MTURK),))
        return
    if first[1][0] in HEADERS:
        first = next(records, None)  # the releases keep the header in a file of its own; it may be put on top
    while first is not None:
        line, cells = first
        yield line, LAYOUTS[len(_counted(path.name, line, cells, tuple(LAYOUTS)))], cells
        first = next(records, None)


def _counted(file: str, line: int, cells: list[str], allowed: tuple[int, ...]) -> list[str]:
    if len(cells) not in allowed:
        if (wrong := other_separator(cells, allowed)) is not None:
            raise InputError(f"{file}, line {line}: {wrong}")
        layouts = " or ".join(map(str, allowed))
        raise InputError(
            f"{file}, line {line}: found {counted(len(cells), 'field')}; allowed: {layouts} "
            "(docs/exchange.md)"
        )
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

    def rated(self, line: int, protocol: Protocol) -> Rated:
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
            answer=self._answer(self.field("score", Da.scale.step_of, scale), protocol),
            errors=len(self._errors()),
            source_language=self.field("source language", checked_name, name),
            target_language=self.field("target language", checked_name, name),
            start=None if mturk else self.field("start", _moment, moment),
            end=None if mturk else self.field("end", _moment, moment),
        )

    def _answer(self, score: int, protocol: Protocol) -> int | dict[str, Any]:
        if not protocol.marks_errors:
            return score
        own = {"score": score} if isinstance(protocol, Da) else {}
        return {**own, "spans": self._errors()}

    def _errors(self) -> list[dict[str, Any]]:
        """The marked errors as a payload has them."""
        written = self.cells.get("errors", "").strip()
        return self.field("errors", _spans, "a JSON list of errors") if written else []


def _spans(cell: str) -> list[dict[str, Any]]:
    try:
        return [_span(**error) for error in json.loads(cell)]
    except (TypeError, AttributeError, RecursionError):
        raise ValueError from None


def _span(
    start_i: int | str,
    end_i: int | str,
    severity: str,
    error_type: Sequence[str] | str | None = None,
    score: float | None = None,
) -> dict[str, Any]:
    place = {} if start_i == end_i == MISSING else {"start": start_i, "end": end_i}
    category = [error_type] if isinstance(error_type, str) else list(error_type or ())
    return {**place, "severity": severity, "category": category, **given_cost(score)}


def within_documents(ratings: Sequence[Rated]) -> list[Rated]:
    """ESA and MQM campaigns call a document DOCUMENT#SYSTEM (a bad reference DOCUMENT#SYSTEM#bad1) and number
    a rater's items throughout, a document's one after another. Here a segment is its place in the part of
    the document that the campaign has, from 1, so that systems share segments. Others stay as they are: files
    of 2024 number a segment as the test set does, DOCUMENT#bad1, too.

    A document that did not fit into a rater's hundred items goes on with the next rater: where the parts of
    several raters have together the length that the document has elsewhere, they are its beginning, its
    middle and its end in the order of the raters' names. (In WMT 2023's ESA campaign there are 32 such
    parts of 16 documents; all have the published scores that way.)
    """
    if not any(_of_system(rating) for rating in ratings):
        return [replace(rating, document=rating.document.partition(PART)[0]) for rating in ratings]
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for rating in ratings:
        groups[rating.document, rating.rater].append(rating.segment)
    spans = {key: (min(segments), max(segments) - min(segments) + 1) for key, segments in groups.items()}
    longest: dict[str, int] = defaultdict(int)
    raters: dict[str, list[str]] = defaultdict(list)
    for (document, rater), (_, length) in sorted(spans.items()):
        name = document.partition(PART)[0]
        longest[name] = max(longest[name], length)
        raters[document].append(rater)
    first = {key: number for key, (number, _) in spans.items()}
    for document, people in raters.items():
        lengths = [spans[document, rater][1] for rater in people]
        if len(people) > 1 and sum(lengths) == longest[document.partition(PART)[0]]:
            for at, rater in enumerate(people):
                first[document, rater] -= sum(lengths[:at])
    return [
        replace(
            rating,
            document=rating.document.partition(PART)[0],
            segment=rating.segment - first[rating.document, rating.rater] + 1,
        )
        if PART in rating.document
        else rating
        for rating in ratings
    ]


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
