"""A campaign as its raters will see it, from the welcome to the end. Nothing that is entered here is kept."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from creamtea.access import rights
from creamtea.human.rating import RatingRefused, page_ahead, raters
from creamtea.store.rows import row_id
from creamtea.store.tables import Campaign, Rater
from creamtea_webapp import session
from creamtea_webapp.board import BoardState, Notice, board
from creamtea_webapp.markup import note
from creamtea_webapp.pages import rate
from creamtea_webapp.pages.organise.shared import find, head

DRAFT = "ahead-draft"  # what was entered on the page on show
ITEM = "item"  # of the address: the page's number, from 1


def page(campaign_id: int) -> None:
    who = session.require(rights.SEE_CAMPAIGN, campaign_id)
    head(who, find(campaign_id), "ahead")
    note("What raters see, page by page, with their buttons. Nothing that you enter here is kept.")
    number = row_id(st.query_params.get(ITEM, "")) or None  # 0 is the welcome, too
    with session.database().session() as reading:
        campaign = reading.get_one(Campaign, campaign_id)
        try:
            known = raters.welcome_of(reading, campaign, Rater(pseudonym="rater-01"))
        except RatingRefused as refused:
            note(str(refused).capitalize())
            return
        workload = raters.workload_of(reading, campaign)
        work = None if number is None else page_ahead(reading, campaign, number - 1)
    if number is None:
        rate.consent(known, workload, on_agree=partial(_go, 1))
    elif work is None:
        rate.all_done(known, workload.items, away=False, on_earlier=partial(_go, 1))
    else:
        page_id, entered = st.session_state.get(DRAFT, (None, {}))
        if page_id == work.assignment_id:
            work = replace(work, **entered)
        rate.domain_instructions(st.empty(), work)
        with st.empty():  # holds one element: the old board goes as the new one comes
            board(
                work,
                BoardState(work.done + 1, Notice()),
                on_draft=partial(_keep, work.assignment_id),
                on_act=lambda _: _go(number + 1),
            )
        rate.instructions(known)


def _go(number: int) -> None:
    st.query_params[ITEM] = str(number)
    st.session_state.pop(DRAFT, None)


def _keep(page_id: int, sent: Any) -> None:
    """Show the board what it sent, as the rating page does: it waits for that."""
    entered = {"draft": sent["answers"], "document_draft": sent["document"], "comment": sent["comment"]}
    st.session_state[DRAFT] = page_id, entered
