"""All campaigns, newest first; and the progress of every direction and rater of a programme."""

from __future__ import annotations

import streamlit as st

from creamtea.access import rights
from creamtea.errors import NotInDatabase
from creamtea.human.making import campaigns
from creamtea.human.making.programme import DirectionProgress, progress_of
from creamtea.human.protocols import protocol_title
from creamtea_webapp import session
from creamtea_webapp.markup import Cell, moment, note, render, show, show_list, show_missing
from creamtea_webapp.pages.organise.campaign import REFRESH
from creamtea_webapp.pages.organise.shared import TEMPLATE as SHARED
from creamtea_webapp.pages.organise.shared import rater_link, show_notice

PROGRAMME = "organise/programme.html"
TEMPLATE = "organise/listing.html"
HEADS = ("campaign", "state", "item ratings", "raters", "protocol", "study, test set", "systems")


def page() -> None:
    session.require(rights.CREATE_CAMPAIGN)  # only who may see them all
    summaries = campaigns.summaries(session.database())
    rows: list[list[Cell]] = [
        [
            render("parts.html", "link", address=f"?campaign={campaign.id}", text=campaign.name),
            render("parts.html", "state_badge", state=campaign.state),
            (render(TEMPLATE, "ratings", campaign=campaign), campaign.ratings / max(1, campaign.wanted)),
            f"{campaign.raters:,}",
            protocol_title(campaign.protocol),
            render(SHARED, "source", campaign=campaign, linked=True),
            render("studies.html", "systems", systems=campaign.systems),
        ]
        for campaign in reversed(summaries)
    ]
    programmes = dict.fromkeys(campaign.programme for campaign in summaries if campaign.programme)
    show(TEMPLATE, "head", programmes=list(programmes))
    show_notice()
    if rows:
        show_list("campaigns", HEADS, rows, words=[0, 1, 2, 4, 5])
    else:
        note("No campaigns yet. In a campaign, people rate outputs without seeing the names of systems.")


# ---------------------------------------------------------------- a programme

DIRECTIONS = ("direction", "state", "item ratings", "raters", "systems")
RATERS = ("rater", "direction", "state", "items", "skipped", "last saved (UTC)")


@st.fragment(run_every=REFRESH)
def programme() -> None:
    """Show a programme; it refreshes itself, and checks the right each time."""
    session.require(rights.CREATE_CAMPAIGN)  # only who may see them all
    database, name = session.database(), st.query_params["programme"]
    try:
        directions = progress_of(database, name)
    except NotInDatabase:
        show_missing("No such programme", "All campaigns", "?campaigns=all")
        return
    with database.session() as reading:
        now = database.now(reading)
    done, wanted = (sum(getattr(each.campaign, key) for each in directions) for key in ("ratings", "wanted"))
    show(PROGRAMME, "head", name=name, directions=len(directions), done=done, wanted=wanted, now=now)
    show_list("directions", DIRECTIONS, [_direction(each) for each in directions], words=[0, 1, 2, 3])
    rows = [row for each in directions for row in _raters(each)]
    if rows:
        st.header("Raters", anchor=False)
        show_list("raters", RATERS, rows, words=[0, 1, 2])


def _direction(each: DirectionProgress) -> list[Cell]:
    campaign = each.campaign
    return [
        render("parts.html", "link", address=f"?campaign={campaign.id}", text=each.direction),
        render("parts.html", "state_badge", state=campaign.state),
        (render(TEMPLATE, "ratings", campaign=campaign), each.share),
        (each.standings or "none", len(each.raters)),
        f"{len(campaign.systems):,}",
    ]


def _raters(each: DirectionProgress) -> list[list[Cell]]:
    return [
        [
            rater_link(each.campaign.id, rater),
            render("parts.html", "link", address=f"?campaign={each.campaign.id}", text=each.direction),
            rater.standing,
            f"{rater.submitted:,}",
            f"{rater.skipped:,}",
            moment(rater.last_submit).removesuffix(" UTC") if rater.last_submit else "",
        ]
        for rater in each.raters
    ]
