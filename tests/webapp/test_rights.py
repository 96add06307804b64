"""Role × page, and role × action: drawn by the one who may, pressed by another."""

import http.client
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from filled_study import QUAGGA, fill_study, lines
from limits import ANSWER
from organiser_app import SCRIPT
from ready_campaigns import draft_campaign, launched_campaign
from sqlalchemy import inspect, select
from streamlit.testing.v1 import AppTest

from creamtea.access import sessions
from creamtea.access.sessions import Identity
from creamtea.human import rating
from creamtea.human.making import campaigns
from creamtea.human.rating import raters
from creamtea.store.database import Database
from creamtea.store.tables import Base
from creamtea_webapp import session

OTHERS = {
    "nobody": None,
    "rater": Identity(1, "rater", rater_id=1, campaign_id=1),
    "rater without a campaign": Identity(1, "rater"),
    "reader": Identity(1, "reader"),
    "organiser of another campaign": Identity(1, "organiser", campaign_id=2),
}
OWN = {"organiser of campaign 1": Identity(1, "organiser", campaign_id=1)}
ORGANISER = Identity(1, "organiser")
READING, ORGANISING = {"reader", "organiser"}, {"organiser"}
CAMPAIGN = {"organiser", *OWN}
# page → who gets what it reads: the gate in front is not there
PAGES = {
    "studies.page()": READING,
    "report.page()": READING,
    "papers.page()": READING,
    "compare.page()": READING,
    "rate.page()": {"rater"},
    "organise.listing.page()": ORGANISING,
    "organise.new.page()": ORGANISING,
    "organise.importing.page()": ORGANISING,
    "organise.listing.programme()": ORGANISING,
    "organise.campaign.page(1)": CAMPAIGN,
    "organise.raters.page(1)": CAMPAIGN,
    "organise.raters.one_rater(1, 1)": CAMPAIGN,
    "organise.raters.disputes(1)": CAMPAIGN,
    "organise.campaign.ahead(1)": CAMPAIGN,
    "organise.campaign.results(1)": CAMPAIGN,
    "organise.campaign.log(1)": CAMPAIGN,
    "organise.page()": {*CAMPAIGN, "organiser of another campaign"},  # which campaign is asked further on
}


def refused(app: AppTest) -> bool:
    told = [error.value[:33] for error in app.error]
    return told == ["Your link does not open this page"] and not app.exception


@pytest.fixture
def no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    def database() -> None:
        raise AssertionError("the page read the database")

    monkeypatch.setattr(session, "database", database)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_pages_read_nothing_for_whom_they_are_not(
    no_database: None, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    source = f"from creamtea_webapp.pages import {page.partition('.')[0]}\n{page}"
    for name, who in (OTHERS | OWN | {"organiser": ORGANISER}).items():
        monkeypatch.setattr(session, "identity", lambda who=who: who)
        app = AppTest.from_string(source, default_timeout=ANSWER)
        app.query_params["study"] = app.query_params["programme"] = "1"
        app.run()
        goes_on = [str(error.message) for error in app.exception] == ["the page read the database"]
        if page == "organise.importing.page()":  # a form that needs nothing from the database
            goes_on = not app.exception and "import-file" in [one.key for one in app.file_uploader]
        may = name in PAGES[page]
        assert (goes_on, refused(app)) == (may, not may), (page, name)


def test_without_a_session_the_app_shows_a_refusal_only(
    no_database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "identity", lambda: None)
    assert refused(AppTest.from_file(str(SCRIPT), default_timeout=ANSWER).run())


@pytest.fixture(scope="module")
def prepared(module_database: Database) -> Database:
    """Campaign 1 is launched; its second rater has skipped an item. Campaign 2 is a draft."""
    database = module_database
    fill_study(database, lines(8))
    launched_campaign(database, "first", **QUAGGA)
    raters.add(database, "first", "test", pseudonym="anna", name="Anna Example")
    skips = raters.add(database, "first", "test")
    raters.consent(database, skips)
    work = rating.next_item(database, skips)
    rating.skip(database, skips, work.assignment_id, "too long")
    draft_campaign(database, "second", campaigns.CampaignRequest(**QUAGGA))
    return database


def everything(database: Database) -> dict[str, list[Any]]:
    with database.session() as reading:
        return {
            table.name: [tuple(row) for row in reading.execute(select(table))]
            for table in Base.metadata.sorted_tables
            if inspect(table).name not in ("segment", "hypothesis")
        }


def button(key: str) -> Callable[[AppTest], Any]:
    return lambda app: app.button(key=key)


def submit(app: AppTest) -> Any:
    """The button of the page's form, which has no key."""
    return next(one for one in app.button if one.proto.is_form_submitter)


def told(app: AppTest) -> str:
    """The notice that waits to be shown, or is: who organises another campaign lands on that one's page."""
    if "organise-notice" in app.session_state:
        return str(app.session_state["organise-notice"].message)
    page = "".join(element.proto.body for element in app.get("html"))
    return page.partition('class="notice error" role="status">')[2]


RATER = {"campaign": "1", "view": "raters", "rater": "1"}
ACTIONS: dict[str, tuple[dict[str, str], Callable[[AppTest], Any]]] = {
    "create": ({"campaigns": "new"}, button("make")),
    "launch": ({"campaign": "2"}, button("launch")),
    "close": ({"campaign": "1"}, button("close")),
    "export": ({"campaign": "1"}, button("export")),
    "share": ({"campaign": "1"}, button("share")),
    "recruit": ({"campaign": "1", "view": "raters"}, button("recruit")),
    "import": ({"campaigns": "import"}, submit),
    "add a rater": ({"campaign": "1", "view": "raters"}, submit),
    "new link": (RATER, button("new-link")),
    "revoke links": (RATER, button("revoke")),
    "give skipped items again": (RATER | {"rater": "2"}, button("reopen")),
    "exclude": (RATER, button("decide")),
    "forget": (RATER, button("forget")),
}


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
def test_actions_ask_for_the_right_at_the_click(
    prepared: Database, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    query, pressed = ACTIONS[action]
    monkeypatch.setattr(session, "database", lambda: prepared)
    before = everything(prepared)
    others = OTHERS | (OWN if query.get("campaign") != "1" else {})
    if query.get("campaign") == "2":
        del others["organiser of another campaign"]
    for name, who in others.items():
        monkeypatch.setattr(session, "identity", lambda: ORGANISER)
        app = AppTest.from_file(str(SCRIPT), default_timeout=ANSWER)
        for key, value in query.items():
            app.query_params[key] = value
        app.run()
        for field in (*app.text_input, *app.text_area):  # what a complete form would say
            if field.key not in ("campaign-name",):
                field.set_value("anna")
        monkeypatch.setattr(session, "identity", lambda who=who: who)
        pressed(app).click().run()
        assert told(app).startswith("You may not do this"), (action, name)
        assert everything(prepared) == before, (action, name)
        assert "organise-link" not in app.session_state
        assert "organise-export" not in app.session_state


def test_the_organiser_of_one_campaign_may_act_in_it(
    prepared: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "database", lambda: prepared)
    monkeypatch.setattr(session, "identity", lambda: OWN["organiser of campaign 1"])
    app = AppTest.from_file(str(SCRIPT), default_timeout=ANSWER)
    app.query_params["campaign"] = "1"
    button("export")(app.run()).click().run()
    assert told(app).startswith("Ready to download: 0 ratings")


@pytest.mark.parametrize("role", ["reader", "organiser", "rater"])
def test_only_organisers_upload_files(site, role: str) -> None:
    """On a running server, where Streamlit itself would take a file from every session."""
    rater_id = None
    if role == "rater":
        launched_campaign(site.database, "uploads", **QUAGGA)
        rater_id = raters.find_or_add(site.database, "uploads", "test", "anna")
    opened = sessions.exchange(site.database, sessions.create_link(site.database, role, rater_id=rater_id))
    place = urlsplit(site.url)
    connection = http.client.HTTPConnection(place.netloc, timeout=ANSWER)
    headers = {"Cookie": f"creamtea-{place.port}={opened.secret}"}
    for path, organisers_only in (("/_stcore/upload_file/x/y", True), ("/_stcore/host-config", False)):
        connection.request("PUT" if organisers_only else "GET", path, body=b"x", headers=headers)
        answer = connection.getresponse()
        answer.read()
        assert (answer.status == 401) == (organisers_only and role != "organiser"), path
    connection.close()
