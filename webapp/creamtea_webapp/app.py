"""Navigation by right: a rater gets only the rating page, a reader the studies, their reports and the
papers' tables, an organiser the campaigns too. The query of the address names the page."""

from __future__ import annotations

import streamlit as st

from creamtea.human import rights
from creamtea_webapp import session
from creamtea_webapp.markup import show
from creamtea_webapp.pages import compare, organise, papers, rate, report, steps, studies, submit


def main() -> None:
    who = session.identity()
    if who is None:
        session.refuse()
    st.set_page_config(layout="wide")
    if rights.standing(who) == rights.RATER:
        page = st.Page(rate.page, title="Rating", url_path="rate", default=True)
    elif organise.is_asked_for(who):
        page = st.Page(organise.page, title="Campaigns", url_path="campaigns", default=True)
    elif rights.standing(who) == rights.ONE_REPORT:
        page = st.Page(report.page, title="Report", url_path="report", default=True)
    elif compare.is_asked_for():
        page = st.Page(compare.page, title="Studies compared", url_path="compare", default=True)
    elif submit.is_asked_for():
        page = st.Page(submit.page, title="Submit a study", url_path="submit", default=True)
    elif papers.is_asked_for():
        page = st.Page(papers.page, title="Papers", url_path="papers", default=True)
    elif "study" in st.query_params and "step" in st.query_params:
        page = st.Page(steps.page, title="Steps", url_path="steps", default=True)
    elif "study" in st.query_params:
        page = st.Page(report.page, title="Report", url_path="report", default=True)
    else:
        page = st.Page(studies.page, title="Studies", url_path="studies", default=True)
    # One page, at "/": Streamlit's browser side first looks for its server below the path of any other.
    st.navigation([page], position="hidden").run()
    show("parts.html", "foot")
