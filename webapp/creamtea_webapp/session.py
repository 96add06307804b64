"""Who is looking: the database of this server process and the identity behind a browser's cookie.

Every page asks here before it reads anything: that a page is not linked does not protect it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NoReturn

import streamlit as st

from creamtea.access import rights, sessions
from creamtea.access.sessions import Identity
from creamtea.settings import Settings
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database
from creamtea_webapp.markup import show
from creamtea_webapp.outages import waited_for


@cache
def database() -> Database:
    """The database of the environment (CREAMTEA_DATABASE_URL), opened once per process."""
    return open_database(Settings.load().database_url)


def artefacts() -> ArtefactStore:
    """The artefact store of the environment (CREAMTEA_ARTEFACTS)."""
    return ArtefactStore(Settings.load().artefacts)


def cookie_name() -> str:
    """One name per port: browsers share the cookies of a host between its ports."""
    return f"creamtea-{st.get_option('server.port')}"


def identity() -> Identity | None:
    """Who runs this script: looked up at every run, so that revoking takes effect at the next one.

    It waits for a database that is away, and with it every page and every act, which begin here."""
    secret = st.context.cookies.get(cookie_name())
    return waited_for(lambda: sessions.identify(database(), secret))


def require_rater() -> int:
    """The rater of the identity, if it may rate; otherwise the script stops with a message."""
    who = identity()
    if who is None or who.rater_id is None or not rights.may(who, rights.RATE, who.campaign_id):
        refuse()
    return who.rater_id


def require(right: str, campaign_id: int | None = None) -> Identity:
    """The identity, if it has this right (`creamtea.access.rights`); otherwise the script stops."""
    who = identity()
    if who is None or not rights.may(who, right, campaign_id):
        refuse()
    return who


def require_report(study_id: int) -> Identity:
    """The identity, if it may read this study's report; otherwise the script stops."""
    who = identity()
    if who is None or not rights.may(who, rights.READ_REPORT, study_id=study_id):
        refuse()
    return who


def may_read(who: Identity | None, place: str) -> bool:
    """Whether it may read a block of this path: "study-3/…" is of that study's report, any other of a page
    for readers of all."""
    study = re.match(r"study-(\d+)(?:/|$)", place)
    if study is None:
        return rights.may(who, rights.READ_STUDIES)
    return rights.may(who, rights.READ_REPORT, study_id=int(study[1]))


def require_block(place: str) -> None:
    """Go on if the identity may read a block of this path; otherwise the script stops."""
    if not may_read(identity(), place):
        refuse()


def refuse() -> NoReturn:
    st.error("Your link does not open this page, or it has been withdrawn. Ask the organiser for a new one.")
    show("parts.html", "way_back")
    st.stop()
    raise PermissionError("no right to this page")  # st.stop does nothing outside a running script
