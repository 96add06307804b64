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
line names: it counts for a system of its own, "reference". Scores of whole documents are left out, and
counted. A rater who rates an output again gives a second opinion (WMT's scripts average them), on an item of
its own.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from creamtea.errors import InputError
from creamtea.human.exchange.columns import checked_name, checked_text
from creamtea.human.exchange.files import csv_records, read_text
from creamtea.human.exchange.statistics import RaterStatistics
from creamtea.human.protocols.da import Da
from creamtea.store.item_kinds import ItemKind

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
DAY = 24 * 3600
WHOLE = 1e-3  # how far from a whole number a score turned back may be: statistics have five digits

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
    step: int
    source_language: str
    target_language: str
    start: datetime | None
    end: datetime | None

    @property
    def active_ms(self) -> int | None:
        """None for what no rater spends on one output: less than nothing, or more than a day."""
        if self.start is None or self.end is None:
            return None
        seconds = (self.end - self.start).total_seconds()
        return round(seconds * 1000) if 0 <= seconds <= DAY else None


@dataclass(frozen=True)
class AppraiseFile:
    name: str
    ratings: tuple[Rated, ...]
    document_scores: int  # left out
    crowd: bool  # of Mechanical Turk

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return sorted({(rating.source_language, rating.target_language) for rating in self.ratings})


def read_appraise(path: Path, statistics: Mapping[str, RaterStatistics] | None = None) -> AppraiseFile:
    """The scores in the file. InputError with file, line, field, what was found and what is allowed.

    `statistics`: of the raters, by whose means and deviations the file's scores were standardised (z).
    """
    ratings: list[Rated] = []
    document_scores = 0
    names: tuple[str, ...] = ()
    for line, names, cells in _lines(path):
        reading = _Reading(f"{path.name}, line {line}", dict(zip(names, cells, strict=True)))
        if "is document" in names and reading.field("is document", _truth, "True or False"):
            document_scores += 1
            continue
        if statistics is not None:
            reading = reading.with_raw_score(statistics)
        ratings.append(reading.rated(line))
    if not ratings:
        raise InputError(f"{path.name}: no scores of segments in it")
    return AppraiseFile(path.name, tuple(ratings), document_scores, crowd="HIT" in names)


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
    if first[1][0] in ("username", "UserID"):
        first = next(records, None)  # the releases keep the header in a file of its own; it may be put on top
    while first is not None:
        line, cells = first
        yield line, LAYOUTS[len(_counted(path.name, line, cells, tuple(LAYOUTS)))], cells
        first = next(records, None)


def _counted(file: str, line: int, cells: list[str], allowed: tuple[int, ...]) -> list[str]:
    if len(cells) not in allowed:
        layouts = " or ".join(map(str, allowed))
        raise InputError(
            f"{file}, line {line}: found {len(cells)} fields; allowed: {layouts} (docs/exchange.md)"
        )
    return cells


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
            raise InputError(f"{self.place}: no mean and deviation of {rater!r} in --rater-statistics")
        z = self.field("score", float, "a number (z)")
        score = z * statistics[rater].deviation + statistics[rater].mean
        if not math.isfinite(score) or abs(score - round(score)) > WHOLE:
            raise InputError(
                f"{self.place}, field score: z {z:g} of {rater} is a score of {score:.3f}; allowed: a whole "
                "number (--rater-statistics must be those by which the file was standardised)"
            )
        return replace(self, cells={**self.cells, "score": str(round(score))})

    def rated(self, line: int) -> Rated:
        mturk = "HIT" in self.cells
        types = MTURK_TYPES if mturk else {name: name for name in KINDS}
        kind = self.field("type", lambda cell: types[_known(cell, types)], f"one of {', '.join(types)}")
        scale = "a whole number from 0 to 100 (--rater-statistics FILE turns standardised scores back)"
        name = "text that is not blank"
        moment = "seconds since 1970"
        return Rated(
            line=line,
            rater=self.field("user", checked_name, name),
            system=REFERENCE if kind == "REF" else self.field("system", checked_name, name),
            kind=KINDS[kind],
            segment=self.field("segment", _whole, "a whole number"),
            document=self.field("document", checked_text, "text") if "document" in self.cells else "",
            step=self.field("score", Da.scale.step_of, scale),
            source_language=self.field("source language", checked_name, name),
            target_language=self.field("target language", checked_name, name),
            start=None if mturk else self.field("start", _moment, moment),
            end=None if mturk else self.field("end", _moment, moment),
        )


def _known(cell: str, known: dict[str, str]) -> str:
    if cell not in known:
        raise ValueError
    return cell


def _whole(cell: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", cell):
        raise ValueError
    return int(cell)


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
