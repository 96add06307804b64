"""All campaigns, newest first; a programme's progress by direction and rater, and its results."""

from __future__ import annotations

from typing import Any

import streamlit as st

from creamtea.access import rights
from creamtea.errors import NotInDatabase
from creamtea.human.making import campaigns
from creamtea.human.making.programme import DirectionProgress, progress_of
from creamtea.human.protocols import protocol_title
from creamtea.human.results.ratings import fingerprint
from creamtea.report.human.build import build_programme
from creamtea.report.model import Document
from creamtea_webapp import session
from creamtea_webapp.markup import Cell, moment, note, prepare_tables, render, show, show_list, show_missing
from creamtea_webapp.pages import blocks
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


def programme() -> None:
    session.require(rights.CREATE_CAMPAIGN)  # only who may see them all
    name = st.query_params["programme"]
    if st.query_params.get("view") == "results":
        _results(name)
    else:
        _progress(name)


def _directions(name: str, *, results: bool) -> list[DirectionProgress]:
    """Show the programme's name, and return its directions; none if there is no such programme."""
    try:
        directions = progress_of(session.database(), name)
    except NotInDatabase:
        show_missing("No such programme", "All campaigns", "?campaigns=all")
        return []
    show(PROGRAMME, "head", name=name, directions=len(directions), results=results)
    return directions


def _results(name: str) -> None:
    """Show the systems over all directions, as `creamtea programme report` does."""
    if not (directions := _directions(name, results=True)):
        return
    with session.database().session() as reading:
        state = tuple(fingerprint(reading, each.campaign.id) for each in directions)
    report = _programme_report(session.database().url.render_as_string(), name, state)
    show(PROGRAMME, "facts", facts=report.facts)
    prepare_tables()
    for section in report.sections:
        blocks.show_section(section, "programme")


@st.cache_resource(max_entries=16, show_spinner="Comparing directions …")
def _programme_report(database: str, name: str, state: tuple[Any, ...]) -> Document:
    return build_programme(session.database(), name)


@st.fragment(run_every=REFRESH)
def _progress(name: str) -> None:
    """Show the progress; it refreshes itself, and checks the right each time."""
    session.require(rights.CREATE_CAMPAIGN)
    if not (directions := _directions(name, results=False)):
        return
    with session.database().session() as reading:
        now = session.database().now(reading)
    done, wanted = (sum(getattr(each.campaign, key) for each in directions) for key in ("ratings", "wanted"))
    show(PROGRAMME, "progress", done=done, wanted=wanted, now=now)
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
