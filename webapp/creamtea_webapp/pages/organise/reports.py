"""The raters' reports, computed once for all pages and organisers until another rating comes."""

from __future__ import annotations

from typing import Any

import streamlit as st

from creamtea.access import rights
from creamtea.human.quality import RaterReport, reports_of
from creamtea.human.results.ratings import fingerprint
from creamtea_webapp import session


def rater_reports(campaign_id: int) -> list[RaterReport]:
    """The campaign's rater reports, kept as long as no rating comes or goes. Asks for the right to see them,
    since everyone who has it shares what is kept."""
    session.require(rights.SEE_RATERS, campaign_id)
    with session.database().session() as reading:
        state = fingerprint(reading, campaign_id)
    return _reports(session.database().url.render_as_string(), campaign_id, state)


@st.cache_resource(max_entries=32, show_spinner="Looking at the raters' answers …")
def _reports(database: str, campaign_id: int, state: tuple[Any, ...]) -> list[RaterReport]:
    """Nobody changes the list; `state` changes with whatever the reports are made of."""
    return reports_of(session.database(), campaign_id)
