"""Rows in every table, and what the tables hold, whatever their schema."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, Boolean, Integer, Table, inspect, select
from sqlalchemy.types import Double

from creamtea.store.database import Database
from creamtea.store.tables import Base, UtcDateTime

# Columns whose CHECK constraint allows few values, alone or beside the others.
CHOICES = {
    "controller.id": 1,
    "study.state": "running",
    "step.state": "failed",
    "step.error_kind": "timeout",
    "access_token.role": "rater",
    "access_token.subject": None,
    "access_token.study_id": None,
    "web_session.role": "rater",
    "campaign.protocol": "contrastive-da",
    "campaign.state": "launched",
    "item.kind": "rated",
    "rating.step": 25,
}
Rows = dict[str, list[dict[str, Any]]]


def fill(database: Database) -> None:
    """Two rows in every table (one where only one may be), every column set that a CHECK does not forbid,
    children under parents."""
    with database.transaction() as session:
        for table in Base.metadata.sorted_tables:
            for number in (1,) if table.name == "controller" else (1, 2):
                session.execute(table.insert().values(**row_of(table, number)))


def change(database: Database, *statements: Any) -> None:
    """Execute the statements in one transaction."""
    with database.transaction() as session:
        for statement in statements:
            session.execute(statement)


def another(name: str, number: int, **columns: Any) -> Any:
    """The statement that adds a row to this table: the usual one of this number, with other columns."""
    table = Base.metadata.tables[name]
    return table.insert().values(**row_of(table, number) | columns)


def row_of(table: Table, number: int) -> dict[str, Any]:
    def value(name: str, type_: Any) -> Any:
        column = table.columns[name]
        if f"{table.name}.{name}" in CHOICES:
            return CHOICES[f"{table.name}.{name}"]
        if column.foreign_keys:
            parent = next(iter(column.foreign_keys)).column
            return value_of(parent.type, number)
        return value_of(type_, number)

    return {column.name: value(column.name, column.type) for column in table.columns}


def value_of(type_: Any, number: int) -> Any:
    if isinstance(type_, UtcDateTime):
        return datetime(2026, 1, number, 12, 30, 15, 250_000, tzinfo=UTC)
    if isinstance(type_, JSON):
        return {"größe": [number, None, 0.5]}
    if isinstance(type_, Boolean):
        return number == 1
    if isinstance(type_, Integer):
        return number
    if isinstance(type_, Double):
        return number + 0.1
    return f"Zeile {number} – ∂"


def dump(database: Database) -> Rows:
    """Every row of every table that exists, with the columns that exist and that the models know."""
    with database.engine.connect() as connection:
        present = inspect(connection).get_multi_columns()
        rows: Rows = {}
        for table in Base.metadata.sorted_tables:
            if (None, table.name) not in present:
                continue
            names = {column["name"] for column in present[None, table.name]}
            chosen = select(*(column for column in table.columns if column.name in names))
            found = connection.execute(chosen.order_by(*table.primary_key.columns))
            rows[table.name] = [dict(row._mapping) for row in found]
        return rows


def without(rows: Rows, other: Rows) -> Rows:
    """The rows with the columns that `other` has too."""
    return {
        table: [
            {name: row[name] for name in kept} for row, kept in zip(rows[table], other[table], strict=True)
        ]
        for table in other
    }
