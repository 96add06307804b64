"""Rows of steps in the database, as if an engine had run them."""

from datetime import UTC, datetime
from typing import Any

from creamtea.store.tables import StepRow

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def step_row(key: str, kind: str, **columns: Any) -> StepRow:
    """Make the row of a step that succeeded at noon, unless `columns` say otherwise."""
    usual = {"version": 1, "params": {}, "locations": {}, "state": "succeeded", "resources": {}}
    return StepRow(**{"key": key, "kind": kind, "created_at": NOON, **usual, **columns})
