"""When a file of any file system was last written."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any


def modified_at(info: dict[str, Any]) -> float:
    """From what fsspec says of a file: seconds since 1970; infinite if its file system does not say."""
    for name in ("mtime", "LastModified", "last_modified", "updated", "modified", "created"):
        match info.get(name):
            case datetime() as moment:
                return moment.timestamp()
            case int() | float() as seconds:
                return float(seconds)
    return math.inf
