"""While the database is away nothing is lost, and people are told."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from limits import ANSWER
from organiser_app import SCRIPT
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from creamtea.access import audit, sessions
from creamtea.human.rating import raters
from creamtea.store.database import Database
from creamtea_webapp import session
from creamtea_webapp.gate import routes
from creamtea_webapp.gate.middleware import Gate

AWAY = OperationalError("SELECT 1", {}, sqlite3.OperationalError("database is locked"))
FULL = OperationalError("INSERT", {}, sqlite3.OperationalError("database or disk is full"))
MISTAKE = OperationalError("SELECT 1", {}, sqlite3.OperationalError("no such table: step"))


def failing(error: Exception, times: int = 1000) -> Any:
    """A stand-in for a transaction that fails so many times, and then finds nothing."""
    left = iter(range(times))

    def transaction(*_: object) -> None:
        if next(left, None) is not None:
            raise error

    return transaction


# ---------------------------------------------------------------- at the gate


@pytest.fixture
def people(database: Database, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setattr(session, "database", lambda: database)
    monkeypatch.setattr(session, "cookie_name", lambda: "creamtea-8501")
    app = Starlette(
        routes=routes.entrance_routes(),
        middleware=[Middleware(Gate)],
        exception_handlers={SQLAlchemyError: session.answer},
    )
    return TestClient(app, base_url="http://rate.example.org", raise_server_exceptions=False)


def test_a_page_says_so_and_comes_back(people: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "identify", failing(AWAY))
    answer = people.get("/?study=1")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
    assert session.AWAY in answer.text
    assert '<meta http-equiv="refresh" content="10">' in answer.text


def test_a_link_can_be_opened_later(people: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = sessions.create_link(session.database(), "reader")
    with monkeypatch.context() as away:
        away.setattr(sessions, "exchange", failing(AWAY))
        answer = people.post("/enter", content=secret)
        assert (answer.status_code, answer.text) == (503, f"{session.AWAY} Try again in a minute.")
    assert people.post("/enter", content=secret).status_code == 204


def test_a_mistake_is_no_outage(people: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "identify", failing(MISTAKE))
    assert people.get("/").status_code == 500
    monkeypatch.setattr(sessions, "exchange", failing(MISTAKE))
    assert people.post("/enter", content="secret").status_code == 500


# ---------------------------------------------------------------- in a script


def test_a_script_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(session, "database", lambda: None)
    monkeypatch.setattr(session, "sleep", pauses.append)
    monkeypatch.setattr(sessions, "identify", failing(AWAY, times=3))
    app = AppTest.from_file(str(SCRIPT), default_timeout=ANSWER).run()
    assert [error.value[:14] for error in app.error] == ["Your link does"]  # it asked, and got an answer
    assert pauses == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("error, seconds", [(AWAY, session.PATIENCE), (FULL, session.BRIEF)])
def test_a_script_does_not_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch, error: OperationalError, seconds: float
) -> None:
    """And little for what a person has to mend."""
    now = 0.0

    def pause(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(session, "sleep", pause)
    monkeypatch.setattr(session, "monotonic", lambda: now)
    with pytest.raises(OperationalError, match=str(error.orig)):
        session.waited_for(failing(error))
    assert now == seconds


def test_a_full_disk_is_told_to_people_and_its_remedy_to_the_log(
    people: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[tuple[int, str]] = []
    monkeypatch.setattr(session.log, "log", lambda level, _, outage: logged.append((level, str(outage))))
    monkeypatch.setattr(sessions, "identify", failing(FULL))
    answer = people.get("/")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
    assert session.FAULT in answer.text
    [(level, message)] = logged
    assert level == logging.ERROR
    assert "database or disk is full; free some space" in message


def test_the_log_says_once_a_minute_what_every_request_meets(monkeypatch: pytest.MonkeyPatch) -> None:
    rule, said = session.OnceAMinute(), []
    for second in range(0, 130, 10):
        monkeypatch.setattr(session, "monotonic", lambda second=second: float(second))
        for message in ("the disk is full", "the database does not answer"):
            record = logging.makeLogRecord({"msg": "%s", "args": (message,)})
            if second < 100 or message.startswith("the disk"):
                said += [(second, message)] if rule.filter(record) else []
    assert [second for second, message in said if "disk" in message] == [0, 60, 120]
    assert [second for second, message in said if "answer" in message] == [0, 60]


@pytest.mark.parametrize("error, told", [(AWAY, True), (MISTAKE, False), (ValueError("x"), False)])
def test_only_an_outage_is_told_on_the_page(error: Exception, told: bool) -> None:
    def script(error: Exception) -> None:
        import streamlit

        from creamtea_webapp.session import show_outage

        streamlit.session_state["told"] = show_outage(error)

    app = AppTest.from_function(script, args=(error,), default_timeout=ANSWER).run()
    assert app.session_state["told"] is told
    assert [session.AWAY in shown.value for shown in app.error] == [True] * told
    assert [button.label for button in app.button] == ["Try again"] * told


# ---------------------------------------------------------------- in a browser


@contextmanager
def away(postgres_server: str, database: Database) -> Iterator[None]:
    """The database ends its connections and takes no new ones."""
    name = database.url.database
    with psycopg.connect(postgres_server, autocommit=True) as server:
        server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
        try:
            yield
        finally:
            server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


@pytest.mark.browser
def test_a_rating_is_saved_when_the_database_is_back(
    served_on_postgres: tuple[Database, str], postgres_server: str, open_page: Any
) -> None:
    from playwright.sync_api import expect
    from rating_board import FOUR, draft_on, item_on, own_campaign, press_all, save, shown_texts, stored

    database, url = served_on_postgres
    own_campaign(database, "pangolin", [(f"source {n}", [f"{text} {n}" for text in FOUR]) for n in (1, 2)])
    rater_id = raters.find_or_add(database, "pangolin", audit.COMMAND_LINE, "patient")
    raters.consent(database, rater_id)
    page = open_page(f"{url}/enter#{sessions.create_link(database, 'rater', rater_id=rater_id)}")
    item_on(page, 1, 2)
    texts, steps = shown_texts(page), [0, 12, 7, 25]
    press_all(page, steps)
    draft_on(page, "saved")  # else the page waits for the database, and has no Save until that is back
    with away(postgres_server, database):
        save(page)
        other = page.context.new_page()
        other.goto(url)
        expect(other.get_by_text(session.AWAY)).to_be_visible()
        expect(page.get_by_role("button", name="Saving…")).to_be_visible()
    item_on(page, 2, 2)
    item_on(other, 2, 2)  # by itself
    assert stored(database, rater_id, "source 1") == dict(zip(texts, steps, strict=True))
