"""Buttons that make links: shown once, where they were made, until the next action.

Streamlit answers the second press of a double click in a new thread, and stops that of the first wherever it
next touches the session: perhaps after its link was stored, and before it was kept. So what a press has made
waits here for the second one, which shows it instead of making another.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from creamtea.store.database import Database
from creamtea_webapp.pages.organise.shared import FRESH_FILE, FRESH_LINK, LINKS_AT, act

TAB = "organise-tab"
DOUBLE_CLICK = 1.0  # [s] generous: a busy browser sends the second press late
FORGET = 60.0  # [s]


@dataclass(frozen=True)
class Made:
    """What a press has made, and what to tell the organiser: a link, or a file of links by its name."""

    message: str
    link: str | None = None
    file: tuple[str, str] | None = None


# Does it. What it asks of the session it asks first: from the first transaction on it is not to be stopped.
Make = Callable[[Database, str], Made]

_lock = threading.Lock()
_made: dict[tuple[str, str], tuple[float, Made]] = {}  # by tab and place; when


def on_press(
    right: str, campaign_id: int, make: Make, place: str, cleared: Mapping[str, Any] | None = None
) -> Callable[[], None]:
    """For a button that is drawn now: `shared.act`, once for a double click. `cleared`: what the fields hold
    afterwards."""
    tab = st.session_state.setdefault(TAB, secrets.token_hex(8))
    do = partial(_once, tab, time.monotonic(), place, make, cleared or {})
    return partial(act, right, campaign_id, do, errors_at=place, done_at=place)


def _once(
    tab: str,
    drawn: float,
    place: str,
    make: Make,
    cleared: Mapping[str, Any],
    database: Database,
    actor: str,
) -> str:
    with _lock:
        now = time.monotonic()
        for key in [key for key, (then, _) in _made.items() if now - then > FORGET]:
            del _made[key]
        then, made = _made.get((tab, place), (None, None))
        # pressed before the page showed it, or soon afterwards
        if then is None or made is None or (drawn > then and now - then > DOUBLE_CLICK):
            made = make(database, actor)
            _made[tab, place] = time.monotonic(), made
    if made.link is not None:
        st.session_state[FRESH_LINK] = made.link
    if made.file is not None:
        st.session_state[FRESH_FILE] = made.file
    st.session_state[LINKS_AT] = place
    for field, value in cleared.items():
        if field in st.session_state:
            st.session_state[field] = value
    return made.message
