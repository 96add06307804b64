"""Navigation by right: a rater gets the rating page and no more; a reader the studies and their reports."""

from __future__ import annotations

import streamlit as st

from creamtea_webapp import session
from creamtea_webapp.pages import rate, report, studies


def main() -> None:
    who = session.identity()
    if who is None:
        session.refuse()
    if who.rates:
        pages = [st.Page(rate.page, title="Rating", url_path="rate", default=True)]
    else:
        pages = [
            st.Page(studies.page, title="Studies", url_path="studies", default=True),
            st.Page(report.page, title="Report", url_path="report"),
        ]
    st.navigation(pages, position="hidden").run()
