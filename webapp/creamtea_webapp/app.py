"""Navigation by right.

A rater gets only the rating page, a reader the studies, their reports and the papers' tables, an organiser
the campaigns too. The query of the address names the page.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from creamtea.access import rights
from creamtea.access.sessions import Identity
from creamtea.cli.docs import built_site
from creamtea_webapp import session
from creamtea_webapp.gate.paths import DOCUMENTATION
from creamtea_webapp.markup import show, show_styles
from creamtea_webapp.pages import compare, organise, papers, rate, report, steps, studies, submit

STUDIES, CAMPAIGNS, PAPERS = "Studies", "Campaigns", "Papers"


def main() -> None:
    st.set_page_config(layout="wide")
    show_styles()
    who = session.identity()
    if who is None:
        session.refuse()
    draw, title, here = _page(who)
    show("parts.html", "frame", links=_navigation(who), here=here)
    # One page, at "/": at any other path, Streamlit's browser side first looks for its server below that.
    st.navigation(
        [st.Page(draw, title=title, url_path=title.lower().replace(" ", "-"), default=True)],
        position="hidden",
    ).run()


def _page(who: Identity) -> tuple[Callable[[], None], str, str]:
    """Choose the page for the address: its function, its title, and the navigation entry it belongs to."""
    if rights.standing(who) == rights.RATER:
        return rate.page, "Rating", ""
    if organise.is_asked_for(who):
        return organise.page, CAMPAIGNS, CAMPAIGNS
    if rights.standing(who) == rights.ONE_REPORT:
        return report.page, "Report", STUDIES
    if compare.is_asked_for():
        return compare.page, "Studies compared", STUDIES
    if submit.is_asked_for():
        return submit.page, "Submit a study", STUDIES
    if papers.is_asked_for():
        return papers.page, PAPERS, PAPERS
    if "study" in st.query_params and "step" in st.query_params:
        return steps.page, "Steps", STUDIES
    if "study" in st.query_params:
        return report.page, "Report", STUDIES
    return studies.page, STUDIES, STUDIES


def _navigation(who: Identity) -> list[tuple[str, str]]:
    """Return names and addresses of the navigation; empty for an identity that may open one page only."""
    links = []
    if rights.may(who, rights.READ_STUDIES):
        links += [(STUDIES, "./"), (PAPERS, "?papers=all")]
    if rights.may(who, rights.CREATE_CAMPAIGN):
        links.insert(1, (CAMPAIGNS, "?campaigns=all"))
    if links and built_site() is not None:
        links.append(("Documentation", f"{DOCUMENTATION}/index.html"))
    return links
