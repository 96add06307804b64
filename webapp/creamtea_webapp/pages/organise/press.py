"""Buttons that act once for a double click.

Streamlit answers the second press of a double click in a new thread, and stops that of the first wherever it
next touches the session: perhaps after what it made was stored, and before the page knew of it. So what a
press has made waits here for the second one, which shows it instead of making another.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import streamlit as st

from creamtea.store.database import Database
from creamtea_webapp.pages.organise.shared import LINKS_AT, act

TAB = "organise-tab"
DOUBLE_CLICK = 1.0  # [s] generous: a busy browser sends the second press late
FORGET = 60.0  # [s]


@dataclass(frozen=True)
class Made:
    """What a press has done: what to tell the organiser, and what the session is to hold."""

    message: str
    state: Mapping[str, object] = field(default_factory=dict)


# Does it. What it asks of the session it asks first: from the first transaction on it is not to be stopped.
Make = Callable[[Database, str], Made]


@dataclass
class Press:
    """The last press of a button, in one tab."""

    made: Made | None = None
    at: float = field(default_factory=time.monotonic)  # when it was made
    lock: threading.Lock = field(default_factory=threading.Lock)


_lock = threading.Lock()
_presses: dict[tuple[str, str], Press] = {}  # by tab and place


def on_press(
    right: str,
    campaign_id: int | None,
    make: Make,
    place: str,
    done_at: str | None = None,
    usual_field: str = "",
) -> Callable[[], None]:
    """For a button that is drawn now: `shared.act`, once for a double click.

    `place`: where errors and fresh links are shown, another for each button. `done_at`: where the message
    stands if all went well; None is there too.
    """
    tab = st.session_state.setdefault(TAB, secrets.token_hex(8))
    do = partial(_once, tab, time.monotonic(), place, make)
    done = place if done_at is None else done_at
    return partial(act, right, campaign_id, do, errors_at=place, done_at=done, usual_field=usual_field)


def _once(tab: str, drawn: float, place: str, make: Make, database: Database, actor: str) -> str:
    now = time.monotonic()
    with _lock:
        for old, press in list(_presses.items()):
            if now - press.at > FORGET and not press.lock.locked():
                del _presses[old]
        press = _presses.setdefault((tab, place), Press())
    with press.lock:  # a second press waits for what the first one makes
        made, age = press.made, time.monotonic() - press.at
        # unless it was pressed before the page showed it, or soon afterwards
        if made is None or (drawn > press.at and age > DOUBLE_CLICK):
            made = make(database, actor)
            press.made, press.at = made, time.monotonic()
    for key, value in made.state.items():
        st.session_state[key] = value
    st.session_state[LINKS_AT] = place
    return made.message
