"""Rows of the database as plain values: fields take the columns of their names."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def from_row(kind: type[T], row: Any, **others: Any) -> T:
    """A dataclass with the row's columns of its fields' names; `others` are the fields that have none."""
    names = [field.name for field in fields(kind) if field.name not in others]  # type: ignore[arg-type]
    return kind(**{name: getattr(row, name) for name in names}, **others)
