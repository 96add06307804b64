"""Write the result and files of a finished step as rows.

Every value is checked first: SQLite would store NaN as NULL, and PostgreSQL refuses text with NUL characters.
Both are errors here, and name the file and line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from itertools import islice
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from sqlalchemy import bindparam, delete, exists, insert, or_, select
from sqlalchemy.orm import Session

from creamtea.contract.step import StepResult
from creamtea.errors import StepError
from creamtea.store import MAX_INDEXED
from creamtea.store.artefacts import ArtefactStore, StoredFile
from creamtea.store.tables import (
    Base,
    Hypothesis,
    Metric,
    Point,
    Segment,
    SegmentScore,
    StepFile,
)

BATCH = 2000  # rows per INSERT
NUL = re.compile(r"(?<!\\)(\\\\)*\\u0000")  # the JSON escape of NUL, but not an escaped backslash and "u0000"

Row = dict[str, Any]
Texts = Mapping[str, bytes]  # file name (a key of TABLES) → content
OF_STEP = (StepFile, Metric, Point, Segment, Hypothesis, SegmentScore)
HAS_ROWS = select(or_(*(exists().where(table.step_key == bindparam("step")) for table in OF_STEP)))


def read_texts(store: ArtefactStore, files: list[StoredFile]) -> Texts:
    """Read the files of a step that become rows; InfrastructureError if one cannot be read.

    Call it before the transaction begins: a remote store may take long to answer.
    """
    return {file.name: store.read(file.digest) for file in files if file.name in TABLES}


def ingest(
    session: Session, step_key: str, result: StepResult, files: list[StoredFile], texts: Texts
) -> None:
    """Write the step's files, metrics, points and rows in the caller's transaction.

    `texts`: the result of `read_texts`. Rows from an earlier call for the same step are replaced. The step's
    own row must exist. StepError names the file and line, or the metric, that cannot be stored.
    """
    _checked(StoredFacts, result, "the step's result")
    if session.scalar(HAS_ROWS, {"step": step_key}):
        for table in OF_STEP:
            session.execute(delete(table).where(table.step_key == step_key))
    _write(session, StepFile, step_key, (vars(file) for file in files))
    _write(session, Metric, step_key, stored_metrics(result))
    _write(session, Point, step_key, _points(result))
    for name, text in texts.items():
        _write(session, TABLES[name][0], step_key, stored_lines(name, BytesIO(text)))


def _write(session: Session, table: type[Base], step_key: str, rows: Iterator[Row]) -> None:
    while batch := [{"step_key": step_key, **row} for row in islice(rows, BATCH)]:
        session.execute(insert(table.__table__), batch)  # type: ignore[arg-type]  # a FromClause to mypy


# ---------------------------------------------------------------- the values that a row may hold


def _plain(value: Any) -> Any:
    """Turn NumPy's numbers into Python's."""
    return value.item() if hasattr(value, "item") else value


def _text(value: str) -> str:
    if "\0" in value:
        raise ValueError("contains a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("contains half of a surrogate pair") from None
    return value


def _document(value: Any) -> Any:
    """Check a JSON value: every number is finite and every text can be stored."""
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain_number)
        written.encode()
    except UnicodeEncodeError:
        raise ValueError("contains half of a surrogate pair") from None
    if NUL.search(written):
        raise ValueError("contains a NUL character")
    return json.loads(written)


def _plain_number(value: Any) -> Any:
    if (plain := _plain(value)) is value:
        raise ValueError(f"contains a {type(value).__name__}, which JSON cannot represent")
    return plain


Text = Annotated[str, AfterValidator(_text)]
Indexed = Annotated[Text, Field(max_length=MAX_INDEXED)]
Document = Annotated[Any, AfterValidator(_document)]
Index = Annotated[int, Field(ge=0, lt=2**31)]
Number = Annotated[float, BeforeValidator(_plain)]


class Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, from_attributes=True)


class SegmentLine(Stored):
    index: Index
    source: Text
    reference: Text
    idioms: Annotated[list[Any], AfterValidator(_document)]
    # not stored in rows, only read by later steps: the language of words, references beyond the first, and
    # whether Moses' tokenisation was undone
    group: Annotated[Text, Field(exclude=True)] = ""
    more_references: Annotated[list[Text], Field(exclude=True)] = []
    detokenised: Annotated[bool, Field(exclude=True)] = False


class HypothesisLine(Stored):
    index: Index
    text: Text
    score: Number | None
    length: Index | None
    selected_size: Index | None


class ScoreLine(Stored):
    index: Index
    value: Number


class StoredMetric(Stored):
    name: Indexed
    subject: Indexed
    value: Number | None
    low: Number | None
    high: Number | None
    note: Text
    detail: Document


class StoredPoint(Stored):
    series: Indexed
    x: Number
    y: Number
    label: Text


class StoredFacts(Stored):
    facts: dict[Text, Document]


TABLES: dict[str, tuple[type[Base], type[Stored]]] = {
    "segments.jsonl": (Segment, SegmentLine),
    "hypotheses.jsonl": (Hypothesis, HypothesisLine),
    "segment_scores.jsonl": (SegmentScore, ScoreLine),
}


# ---------------------------------------------------------------- rows


def stored_lines(name: str, lines: Iterable[bytes]) -> Iterator[Row]:
    """Check and yield the rows of file `name`, a key of `TABLES`; StepError unless `index` increases."""
    last = -1
    for number, line in enumerate(lines, start=1):
        place = f"{name}, line {number}"
        row = _checked(TABLES[name][1], line, place)
        if row["index"] <= last:
            raise StepError(f"{place}: index {row['index']} after {last}; indices must increase")
        last = row["index"]
        yield row


def stored_metrics(result: StepResult) -> Iterator[Row]:
    seen: set[tuple[str, str]] = set()
    for metric in result.metrics:
        place = f"metric {metric.name!r}" + (f" of {metric.subject!r}" if metric.subject else "")
        if (metric.name, metric.subject) in seen:
            raise StepError(f"{place} is given twice")
        seen.add((metric.name, metric.subject))
        if metric.value is None and not metric.note:
            raise StepError(f"{place} has neither a value nor a note that says why not")
        yield _checked(StoredMetric, metric, place)


def _points(result: StepResult) -> Iterator[Row]:
    """Yield the points in the step's order, each with its position in its series."""
    lengths: dict[str, int] = {}
    for point in result.points:
        position = lengths.get(point.series, 0)
        lengths[point.series] = position + 1
        row = _checked(StoredPoint, point, f"point {position} of {point.series!r}")
        yield {**row, "position": position}


def _checked(model: type[Stored], value: Any, place: str) -> Row:
    """Check a line of JSON or an object, and return it as a row; StepError if it cannot be stored."""
    try:
        row = model.model_validate_json(value) if isinstance(value, bytes) else model.model_validate(value)
    except ValidationError as error:
        problems = []
        for problem in error.errors(include_url=False):
            key = "".join(f"{part}: " for part in problem["loc"])
            problems.append(f"{key}{problem['msg']}, found {repr(problem['input'])[:80]}")
        raise StepError(
            f"{place}: {'; '.join(problems)}; its keys are {', '.join(model.model_fields)}"
        ) from None
    return row.model_dump()
