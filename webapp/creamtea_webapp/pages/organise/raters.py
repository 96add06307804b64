"""The raters of a campaign: adding them, and what their reports say, one row per rater."""

from __future__ import annotations

from functools import partial

import streamlit as st

from creamtea.access import rights, sessions
from creamtea.errors import InputError
from creamtea.files import lines_of
from creamtea.human.making.campaigns import CampaignSummary
from creamtea.human.quality import RaterReport, described_in_words
from creamtea.human.rating import invitations, raters
from creamtea.human.rating.raters import RaterProgress
from creamtea.settings import SignIn
from creamtea.store.database import Database
from creamtea.store.tables import Campaign, ItemKind
from creamtea.wording import counted
from creamtea_webapp import session
from creamtea_webapp.components import show_list
from creamtea_webapp.gate.paths import LOGIN
from creamtea_webapp.markup import moment, note, render
from creamtea_webapp.pages.organise.campaign import standing
from creamtea_webapp.pages.organise.press import Made, on_press
from creamtea_webapp.pages.organise.reports import rater_reports
from creamtea_webapp.pages.organise.shared import (
    FOR_ONE,
    LABELS,
    TEMPLATE,
    entry,
    find,
    fresh_file,
    fresh_link,
    head,
    rater_link,
    safe_name,
    show_notice,
    site,
)

ADD = ("add-pseudonym", "add-name", "add-subject")  # fields


def page(campaign_id: int) -> None:
    who = session.require(rights.SEE_RATERS, campaign_id)
    campaign = find(campaign_id)
    head(who, campaign, "raters")
    _add(campaign)
    _many(campaign)
    people = raters.overview(session.database(), campaign_id)
    if not people:
        return
    reports = {report.rater_id: report for report in rater_reports(campaign_id)}
    checked = ItemKind.ATTENTION in campaign.kinds
    rows = [_row(campaign_id, rater, reports.get(rater.id), checked) for rater in people]
    heads = ["rater", "name or participant", "state", "items", "skipped", "practice", "last saved (UTC)"]
    heads += ["checks passed"] * checked + ["flags", "suggestion"]
    show_list("raters", heads, rows, words=[0, 1, 2, len(heads) - 1])
    note(
        "A flag is a reason to look, not a verdict: honest raters get one now and then. A description, such "
        f"as “given at random”, is given to {described_in_words()}. Nobody is excluded automatically. "
        "Excluding a rater is your decision, needs a reason, and can be undone."
    )


def _row(campaign_id: int, rater: RaterProgress, report: RaterReport | None, checked: bool) -> list[str]:
    flags = len(report.flagged) if report else 0
    return [
        rater_link(campaign_id, rater),
        rater.name or rater.participant or "",
        standing(rater),
        f"{rater.submitted:,}",
        f"{rater.skipped:,}",
        f"{rater.tutorial:,}",
        moment(rater.last_submit).removesuffix(" UTC") if rater.last_submit else "",
        *([f"{rater.attention.passed} of {rater.attention.answered}"] * checked),
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
            on_click=on_press(
                rights.MANAGE_RATERS,
                campaign.id,
                partial(_add_rater, campaign),
                "add",
            ),
        )
    show_notice("add")


def _many(campaign: CampaignSummary) -> None:
    """Links for many at once, and the one for a recruiting platform."""

    with session.database().session() as reading:
        now = session.database().now(reading)
        free = invitations.room(reading, reading.get_one(Campaign, campaign.id), now)
    with st.expander("Many raters at once"):
        note(f"There is something to rate for {counted(max(0, free), 'more rater')}.")
        with st.form("many-raters", border=False):
            st.text_area(
                "Pseudonyms, one per line",
                key="many-pseudonyms",
                help="Known raters get a new link; the others are added.",
            )
            st.number_input(
                "Or a number of new raters",
                0,
                invitations.MAX_AT_ONCE,
                key="many-count",
                help="They are numbered.",
            )
            st.checkbox(LABELS["surplus"], key="many-surplus")
            st.form_submit_button(
                "Make links (CSV)",
                on_click=on_press(
                    rights.MANAGE_RATERS,
                    campaign.id,
                    partial(_invite_many, campaign),
                    "many",
                ),
            )
        show_notice("many")  # outside: a form can hold no button to download with
    with st.expander("Participants of Prolific or another platform"):
        note(
            "One link for all participants, for 90 days. Anyone arriving with a participant number becomes "
            "a rater under a pseudonym, and continues where they left off on returning. Paste the link where "
            "Prolific asks for the address of your study. Elsewhere, replace what stands between “?” and “#” "
            "by participant=NUMBER. The link back is in the draft's form."
        )
        st.button(
            "Make the link for participants",
            key="recruit",
            on_click=on_press(rights.MANAGE_RATERS, campaign.id, partial(_recruit, campaign), "recruit"),
        )
        show_notice("recruit")


def _invite_many(campaign: CampaignSummary, database: Database, actor: str) -> Made:
    state = st.session_state
    names = [line.strip() for line in lines_of(str(state.get("many-pseudonyms", ""))) if line.strip()]
    count = int(state.get("many-count") or 0)
    if bool(names) == bool(count):
        raise InputError("Write pseudonyms, or give a number of new raters: one of the two.")
    surplus = bool(state.get("many-surplus"))
    made = invitations.invite(database, campaign.name, actor, names or count, surplus=surplus)
    return Made(
        f"{counted(len(made), 'link')} made. Each works once, within 14 days.",
        fresh_file(f"{safe_name(campaign.name)}-links.csv", invitations.links_csv(made, site()))
        | {"many-pseudonyms": "", "many-count": 0},
    )


def _recruit(campaign: CampaignSummary, database: Database, actor: str) -> Made:
    secret = invitations.recruit(database, campaign.name, actor)
    return Made(
        "The link for participants has been made.",
        fresh_link(invitations.recruiting_address(site(), secret)),
    )


def _add_rater(campaign: CampaignSummary, database: Database, actor: str) -> Made:
    state = st.session_state
    pseudonym, name, subject = (str(state.get(field, "")).strip() for field in ADD)
    cleared = {field: "" for field in ADD if field in state}
    rater_id = raters.add(
        database,
        campaign.name,
        actor,
        pseudonym=pseudonym or None,
        name=name or None,
        subject=subject or None,
    )
    if subject:
        where = f"{site()}{LOGIN}?campaign={campaign.id}"
        return Made(f"The rater has been added and signs in at {where}", cleared)
    secret = sessions.create_link(database, "rater", rater_id=rater_id, actor=actor)
    return Made("The rater has been added.", fresh_link(entry(secret), FOR_ONE) | cleared)
