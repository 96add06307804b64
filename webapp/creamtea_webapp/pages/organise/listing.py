"""All campaigns, newest first."""

from __future__ import annotations

from creamtea.human import campaigns, rights
from creamtea_webapp import session
from creamtea_webapp.markup import note, show
from creamtea_webapp.pages.organise.shared import show_notice

TEMPLATE = "organise/listing.html"


def page() -> None:
    session.require(rights.CREATE_CAMPAIGN)  # only who may see them all
    summaries = campaigns.summaries(session.database())
    show(TEMPLATE, "head")
    show_notice()
    if summaries:
        show(TEMPLATE, "campaigns", campaigns=summaries[::-1])
    else:
        note("No campaigns yet. In a campaign, people rate outputs without seeing the names of systems.")
