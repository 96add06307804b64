"""What organisers do with a study on its page, and what a reader of one report sees."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from filled_study import ANALYSED, HOSTILE, fill_study
from limits import ANSWER
from sqlalchemy import select
from streamlit.testing.v1 import AppTest

import creamtea_webapp
from creamtea.access import links, sessions
from creamtea.access.sessions import Identity
from creamtea.store.database import Database
from creamtea.store.tables import StepRow, StudyRow
from creamtea_webapp import session

SCRIPT = Path(creamtea_webapp.__file__).parent / "script" / "entry.py"
REFUSED = "Your link does not open this page"
pytestmark = pytest.mark.slow


@pytest.fixture
def visit(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(session, "database", lambda: database)
    monkeypatch.setenv("CREAMTEA_ARTEFACTS", str(tmp_path / "artefacts"))

    def shown(who: Identity | None, **query: str) -> AppTest:
        monkeypatch.setattr(session, "identity", lambda: who)
        app = AppTest.from_file(str(SCRIPT), default_timeout=ANSWER)
        for name, value in query.items():
            app.query_params[name] = value
        app.run()
        assert not app.exception, [error.message for error in app.exception]
        return app

    return shown


def html(app: AppTest) -> str:
    return "\n".join(element.proto.body for element in app.get("html"))


def state(database: Database, study: int) -> str:
    with database.session() as reading:
        return reading.get_one(StudyRow, study).state


def test_an_organiser_cancels_and_retries(visit: Any, database: Database) -> None:
    study = fill_study(database, HOSTILE)
    with database.transaction() as writing:
        writing.get_one(StudyRow, study).state = "running"
        some = writing.scalars(select(StepRow).where(StepRow.kind == "latency")).one()
        some.state, some.finished_at = "pending", None
    app = visit(Identity(7, "organiser"), study=str(study))
    assert "Progress" in html(app)
    app.button(key="cancel-study").click().run()
    assert state(database, study) == "cancelled"
    app.button(key="retry-study").click().run()
    assert state(database, study) == "queued"
    assert "creamtea controller" in html(app)
    reader = visit(Identity(8, "reader"), study=str(study))
    assert not [button for button in reader.button if button.key in ("cancel-study", "retry-study")]


def test_a_link_to_one_report_is_made_and_withdrawn(visit: Any, database: Database) -> None:
    study, other = fill_study(database, HOSTILE), fill_study(database, HOSTILE, ANALYSED)
    app = visit(Identity(7, "organiser"), study=str(study))
    app.number_input(key="share-days").set_value(3)
    app.button(key="share-make").click().run()
    (code,) = [block.value for block in app.code]
    opened = sessions.exchange(database, code.partition("#")[2])
    assert opened.lifetime <= timedelta(days=3)
    who = sessions.identify(database, opened.secret)
    assert who is not None
    assert (who.role, who.study_id) == ("reader", study)

    assert "quagga" in html(visit(who))
    assert "quagga" in html(visit(who, study=str(study)))
    assert "/?study=" not in html(visit(who))  # no way to anything else
    for query in ({"study": str(other)}, {"study": "quokka"}, {"campaigns": "all"}):
        page = visit(who, **query)
        assert [error.value for error in page.error if REFUSED in error.value]
        assert "quokka" not in html(page)
    for query in ({"papers": "all"}, {"study": str(study), "step": ""}):
        assert "quagga" in html(visit(who, **query)), "whatever else is asked for, it is the report"

    app = visit(Identity(7, "organiser"), study=str(study))
    (link,) = [link for link in links.listed(database) if link.study_id == study]
    app.button(key=f"share-withdraw-{link.id}").click().run()
    assert sessions.identify(database, opened.secret) is None


def test_a_deleted_study_takes_its_links_with_it(database: Database) -> None:
    study = fill_study(database, HOSTILE)
    secret = sessions.exchange(database, sessions.create_link(database, "reader", study_id=study)).secret
    with database.transaction() as writing:
        writing.delete(writing.get_one(StudyRow, study))
    assert sessions.identify(database, secret) is None
    assert links.listed(database) == []
