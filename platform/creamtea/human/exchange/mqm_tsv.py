"""Error annotations as Google released them: a line an error, tabs between the fields, a header on top.

    system doc doc_id seg_id rater source target category severity [comment]

`<v>…</v>` is around the marked error, in the target or, for an omission, in the source. A line of category
No-error says that a rater found none. The side-by-side files of 2023 call two fields otherwise (docSegId,
globalSegId), have what a rater said of an error planted to test them (HOTW-test) among the lines, and some
texts with white space at their ends for one rater and without for another: the first is kept.
Source: https://github.com/google/wmt-mqm-human-evaluation.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from creamtea.error_spans import is_no_error, name_key
from creamtea.errors import InputError
from creamtea.human.exchange.columns import checked_name, checked_text, checked_whole
from creamtea.human.exchange.content import Content, ItemContent
from creamtea.human.exchange.counted import CountedScore, first_opinions
from creamtea.human.exchange.elsewhere import ImportFacts, made_elsewhere
from creamtea.human.exchange.files import Place, read_text
from creamtea.human.exchange.losses import NotKept, counts, repeats
from creamtea.human.exchange.rows import GivenRating
from creamtea.human.protocols.spans import Mqm, Span, spans_of
from creamtea.new_folder import write_texts
from creamtea.wording import counted, option

FIELDS = ("system", "doc", "doc_id", "seg_id", "rater", "source", "target", "category", "severity")
OTHER_FIELDS = {"docSegId": "doc_id", "globalSegId": "seg_id"}
NO_ERROR = "No-error"  # as files of the releases write it
PLANTED = name_key("HOTW-test")  # "hands on the wheel"
BEGIN, END = "<v>", "</v>"
FILE = "mqm.tsv"
_UNWRITABLE = re.compile("[\t\n\r]|</?v>")
Value = TypeVar("Value")


@dataclass(frozen=True)
class _Line:
    place: Place
    system: str
    document: str
    segment: int
    rater: str
    source: str
    target: str
    error: dict[str, Any] | None
    planted: bool
    comments: int  # fields behind the severity with something in them

    @property
    def texts(self) -> tuple[str, str]:
        return self.source, self.target


# ---------------------------------------------------------------- reading


def read_mqm(path: Path, facts: ImportFacts, now: datetime) -> tuple[Content, tuple[NotKept, ...]]:
    """The campaign in the file, whose segments keep their numbers, and what is not kept.

    InputError with file, line and what was found.
    """
    if facts.protocol not in (None, Mqm.name):
        raise InputError(
            f"{option('protocol')} {facts.protocol}: files of {option('format')} mqm are of {Mqm.name}",
            about="protocol",
        )
    items: dict[tuple[int, str], _Line] = {}
    first: dict[tuple[int, str, str], _Line] = {}
    errors: dict[tuple[int, str, str], list[dict[str, Any]]] = defaultdict(list)
    comments = planted = 0
    again: list[int] = []
    for line in _lines(path, again):
        if line.planted:
            planted += 1
            continue
        comments += line.comments
        known = items.setdefault((line.segment, line.system), line)
        if any(a.rstrip() != b.rstrip() for a, b in zip(known.texts, line.texts, strict=True)):
            raise InputError(
                f"{line.place}: segment {line.segment} of {line.system} has another text than in line "
                f"{known.place.line}; allowed: one source and one output"
            )
        key = (line.segment, line.system, line.rater)
        first.setdefault(key, line)
        errors[key] += [_within(line.error, known)] if line.error else []
    if not items:
        raise InputError(f"{path.name}: no ratings in it")
    systems = tuple(dict.fromkeys(system for _, system in items))
    positions = {key: position for position, key in enumerate(items)}
    ratings = [
        GivenRating(
            place=line.place,
            rater=line.rater,
            item=positions[line.segment, line.system],
            system=line.system,
            payload={"spans": errors[key]},
            assigned_at=now,
            submitted_at=now,
            rated_at=now,
        )
        for key, line in first.items()
    ]
    content = [
        ItemContent(
            position=positions[key],
            segment=line.segment,
            document=line.document,
            source=line.source,
            systems=(line.system,),
            outputs=(line.target,),
        )
        for key, line in items.items()
    ]
    made = made_elsewhere(facts, Mqm.name, facts.pair, systems, content, ratings)
    not_kept = counts(
        {
            "comments on errors, or what else is said of them": comments,
            "errors planted to test raters": planted,
        }
    )
    return made, (*repeats(again), *not_kept)


def _within(error: dict[str, Any], known: _Line) -> dict[str, Any]:
    """The error in the text that is kept, which may lack white space at its end."""
    last = len(known.source if error.get("in_source") else known.target) - 1
    if error.get("end", last) <= last:
        return error
    if error["start"] <= last:
        return {**error, "end": last}
    return {name: value for name, value in error.items() if name not in ("start", "end", "in_source")}


def _lines(path: Path, again: list[int]) -> Iterator[_Line]:
    """The lines; the numbers of those that are there again are added to `again`."""
    lines = read_text(path).removesuffix("\n").split("\n")
    header = lines[0].rstrip("\r").split("\t")[: len(FIELDS)]
    if tuple(OTHER_FIELDS.get(field, field) for field in header) != FIELDS:
        raise InputError(
            f"{path.name}, line 1: found {lines[0][:80]!r}; allowed: {' '.join(FIELDS)}, with tabs"
        )
    known: set[str] = set()
    for number, text in enumerate(lines[1:], start=2):
        place = Place(path.name, number)
        cells = text.rstrip("\r").split("\t")
        # without a comment or a time behind them, two equal lines may be two equal errors, such as omissions
        if any(cells[len(FIELDS) :]) and text in known:
            again.append(number)
            continue
        known.add(text)
        if len(cells) < len(FIELDS):
            raise InputError(f"{place}: found {counted(len(cells), 'field')}; allowed: {len(FIELDS)}")
        values = dict(zip(FIELDS, cells, strict=False))
        try:
            source, in_source = _marked(values["source"])
            target, in_target = _marked(values["target"])
            yield _Line(
                place,
                _field(values, "system", checked_name, "text that is not blank"),
                _field(values, "doc", checked_text, "text"),
                _field(values, "seg_id", checked_whole, "a whole number from 0"),
                _field(values, "rater", checked_name, "text that is not blank"),
                source,
                target,
                _error(values, in_source, in_target),
                name_key(values["severity"]) == PLANTED,
                sum(bool(cell.strip()) for cell in cells[len(FIELDS) :]),
            )
        except ValueError as error:
            raise InputError(f"{place}: {error}") from None


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
        "category": values["category"].split("/") if values["category"] else [],
    }
    if in_target is not None:
        error |= dict(zip(("start", "end"), in_target, strict=True))
    elif in_source is not None:
        error |= dict(zip(("start", "end"), in_source, strict=True)) | {"in_source": True}
    return error


def _marked(text: str) -> tuple[str, tuple[int, int] | None]:
    """The text without marks, and the first and last marked character; None without a mark, or around
    nothing. A mark that is not closed goes to the end."""
    before, begins, rest = checked_text(text).partition(BEGIN)
    marked, _, after = rest.partition(END)
    if any(mark in part for part in (before, marked, after) for mark in (BEGIN, END)):
        raise ValueError(f"several marks in {text[:60]!r}; allowed: one {BEGIN}…{END}")
    place = (len(before), len(before) + len(marked) - 1) if begins and marked else None
    return before + marked + after, place


# ---------------------------------------------------------------- writing


def write_mqm(content: Content, path: Path) -> list[Path]:
    """Write the file into the folder, new or empty: a line an error, and No-error where a rater found none.

    InputError for another protocol, for texts and names with a tab, a line end or a mark, and for outputs
    that differ between items of a segment.
    """
    if content.protocol != Mqm.name:
        raise InputError(
            f"{option('format')} mqm: only campaigns of {Mqm.name} have such errors, not {content.protocol}; "
            "export as csv or jsonl",
            about="format",
        )
    numbers = _numbers_within_documents(content)
    texts: dict[tuple[int, str], tuple[str, str]] = {}
    lines = ["\t".join(FIELDS)]
    for opinion in first_opinions(content):
        segment, system = opinion.item.segment, opinion.score.system
        text = (opinion.item.source, opinion.output)
        if texts.setdefault((segment, system), text) != text:
            raise InputError(
                f"segment {segment} of {system} has two texts in the campaign's items; allowed: one source "
                "and one output, as this format asks; export as csv or jsonl"
            )
        lines += _written(opinion, numbers[segment])
    if len(lines) == 1:
        raise InputError(f"campaign {content.name!r} has no ratings that count: nothing to export")
    return write_texts(path, {FILE: "".join(f"{line}\n" for line in lines)})


def _numbers_within_documents(content: Content) -> dict[int, int]:
    """Segment → its number in its document, from 1."""
    documents: dict[str, set[int]] = defaultdict(set)
    for item in content.items:
        documents[item.document].add(item.segment)
    return {
        segment: number
        for segments in documents.values()
        for number, segment in enumerate(sorted(segments), start=1)
    }


def _written(counted: CountedScore, number: int) -> Iterator[str]:
    item = counted.item
    place = f"segment {item.segment} of {counted.score.system}"
    before = [counted.score.system, item.document, str(number), str(item.segment), counted.answer.rater]
    spans = spans_of(counted.score.payload)
    for cell in (*before, item.source, counted.output, *(name for span in spans for name in span.category)):
        if found := _UNWRITABLE.search(cell):
            raise InputError(
                f"{place}: found {found[0]!r} in {cell[:60]!r}; allowed: no tab, line end or mark, as this "
                "format has a line for each error; export as csv or jsonl"
            )
    for span in spans:
        source = _with_mark(item.source, span if span.in_source else None)
        target = _with_mark(counted.output, None if span.in_source else span)
        yield "\t".join([*before, source, target, "/".join(span.category), span.severity.capitalize()])
    if not spans:
        yield "\t".join([*before, item.source, counted.output, NO_ERROR, NO_ERROR])


def _with_mark(text: str, span: Span | None) -> str:
    if span is None or span.start is None or span.end is None or span.end >= len(text):
        return text
    end = span.end + 1
    return f"{text[: span.start]}{BEGIN}{text[span.start : end]}{END}{text[end:]}"
