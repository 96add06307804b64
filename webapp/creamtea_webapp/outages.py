"""What people see while the database is away (a restart, a fail-over, a lost network), or cannot be written.

A script that Streamlit runs waits for a database that comes back: the page stays as it is, and what was sent
is done afterwards. A request at the gate is told to come back, and the page does so by itself. The log says
what a person has to mend, such as a full disk.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar

import streamlit as st
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse

from creamtea.store.engines import Outage, outage_of, wait_out
from creamtea_webapp.markup import render

T = TypeVar("T")
AWAY = "The database does not answer at the moment. Everything that was saved is safe."
FAULT = "The server cannot save anything at the moment: please tell the organiser. What was saved is safe."
PATIENCE = 45.0  # seconds that a script waits for the database before it says that it is away
BRIEF = 5.0  # likewise if a person has to mend it, unless another server takes over
COME_BACK = 10  # seconds until a page asks again
HEADERS = {"Retry-After": str(COME_BACK)}
log = logging.getLogger(__name__)


def waited_for(work: Callable[[], T]) -> T:
    """The result of one transaction, waited for up to PATIENCE seconds while the database is away."""
    began = monotonic()

    def wait(outage: Outage, pause: float) -> bool:
        left = began + (BRIEF if outage.remedy else PATIENCE) - monotonic()
        log.warning("%s", outage)
        sleep(max(0.0, min(pause, left)))
        return left > 0

    return wait_out(work, wait)


def told_on_page(error: Exception) -> bool:
    """Whether an error of a script is an outage, which the page then says (Streamlit's `on_script_error`)."""
    message = _logged(error)
    if message is None:
        return False
    st.error(f"{message} What you did last may not have been saved.")
    st.button("Try again", key="after-outage")  # any press runs the page anew
    return True


def page_of_gate(error: SQLAlchemyError) -> HTMLResponse:
    """503 with a page that comes back by itself. Raises `error` if it is no outage."""
    page = render("gate/away.html", message=_message(error), seconds=COME_BACK, sign_in="")
    return HTMLResponse(page, status_code=503, headers=HEADERS)


async def answer(request: Request, error: Exception) -> PlainTextResponse:
    """503 for a route of the gate, in words that its page shows. Raises `error` if it is no outage."""
    return PlainTextResponse(f"{_message(error)} Try again in a minute.", status_code=503, headers=HEADERS)


def _message(error: Exception) -> str:
    if (message := _logged(error)) is None:
        raise error
    return message


def _logged(error: Exception) -> str | None:
    """What to tell people of an outage, whose details go into the log; None if it is none."""
    outage = outage_of(error)
    if outage is None:
        return None
    log.log(logging.ERROR if outage.remedy else logging.WARNING, "%s", outage)
    return FAULT if outage.remedy else AWAY
