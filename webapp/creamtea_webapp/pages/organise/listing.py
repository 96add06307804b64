"""All campaigns, newest first."""

from __future__ import annotations

from creamtea.access import rights
from creamtea.human.making import campaigns
from creamtea.human.protocols import protocol_title
from creamtea_webapp import session
from creamtea_webapp.components import Cell, show_list
from creamtea_webapp.markup import note, render, show
from creamtea_webapp.pages.organise.shared import TEMPLATE as SHARED
from creamtea_webapp.pages.organise.shared import show_notice

TEMPLATE = "organise/listing.html"
HEADS = ("campaign", "state", "item ratings", "raters", "protocol", "of", "systems")


def page() -> None:
    session.require(rights.CREATE_CAMPAIGN)  # only who may see them all
    found = campaigns.summaries(session.database())
    rows: list[list[Cell]] = [
        [
            render(TEMPLATE, "link", campaign=campaign),
            render("parts.html", "state_badge", state=campaign.state),
            (render(TEMPLATE, "ratings", campaign=campaign), campaign.ratings / max(1, campaign.wanted)),
            f"{campaign.raters:,}",
            protocol_title(campaign.protocol),
            render(SHARED, "source", campaign=campaign, linked=True),
            render("studies.html", "systems", systems=campaign.systems),
        ]
        for campaign in reversed(found)
    ]
    programmes = dict.fromkeys(campaign.programme for campaign in found if campaign.programme)
    show(TEMPLATE, "head", programmes=list(programmes))
    show_notice()
    if rows:
        show_list("campaigns", HEADS, rows, words=[0, 1, 2, 4, 5])
    else:
        note("No campaigns yet. In a campaign, people rate outputs without seeing the names of systems.")
