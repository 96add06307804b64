"""The papers' tables and figures.

A list of them (`?papers=all`), and each beside our studies (`?paper=scones&table=3`,
`?paper=scones&figure=2`).
"""

from __future__ import annotations

import streamlit as st

from creamtea.access import rights
from creamtea.errors import InputError
from creamtea.papers.catalogue import Exhibit, Kind, exhibits, find_exhibit, find_paper, members_of, papers
from creamtea.report.papers import DOCUMENTED, Reports, exhibit_document, list_exhibits
from creamtea.store.rows import row_id
from creamtea_webapp import session
from creamtea_webapp.markup import prepare_tables, show, show_missing, show_part
from creamtea_webapp.pages import blocks

TEMPLATE, TITLE = "papers.html", "Papers"
LEAD = "The tables and figures of three papers: published values beside those of our studies."


def is_asked_for() -> bool:
    return "papers" in st.query_params or "paper" in st.query_params


def page() -> None:
    session.require(rights.READ_STUDIES)
    name = st.query_params.get("paper", "")
    kind: Kind = "figure" if "figure" in st.query_params else "table"
    if kind not in st.query_params:
        show("parts.html", "head", text=TITLE, lead=LEAD)
        for paper_name, paper in papers().items():
            entries = list_exhibits(session.database(), paper_name)
            show(TEMPLATE, "paper", name=paper_name, paper=paper, entries=entries, documented=DOCUMENTED)
        return
    try:
        asked = find_exhibit(name, kind, row_id(st.query_params[kind]) or 0)
    except InputError as error:
        show_missing("No such table or figure", "All papers", "?papers=all", error)
        return
    _exhibit(name, asked)


def _exhibit(name: str, asked: Exhibit) -> None:
    reports = Reports(session.database(), find_paper(name))
    document = exhibit_document(reports, asked)
    studies = [
        reports.paper.collections[collection].members[member].name
        for collection, member in members_of(reports.paper, asked)
        if reports.has(collection, member)
    ]
    listed = (None, *exhibits(name), None)
    place = listed.index(asked)
    neighbours = {"name": name, "before": listed[place - 1], "after": listed[place + 1]}
    show_part("masthead", document)
    show(TEMPLATE, "exhibit", studies=studies, **neighbours)
    prepare_tables()
    for section in document.sections:
        blocks.show_section(section, f"paper/{name}-{asked.key}")
    show(TEMPLATE, "neighbours", **neighbours, label="Previous and next")
