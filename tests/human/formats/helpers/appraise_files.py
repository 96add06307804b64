"""Files of Appraise's scores, and what a test reads off the campaign that they make."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import find_format
from creamtea.human.formats.record import Content
from creamtea.report.export import to_values
from creamtea.report.human.build import build_human
from creamtea.store.database import Database

NOW = datetime(2026, 5, 1, tzinfo=UTC)

MTURK = """\
HITId WorkerId Input.src Input.trg Input.item hit sys_id rid type sid score time
3ABC\tM01\tlv\ten\tad\t13\tA.0\t1003221\tSYSTEM\t121\t72\t1503.0
3ABC\tM01\tlv\ten\tad\t13\tA.0\t1003222\tBAD_REF\t121\t10.0\t1503.0
3ABC\tM01\tlv\ten\tad\t13\tA.0\t1003223\tREPEAT\t121\t71\t1503.0
3ABC\tM01\tlv\ten\tad\t13\tA.0\t1003224\tREF\t121\t99\t1503.0
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "scores.csv"
    path.write_text(text, encoding="utf-8")
    return path


def options(**fields: Any) -> ImportFacts:
    return ImportFacts(**{"name": "wmt", "protocol": "da-sqm", "test_set": "general", **fields})


def campaign(folder: Path, text: str, **fields: Any) -> Content:
    return find_format("appraise").read(written(folder, text), options(**fields), NOW)[0]


def block(database: Database, key: str = "wmt", rule: str | None = None) -> dict[str, Any]:
    """The report's table or list of this key, of the campaign `wmt`."""
    report = to_values(build_human(database, "wmt", rule))
    [found] = [one for one in _blocks(report) if one.get("key") == key and one.keys() & {"rows", "entries"}]
    return found


def cells(database: Database, key: str = "wmt", rule: str | None = None) -> dict[str, dict[str, Any]]:
    """The values of a table by row and column."""
    return {
        row["name"]: {name: cell["value"] for name, cell in row["cells"].items()}
        for row in block(database, key, rule)["rows"]
    }


def _blocks(value: Any) -> list[dict[str, Any]]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value] if isinstance(value, dict) else []
    return [*own, *(found for one in inner for found in _blocks(one))]
