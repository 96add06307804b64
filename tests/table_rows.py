"""Rows of tables: made with usual values in every column that a test leaves out, and read."""

from datetime import UTC, datetime
from typing import Any

from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Campaign, Item, StepRow

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def step_row(key: str, kind: str, **columns: Any) -> StepRow:
    """Make the row of a step that succeeded at noon."""
    usual = {"version": 1, "params": {}, "locations": {}, "state": "succeeded", "resources": {}}
    return StepRow(**{"key": key, "kind": kind, "created_at": NOON, **usual, **columns})


def campaign_row(**columns: Any) -> Campaign:
    """Make the row of a campaign that was launched at noon."""
    usual: dict[str, Any] = {"test_set": "test", "source_language": "en", "target_language": "de", "seed": 1}
    usual |= {"protocol": "contrastive-da", "ratings_per_item": 1, "instructions": "", "settings": {}}
    usual |= {"state": "launched", "created_at": NOON, "launched_at": NOON}
    return Campaign(**usual | columns)


def item_row(campaign_id: int, position: int, **columns: Any) -> Item:
    """Make the row of an item that is rated, of the segment with the number of its position."""
    usual: dict[str, Any] = {"kind": "rated", "segment_index": position, "source": f"source {position}"}
    usual |= {"document": "", "context": [], "weight": 1.0}
    return Item(campaign_id=campaign_id, position=position, **usual | columns)


def assignment_row(item_id: int, rater_id: int, order: list[list[int]], **columns: Any) -> Assignment:
    """Make the row of an item that a rater answered at noon, or never if `submitted_at` is None."""
    usual = {"lease_until": NOON, "created_at": NOON, "submitted_at": NOON, "skip_reason": "", "comment": ""}
    return Assignment(item_id=item_id, rater_id=rater_id, order=order, **usual | columns)


def all_of(database: Database, query: Any) -> list[Any]:
    """Return what a query of rows or of one column finds."""
    with database.session() as session:
        return list(session.scalars(query))


def one_of(database: Database, query: Any) -> Any:
    (found,) = all_of(database, query)
    return found


def row_of(database: Database, table: type[Any], key: object) -> Any:
    with database.session() as session:
        return session.get_one(table, key)
