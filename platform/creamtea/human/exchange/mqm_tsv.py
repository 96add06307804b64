"""Error annotations as Google released them: a line an error, tabs between the fields, a header on top.

    system doc doc_id seg_id rater source target category severity [comment]

`<v>…</v>` is around the marked error, in the target or, for an omission, in the source. A line of category
No-error says that a rater found none. Source: https://github.com/google/wmt-mqm-human-evaluation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from creamtea.errors import InputError
from creamtea.human.exchange.columns import checked_name, checked_text
from creamtea.human.exchange.content import Content, ItemContent
from creamtea.human.exchange.elsewhere import ImportFacts, made_elsewhere
from creamtea.human.exchange.files import Record, read_text
from creamtea.human.protocols.spans import Mqm

FIELDS = ("system", "doc", "doc_id", "seg_id", "rater", "source", "target", "category", "severity")
NO_ERROR = "no-error"
BEGIN, END = "<v>", "</v>"


@dataclass(frozen=True)
class _Line:
    number: int
    system: str
    document: str
    segment: int
    rater: str
    source: str
    target: str
    error: dict[str, Any] | None


def read_mqm(path: Path, facts: ImportFacts, now: datetime) -> Content:
    """The campaign in the file; segments keep their numbers.

    InputError with file, line and what was found.
    """
    if facts.protocol not in (None, Mqm.name):
        raise InputError(f"--protocol {facts.protocol}: files of --format mqm are of {Mqm.name}")
    items: dict[tuple[int, str], _Line] = {}
    first: dict[tuple[int, str, str], _Line] = {}
    errors: dict[tuple[int, str, str], list[dict[str, Any]]] = defaultdict(list)
    for line in _lines(path):
        known = items.setdefault((line.segment, line.system), line)
        if (known.source, known.target) != (line.source, line.target):
            raise InputError(
                f"{path.name}, line {line.number}: segment {line.segment} of {line.system} has another text "
                f"than in line {known.number}; allowed: one source and one output"
            )
        key = (line.segment, line.system, line.rater)
        first.setdefault(key, line)
        errors[key] += [line.error] if line.error else []
    systems = tuple(dict.fromkeys(system for _, system in items))
    positions = {key: position for position, key in enumerate(items)}
    records = [
        Record(
            path.name,
            line.number,
            {
                "rater": line.rater,
                "item": positions[line.segment, line.system],
                "system": line.system,
                "payload": {"spans": errors[key]},
                "revision": 1,
                **dict.fromkeys(("assigned_at", "submitted_at", "rated_at"), now),
            },
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
    return made_elsewhere(facts, Mqm.name, facts.pair, systems, content, records)


def _lines(path: Path) -> Iterator[_Line]:
    lines = read_text(path).removesuffix("\n").split("\n")
    if tuple(lines[0].split("\t")[: len(FIELDS)]) != FIELDS:
        raise InputError(
            f"{path.name}, line 1: found {lines[0][:80]!r}; allowed: {' '.join(FIELDS)}, with tabs"
        )
    for number, text in enumerate(lines[1:], start=2):
        cells = text.rstrip("\r").split("\t")
        if len(cells) < len(FIELDS):
            raise InputError(f"{path.name}, line {number}: found {len(cells)} fields; allowed: {len(FIELDS)}")
        values = dict(zip(FIELDS, cells, strict=False))
        try:
            source, in_source = _marked(values["source"])
            target, in_target = _marked(values["target"])
            yield _Line(
                number,
                checked_name(values["system"]),
                checked_text(values["doc"]),
                int(values["seg_id"]),
                checked_name(values["rater"]),
                source,
                target,
                _error(values, in_source, in_target),
            )
        except ValueError as error:
            raise InputError(f"{path.name}, line {number}: {error}") from None


def _error(
    values: dict[str, str], in_source: tuple[int, int] | None, in_target: tuple[int, int] | None
) -> dict[str, Any] | None:
    if values["severity"].lower() == NO_ERROR:
        return None
    error: dict[str, Any] = {
        "severity": values["severity"].lower(),
        "category": values["category"].split("/"),
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
