"""Error annotations in Google's released format: a line per error, tabs between the fields, a header on top.

    system doc doc_id seg_id rater source target category severity [comment]

`<v>…</v>` is around the marked error, in the target or, for an omission, in the source. A line of category
No-error says that a rater found none. Source: https://github.com/google/wmt-mqm-human-evaluation.

Marot, which reads these files (google-research/google-research, marot/README.md), allows more: the fields may
be docSegId and globalSegId, or doc_seg_id and global_seg_id; the header may be missing; all lines may have
the same globalSegId, so that segments are counted within documents; lines without a rater have metadata of a
segment, and minor errors of the severity Trivial cost 0.1 (`mqmDefaultWeights` in marot.js).
The side-by-side files of 2023 contain answers about errors planted to test raters (HOTW-test), and some texts
with white space at their ends for one rater and without it for another: the first text is kept. Some files
have texts in CSV quotes ("He said ""yes"".").
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from creamtea.error_spans import SEVERITIES, as_severity, is_no_error, name_key
from creamtea.errors import InputError, wrong_option
from creamtea.files import write_texts
from creamtea.human.formats.base import (
    FIRST_SEGMENT,
    MQM,
    Format,
    ImportFacts,
    NothingToExport,
    Read,
    Written,
    cannot_hold,
    counts,
    first_line,
    first_places,
    repeats,
)
from creamtea.human.formats.columns import Place, text_lines
from creamtea.human.formats.losses import not_held
from creamtea.human.formats.rating_rows import GivenRating, Numbering, check_severities, made_elsewhere
from creamtea.human.protocols.spans import Mqm, Span, spans_of
from creamtea.human.record import (
    Content,
    CountedScore,
    ItemContent,
    checked_name,
    checked_text,
    checked_whole,
    first_opinions,
)
from creamtea.wording import counted, option
from creamtea.words import without_csv_quotes

FIELDS = ("system", "doc", "doc_id", "seg_id", "rater", "source", "target", "category", "severity")
OTHER_FIELDS = {"docsegid": "docid", "globalsegid": "segid"}  # by `name_key`
IN_TABS = f"{' '.join(FIELDS)}, with tabs between"
NO_ERROR = "No-error"  # the spelling of the released files
PLANTED = name_key("HOTW-test")  # "hands on the wheel"
TRIVIAL = "trivial"
OF_TRIVIAL = {"severity": "minor", "cost": 0.1}
BEGIN, END = "<v>", "</v>"
FILE = "mqm.tsv"
_UNWRITABLE = re.compile("[\t\n\r]|</?v>")
Value = TypeVar("Value")
Key = tuple[str, str, int]  # document, number within it, number over all documents


@dataclass(frozen=True)
class _Line:
    place: Place
    system: str
    document: str
    number: str  # within the document
    segment: int  # over all documents
    rater: str | None  # None: the line has metadata
    source: str
    target: str
    error: dict[str, Any] | None
    planted: bool

    @property
    def key(self) -> Key:
        return self.document, self.number, self.segment

    @property
    def texts(self) -> tuple[str, str]:
        return self.source, self.target


@dataclass
class _Noticed:
    """Losses, notes on data that a reader may expect otherwise, and repeated lines."""

    left: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    again: list[int] = field(default_factory=list)  # lines that repeat an earlier one


# ---------------------------------------------------------------- reading


def _in_one_form(line: _Line) -> list[str]:
    return [unicodedata.normalize("NFC", text) for text in line.texts]


def _within(error: dict[str, Any], known: _Line) -> dict[str, Any]:
    """Return the error with its place in the kept text, which may lack white space at its end."""
    last = len(known.source if error.get("in_source") else known.target) - 1
    if error.get("end", last) <= last:
        return error
    if error["start"] <= last:
        return {**error, "end": last}
    return {name: value for name, value in error.items() if name not in ("start", "end", "in_source")}


def _numbered(lines: Sequence[_Line], noticed: _Noticed) -> Numbering[Key]:
    """Number segments over all documents, unless one number stands for several."""
    keys = list(dict.fromkeys(line.key for line in lines))
    parts = dict.fromkeys((document, number) for document, number, _ in keys)
    if len({segment for *_, segment in keys}) == len(keys) or _has_one_source_each(lines):
        numbering = Numbering.of_numbers({key: key[2] for key in keys}, MQM)
    else:
        documents = first_places(document for document, *_ in keys)
        of_number = {number: int(number) if number.isdecimal() else 0 for _, number in parts}
        ordered = sorted(parts, key=lambda part: (documents[part[0]], of_number[part[1]], part[1]))
        indices = first_places(ordered)
        renumbered = len(parts) if len(documents) > 1 else 0
        numbering = Numbering({key: indices[key[:2]] for key in keys}, renumbered)
    usual = _numbers_within_documents((key[0], index) for key, index in numbering.indices.items())
    noticed.left["numbers of segments within documents"] += sum(
        number != str(usual[document, numbering.indices[document, number, segment]])
        for document, number, segment in keys
    )
    return numbering


def _has_one_source_each(lines: Sequence[_Line]) -> bool:
    """Return True if each number stands for one source; InputError if it then stands for two documents."""
    first: dict[int, _Line] = {}
    others = [line for line in lines if first.setdefault(line.segment, line).key != line.key]
    if len(first) == 1 or any(first[line.segment].source.strip() != line.source.strip() for line in others):
        return False
    for line in others:
        if (known := first[line.segment]).document != line.document:
            raise InputError(
                f"{line.place}: segment {line.segment} is of document {line.document!r}, and of "
                f"{known.document!r} in line {known.place.line}; allowed: one document"
            )
    return True


def _lines(path: Path, noticed: _Noticed) -> Iterator[_Line]:
    lines = text_lines(path) or [""]
    order, begin, columns, width = tuple(range(len(FIELDS))), 0, dict[int, str](), 0
    quoted = False  # whether a CSV writer has put every text into quotes
    if (found := _header(lines[0])) is not None:
        separator, header = found
        if separator != "\t":
            raise InputError(f"{path.name}, line 1: found {separator!r} between the fields; allowed: tabs")
        order, begin, width = _order(path, header), 1, len(header)
        quoted = all(map(_in_quotes, lines[0].rstrip("\r").split("\t")))
        columns = {at: name for at, name in enumerate(header) if name and name_key(name) != "comment"}
    seen: Counter[str] = Counter()
    times = Counter(text for text in lines[begin:] if text.strip())
    copies = math.gcd(*times.values()) if len(times) > 1 else 1  # of the whole file, joined to itself
    for number, text in enumerate(lines[begin:], start=begin + 1):
        if not text.strip():
            continue
        place = Place(path.name, number)
        cells = text.rstrip("\r").split("\t")
        if quoted:
            cells = [cell[1:-1].replace('""', '"') if _in_quotes(cell) else cell for cell in cells]
            noticed.notes["lines in CSV quotes, read without them"] += 1
        if len(cells) <= max(order):
            allowed = IN_TABS if max(order) < len(FIELDS) else f"{width}, as the header has"
            raise InputError(f"{place}: found {counted(len(cells), 'field')}; allowed: {allowed}")
        # without a comment or a time beside them, two equal lines may be two equal errors, such as omissions
        unlike = any(cell for at, cell in enumerate(cells) if at not in order)
        seen[text] += 1
        if seen[text] > (1 if unlike else times[text] // copies):
            noticed.again.append(number)
            continue
        values = {name: cells[at] for name, at in zip(FIELDS, order, strict=True)}
        severity, category = values["severity"], values["category"]
        is_known = as_severity(severity) in SEVERITIES or name_key(severity) in ("", TRIVIAL, PLANTED)
        is_known |= is_no_error(severity) and (is_no_error(category) or not category.strip())
        if 0 < width < len(cells) and not is_known:
            raise InputError(
                f"{place}: found {len(cells)} fields and the severity {severity[:60]!r}; allowed: "
                f"{width} fields, as the header has: a tab within a text ends a field"
            )
        planted = name_key(values["severity"]) == PLANTED  # left out as a whole
        for at, cell in enumerate(cells):
            if at not in order and cell.strip() and not planted:
                what = "comments on errors, or what else is said of them"
                noticed.left[f"values of the column {columns[at][:60]!r}" if at in columns else what] += 1
        try:
            yield _read_line(place, values, _Noticed() if planted else noticed, planted)
        except ValueError as error:
            raise InputError(f"{place}: {error}") from None


def _in_quotes(cell: str) -> bool:
    return len(cell) > 1 and cell[0] == cell[-1] == '"'


def _header(line: str) -> tuple[str, list[str]] | None:
    """Return the separator and the field names of a header; None for a line of ratings."""
    for separator in "\t,;|":
        header = [cell.strip(' "') for cell in line.split(separator)]
        keys = tuple(map(name_key, header))
        begins = separator == "\t" and keys[:2] == FIELDS[:2]
        if begins or {"system", "doc", "category", "severity"} <= set(keys):
            return separator, header
    return None


def _order(path: Path, header: Sequence[str]) -> tuple[int, ...]:
    """Return the column of each field; InputError for a header without one of them."""
    keys = [OTHER_FIELDS.get(name_key(cell), name_key(cell)) for cell in header]
    missing = [name for name in FIELDS if name_key(name) not in keys]
    if twice := [name for name in FIELDS if keys.count(name_key(name)) > 1]:
        raise InputError(f"{path.name}, line 1: the header has {', '.join(twice)} twice; allowed: once")
    if missing:
        lacks = f"{path.name}, line 1: the header has no {', '.join(missing)}"
        raise InputError(f"{lacks}; allowed: {IN_TABS}")
    return tuple(keys.index(name_key(name)) for name in FIELDS)


def _read_line(place: Place, values: dict[str, str], noticed: _Noticed, planted: bool) -> _Line:
    name = "text that is not blank, without NUL"
    source, in_source = _marked(_unquoted(values["source"], noticed), noticed)
    target, in_target = _marked(_unquoted(values["target"], noticed), noticed)
    is_rated = any(values[name].strip() for name in ("rater", "category", "severity"))
    noticed.left["marks in the source beside one in the target"] += bool(in_source and in_target)
    error = _error(values, in_source, in_target)
    noticed.left["marks in lines that say no-error"] += error is None and bool(in_source or in_target)
    noticed.left["categories in lines that say no-error"] += (
        error is None and bool(values["category"].strip()) and not is_no_error(values["category"])
    )
    return _Line(
        place=place,
        system=_field(values, "system", checked_name, name),
        document=_field(values, "doc", checked_text, "no NUL"),
        number=_field(values, "doc_id", checked_text, "no NUL").strip(),
        segment=_field(values, "seg_id", checked_whole, "a whole number from 0"),
        rater=_field(values, "rater", checked_name, name) if is_rated else None,
        source=source,
        target=target,
        error=error,
        planted=planted,
    )


def _unquoted(cell: str, noticed: _Noticed) -> str:
    text = without_csv_quotes(cell)
    noticed.notes["texts in CSV quotes, read without them"] += text != cell
    return text


def _field(values: dict[str, str], name: str, parse: Callable[[str], Value], allowed: str) -> Value:
    try:
        return parse(values[name])
    except ValueError:
        raise ValueError(f"{name}: found {values[name][:60]!r}; allowed: {allowed}") from None


def _error(
    values: dict[str, str], in_source: tuple[int, int] | None, in_target: tuple[int, int] | None
) -> dict[str, Any] | None:
    if is_no_error(values["severity"].strip() or values["category"]):
        return None
    error: dict[str, Any] = {
        "severity": values["severity"],
        "category": values["category"].split("/") if values["category"].strip() else [],
    }
    if name_key(values["severity"]) == TRIVIAL:
        error |= OF_TRIVIAL
    if in_target is not None:
        error |= dict(zip(("start", "end"), in_target, strict=True))
    elif in_source is not None:
        error |= dict(zip(("start", "end"), in_source, strict=True)) | {"in_source": True}
    return error


def _marked(text: str, noticed: _Noticed) -> tuple[str, tuple[int, int] | None]:
    """Return the text without marks, and the first and the last marked character.

    The place is None without a mark, and for an empty mark. An unclosed mark goes to the end.
    """
    before, begins, rest = checked_text(text).partition(BEGIN)
    marked, _, after = rest.partition(END)
    if END in before:
        raise ValueError(f"{END} without {BEGIN} before it in {text[:60]!r}; allowed: one {BEGIN}…{END}")
    if any(mark in part for part in (before, marked, after) for mark in (BEGIN, END)):
        raise ValueError(f"several marks in {text[:60]!r}; allowed: one {BEGIN}…{END}")
    noticed.notes[f"marks without {END}, which go to the end of the text"] += bool(begins) and END not in rest
    noticed.left["marks around nothing"] += bool(begins) and not marked
    place = (len(before), len(before) + len(marked) - 1) if begins and marked else None
    return before + marked + after, place


# ---------------------------------------------------------------- writing


def _numbers_within_documents(segments: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Number each (document, segment) within its document, from 1."""
    documents: dict[str, set[int]] = defaultdict(set)
    for document, segment in segments:
        documents[document].add(segment)
    return {
        (document, segment): number
        for document, members in documents.items()
        for number, segment in enumerate(sorted(members), start=1)
    }


def _written(rated: CountedScore, number: int, name: str) -> Iterator[str]:
    item = rated.item
    segment = item.segment + FIRST_SEGMENT[MQM]
    place = f"{name} of {rated.score.system}"
    before = [rated.score.system, item.document, str(number), str(segment), rated.answer.rater]
    spans = spans_of(rated.score.payload)
    for cell in (*before, item.source, rated.output, *(name for span in spans for name in span.category)):
        if found := _UNWRITABLE.search(cell):
            raise cannot_hold(
                f"{place}: found {found[0]!r} in {cell[:60]!r}; allowed: no tab, line end or mark, as this "
                "format has a line for each error"
            )
    for span in spans:
        source = _cell(_with_mark(item.source, span if span.in_source else None))
        target = _cell(_with_mark(rated.output, None if span.in_source else span))
        yield "\t".join([*before, source, target, "/".join(span.category), span.severity.capitalize()])
    if not spans:
        yield "\t".join([*before, _cell(item.source), _cell(rated.output), NO_ERROR, NO_ERROR])


def _cell(text: str) -> str:
    """Put a text that looks like one in CSV quotes into such quotes, so that an import returns it."""
    doubled = text.replace('"', '""')
    return text if without_csv_quotes(text) == text else f'"{doubled}"'


def _with_mark(text: str, span: Span | None) -> str:
    if span is None or span.start is None or span.end is None or span.end >= len(text):
        return text
    end = span.end + 1
    return f"{text[: span.start]}{BEGIN}{text[span.start : end]}{END}{text[end:]}"


class MqmTsv(Format):
    name = MQM
    title = "errors marked by MQM (TSV, as in Google's releases)"
    expected = IN_TABS
    only_file = FILE

    def recognises(self, path: Path, text: str) -> bool:
        cells = first_line(text).split("\t")
        if _header(first_line(text)) is not None:
            return True
        return len(cells) >= len(FIELDS) and cells[3].strip().isdecimal()  # without a header

    def read(self, path: Path, facts: ImportFacts, now: datetime) -> Read:
        """Read the campaign in the file; its segments keep their numbers."""
        if facts.protocol not in (None, Mqm.name):
            files = f"files of {option('format')} mqm are of {Mqm.name}"
            raise wrong_option("protocol", files, facts.protocol)
        noticed = _Noticed()
        lines = list(_lines(path, noticed))
        check_severities(
            ((line.place, line.error) for line in lines if line.error and line.rater and not line.planted),
            (TRIVIAL,),
        )
        numbering = _numbered(lines, noticed)
        items: dict[tuple[int, str], _Line] = {}
        first: dict[tuple[int, str, str], _Line] = {}
        errors: dict[tuple[int, str, str], list[dict[str, Any] | None]] = defaultdict(list)
        for line in lines:
            if line.planted:
                noticed.left["errors planted to test raters"] += 1
                continue
            index = numbering.indices[line.key]
            known = items.setdefault((index, line.system), line)
            if known.texts != line.texts:
                if any(a.rstrip() != b.rstrip() for a, b in zip(known.texts, line.texts, strict=True)):
                    alike = ""
                    if _in_one_form(known) == _in_one_form(line):
                        alike = " in one Unicode form (these differ as NFC and NFD do)"
                    raise InputError(
                        f"{line.place}: segment {line.segment} of {line.system} has another text than in "
                        f"line {known.place.line}; allowed: one source and one output{alike}"
                    )
                noticed.notes[
                    "texts with other white space at their ends than in an earlier line, which counts"
                ] += 1
            if line.rater is None:
                noticed.left["lines of metadata, without a rater"] += 1
                continue
            key = (index, line.system, line.rater)
            first.setdefault(key, line)
            within = line.error and _within(line.error, known)
            noticed.left["places of errors in white space that an earlier line does not have"] += (
                within != line.error
            )
            errors[key].append(within)
        if not first:
            raise InputError(f"{path.name}: no ratings in it")
        noticed.notes["lines that say no-error beside errors of their rater, which count"] += sum(
            of_output.count(None) for of_output in errors.values() if any(of_output)
        )
        systems = tuple(dict.fromkeys(system for _, system in items))
        positions = {key: position for position, key in enumerate(items)}
        ratings = [
            GivenRating(
                place=line.place,
                rater=rater,
                item=positions[index, system],
                system=system,
                payload={"spans": [error for error in errors[index, system, rater] if error]},
                assigned_at=now,
                submitted_at=now,
                rated_at=now,
            )
            for (index, system, rater), line in first.items()
        ]
        content = [
            ItemContent(
                position=positions[key],
                segment=key[0],
                document=line.document,
                source=line.source,
                systems=(line.system,),
                outputs=(line.target,),
            )
            for key, line in items.items()
        ]
        made = made_elsewhere(facts, Mqm.name, facts.pair, systems, content, ratings, numbering.settings)
        left = (*counts(noticed.left), *counts(noticed.notes, note=True), *numbering.notes)
        return made, (*repeats(noticed.again), *left)

    def write(self, content: Content, path: Path) -> Written:
        """Write a line for each error, and a line No-error for each output without errors.

        InputError for another protocol, for texts and names with a tab, a line end or a mark, and for texts
        that differ between items of a segment.
        """
        if content.protocol != Mqm.name:
            why = f"only campaigns of {Mqm.name} have such errors, not {content.protocol}"
            raise cannot_hold(f"{option('format')} mqm: {why}", about="format")
        numbers = _numbers_within_documents((item.document, item.segment) for item in content.items)
        texts: dict[tuple[int, str], tuple[str, str]] = {}
        lines = ["\t".join(FIELDS)]
        for rated in first_opinions(content):
            segment, system = rated.item.segment, rated.score.system
            text = (rated.item.source, rated.output)
            if texts.setdefault((segment, system), text) != text:
                raise cannot_hold(
                    f"{content.segment_name(segment)} of {system} has two texts in the campaign's items; "
                    "allowed: one source and one output, as this format asks"
                )
            lines += _written(rated, numbers[rated.item.document, segment], content.segment_name(segment))
        if len(lines) == 1:
            raise NothingToExport(f"campaign {content.name!r} has no ratings that count")
        files = write_texts(path, {FILE: "".join(f"{line}\n" for line in lines)})
        return files, not_held(content, MQM)
