"""Who is looking: the database of this server process, and the identity behind a browser's cookie.

While the database is away, a script that Streamlit runs waits for it: the page stays as it is, and what the
browser sent is done afterwards. A request at the gate gets a page that reloads by itself. The log says what a
person has to repair, such as a full disk.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import cache
from time import monotonic, sleep
from typing import NoReturn, TypeVar

import streamlit as st
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse

from creamtea.access import rights, sessions
from creamtea.access.sessions import Identity
from creamtea.settings import Settings
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database
from creamtea.store.engines import Outage, outage_of, wait_out
from creamtea_webapp.markup import render, show

T = TypeVar("T")
AWAY = "The database does not answer at the moment. Everything that was saved is safe."
FAULT = "The server cannot save anything at the moment: please tell the organiser. What was saved is safe."
PATIENCE = 45.0  # seconds that a script waits for the database before it says that it is away
BRIEF = 5.0  # the same if a person has to repair the database, unless another server takes over
COME_BACK = 10  # seconds until a page asks again
HEADERS = {"Retry-After": str(COME_BACK)}
QUIET = 60.0  # seconds in which the log has a message only once


class OnceAMinute(logging.Filter):
    """Drop messages that were logged a moment ago: during an outage every request has the same."""

    def __init__(self) -> None:
        super().__init__()
        self._logged: dict[str, float] = {}  # moments, by message

    def filter(self, record: logging.LogRecord) -> bool:
        now, message = monotonic(), record.getMessage()
        recent = {text: at for text, at in self._logged.items() if now - at < QUIET}
        self._logged = {message: now} | recent
        return message not in recent


log = logging.getLogger(__name__)
log.addFilter(OnceAMinute())


def waited_for(work: Callable[[], T]) -> T:
    """Return the result of one transaction; wait up to PATIENCE seconds while the database is away."""
    began = monotonic()

    def wait(outage: Outage, pause: float) -> bool:
        remaining = began + (BRIEF if outage.remedy else PATIENCE) - monotonic()
        log.warning("%s", outage)
        sleep(max(0.0, min(pause, remaining)))
        return remaining > 0

    return wait_out(work, wait)


def show_outage(error: Exception) -> bool:
    """Show an outage on the page; return False for any other error (Streamlit's `on_script_error`)."""
    message = _logged(error)
    if message is None:
        return False
    st.error(f"{message} What you did last may not have been saved.")
    st.button("Try again", key="after-outage")  # any press runs the page anew
    return True


def page_of_gate(error: SQLAlchemyError) -> HTMLResponse:
    """Return a 503 page that reloads by itself. Raises `error` if it is not an outage."""
    page = render("gate/away.html", message=_message(error), seconds=COME_BACK, sign_in="")
    return HTMLResponse(page, status_code=503, headers=HEADERS)


async def answer(request: Request, error: Exception) -> PlainTextResponse:
    """Return a 503 for a route of the gate, in words that its page shows.

    Raises `error` if it is not an outage.
    """
    return PlainTextResponse(f"{_message(error)} Try again in a minute.", status_code=503, headers=HEADERS)


def _message(error: Exception) -> str:
    if (message := _logged(error)) is None:
        raise error
    return message


def _logged(error: Exception) -> str | None:
    """Log an outage, and return what to tell people; None if the error is not an outage."""
    outage = outage_of(error)
    if outage is None:
        return None
    log.log(logging.ERROR if outage.remedy else logging.WARNING, "%s", outage)
    return FAULT if outage.remedy else AWAY


# ---------------------------------------------------------------- the identity behind a browser's cookie
#
# Every page asks here before it reads anything: a page is not protected by the lack of a link to it.


@cache
def database() -> Database:
    """Return the database of the environment (CREAMTEA_DATABASE_URL), opened once per process."""
    return open_database(Settings.load().database_url)


def artefacts() -> ArtefactStore:
    """Return the artefact store of the environment (CREAMTEA_ARTEFACTS)."""
    return ArtefactStore(Settings.load().artefacts)


def cookie_name() -> str:
    """Return the name of this port's cookie: browsers share the cookies of a host between its ports."""
    return f"creamtea-{st.get_option('server.port')}"


def identity() -> Identity | None:
    """Return who runs this script, looked up at every run, so that revoking takes effect at the next one.

    It waits while the database is away. So does every page and every action, because they begin here.
    """
    secret = st.context.cookies.get(cookie_name())
    return waited_for(lambda: sessions.identify(database(), secret))


def require_rater() -> int:
    """Return the rater of the identity if it may rate; otherwise stop the script with a message."""
    who = identity()
    if who is None or who.rater_id is None or not rights.may(who, rights.RATE, who.campaign_id):
        refuse()
    return who.rater_id


def require(right: str, campaign_id: int | None = None, study_id: int | None = None) -> Identity:
    """Return the identity if it has this right (`creamtea.access.rights`); otherwise stop the script."""
    who = identity()
    if who is None or not rights.may(who, right, campaign_id, study_id=study_id):
        refuse()
    return who


def require_report(study_id: int) -> Identity:
    return require(rights.READ_REPORT, study_id=study_id)


def may_read(who: Identity | None, place: str) -> bool:
    """Return whether an identity may read the block of this path.

    A path "study-3/…" belongs to that study's report, "campaign-3/…" to that campaign's results, and
    "programme/…" to the results over directions. Any other path belongs to a page for readers of all studies.
    """
    if place.startswith("programme/"):
        return rights.may(who, rights.CREATE_CAMPAIGN)
    match re.match(r"(study|campaign)-(\d+)(?:/|$)", place):
        case None:
            return rights.may(who, rights.READ_STUDIES)
        case found if found[1] == "study":
            return rights.may(who, rights.READ_REPORT, study_id=int(found[2]))
        case found:
            return rights.may(who, rights.SEE_CAMPAIGN, int(found[2]))


def require_block(place: str) -> None:
    """Stop the script unless the identity may read the block of this path."""
    if not may_read(identity(), place):
        refuse()


def refuse() -> NoReturn:
    st.error("Your link does not open this page, or it has been revoked. Ask the organiser for a new one.")
    show("parts.html", "way", address="./", text="What your link opens")
    st.stop()
    raise PermissionError("no right to this page")  # st.stop does nothing outside a running script
