"""The rating page: the only one that a rater gets. It names neither study nor systems."""

from __future__ import annotations

from typing import Any

import streamlit as st

from creamtea.human import assignment
from creamtea.human.assignment import RatingRefused
from creamtea_webapp import session
from creamtea_webapp.board import board

NOTICE = "rating-notice"


def page() -> None:
    _, rater_id = session.require_rater()
    notice = st.session_state.pop(NOTICE, "")
    work = assignment.next_item(session.database(), rater_id)
    if work is None:
        st.html("<h1>All done</h1><p>Every item is rated and saved. Thank you! You can close this page.</p>")
        return
    with st.empty():  # holds one element: the old board goes as the new one comes
        board(work, notice, on_draft=_draft, on_saved=_save)


def _draft(sent: Any) -> None:
    _store(sent, assignment.save_draft)


def _save(sent: Any) -> None:
    _store(sent, assignment.submit)


def _store(sent: Any, act: Any) -> None:
    """Hand on what the browser sent, if it looks like scores at all; a refusal is told on the page.

    One callback, one transaction: Streamlit may abort a running script, but not in here, since nothing
    here draws on the page.
    """
    who = session.identity()
    if who is None or who.rater_id is None or not isinstance(sent, dict):
        return
    assignment_id, steps = sent.get("assignment"), sent.get("steps")
    if type(assignment_id) is not int or not 0 < assignment_id < 2**31 or not isinstance(steps, list):
        return
    try:
        act(session.database(), who.rater_id, assignment_id, steps)
    except RatingRefused as refused:
        st.session_state[NOTICE] = f"Not saved: {refused}."
