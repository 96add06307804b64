"""A report as plain JSON values, at full precision."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

from creamtea.report.model import Block, Figure
from creamtea.report.vega import vega_lite


def to_values(value: Any) -> Any:
    """A document or a part of it; a block says its type, and moments are in ISO 8601."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = {field.name: to_values(getattr(value, field.name)) for field in dataclasses.fields(value)}
        if isinstance(value, Figure):
            named["spec"] = to_values(vega_lite(value)) if value.rows else None
            del named["rows"]  # they are the specification's data
        return {"type": type(value).__name__.lower(), **named} if isinstance(value, Block) else named
    if isinstance(value, dict):
        return {str(key): to_values(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_values(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return value
