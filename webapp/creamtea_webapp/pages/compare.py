"""Several studies on one page: their systems on a test set that they have in common, and the outputs.

The address has their numbers: `?compare=3,7`.
"""

from __future__ import annotations

import streamlit as st
from sqlalchemy import select

from creamtea.human import rights
from creamtea.report.several import OfStudy, common_test_sets, compared_systems
from creamtea.store.queries import list_studies
from creamtea.store.tables import StudyRow
from creamtea_webapp import session
from creamtea_webapp.gate.paths import row_id
from creamtea_webapp.markup import note, show, show_styles
from creamtea_webapp.pages import blocks, outputs

TEMPLATE = "compare.html"
CHOSEN = "compare-studies"


def is_asked_for() -> bool:
    return "compare" in st.query_params


def page() -> None:
    session.require(rights.READ_STUDIES)
    show_styles()
    with session.database().session() as reading:
        names = {study.id: f"{study.name} #{study.id}" for study in list_studies(reading)}
    show(TEMPLATE, "head")
    asked = [number for part in st.query_params["compare"].split(",") if (number := row_id(part)) in names]
    chosen = st.multiselect("Studies", list(names), asked, format_func=names.__getitem__, key=CHOSEN)
    st.query_params["compare"] = ",".join(map(str, chosen))
    if len(chosen) < 2:
        note("Choose two studies or more.")
        return
    with session.database().session() as reading:
        rows = {row.id: row for row in reading.scalars(select(StudyRow).where(StudyRow.id.in_(chosen)))}
        common = common_test_sets(reading, [rows[number] for number in chosen])
    if not common:
        note("These studies have no test set in common: the same sentences with the same references.")
        return
    keys = list(common)
    titles = {key: _title(own) for key, own in common.items()}
    key = keys[0] if len(keys) == 1 else st.selectbox("Test set", keys, format_func=titles.__getitem__)
    with session.database().session() as reading:
        table = compared_systems(reading, common[key])
    show(TEMPLATE, "test_set", title=_title(common[key]), studies=common[key])
    blocks.show_block(table, "compare/systems", level=3)
    outputs.several(common[key])


def _title(studies: list[OfStudy]) -> str:
    """What the studies call the test set."""
    return " / ".join(dict.fromkeys(study.test_set for study in studies))
