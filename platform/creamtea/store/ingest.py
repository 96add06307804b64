"""Writes the result and files of a finished step as rows.

Everything is checked first: SQLite would store NaN as NULL, and PostgreSQL refuses text with a NUL character,
so both are errors that name the file and line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from numbers import Integral, Real
from typing import Any, NoReturn

from sqlalchemy import delete, insert
from sqlalchemy.orm import Session

from creamtea.contract.step import StepResult
from creamtea.errors import StepError
from creamtea.store.artefacts import ArtefactStore, StoredFile
from creamtea.store.tables import Base, Hypothesis, Metric, Point, Segment, SegmentScore, StepFile

BATCH = 2000  # rows per INSERT

Row = dict[str, Any]
Check = Callable[[Any], Any]  # a JSON value → what is stored; a ValueError says what is wrong


def ingest(
    session: Session, step_key: str, result: StepResult, files: list[StoredFile], store: ArtefactStore
) -> None:
    """Write the step's files, metrics, points and rows in the caller's transaction.

    Replaces what an earlier call wrote for the same step, whose row must exist. A StepError names the file
    and line, or the metric, that cannot be stored.
    """
    _check_facts(result.facts)
    for table in (StepFile, Metric, Point, Segment, Hypothesis, SegmentScore):
        session.execute(delete(table).where(table.step_key == step_key))
    _write(session, StepFile, step_key, ({"name": f.name, "digest": f.digest, "size": f.size} for f in files))
    _write(session, Metric, step_key, _metrics(result))
    _write(session, Point, step_key, _points(result))
    for file in files:
        if file.name in TABLES:
            _write(session, TABLES[file.name].table, step_key, _lines(file, store))


def _write(session: Session, table: type[Base], step_key: str, rows: Iterator[Row]) -> None:
    while batch := [{"step_key": step_key, **row} for row in islice(rows, BATCH)]:
        session.execute(insert(table.__table__), batch)  # type: ignore[arg-type]  # a FromClause to mypy


# ---------------------------------------------------------------- values


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("is not a whole number")
    if not 0 <= value < 2**31:
        raise ValueError("is not between 0 and 2147483647")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError("is not a number")
    if not math.isfinite(value):
        raise ValueError("is not finite")
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("is not text")
    if "\0" in value:
        raise ValueError("contains a NUL character")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("contains half of a surrogate pair") from None
    return value


def _document(value: Any) -> Any:
    """A JSON value in which every number is finite and every text can be stored."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Integral):  # NumPy's numbers too
        return int(value)
    if isinstance(value, Real):
        return _number(value)
    if isinstance(value, Mapping):
        return {_text(key): _document(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_document(item) for item in value]
    raise ValueError(f"contains a {type(value).__name__}, which JSON cannot represent")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("is not a list")
    return [_document(item) for item in value]


# ---------------------------------------------------------------- JSON Lines files


@dataclass(frozen=True)
class LinesTable:
    """A JSON Lines file and its table; the columns are exactly the keys of every line."""

    table: type[Base]
    columns: Mapping[str, Check]


TABLES = {
    "segments.jsonl": LinesTable(
        Segment, {"index": _integer, "source": _text, "reference": _text, "idioms": _list}
    ),
    "hypotheses.jsonl": LinesTable(
        Hypothesis,
        {"index": _integer, "text": _text, "score": _number, "length": _integer, "selected_size": _integer},
    ),
    "segment_scores.jsonl": LinesTable(SegmentScore, {"index": _integer, "value": _number}),
}


def _lines(file: StoredFile, store: ArtefactStore) -> Iterator[Row]:
    """The checked rows of a file; `index` must increase from line to line."""
    columns = TABLES[file.name].columns
    last = -1
    with store.open(file.digest) as lines:
        for number, line in enumerate(lines, start=1):
            place = f"{file.name}, line {number}"
            row = _row(line, columns, place)
            if row["index"] <= last:
                raise StepError(f"{place}: index {row['index']} after {last}; indices must increase")
            last = row["index"]
            yield row


def _row(line: bytes, columns: Mapping[str, Check], place: str) -> Row:
    try:
        values = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise StepError(f"{place}: not valid UTF-8") from None
    except ValueError as error:
        raise StepError(f"{place}: not JSON: {error}") from None
    if not isinstance(values, dict):
        raise StepError(f"{place}: not a JSON object")
    unknown, missing = values.keys() - columns.keys(), columns.keys() - values.keys()
    if unknown or missing:
        problems = [f"unknown key {key!r}" for key in sorted(unknown)]
        problems += [f"missing key {key!r}" for key in sorted(missing)]
        raise StepError(f"{place}: {', '.join(problems)}; the keys are {', '.join(columns)}")
    return {key: _stored(check, values[key], f"{place}: {key}") for key, check in columns.items()}


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _stored(check: Check, value: Any, place: str) -> Any:
    try:
        return check(value)
    except OverflowError:
        raise StepError(f"{place} is too large: {str(value)[:80]}") from None
    except ValueError as error:
        raise StepError(f"{place} {error}: {repr(value)[:80]}") from None


# ---------------------------------------------------------------- metrics, points, facts


def _metrics(result: StepResult) -> Iterator[Row]:
    seen: set[tuple[str, str]] = set()
    for metric in result.metrics:
        place = f"metric {metric.name!r}" + (f" of {metric.subject!r}" if metric.subject else "")
        if (metric.name, metric.subject) in seen:
            raise StepError(f"{place} is given twice")
        seen.add((metric.name, metric.subject))
        if metric.value is None and not metric.note:
            raise StepError(f"{place} has neither a value nor a note that says why not")
        numbers = {
            field: None if value is None else _stored(_number, value, f"{place}: {field}")
            for field, value in (("value", metric.value), ("low", metric.low), ("high", metric.high))
        }
        yield {
            "name": _stored(_text, metric.name, place),
            "subject": _stored(_text, metric.subject, place),
            "note": _stored(_text, metric.note, f"{place}: note"),
            "detail": _stored(_document, metric.detail, f"{place}: detail"),
            **numbers,
        }


def _points(result: StepResult) -> Iterator[Row]:
    """The points with their position in their series, in the order of the step."""
    lengths: dict[str, int] = {}
    for point in result.points:
        position = lengths.get(point.series, 0)
        lengths[point.series] = position + 1
        place = f"point {position} of {point.series!r}"
        yield {
            "series": _stored(_text, point.series, place),
            "position": position,
            "x": _stored(_number, point.x, f"{place}: x"),
            "y": _stored(_number, point.y, f"{place}: y"),
            "label": _stored(_text, point.label, f"{place}: label"),
        }


def _check_facts(facts: Mapping[str, Any]) -> None:
    for name, fact in facts.items():
        _stored(_document, fact, f"fact {name!r}")
