"""A programme: the progress of every direction and of each of its raters."""

from __future__ import annotations

from collections import Counter

import streamlit as st

from creamtea.access import rights
from creamtea.errors import NotInDatabase
from creamtea.human.making.programme import DirectionProgress, progress_of
from creamtea_webapp import session
from creamtea_webapp.components import Cell, show_list
from creamtea_webapp.markup import moment, note, render, show
from creamtea_webapp.pages.organise.campaign import REFRESH, standing
from creamtea_webapp.pages.organise.listing import TEMPLATE as LISTING
from creamtea_webapp.pages.organise.shared import rater_link

TEMPLATE = "organise/programme.html"
DIRECTIONS = ("direction", "state", "item ratings", "raters", "systems")
RATERS = ("rater", "direction", "state", "items, of an equal share", "skipped", "last saved (UTC)")


@st.fragment(run_every=REFRESH)
def page() -> None:
    """Refreshes itself, and checks the right each time."""
    session.require(rights.CREATE_CAMPAIGN)  # only who may see them all
    database, name = session.database(), st.query_params["programme"]
    try:
        found = progress_of(database, name)
    except NotInDatabase:
        show(TEMPLATE, "missing")
        return
    with database.session() as reading:
        now = database.now(reading)
    done, wanted = (sum(getattr(each.campaign, key) for each in found) for key in ("ratings", "wanted"))
    show(TEMPLATE, "head", name=name, directions=len(found), done=done, wanted=wanted, now=now)
    show_list("directions", DIRECTIONS, [_direction(each) for each in found], words=[0, 1, 2, 3])
    rows = [row for each in found for row in _raters(each)]
    if rows:
        st.header("Raters", anchor=False)
        show_list("raters", RATERS, rows, words=[0, 1, 2, 3])
        note(
            "An equal share: the ratings of the direction divided by its raters. They may rate more or less."
        )


def _direction(each: DirectionProgress) -> list[Cell]:
    campaign = each.campaign
    standings = Counter(map(standing, each.raters))
    return [
        render(TEMPLATE, "direction", each=each),
        render("parts.html", "state_badge", state=campaign.state),
        (render(LISTING, "ratings", campaign=campaign), each.share),
        (", ".join(f"{count:,} {word}" for word, count in standings.items()) or "none", len(each.raters)),
        f"{len(campaign.systems):,}",
    ]


def _raters(each: DirectionProgress) -> list[list[Cell]]:
    campaign = each.campaign
    share = max(1, round(campaign.wanted / max(1, len(each.raters))))
    return [
        [
            rater_link(campaign.id, rater),
            render(TEMPLATE, "direction", each=each),
            standing(rater),
            (render(TEMPLATE, "share", done=rater.submitted, share=share), rater.submitted / share),
            f"{rater.skipped:,}",
            moment(rater.last_submit).removesuffix(" UTC") if rater.last_submit else "",
        ]
        for rater in each.raters
    ]
