"""What organisers do with a study on its page: cancel it, retry it, and lend its report to one reader."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import streamlit as st

from creamtea.access import links, rights, sessions
from creamtea.access.sessions import Identity
from creamtea.orders.controllers import live_controller
from creamtea.orders.rows import LIVE
from creamtea.orders.submission import cancel, requeue
from creamtea.report.model import Document
from creamtea.store.database import Database
from creamtea_webapp import session
from creamtea_webapp.markup import moment, note
from creamtea_webapp.pages.organise.press import Made, on_press
from creamtea_webapp.pages.organise.shared import act, entry, fresh_link, show_notice

SHARED = "share"  # the place of a fresh link
DAYS = 14
QUEUED = "It is queued again."
NOBODY = " No controller is running: start one with `creamtea controller`."


def section(who: Identity | None, report: Document, steps: tuple[int, int]) -> None:
    """Nothing for those who may do none of it. `steps`: how many have succeeded, and how many there are."""
    may_control, may_share = (
        rights.may(who, right) for right in (rights.CONTROL_STUDIES, rights.SHARE_REPORTS)
    )
    if not may_control and not may_share:
        return
    # containers of their own, so that what comes and goes takes nobody else's place on the page
    with st.container(key="manage-notice"):
        show_notice()
    with st.container(horizontal=True, gap="small", key="manage"):
        if may_control:
            _control(report.number, report.state, incomplete=steps[0] < steps[1])
        if may_share:
            with st.popover("Share this report"):
                _share(report.number)


def _control(study: int, state: str, incomplete: bool) -> None:
    if state in LIVE:
        with st.popover("Cancel this study"):
            note("Running steps stop within seconds, finished ones are kept. It can be retried.")
            st.button("Cancel it now", on_click=_cancel, args=(study,), key="cancel-study")
    elif incomplete:
        st.button(
            "Retry",
            on_click=_retry,
            args=(study,),
            key="retry-study",
            help="Retry what failed, was cancelled or was unavailable",
        )


def _cancel(study: int) -> None:
    def do(database: Database, actor: str) -> str:
        stopped = cancel(database, study)
        return "The study is cancelled." if stopped else "The study had already ended."

    act(rights.CONTROL_STUDIES, None, do)


def _retry(study: int) -> None:
    def do(database: Database, actor: str) -> str:
        requeue(database, session.artefacts(), study)
        return QUEUED + ("" if live_controller(database) else NOBODY)

    act(rights.CONTROL_STUDIES, None, do)


# ---------------------------------------------------------------- links to this report


def _share(study: int) -> None:
    note("A link opens this report and nothing else, in one browser, until it expires or is withdrawn.")
    st.number_input("Days", 1, 365, DAYS, key="share-days")
    st.button(
        "Make a link",
        on_click=on_press(rights.SHARE_REPORTS, None, partial(_make_link, study), SHARED),
        key="share-make",
    )
    show_notice(SHARED)
    for link in links.listed(session.database(), opening=True):
        if link.study_id == study:
            used = "open in a browser" if link.sessions else "not used yet"
            note(f"Link {link.id}, {used}, until {moment(link.expires_at)}")
            st.button("Withdraw", on_click=_withdraw, args=(study, link.id), key=f"share-withdraw-{link.id}")


def _make_link(study: int, database: Database, actor: str) -> Made:
    lifetime = timedelta(days=st.session_state["share-days"])
    secret = sessions.create_link(database, "reader", study_id=study, lifetime=lifetime, actor=actor)
    return Made(
        "The link has been made.", fresh_link(entry(secret), " and send it to one reader. It works once")
    )


def _withdraw(study: int, link: int) -> None:
    def do(database: Database, actor: str) -> str:
        if all(one.id != link or one.study_id != study for one in links.listed(database)):
            return "That link is not of this report."
        links.revoke(database, link, actor)
        return "The link is withdrawn."

    act(rights.SHARE_REPORTS, None, do)
