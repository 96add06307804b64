"""The raters of a campaign: adding them, and what their reports say, one row per rater."""

from __future__ import annotations

from functools import partial

import streamlit as st

from creamtea.human import access, raters, rights
from creamtea.human.campaigns import CampaignSummary
from creamtea.human.quality import RaterReport
from creamtea.human.raters import RaterProgress
from creamtea.settings import SignIn
from creamtea.store.database import Database
from creamtea_webapp import session
from creamtea_webapp.gate.paths import LOGIN
from creamtea_webapp.markup import note, render
from creamtea_webapp.pages.organise.campaign import standing
from creamtea_webapp.pages.organise.reports import rater_reports
from creamtea_webapp.pages.organise.shared import (
    TEMPLATE,
    act,
    find,
    head,
    keep_link,
    origin,
    rater_link,
    show_table,
)


def page(campaign_id: int) -> None:
    who = session.require(rights.SEE_RATERS, campaign_id)
    campaign = find(campaign_id)
    head(who, campaign, "raters")
    _add(campaign)
    people = raters.overview(session.database(), campaign_id)
    if not people:
        return
    reports = {report.rater_id: report for report in rater_reports(campaign_id)}
    rows = [_row(campaign_id, rater, reports.get(rater.id)) for rater in people]
    show_table(["rater", "name", "state", "items", "flags", "suggestion"], rows, words=[0, 1, 2, 5])
    note(
        "A flag is a reason to look, not a verdict: honest raters get one now and then. Nobody is excluded "
        "automatically. Excluding a rater is your decision, needs a reason, and can be undone."
    )


def _row(campaign_id: int, rater: RaterProgress, report: RaterReport | None) -> list[str]:
    flags = len(report.flagged) if report else 0
    return [
        rater_link(campaign_id, rater),
        rater.name or "",
        standing(rater),
        f"{rater.submitted:,}",
        render(TEMPLATE, "strong", text=flags) if flags else "0",
        report.suggestion if report else "no answers yet",
    ]


def _add(campaign: CampaignSummary) -> None:
    with st.form("add-rater", border=True), st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("Pseudonym", key="add-pseudonym", placeholder="the next unused one", width=220)
        st.text_input("Name (optional; only organisers see it)", key="add-name", width=320)
        if SignIn.load() is not None:
            st.text_input("E-mail address for signing in (instead of a link)", key="add-subject", width=320)
        st.form_submit_button(
            "Add and make a link",
            on_click=partial(act, rights.MANAGE_RATERS, campaign.id, partial(_add_rater, campaign)),
        )


def _add_rater(campaign: CampaignSummary, database: Database, actor: str) -> str:
    pseudonym = str(st.session_state.get("add-pseudonym", "")).strip()
    name = str(st.session_state.get("add-name", "")).strip()
    subject = str(st.session_state.get("add-subject", "")).strip()
    rater_id = raters.add(
        database,
        campaign.name,
        actor,
        pseudonym=pseudonym or None,
        name=name or None,
        subject=subject or None,
    )
    if not subject:
        keep_link(access.create_link(database, "rater", rater_id=rater_id, actor=actor))
    for field in ("add-pseudonym", "add-name", "add-subject"):
        if field in st.session_state:
            st.session_state[field] = ""
    if subject:
        return f"The rater has been added and signs in at {origin()}{LOGIN}?campaign={campaign.id}"
    return "The rater has been added."
