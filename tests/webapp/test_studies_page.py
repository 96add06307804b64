"""The list of studies by AppTest: none, several runs, and who sees the way to campaigns."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from filled_study import HOSTILE, fill_study
from limits import ANSWER
from sqlalchemy import select
from streamlit.testing.v1 import AppTest

import creamtea_webapp
from creamtea.access.sessions import Identity
from creamtea.store.database import Database
from creamtea.store.tables import StepRow
from creamtea_webapp import session

SCRIPT = Path(creamtea_webapp.__file__).parent / "script" / "entry.py"


@pytest.fixture
def page(database: Database, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(session, "database", lambda: database)

    def shown(role: str = "organiser") -> str:
        monkeypatch.setattr(session, "identity", lambda: Identity(7, role))
        app = AppTest.from_file(str(SCRIPT), default_timeout=ANSWER).run()
        assert not app.exception, [error.message for error in app.exception]
        return "\n".join(element.proto.body for element in app.get("html"))

    return shown


def test_an_empty_database_says_how_to_begin(page: Any) -> None:
    assert "creamtea run" in page()


def test_a_study_is_listed_once_with_its_runs(page: Any, database: Database) -> None:
    first, second = (fill_study(database, HOSTILE) for _ in range(2))
    shown = page()
    assert shown.count(">quagga</a>") == 1
    for number in (first, second):
        assert f'href="?study={number}"' in shown
    assert '<span title="tapir-greedy, tapir-lexicon' in shown
    assert re.search(r"[0-9.]+ BLEU \([a-z-]+\)", shown)


def test_failed_steps_are_not_done(page: Any, database: Database) -> None:
    fill_study(database, HOSTILE)
    with database.session() as reading:
        states = reading.scalars(select(StepRow.state)).all()
    failed = states.count("failed")
    assert failed
    wanted = f"{len(states) - failed} of {len(states)} steps, 1 without a result, {failed - 1} unavailable"
    with database.transaction() as session:  # all of them are unavailable, which fails no study
        one = session.scalars(select(StepRow).where(StepRow.state == "failed")).first()
        assert one is not None
        one.error_kind = "deterministic"
    assert wanted in page()


def test_ways_that_lead_nowhere_are_not_shown(
    page: Any, database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown = page()
    assert "?compare=" not in shown  # nothing to compare
    assert "?submit=new" not in shown
    monkeypatch.setenv("CREAMTEA_DATA", str(tmp_path))
    fill_study(database, HOSTILE)
    shown = page()
    assert "?compare=" in shown
    assert "?submit=new" in shown


def test_only_who_may_create_campaigns_sees_the_way_to_them(page: Any) -> None:
    assert "campaigns=all" in page()
    assert "campaigns=all" not in page("reader")
