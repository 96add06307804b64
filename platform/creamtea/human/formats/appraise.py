"""Ratings exported by Appraise, in the layouts of the WMT releases: one line per score, no header.

| fields | names | where |
|---|---|---|
| 9 | user, system, segment, type, source language, target language, score, start, end | segment by segment |
| 11 | the same, with document and "is a document's score" (True, False) before start | by document |
| 12 | the same, with the marked errors (JSON) before start | ESA and MQM campaigns |
| 12 | the same, with DOCUMENT_#_SEGMENT as segment | WMT 2025 (its humeval/05-collect_humeval.py) |
| 12 | HIT, worker, source, target, "ad", HIT number, system, rating, type, segment, score, seconds | MTurk, |
|    | a header, fields parted by tabs and blanks | crowd DA |

`--batch-info` adds two fields at the end, the numbers of batch and item, and for pairs a third, the output's
place in its pair. If two layouts have the same number of fields, the layout with numbers as start and end is
used.

Sources: https://github.com/wmt-conference/wmt22-news-systems/tree/main/humaneval (header.SegLvl.csv,
header.DocLvl.csv; ad-*.csv of the MTurk layout),
https://github.com/wmt-conference/wmt23-news-systems/blob/main/humaneval/DA+SQM/CSV-format.md and
`ExportSystemScoresToCSV` of https://github.com/AppraiseDev/Appraise.

Types: TGT (SYSTEM) is a rated output; BAD (BAD_REF) is a bad reference and CHK, REP (REPEAT) a repeat of the
same system's output of that segment; REF is the human translation shown instead of the system that the line
names: it counts as a system "reference". Scores of whole documents and of practice (documents with "tutorial"
in their names) are left out and counted. So are lines that repeat an earlier one except for their end: one
page, sent twice. A rater who opens an output again and rates it gives a second opinion (WMT's scripts average
them), which becomes another item.

Places of errors are indices of a JavaScript string, as on Appraise's page: from 0, the last one included, in
the text without white space at its ends (`CodeUnits`). Errors that were marked beforehand (ESA with AI) have
no `error_type` unless the rater moves them, and their `end_i` is one past the last character; after the end
of the text they are omissions. Errors that the rater deleted are not in the file.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from creamtea.error_spans import CodeUnits
from creamtea.errors import InputError, about, wrong_option
from creamtea.files import write_texts
from creamtea.human.formats.base import (
    APPRAISE,
    FIRST_SEGMENT,
    Format,
    ImportFacts,
    NothingToExport,
    Read,
    Written,
    cannot_hold,
    counts,
    end_with_text,
    first_line,
    first_places,
    known_keys,
    repeats,
    several_pairs,
)
from creamtea.human.formats.columns import (
    Place,
    csv_records,
    moment_of,
    other_separator,
    read_text,
    text_lines,
)
from creamtea.human.formats.losses import not_held
from creamtea.human.formats.rating_rows import GivenRating, Numbering, check_protocol, made_elsewhere
from creamtea.human.making.texts import domain_settings, read_documents
from creamtea.human.protocols import find_protocol, usable_protocols
from creamtea.human.protocols.scores import Da
from creamtea.human.protocols.spans import Mqm, Span, spans_of
from creamtea.human.record import (
    WITH_CONTROLS,
    AnswerContent,
    Content,
    CountedScore,
    ItemContent,
    checked_name,
    checked_text,
    checked_whole,
    counted_scores,
)
from creamtea.printable import csv_of
from creamtea.store.rows import check_text
from creamtea.store.tables import ItemKind
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
APPRAISE_FIELDS = ("user", "system", "segment", "type", "source language", "target language", "score")
TIMES = ("start", "end")
BATCH = ("batch", "number of the item", "place in the pair")  # --batch-info; the third only for pairs
LAYOUTS = [
    (*APPRAISE_FIELDS, *before, *TIMES, *BATCH[:more])
    for before in ((), ("document", "is document"), ("document", "is document", "errors"))
    for more in (0, 2, 3)
]

MTURK = (
    *("HIT", "user", "source language", "target language", "item", "HIT number", "system"),
    *("rating", "type", "segment", "score", "seconds"),
)

# PAIR-HIT-DOCUMENT-ITEM.N_N in the documents of 2021, whose item belongs to one HIT and system
MTURK_PLACE = re.compile(r"[^-]+-[^-]+-\d+-(?P<document>\d+)-\d+\.\d+_(?P<segment>\d+)")
TRUTH = {"true": True, "false": False}  # True in Appraise, TRUE in a spreadsheet
DAY = 24 * 3600
PART = "#"  # DOCUMENT#SYSTEM
INSIDE = "_#_"  # DOCUMENT_#_SEGMENT; the document's name may contain it: PAIR_#_DOMAIN_#_NAME
PRACTICE = "tutorial"  # in the name of a document, in any case
FILLING = ("incomplete", "dup")  # DOCUMENT#dup: documents that fill a task, which WMT 2024 leaves out
NO_NAMES = ("bad", *FILLING)  # beginnings of parts after a document's name that are not systems
ERROR_KEYS = ("start_i", "end_i", "severity", "error_type")
MISSING = "missing"  # the place of an omission
WHOLE = 1e-3  # maximum distance of a raw score from a whole number: statistics have five digits
HEADERS = ("username", "userid")  # first words of the releases' headers, in lower case
T = TypeVar("T")


@dataclass(frozen=True)
class Rated:
    """One score of the file."""

    line: int
    rater: str
    system: str
    kind: ItemKind
    segment: int
    document: str
    score: int  # from 0 to 100
    errors: Sequence[Mapping[str, Any]]  # marked
    pair: tuple[str, str]  # languages
    start: datetime | None
    end: datetime | None
    batch: bool = False  # whether it has numbers of batch and item
    can_mark: bool = False  # whether it has a field for marked errors

    @property
    def active_ms(self) -> int | None:
        return None if self.start is None or self.end is None else milliseconds(self.start, self.end)

    @property
    def has_impossible_time(self) -> bool:
        """Whether the time is negative or too long; 0 means that there is none."""
        if self.start is None or self.end is None or self.active_ms is not None:
            return False
        return abs(self.end - self.start) >= timedelta(milliseconds=1)


@dataclass(frozen=True)
class AppraiseFile:
    name: str
    ratings: tuple[Rated, ...]
    items: Mapping[str, Collection[str]]  # rater → the numbers of all their items
    # by language pair: lines left out, which differ from an earlier one at most in their end
    sent_twice: Mapping[tuple[str, str], list[int]]
    lines: Counter[tuple[str, str]]  # by language pair
    left_out: Mapping[tuple[str, str], Counter[str]]  # other losses, by language pair
    crowd: bool  # whether it is Mechanical Turk's


def milliseconds(start: datetime, end: datetime) -> int | None:
    """Return the milliseconds from start to end; None for an impossible working time."""
    passed = round((end - start).total_seconds() * 1000)
    return passed if 0 < passed <= DAY * 1000 else None


def read_appraise(path: Path, statistics: Mapping[str, RaterStatistics] | None) -> AppraiseFile:
    """Read the scores in the file.

    `statistics`: the raters' means and deviations, if the file's scores are standardised (z). InputError with
    file, line, field, what was found and what is allowed.
    """
    ratings: list[Rated] = []
    sent_twice: dict[tuple[str, str], list[int]] = defaultdict(list)
    lines: Counter[tuple[str, str]] = Counter()
    left_out: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    names: tuple[str, ...] = ()
    known: set[tuple[str, ...]] = set()
    items: dict[str, set[str]] = defaultdict(set)  # rater → the numbers of all their items
    layouts: dict[tuple[str, str], tuple[int, bool]] = {}  # of a pair's first line: has it a document?
    for line, names, cells in _lines(path):
        reading = _Reading(f"{path.name}, line {line}", _fields(names, cells))
        lines[reading.pair] += 1
        sent = tuple(cell for name, cell in zip(names, cells, strict=True) if name != "end")
        if sent in known:
            sent_twice[reading.pair].append(line)
            continue
        known.add(sent)
        first, documented = layouts.setdefault(reading.pair, (line, "document" in names))
        if documented != ("document" in names):
            raise InputError(
                f"{reading.place}: found {counted(len(cells), 'field')}, "
                f"{'no' if documented else 'a'} document among them, unlike line {first:,}: they could share "
                "no segment; allowed: one campaign"
            )
        items[reading.cells["user"]].add(reading.cells["segment"].strip())
        if (why := reading.left_out()) is not None:
            left_out[reading.pair][why] += 1
            continue
        if statistics is not None:
            reading = reading.with_raw_score(statistics)
        ratings.append(reading.rated(line, left_out[reading.pair]))
    if not ratings:
        found = counts(sum(left_out.values(), Counter()))
        raise InputError(f"{path.name}: no scores of segments in it; found {'; '.join(map(str, found))}")
    return AppraiseFile(path.name, tuple(ratings), items, sent_twice, lines, left_out, "HIT" in names)


def _lines(path: Path) -> Iterator[tuple[int, tuple[str, ...], list[str]]]:
    """Yield (line, names of the fields, fields)."""
    records = csv_records(path)
    first = next(records, None)
    if first is None:
        raise InputError(f"{path.name}: an empty file")
    if first[1][0].split()[0:1] == [MTURK_HEADER]:
        for line, text in enumerate(read_text(path).split("\n")[1:], start=2):
            cells = [cell.strip('"') for cell in text.replace(",", " ").split()]
            if cells and len(cells) != len(MTURK):
                found = counted(len(cells), "field")
                raise InputError(f"{path.name}, line {line}: found {found}; allowed: {len(MTURK)}")
            if cells:
                yield line, MTURK, cells
        return
    if first[1][0].lower() in HEADERS:
        first = next(records, None)  # releases have the header in another file; users may have put it on top
    while first is not None:
        line, cells = first
        yield line, _layout(path.name, line, cells), cells
        first = next(records, None)


def _layout(file: str, line: int, cells: list[str]) -> tuple[str, ...]:
    """Return the names of the fields."""
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


def _fields(names: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    """Return a line's fields by name; in crowd and WMT 2025 files the segment may contain the document."""
    fields = dict(zip(names, cells, strict=True))
    if "HIT" in fields:
        place = MTURK_PLACE.fullmatch(fields["segment"])
        return fields if place is None else {**fields, **place.groupdict()}
    document, inside, number = fields["segment"].rpartition(INSIDE)
    if inside and "document" in fields:
        # these campaigns declare each segment a complete document, so that Appraise shows one at a time
        return {**fields, "document": document, "segment": number, "is document": "False"}
    return fields


@dataclass(frozen=True)
class _Reading:
    """The fields of a line by their names."""

    place: str
    cells: dict[str, str]

    @property
    def pair(self) -> tuple[str, str]:
        return self.cells["source language"], self.cells["target language"]

    def left_out(self) -> str | None:
        """Return why the line is left out; None for a score of an output."""
        document = self.cells.get("document", "")
        if "is document" in self.cells and self.field(
            "is document", lambda cell: TRUTH[cell.lower()], "True or False"
        ):
            return "scores of whole documents"
        if PRACTICE in document.lower():
            return "scores of practice (tutorials)"
        if any(part.startswith(FILLING) for part in document.split(PART)[1:]):
            return "scores of documents that fill a task up (#incomplete, #dup)"
        return None

    def field(self, name: str, parse: Callable[[str], T], allowed: str) -> T:
        try:
            return parse(self.cells[name])
        except (ValueError, KeyError):  # a cell that does not parse, or a value that is not allowed
            cell = self.cells[name]
            raise InputError(f"{self.place}, field {name}: found {cell[:60]!r}; allowed: {allowed}") from None

    def with_raw_score(self, statistics: Mapping[str, RaterStatistics]) -> _Reading:
        """Return the reading with the raw score, z · s + μ, instead of z."""
        rater = self.cells["user"]
        if rater not in statistics:
            rater = meant(rater, statistics)
        if rater not in statistics:
            raise InputError(
                f"{self.place}: no mean and deviation of {rater!r} in {option('rater-statistics')}",
                about="rater-statistics",
            )
        z = self.field("score", float, "a number (z)")
        mean, deviation = statistics[rater]
        # equal scores have no z but 0
        score = z * deviation + mean if deviation > 0 or z == 0 else math.nan
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
        kind = self.field("type", types.__getitem__, f"one of {', '.join(types)}")
        scale = (
            f"a whole number from 0 to 100 ({option('rater-statistics')} FILE turns standardised scores back)"
        )
        name = "text that is not blank, without NUL"
        moment = "seconds since 1970"
        return Rated(
            line=line,
            rater=self.field("user", checked_name, name),
            system=REFERENCE if kind == "REF" else self.field("system", checked_name, name),
            kind=KINDS[kind],
            segment=self.field("segment", checked_whole, "a whole number"),
            document=self.field("document", checked_text, "no NUL") if "document" in self.cells else "",
            score=self.field("score", Da.scale.step_of, scale),
            errors=self._errors(left),
            pair=(
                self.field("source language", checked_name, name),
                self.field("target language", checked_name, name),
            ),
            start=None if mturk else self.field("start", moment_of, moment),
            end=None if mturk else self.field("end", moment_of, moment),
            batch="batch" in self.cells,
            can_mark="errors" in self.cells,
        )

    def _errors(self, left: Counter[str]) -> list[dict[str, Any]]:
        """Return the marked errors as spans, with Appraise's places.

        An error that was marked beforehand has `prefilled`. `left` counts losses.
        """
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


def _span(start_i: int | str, end_i: int | str, severity: str, error_type: Any = _NO_TYPE) -> dict[str, Any]:
    """Return an error as a span; ValueError for invalid places."""
    place = {}
    if not start_i == end_i == MISSING:
        if not (type(start_i) is int and type(end_i) is int and 0 <= start_i <= end_i):
            raise ValueError(
                f"found an error from {start_i!r} to {end_i!r}; allowed: its first and its last character, "
                f"counted from 0, or {MISSING!r} for both"
            )
        place = {"start": start_i, "end": end_i}
    prefilled = {"prefilled": True} if error_type is _NO_TYPE else {}
    names = [] if error_type is _NO_TYPE or error_type is None else error_type
    if not isinstance(names, list | str):
        raise TypeError
    category = [name for name in ([names] if isinstance(names, str) else names) if name.strip()]
    return {**place, "severity": severity, "category": category, **prefilled}


def within_documents(
    ratings: Sequence[Rated], items: Mapping[str, Collection[str]], file: str
) -> tuple[tuple[Rated, ...], bool, int]:
    """Return the ratings, whether documents are called DOCUMENT#SYSTEM, and how many ratings are guesses.

    `items`: the numbers of all of a rater's items, with practice and the like.

    ESA and MQM campaigns call a document DOCUMENT#SYSTEM (a bad reference DOCUMENT#SYSTEM#bad1) and number a
    rater's items consecutively. Here a segment gets its place, from 1, in the part of the document that the
    campaign has, so that systems share segments. Segments of other documents keep their numbers: files of
    2024 use the test set's numbers, also in DOCUMENT#bad1.

    A document that does not fit into a rater's hundred items continues with the next rater. If the parts of
    several raters together are as long as the document is elsewhere, they are its beginning, middle and end
    in the order of the raters' names. (WMT 2023's ESA campaign has 32 such parts of 16 documents; all get
    the published scores that way.) A part without the rest is the beginning. It is the end if lines are
    missing before it and none after it, and a guess if both are possible. InputError for a line of another
    system in a file of such documents.
    """
    # all systems of a document called DOCUMENT#SYSTEM fit its name; of doc#1, say, only sys1 would
    others: dict[str, Rated] = {}  # document → a line that does not fit
    fitting: dict[str, str] = {}  # document → a system that fits
    for rating in ratings:
        if _system_part(rating) is not None:
            fitting.setdefault(_unspoilt(rating.document), rating.system)
        elif rating.system != REFERENCE:
            others.setdefault(_unspoilt(rating.document), rating)
    mixed = others.keys() & fitting.keys()
    if len(mixed) < len(fitting) - len(mixed):
        for document, rating in others.items():
            if document in mixed:
                raise InputError(
                    f"{file}, line {rating.line}, field system: found {rating.system!r} in document "
                    f"{rating.document!r}; allowed: {fitting[document]!r}, as other lines have"
                )
    parted = {rating.document for rating in ratings if _unspoilt(rating.document) not in others}
    name_of = {
        rating.document: _name(rating) if rating.document in parted else _unspoilt(rating.document)
        for rating in sorted(ratings, key=lambda rating: rating.system != REFERENCE)
    }
    if not any(_system_part(rating) for rating in ratings if rating.document in parted):
        return tuple(replace(rating, document=name_of[rating.document]) for rating in ratings), False, 0
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    begins: dict[str, int] = {}  # rater → the number of their first item
    for rating in ratings:
        groups[rating.document, rating.rater].append(rating.segment)
        begins[rating.rater] = min(begins.get(rating.rater, rating.segment), rating.segment)
    spans = {key: (min(segments), max(segments) - min(segments) + 1) for key, segments in groups.items()}
    longest: dict[str, int] = defaultdict(int)
    raters: dict[str, list[str]] = defaultdict(list)
    for (document, rater), (_, length) in sorted(spans.items()):
        name = name_of[document]
        longest[name] = max(longest[name], length)
        raters[document].append(rater)
    first = {key: number for key, (number, _) in spans.items()}
    guessed = 0
    for document, people in raters.items():
        lengths = [spans[document, rater][1] for rater in people]
        whole = longest[name_of[document]]
        if len(people) > 1 and sum(lengths) == whole:
            for at, rater in enumerate(people):
                first[document, rater] -= sum(lengths[:at])
            continue
        for rater, length in zip(people, lengths, strict=True):
            number, missing = first[document, rater], whole - length
            gap = [str(before) not in items[rater] for before in range(number - missing, number)]
            ends = str(number + length) in items[rater]  # the rater's next document is there
            if missing and ends and all(gap) and number > begins[rater]:
                first[document, rater] -= missing
            elif missing and (ends or gap[-1] or number == begins[rater]):
                guessed += len(groups[document, rater]) * (_unspoilt(document) == document)
    placed = []
    for rating in ratings:
        in_document = rating.segment - first[rating.document, rating.rater] + 1
        segment = in_document if rating.document in parted else rating.segment
        placed.append(replace(rating, document=name_of[rating.document], segment=segment))
    return tuple(placed), True, guessed


def _unspoilt(document: str) -> str:
    """Return the document's name without #bad1, #dup and the like."""
    return re.sub(rf"(?s)(?<!^){PART}({'|'.join(NO_NAMES)}).*", "", document)


def _system_part(rating: Rated) -> int | None:
    """Return the number of the part of a document name DOCUMENT#SYSTEM that is the system, or None.

    The system's name may have a prefix (wmt23.SYSTEM).
    """
    parts = rating.document.split(PART)
    fitting = [k for k in range(1, len(parts)) if parts[k] and rating.system.endswith(parts[k])]
    return max(fitting, key=lambda k: len(parts[k]), default=None)


def _name(rating: Rated) -> str:
    """Return the document without its system and without #bad1, #dup and the like."""
    parts = rating.document.split(PART)
    at = _system_part(rating)
    if at is None:
        at = _unspoilt(rating.document).count(PART) + 1
        if rating.system == REFERENCE and at > 1 and INSIDE not in rating.document:
            at = 1  # the line's own system, which the reference stands in for
    return PART.join(parts[:at])


# the mean of all of a rater's scores, in points, and their deviation with n − 1: NaN for one score, R's NA
RaterStatistics = tuple[float, float]


def read_statistics(path: Path) -> dict[str, RaterStatistics]:
    """Read the statistics of raters.

    Each rater has three values, printed by R ([1] "name", [1] mean, [1] deviation, a line each) or side by
    side (name, mean, deviation). InputError with the file and what was found.
    """
    text = re.sub(r"^\[1\] ", "", read_text(path), flags=re.MULTILINE)
    words = [word.strip('"') for word in re.split(r"[\s,]+", text) if word]
    found: dict[str, RaterStatistics] = {}
    for values in (words[at : at + 3] for at in range(0, len(words), 3)):
        try:
            name, mean, deviation = values
            known = float(mean), float(deviation.replace("NA", "nan"))
        except ValueError:
            raise InputError(
                f"{path.name}: found {' '.join(values)[:60]!r}; allowed: a rater, the mean and the deviation"
            ) from None
        if repr(found.get(name, known)) != repr(known):  # NaN equals NaN as text
            raise InputError(f"{path.name}: found two means and deviations of {name!r}; allowed: one")
        found[name] = known
    return found


USUAL_PROTOCOL = "da"
SENT_TWICE = "all that an earlier line says, but for the end"
# kind, document, segment, system, and the number of the opinion (0: the first of a rater)
Key = tuple[ItemKind, str, int, str, int]
Segment = tuple[str, int]  # document, number


def _of_pair(file: AppraiseFile, pair: tuple[str, str] | None) -> tuple[Rated, ...]:
    pairs = sorted({rating.pair for rating in file.ratings})
    known = ", ".join("-".join(pair) for pair in pairs)
    if pair is None and len(pairs) > 1:
        raise several_pairs(f"{file.name}: scores of several language pairs ({known})")
    wanted = pair or pairs[0]
    ratings = tuple(rating for rating in file.ratings if rating.pair == wanted)
    if not ratings:
        scores = "scores of segments" if wanted in file.lines else "scores"
        raise InputError(f"{file.name}: no {scores} of {'-'.join(wanted)}; it has {known}")
    return ratings


def _check_one_campaign(name: str, ratings: Sequence[Rated]) -> None:
    """Raise InputError for ratings of ESA and of MQM in one file: the zeros of MQM are no scores."""
    of_mqm = sum(any(error["category"] for error in rating.errors) for rating in ratings)
    of_esa = sum(not all(error["category"] for error in rating.errors) for rating in ratings)
    both = any(rating.score > 0 and any(e["category"] for e in rating.errors) for rating in ratings)
    if of_mqm and of_esa and not both and any(rating.score > 0 for rating in ratings):
        raise InputError(
            f"{name}: found {counted(of_mqm, 'rating')} of score 0 whose errors have categories, as in MQM, "
            f"and {counted(of_esa, 'rating')} whose errors have none, as in ESA; allowed: one campaign"
        )


def _keyed(ratings: Sequence[Rated]) -> Iterator[tuple[Rated, Key]]:
    """Yield each score with the key of its item; a rater's second score belongs to another item."""
    seen: Counter[tuple[Any, ...]] = Counter()
    for rating in ratings:
        output = (rating.kind, rating.document, rating.segment, rating.system)
        yield rating, (*output, seen[rating.rater, output])
        seen[rating.rater, output] += 1


def _original(key: Key) -> Key:
    return (ItemKind.RATED, *key[1:4], 0)


def _item(key: Key, positions: dict[Key, int], texts: _Texts) -> ItemContent:
    kind, document, segment, system, _ = key
    bad = kind is ItemKind.BAD_REFERENCE
    index = texts.numbering.indices[document, segment]
    return ItemContent(
        position=positions[key],
        kind=kind,
        segment=index,
        document=document,
        source=texts.sources[index] if texts.sources else "",
        systems=(system,),
        outputs=("" if bad or system not in texts.outputs else texts.outputs[system][index],),
        original=positions[_original(key)] if kind.is_control else None,
        degraded=system if bad else None,
    )


class _Errors:
    """Converts places of marked errors to characters of the output.

    Errors in an unknown text keep Appraise's places. Errors that were marked beforehand become proposals of
    their items.
    """

    def __init__(self) -> None:
        self.proposals: dict[int, dict[str, list[dict[str, Any]]]] = {}
        self.notes: Counter[str] = Counter()

    def spans(self, item: ItemContent, rating: Rated) -> list[dict[str, Any]]:
        output = item.outputs[0]
        units = CodeUnits(output, trimmed=True) if output else None
        taken: set[int] = set()  # proposals that errors of this rating came from
        spans = []
        for error in rating.errors:
            span = dict(error)
            if prefilled := span.pop("prefilled", False):
                self.notes["errors that were marked beforehand, read as proposals"] += 1
                if "end" in span and span["start"] == span["end"]:
                    self.notes["errors that were marked beforehand around nothing: read as omissions"] += 1
                    del span["start"], span["end"]
                elif "end" in span:  # one past the last character
                    span["end"] -= 1
            if units is not None:
                end_with_text(span, len(units), self.notes)
                span |= {name: units.character(span[name]) for name in ("start", "end") if name in span}
            if prefilled:
                span["proposed"] = self._proposal(item, span, taken)
            spans.append(span)
        return spans

    def _proposal(self, item: ItemContent, span: dict[str, Any], taken: set[int]) -> int:
        """Return the number of the item's proposal at an error's place; add one if there is none."""
        known = self.proposals.setdefault(item.position, {}).setdefault(item.systems[0], [])
        place = (span.get("start"), span.get("end"))
        for number, proposal in enumerate(known):
            if number not in taken and (proposal.get("start"), proposal.get("end")) == place:
                break
        else:
            number = len(known)
            known.append({name: span[name] for name in ("start", "end", "severity") if name in span})
        taken.add(number)
        return number


class _Texts:
    """Sources and outputs of the test set by line, and the lines of the file's segments."""

    def __init__(
        self,
        facts: ImportFacts,
        systems: Sequence[str],
        file: str,
        ratings: Sequence[Rated],
        per_document: bool,  # whether the campaign calls documents DOCUMENT#SYSTEM
    ) -> None:
        if unknown := sorted(set(facts.output_of) - set(systems)):
            it_has = f"the file has no such system; it has {', '.join(systems)}"
            raise wrong_option("output-of", it_has, unknown[0])
        self._facts, self._file, self._ratings, self._per_document = facts, file, ratings, per_document
        self._segments = sorted({(rating.document, rating.segment) for rating in ratings})
        self.domains: Mapping[str, str] = {}
        self.published = 0  # scores of --segment-scores
        self._lines: dict[str, list[int]] | None = None  # of each document
        self._size: tuple[str, int] | None = None  # of the test set: the file that determines it, and lines
        if facts.documents is not None:
            self._read_documents(facts.documents)
        elif facts.segment_scores is not None:
            lines = f"which lines of {option('documents')} the campaign has"
            raise InputError(f"{option('segment-scores')} says {lines}: give both", about="segment-scores")
        self.sources = self._read_lines("sources", option("sources"), facts.sources)
        self.outputs = {
            system: self._read_lines("output-of", f"{option('output-of')} {system}", path)
            for system, path in facts.output_of.items()
        }
        self.numbering = self._numbered()
        self._check_inside()

    # ------------------------------------------------------------ files

    def _read_documents(self, path: Path) -> None:
        found = read_documents(read_text(path), path.name, with_domains=True)
        rated = {document for document, _ in self._segments}
        missing, unrated = rated - found.lines.keys(), found.lines.keys() - rated
        named = {meant(name, unrated): name for name in missing}  # "Café" may be in NFC here, in NFD there
        self.domains = {named.get(name, name): domain for name, domain in found.domains.items()}
        self._lines = {named.get(name, name): lines for name, lines in found.lines.items()}
        self._size = option("documents"), len(found.names)
        if self._facts.segment_scores is not None:
            with about("segment-scores"):
                scored = self._rated_lines(self._facts.segment_scores, len(found.names))
            kept = {name: [line for line in lines if line in scored] for name, lines in self._lines.items()}
            self._lines = {name: lines for name, lines in kept.items() if lines}

    def _rated_lines(self, path: Path, size: int) -> set[int]:
        """Return the lines of the test set that have a score for any system."""
        rated: set[int] = set()
        seen: Counter[str] = Counter()
        for number, line in enumerate(text_lines(path), start=1):
            words = line.split()
            if len(words) != 2 or (words[1] != "None" and not _is_number(words[1])):
                found = f"{path.name}, line {number}: found {line[:60]!r}"
                raise InputError(f"{found}; allowed: SYSTEM SCORE, a number or None")
            if words[1] != "None":
                rated.add(seen[words[0]])
                self.published += 1
            seen[words[0]] += 1
        for system, lines in seen.items():
            if lines != size:
                raise InputError(
                    f"{path.name}: found {lines:,} scores of {system}; allowed: {size:,}, one for each line "
                    f"of {option('documents')}"
                )
        return rated

    def _read_lines(self, field: str, name: str, path: Path | None) -> list[str]:
        if path is None:
            return []
        lines = text_lines(path)
        if self._size is None:
            self._size = name, len(lines)
        elif len(lines) != self._size[1]:
            raise InputError(
                f"{name}: {path.name} has {counted(len(lines), 'line')}, and {self._size[0]} has "
                f"{self._size[1]:,}; allowed: a line for each segment of the test set in both",
                about=field,
            )
        for number, line in enumerate(lines, start=1):
            try:
                check_text(line)
            except ValueError as error:
                raise InputError(f"{path.name}, line {number}: found a text {error}", about=field) from None
        return lines

    # ------------------------------------------------------------ numbers

    def _numbered(self) -> Numbering[Segment]:
        told = self._facts.first_segment
        by_number = Numbering.of_numbers({key: key[1] for key in self._segments}, APPRAISE, told)
        if self._lines is None:
            unique = len({segment for _, segment in self._segments}) == len(self._segments)
            return by_number if unique and not self._per_document else self._anew()
        if self._per_document:
            return self._by_document(1)
        # try both first numbers: the right one puts each segment into the lines of its document
        other = Numbering.of_numbers({key: key[1] for key in self._segments}, APPRAISE, 1 - by_number.first)
        inside = {name: frozenset(lines) for name, lines in self._lines.items()}
        for numbering in (by_number, other) if told is None else (by_number,):
            if all(index in inside.get(key[0], ()) for key, index in numbering.indices.items()):
                return numbering
        return self._by_document(by_number.first)

    def _anew(self) -> Numbering[Segment]:
        """Number segments document after document, in the order in which documents appear.

        Used if a file counts segments within documents and there is no file of documents.
        """
        documents = first_places(rating.document for rating in self._ratings)
        ordered = sorted(self._segments, key=lambda key: (documents[key[0]], key[1]))
        many = len({name for name, _ in ordered}) > 1
        if self._size is not None and (many or self._size[1] != len(ordered)):
            raise InputError(
                f"{self._size[0]}: {self._file} counts segments within documents: give "
                f"{option('documents')}, which says what lines each document has",
                about="documents",
            )
        return Numbering(first_places(ordered), renumbered=len(ordered) if many else 0)

    def _by_document(self, first: int) -> Numbering[Segment]:
        """Map each document's segments to its lines, in their order.

        InputError unless a document has as many segments as lines.
        """
        assert self._lines is not None
        longest: dict[str, int] = {}
        for document, segment in self._segments:
            longest[document] = max(longest.get(document, 0), segment - first + 1)
            if document not in self._lines:
                raise wrong_option("documents", f"no document {document!r} in it, which the scores name")
        wrong = [
            f"{document} ({counted(len(self._lines[document]), 'line')}, {counted(segments, 'segment')})"
            for document, segments in longest.items()
            if segments != len(self._lines[document])
        ]
        if wrong:
            raise wrong_option(
                "documents",
                f"{counted(len(wrong), 'document')} with another number of lines than of segments in "
                f"{self._file}: {', '.join(wrong[:3])}{', …' if len(wrong) > 3 else ''}. The n-th "
                "segment of a document is its n-th line: write - in the lines that the campaign does not "
                f"have, or give {option('segment-scores')} (published ones tell these lines)",
            )
        return Numbering({key: self._lines[key[0]][key[1] - first] for key in self._segments})

    def _check_inside(self) -> None:
        """Raise InputError for a segment without a line in the test set."""
        name, size = self._size or ("", max(self.numbering.indices.values()) + 1)
        test_set = f"the test set, of which {name} has {counted(size, 'line')}" if name else "the test set"
        for (document, segment), index in self.numbering.indices.items():
            if not 0 <= index < size:
                of_document = f" of document {document!r}" if document else ""
                raise InputError(
                    f"segment {segment}{of_document} is not in {test_set}: "
                    f"{option('first-segment')} says how the first segment is numbered, "
                    f"{option('documents')} which lines a document has",
                    about="first-segment",
                )


FILE = "scores.csv"
TYPES = {ItemKind.BAD_REFERENCE: "BAD", ItemKind.REPEAT: "CHK"}


def _row(content: Content, counted: CountedScore) -> list[Any]:
    item, score = counted.item, counted.score
    protocol = find_protocol(content.protocol, content.settings)
    errors = [_error(span, counted.output) for span in spans_of(score.payload)]
    return [
        counted.answer.rater,
        score.system,
        item.segment + FIRST_SEGMENT[APPRAISE],
        TYPES.get(ItemKind(item.kind), "TGT"),
        content.source_language,
        content.target_language,
        score.step if isinstance(protocol, Da) else 0,  # in MQM, the errors are the rating
        item.document,
        False,
        json.dumps(errors, ensure_ascii=False),
        *_times(counted.answer),
    ]


def _error(span: Span, output: str) -> dict[str, Any]:
    """Return an error in Appraise's form, with its page's places.

    Places in an unknown text were never converted.
    """
    places: tuple[int | str, int | str] = MISSING, MISSING
    if span.start is not None and span.end is not None and not span.in_source:
        counted = (
            CodeUnits(output, trimmed=True).units(span.start, span.end) if output else (span.start, span.end)
        )
        places = counted or places
    return {
        "start_i": places[0],
        "end_i": places[1],
        "severity": span.severity,
        "error_type": span.category or None,
    }


def _times(answer: AnswerContent) -> tuple[str, str]:
    """Return the start and the end of a rating.

    The start is the moment when the item was given if that gives the working time, else it is the end minus
    the working time.
    """
    start, end = answer.assigned_at, answer.submitted_at or answer.assigned_at
    if milliseconds(start, end) != answer.active_ms:
        start = end - timedelta(milliseconds=answer.active_ms or 0)
    return f"{start.timestamp():.6f}", f"{end.timestamp():.6f}"


class Appraise(Format):
    name = APPRAISE
    title = "scores of Appraise (CSV, as in the WMT releases)"
    expected = "no header; 9, 11 or 12 fields with commas between, or MTurk's file that begins with HITId"
    options = ("sources", "output_of", "documents", "first_segment", "segment_scores", "rater_statistics")
    only_file = FILE

    def recognises(self, path: Path, text: str) -> bool:
        first = first_line(text)
        if re.split(r'[\s,"]+', first.lstrip('"'))[0] == MTURK_HEADER:
            return True
        for separator in ",;\t":  # if it is not a comma, the reader says so
            try:
                cells = next(csv.reader([first], delimiter=separator), None) or [""]
            except csv.Error:  # a carriage return within the line, or a cell that is too long
                return False
            is_layout = len(cells) >= len(LAYOUTS[0]) and cells[3].strip() in KINDS
            if is_layout or (cells[0].lower() in HEADERS and len(cells) > 1):
                return True
        return False

    def read(self, path: Path, facts: ImportFacts, now: datetime) -> Read:
        """Make a campaign from the scores of one language pair.

        Moments that the file lacks become `now`. `facts.protocol` chooses among the protocols with
        `reads_appraise`, which the files do not tell apart. Segments keep their numbers; if these are counted
        within documents (two documents share a number), the segments are numbered anew, document after
        document. InputError for facts that do not fit.
        """
        protocol = facts.protocol or USUAL_PROTOCOL
        found = find_protocol(protocol)
        if not found.reads_appraise:
            known = " or ".join(kind.name for kind in usable_protocols() if kind.reads_appraise)
            raise wrong_option("protocol", f"Appraise's scores are of {known}", protocol)
        statistics = None if facts.rater_statistics is None else read_statistics(facts.rater_statistics)
        file = read_appraise(path, statistics)
        of_pair = _of_pair(file, facts.pair)
        ratings, per_document, guessed = within_documents(of_pair, file.items, file.name)
        scores = sum(rating.score > 0 for rating in ratings)
        errors = [error for rating in ratings for error in rating.errors]
        categories = sum(bool(error["category"]) for error in errors)
        without_field = [rating.line for rating in ratings if not rating.can_mark]
        can_mark = len(without_field) < len(ratings)
        check_protocol(found, file.name, scores, len(errors), categories, can_mark)
        if found.marks_errors and without_field:
            without = "no field for marked errors, which other lines have; allowed: one campaign"
            raise InputError(f"{file.name}, line {without_field[0]}: found {without}")
        _check_one_campaign(file.name, ratings)
        systems = tuple(sorted({rating.system for rating in ratings}))
        texts = _Texts(facts.for_systems(systems), systems, file.name, ratings, per_document)
        keyed = list(_keyed(ratings))
        # the original of a control is an item even if the file has no rating of it
        positions = first_places(
            each for _, key in keyed for each in ((_original(key), key) if key[0].is_control else (key,))
        )
        items = {position: _item(key, positions, texts) for key, position in positions.items()}
        reading = _Errors()
        given = []
        for rating, key in keyed:
            item = items[positions[key]]
            payload = None
            if found.marks_errors:
                own = {"score": rating.score} if isinstance(found, Da) else {}
                payload = {**own, "spans": reading.spans(item, rating)}
            given.append(
                GivenRating(
                    place=Place(file.name, rating.line),
                    rater=rating.rater,
                    item=item.position,
                    system=rating.system,
                    step=rating.score if payload is None else None,
                    payload=payload,
                    assigned_at=rating.start or now,
                    submitted_at=rating.end or now,
                    rated_at=rating.end or now,
                    active_ms=rating.active_ms,
                )
            )
        listed = [replace(item, proposals=reading.proposals.get(item.position)) for item in items.values()]
        settings: dict[str, Any] = {"references": [system for system in systems if system == REFERENCE]}
        if rule := "crowd" if file.crowd else "da-sqm" if protocol == "da-sqm" else "":
            settings["wmt"] = rule  # from stats.wmt.RULES; with marked errors, the protocol determines it
        settings |= domain_settings(texts.domains, facts.test_set or facts.name) | texts.numbering.settings
        if reading.proposals:
            settings["proposals_left"] = True
        content = made_elsewhere(facts, protocol, ratings[0].pair, systems, listed, given, settings)
        impossible = sum(rating.has_impossible_time for rating in ratings)
        unmarked = 0 if found.marks_errors else len(errors)
        not_kept = counts(
            {
                **file.left_out.get(ratings[0].pair, {}),
                f"marked errors ({option('protocol')} esa keeps them)": unmarked,
                "scores beside errors of MQM, from which its score follows": scores * isinstance(found, Mqm),
                "scores of other language pairs": file.lines.total() - file.lines[ratings[0].pair],
                "times that no rater can have spent: ends before the start, or more than a day after it": (
                    impossible
                ),
                "numbers of batches and items (--batch-info)": sum(rating.batch for rating in ratings),
                "numbers and times of Mechanical Turk's tasks": len(ratings) * file.crowd,
                f"scores of {option('segment-scores')}, which only tell the campaign's lines": (
                    texts.published
                ),
            }
        )
        incomplete = {"ratings of incomplete documents, read as the documents' beginnings": guessed}
        notices = (*texts.numbering.notes, *counts({**incomplete, **reading.notes}, note=True))
        sent_twice = repeats(file.sent_twice.get(ratings[0].pair, ()), SENT_TWICE)
        return content, (*sent_twice, *not_kept, *notices)

    def write(self, content: Content, path: Path) -> Written:
        """Write a line per rating: TGT for systems, BAD for bad references, CHK for repeats.

        Documents keep their names and segments their numbers in the test set, instead of DOCUMENT#SYSTEM with
        a rater's numbers, so that an import returns them. InputError for a protocol or a document name that
        the format cannot hold.
        """
        if not find_protocol(content.protocol).reads_appraise:
            known = ", ".join(kind.name for kind in usable_protocols() if kind.reads_appraise)
            why = f"Appraise has no scores of {content.protocol}, only of {known}"
            raise cannot_hold(f"{option('format')} appraise: {why}", about="format")
        for document in sorted({item.document for item in content.items}):
            if PART in document or PRACTICE in document.lower():
                raise cannot_hold(
                    f"document {document!r}: in Appraise {PART!r} ends the name of a document and "
                    f"{PRACTICE!r} marks practice"
                )
        rows = [_row(content, counted) for counted in counted_scores(content, WITH_CONTROLS)]
        if not rows:
            raise NothingToExport(f"campaign {content.name!r} has no ratings that count")
        first = str(rows[0][0])
        if first.lower() in HEADERS or first.split()[0] == MTURK_HEADER or first.startswith("\ufeff"):
            rows.insert(0, [HEADERS[0], *[""] * (len(rows[0]) - 1)])  # else this row looks like a header
        return write_texts(path, {FILE: csv_of(rows)}), not_held(content, APPRAISE)
