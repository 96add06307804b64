"""The organiser's pages: campaigns, their raters and their logs.

The address names the page: `?campaigns`, `?campaigns=new`, `?campaigns=import`, `?programme=NAME`,
`?campaign=ID`, with `&view=` raters (and `&rater=ID`), ahead, results, disputes or log. Every page and every
callback asks for its right (`creamtea.access.rights`).
"""

from __future__ import annotations

import streamlit as st

from creamtea.access import rights
from creamtea.access.sessions import Identity
from creamtea.store.rows import row_id
from creamtea_webapp import session
from creamtea_webapp.gate.paths import campaign_asked_for
from creamtea_webapp.pages.organise import campaign, importing, listing, new, raters
from creamtea_webapp.pages.organise.shared import missing

VIEWS = {
    **{"raters": raters.page, "disputes": raters.disputes, "ahead": campaign.ahead},
    **{"results": campaign.results, "log": campaign.log},
}


def is_asked_for(who: Identity) -> bool:
    """Return True if the address asks for one of these pages.

    Organisers and viewers of a single campaign have no others.
    """
    asked = {"campaign", "campaigns", "programme"} & set(st.query_params)
    return bool(asked) or rights.standing(who) in rights.OF_ONE_CAMPAIGN


def page() -> None:
    who = session.identity()
    if rights.standing(who) not in (*rights.OF_ONE_CAMPAIGN, rights.ORGANISER):
        session.refuse()
    asked = campaign_asked_for(st.query_params)
    if who is not None and asked is None and rights.standing(who) in rights.OF_ONE_CAMPAIGN:
        asked = who.campaign_id
    if asked is not None:
        _campaign_page(asked)
    elif "campaign" in st.query_params:
        missing()
    elif "programme" in st.query_params:
        listing.programme()
    else:
        pages = {"new": new.page, "import": importing.page}
        pages.get(st.query_params.get("campaigns", ""), listing.page)()


def _campaign_page(campaign_id: int) -> None:
    view, rater_id = st.query_params.get("view", ""), row_id(st.query_params.get("rater", ""))
    if view == "raters" and rater_id is not None:
        raters.one_rater(campaign_id, rater_id)
    else:
        VIEWS.get(view, campaign.page)(campaign_id)
