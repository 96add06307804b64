"""Each page asks for the right itself: the gate in front is not there in these tests."""

from pathlib import Path

import pytest
from limits import ANSWER
from streamlit.testing.v1 import AppTest

import creamtea_webapp
from creamtea.access.sessions import Identity
from creamtea_webapp import session

SCRIPT = Path(creamtea_webapp.__file__).parent / "script" / "entry.py"
READER, ORGANISER = Identity(1, "reader"), Identity(1, "organiser")
RATER = Identity(1, "rater", rater_id=1, campaign_id=1)
ROLE_WITHOUT_RATER = Identity(1, "rater")


def visit(monkeypatch: pytest.MonkeyPatch, who: Identity | None, page: str | None = None) -> AppTest:
    """Run the app, or one page on its own, as this visitor; any read of the database fails the test."""

    def no_database() -> None:
        raise AssertionError("the page read the database")

    monkeypatch.setattr(session, "identity", lambda: who)
    monkeypatch.setattr(session, "database", no_database)
    if page is None:
        return AppTest.from_file(str(SCRIPT), default_timeout=ANSWER).run()
    return AppTest.from_string(
        f"from creamtea_webapp.pages import {page}\n{page}.page()", default_timeout=ANSWER
    ).run()


def refused(app: AppTest) -> bool:
    return [error.value[:33] for error in app.error] == [
        "Your link does not open this page"
    ] and not app.exception


def test_without_a_session_the_app_shows_a_refusal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(visit(monkeypatch, None))


REFUSED = {
    **dict.fromkeys(("studies", "report", "papers"), (None, RATER)),
    "rate": (None, READER, ORGANISER, ROLE_WITHOUT_RATER),
}


@pytest.mark.slow
@pytest.mark.parametrize(("page", "who"), [(page, who) for page, all_ in REFUSED.items() for who in all_])
def test_a_page_refuses_whom_it_is_not_for(
    monkeypatch: pytest.MonkeyPatch, page: str, who: Identity | None
) -> None:
    assert refused(visit(monkeypatch, who, page))


@pytest.mark.parametrize(
    ("page", "who"), [("studies", READER), ("report", ORGANISER), ("papers", READER), ("rate", RATER)]
)
def test_a_page_goes_on_to_read_for_whom_it_is(
    monkeypatch: pytest.MonkeyPatch, page: str, who: Identity
) -> None:
    app = visit(monkeypatch, who, page)
    assert [str(error.message) for error in app.exception] == ["the page read the database"]
