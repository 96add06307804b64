"""A study's progress on its page, drawn anew every few seconds while it runs.

A fragment: what a reader has chosen elsewhere on the page stays, and so does the place that is read. New
results wait for a click, since they would move everything below.
"""

from __future__ import annotations

import streamlit as st

from creamtea.access import rights
from creamtea.report.vega import vega_lite
from creamtea.report.watching import Watched, watch
from creamtea.wording import counted
from creamtea_webapp import session
from creamtea_webapp.markup import show

TEMPLATE = "watch.html"
EVERY = 3.0  # seconds
LARGE, EVERY_OF_LARGE = 2000, 30.0  # steps of a study that takes long to read
CHARTS_PER_ROW = 3


def section(study: int, state: str, steps: tuple[int, int]) -> None:
    """Of a study in this state. `steps`: how many had succeeded when the rest of the page was drawn, and how
    many there are. Nothing for a study that has ended."""
    if state in ("queued", "running"):
        done, total = steps
        st.fragment(_section, run_every=EVERY if total < LARGE else EVERY_OF_LARGE)(study, done)


def _section(study: int, done: int) -> None:
    who = session.require_report(study)
    watched = watch(session.database(), session.artefacts(), study)
    if not watched.lives:
        st.rerun()  # it has ended: the whole page
    logs = rights.may(who, rights.READ_LOGS)
    show(TEMPLATE, "head", watched=watched)
    if watched.nothing_runs:
        show(TEMPLATE, "nothing_runs", command=logs)
    if watched.done > done:
        finished = counted(watched.done - done, "step")
        if st.button(f"{finished} finished since the results below were drawn: show them", key="new-results"):
            st.rerun()
    if watched.failed:
        show(TEMPLATE, "failed", watched=watched, study=study, logs=logs)
    show(TEMPLATE, "running", watched=watched, study=study, logs=logs)
    if watched.waiting:
        show(TEMPLATE, "waiting", watched=watched)
    _curves(watched)
    if watched.examples:
        with st.expander("How translations of development sentences change", key="watched-examples"):
            show(TEMPLATE, "examples", examples=watched.examples, languages=watched.languages)


def _curves(watched: Watched) -> None:
    for start in range(0, len(watched.curves), CHARTS_PER_ROW):
        figures = watched.curves[start : start + CHARTS_PER_ROW]
        for figure, column in zip(figures, st.columns(max(2, len(figures))), strict=False):
            with column:
                show("report.html", "title", title=figure.title)
                st.vega_lite_chart(
                    vega_lite(figure, title=False), width="stretch", key=f"watched-{figure.key}"
                )
