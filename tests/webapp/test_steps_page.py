"""The page of steps and logs: who sees it, what is first, and that logs are text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from filled_study import HOSTILE, fill_study
from limits import ANSWER
from sqlalchemy import select
from streamlit.testing.v1 import AppTest

import creamtea_webapp
from creamtea.access.sessions import Identity
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.logs import LogName, write_log
from creamtea.store.tables import StepRow, StudyStep
from creamtea_webapp import session
from creamtea_webapp.pages.steps import LINES

SCRIPT = Path(creamtea_webapp.__file__).parent / "script" / "entry.py"


@pytest.fixture
def page(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(session, "database", lambda: database)
    monkeypatch.setenv("CREAMTEA_ARTEFACTS", str(tmp_path / "artefacts"))

    def shown(study: int, step: str, role: str = "organiser") -> str:
        monkeypatch.setattr(session, "identity", lambda: Identity(7, role))
        app = AppTest.from_file(str(SCRIPT), default_timeout=ANSWER)
        app.query_params["study"], app.query_params["step"] = str(study), step
        app.run()
        assert not app.exception, [error.message for error in app.exception]
        return "\n".join(element.proto.body for element in app.get("html"))

    return shown


def failed_step(database: Database) -> tuple[str, str]:
    """Its place and its key."""
    with database.session() as reading:
        query = select(StudyStep.node, StepRow.key).join(StepRow, StepRow.key == StudyStep.step_key)
        place, key = reading.execute(query.where(StepRow.state == "failed")).first() or ("", "")
    return place, key


def test_the_steps_are_listed_with_links(page: Any, database: Database) -> None:
    number = fill_study(database, HOSTILE)
    place, _ = failed_step(database)
    shown = page(number, "")
    assert f">{place}</a>" in shown
    assert 'data-sort="' in shown  # how long it took
    assert page(number, "no such step") == page(number, "")


def test_a_log_is_text_and_the_reason_comes_first(page: Any, database: Database, tmp_path: Path) -> None:
    number = fill_study(database, HOSTILE)
    place, key = failed_step(database)
    with database.transaction() as session_:
        session_.get_one(StepRow, key).error = "no <b>jam</b>"
    lines = [f"line {line}" for line in range(LINES + 50)]
    log = "\n".join([*lines, "<script>alert(1)</script>"])
    write_log(ArtefactStore(tmp_path / "artefacts"), key, LogName(3, 0), log.encode())
    shown = page(number, place)
    assert shown.index("no &lt;b&gt;jam&lt;/b&gt;") < shown.index("line 249")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "<script>" not in shown
    assert "line 50\n" not in shown
    assert "51 earlier lines" in shown


def test_a_step_without_a_log_says_so(page: Any, database: Database) -> None:
    number = fill_study(database, HOSTILE)
    assert "no log" in page(number, failed_step(database)[0])


@pytest.mark.parametrize("role", ["reader", "rater"])
def test_only_organisers_see_logs(page: Any, database: Database, role: str) -> None:
    number = fill_study(database, HOSTILE)
    place, _ = failed_step(database)
    assert place not in page(number, place, role)
