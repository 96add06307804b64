"""The page of a study that cannot be shown."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from creamtea.store.database import Database
from creamtea.store.tables import StudyRow


@pytest.mark.parametrize(("number", "title"), [(1, "This study cannot be read here"), (99, "No such study")])
def test_why_there_is_no_report(ready: Database, visit: Any, number: int, title: str) -> None:
    with ready.transaction() as session:
        (row,) = session.scalars(select(StudyRow))
        system = {**row.spec["systems"]["tapir-greedy"], "search": {"kind": "steeped"}}
        row.spec = {**row.spec, "systems": {**row.spec["systems"], "tapir-greedy": system}}
    app = visit(study=number)
    shown = "\n".join(element.proto.body for element in app.get("html"))
    assert f"<h1>{title}</h1>" in shown
