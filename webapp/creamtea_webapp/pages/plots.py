"""The plots of a report: quality, recall, a score over a parameter, learning curves."""

from __future__ import annotations

from typing import Any

import streamlit as st

from creamtea.report import figures
from creamtea.report.analysis_figures import (
    analysis_columns,
    analysis_over_parameter,
    score_over_parameter,
)
from creamtea.report.model import Report, TestSetTable
from creamtea_webapp.markup import escape


def section(report: Report, table: TestSetTable) -> None:
    """The plots that the study has data for; what a plot shows is chosen by name."""
    left, right = st.columns(2)
    metrics = {column.title: column.key for column in table.columns if column.signature}
    with left:
        if metrics:
            st.subheader("Quality against latency", anchor=False)
            title = st.selectbox("Metric", list(metrics)) if len(metrics) > 1 else next(iter(metrics))
            figure(figures.quality_against_latency(report, table.test_set, metrics[title]), "no latency run")
    with right:
        scopes = ["idiom", "sentence"] if table.idioms else ["sentence"]
        st.subheader("Recall against size", anchor=False)
        scope = st.selectbox("Recall of the reference in", scopes) if len(scopes) > 1 else scopes[0]
        figure(figures.recall_against_size(report, table.test_set, scope), "no vocabulary selection to sweep")
    left, right = st.columns(2) if report.sweeps else (st.container(), st.container())
    with left:
        _over_parameter(report, table)
    with right:
        _learning(report)


def _over_parameter(report: Report, table: TestSetTable) -> None:
    """Nothing for a study in which no systems differ in one number only."""
    if not report.sweeps:
        return
    st.subheader("Over a parameter", anchor=False)
    by_name = {sweep.parameter: sweep for sweep in report.sweeps}
    columns = {column.title: column.key for column in table.columns}
    analysed = {title: place for place, title in analysis_columns(report).items()}
    with st.container(horizontal=True):
        chosen = st.selectbox("Parameter", list(by_name), format_func=lambda name: by_name[name].title)
        title = st.selectbox("Value", [*columns, *analysed])
    if title in analysed:
        spec = analysis_over_parameter(report, *analysed[title], by_name[chosen])
    else:
        spec = score_over_parameter(report, table.test_set, columns[title], by_name[chosen])
    figure(spec, f"no {title} over {by_name[chosen].title} yet")


def _learning(report: Report) -> None:
    recorded = {curve.series for curve in report.learning}
    series = [name for name in figures.LEARNING_TITLES if name in recorded]
    if series:
        st.subheader("Learning curves", anchor=False)
        shown = st.selectbox("Curve", series, format_func=figures.LEARNING_TITLES.__getitem__)
        figure(figures.learning_curves(report, shown), "")


def figure(spec: dict[str, Any] | None, why_not: str) -> None:
    """A figure without its title, which the heading repeats; what is not drawn stands below, in full."""
    if spec is None:
        st.html(f'<p class="ct note">{escape(why_not.capitalize())} in this study.</p>')
        return
    title = spec["title"]
    st.vega_lite_chart({name: value for name, value in spec.items() if name != "title"}, width="stretch")
    if "subtitle" in title:
        st.html(f'<p class="ct note">{escape(title["subtitle"].capitalize())}.</p>')
