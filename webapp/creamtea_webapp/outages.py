"""What people see while the database is away: a restart, a fail-over, a lost network.

A script that Streamlit runs waits for it (the page stays as it is, and what was sent is done afterwards); a
request at the gate is told to come back, and the page does so by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar

import streamlit as st
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from creamtea.store.outages import is_outage, reason_of, wait_out
from creamtea_webapp.markup import render

T = TypeVar("T")
R = TypeVar("R", bound=Response)
AWAY = "The database does not answer at the moment. Everything that was saved is safe."
PATIENCE = 45.0  # seconds that a script waits for the database before it says that it is away
COME_BACK = 10  # seconds until a page asks again
log = logging.getLogger(__name__)


def waited_for(work: Callable[[], T]) -> T:
    """The result of one transaction, waited for up to PATIENCE seconds while the database is away."""
    end = monotonic() + PATIENCE

    def wait(reason: str, pause: float) -> bool:
        left = end - monotonic()
        log.warning("the database does not answer: %s", reason)
        sleep(max(0.0, min(pause, left)))
        return left > 0

    return wait_out(work, wait)


def told_on_page(error: Exception) -> bool:
    """Whether an error of a script is an outage, which the page then says (Streamlit's `on_script_error`)."""
    if not isinstance(error, SQLAlchemyError) or not is_outage(error):
        return False
    st.error(f"{AWAY} What you did last may not have been saved.")
    st.button("Try again", key="after-outage")  # any press runs the page anew
    return True


def page_of_gate(error: SQLAlchemyError) -> HTMLResponse:
    """503 with a page that comes back by itself. Raises `error` if it is no outage."""
    page = render("gate/away.html", message=AWAY, seconds=COME_BACK, sign_in="")
    return _unavailable(HTMLResponse, page, error)


async def answer(request: Request, error: Exception) -> Response:
    """503 for a route of the gate, in words that its page shows. Raises `error` if it is no outage."""
    assert isinstance(error, SQLAlchemyError)
    return _unavailable(PlainTextResponse, f"{AWAY} Try again in a minute.", error)


def _unavailable(kind: type[R], content: str, error: SQLAlchemyError) -> R:
    if not is_outage(error):
        raise error
    log.warning("the database does not answer: %s", reason_of(error))
    return kind(content, status_code=503, headers={"Retry-After": str(COME_BACK)})
