"""Rows of the database as JSON Lines: what of each table a bundle holds, and what it leaves out.

Left out are who raters are (their pseudonyms stay), what they wrote freely, and where on whose machine a
step ran. No table of access (tokens, sessions) is among these.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, Float, Integer, String

from creamtea.errors import InputError
from creamtea.store.rows import check_json
from creamtea.store.tables import (
    Assignment,
    Base,
    Blame,
    Campaign,
    CampaignMedia,
    Item,
    Metric,
    Point,
    Rater,
    Rating,
    StepFile,
    StepInput,
    StepRow,
    StudyRow,
    StudyStep,
    UtcDateTime,
)

# in the order in which rows can be written: what others refer to comes first
TABLES: tuple[type[Base], ...] = (
    *(StudyRow, StepRow, StepInput, StudyStep, StepFile, Metric, Point),
    *(Campaign, CampaignMedia, Rater, Item, Assignment, Rating, Blame),
)
# with what stands in their place
LEFT_OUT: dict[type[Base], dict[str, Any]] = {
    StepRow: {"owner": None, "lease_until": None, "not_before": None, "locations": {}},
    Rater: {"name": None, "subject": None, "participant": None, "arrival": None, "answers": None},
    Assignment: {"draft": None, "skip_reason": "", "comment": ""},
}
# of a campaign's settings: what a rater is paid by, and who the organiser is
SECRET_SETTINGS = ("completion_code", "failing_code", "completion_url", "contact")


def file_of(table: type[Base]) -> str:
    return f"tables/{table.__tablename__}.jsonl"


def columns_of(table: type[Base]) -> dict[str, Any]:
    """The columns that a bundle holds."""
    left_out = LEFT_OUT.get(table, {})
    return {column.key: column for column in table.__table__.columns if column.key not in left_out}


def to_lines(table: type[Base], rows: Iterable[Any]) -> bytes:
    columns = columns_of(table)
    lines = (
        json.dumps(
            {name: _plain(getattr(row, name)) for name in columns}, ensure_ascii=False, allow_nan=False
        )
        for row in rows
    )
    return "".join(f"{line}\n" for line in lines).encode()


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def from_values(table: type[Base], lines: Iterable[Any], place: str) -> list[dict[str, Any]]:
    """Values for an INSERT, with those that stand for what was left out. InputError with line and column."""
    columns = columns_of(table)
    rows = []
    for number, values in enumerate(lines, start=1):
        where = f"{place}, line {number}"
        if not isinstance(values, dict) or values.keys() != columns.keys():
            raise InputError(f"{where}: its keys are not those of the table: {', '.join(columns)}")
        row = {
            name: _read(column, values[name], f"{where}, column {name}") for name, column in columns.items()
        }
        rows.append(row | LEFT_OUT.get(table, {}))
    return rows


def _read(column: Any, value: Any, place: str) -> Any:
    if value is None and column.nullable:
        return None
    try:
        check_json(value)
    except (ValueError, RecursionError) as error:
        why = error if isinstance(error, ValueError) else "nested too deeply"
        raise InputError(f"{place}: found a value {why}, which the table cannot hold") from None
    kind = column.type
    if isinstance(kind, UtcDateTime):
        try:
            moment = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            moment = None
        if moment is not None and moment.tzinfo is not None:
            return moment
    elif isinstance(kind, JSON):
        return value
    elif isinstance(kind, Boolean):
        if isinstance(value, bool):
            return value
    elif isinstance(kind, Integer | BigInteger):
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
            return value
    elif isinstance(kind, Float):
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    elif isinstance(kind, String) and isinstance(value, str):
        return value
    raise InputError(f"{place}: found {repr(value)[:80]}, which the table cannot hold")
