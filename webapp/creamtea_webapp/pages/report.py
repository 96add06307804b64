"""A study's report: the comparison first, then the plots, the outputs, and how it all came about."""

from __future__ import annotations

from typing import Any

import streamlit as st

from creamtea.errors import InputError
from creamtea.report import figures
from creamtea.report.build import build_report
from creamtea.report.model import Report, TestSetTable
from creamtea_webapp import session
from creamtea_webapp.comparison import comparison
from creamtea_webapp.markup import escape, moment, show_styles, state_badge
from creamtea_webapp.pages import details, outputs


def page() -> None:
    session.require_reader()
    show_styles()
    asked = st.query_params.get("study", "").replace("\0", "")
    by_number = asked.isdecimal() and len(asked) < 10
    try:
        report = build_report(session.database(), int(asked) if by_number else asked)
    except InputError as error:
        st.html(
            f'<div class="ct"><h1>No such study</h1><p class="lead">{escape(error)}</p>'
            '<p class="facts"><a href="/" target="_self">All studies</a></p></div>'
        )
        return
    _head(report)
    table = _choose_table(report)
    _comparison(report, table)
    details.failures(report)
    _plots(report, table)
    outputs.section(report.id, table)
    st.subheader("How it came about", anchor=False)
    details.corpora(report)
    details.training(report)
    details.provenance(report)


def _head(report: Report) -> None:
    steps = ", ".join(f"{count} {escape(state)}" for state, count in report.steps.items())
    lead = f'<p class="lead">{escape(report.description)}</p>' if report.description else ""
    st.html(
        f'<div class="ct report"><p class="note"><a href="/" target="_self">Studies</a></p>'
        f"<h1>{escape(report.study)}</h1>{lead}"
        f'<p class="facts">{state_badge(report.state)}<span>{steps} steps</span>'
        f"<span>started {moment(report.created_at)}</span></p></div>"
    )


def _choose_table(report: Report) -> TestSetTable:
    names = [table.test_set for table in report.tables]
    chosen = names[0] if len(names) == 1 else st.selectbox("Test set", names)
    return report.table(chosen)


def _comparison(report: Report, table: TestSetTable) -> None:
    size = "not prepared yet" if table.segments is None else f"{table.segments:,} segments"
    if table.idioms:
        size += f", {table.idioms:,} idioms"
    st.html(
        f'<div class="ct"><p class="facts"><strong>{escape(table.test_set)}</strong><span>{size}</span>'
        f"<span>baseline {escape(report.baseline)}</span></p></div>"
    )
    comparison(table, key=f"comparison-{report.id}-{table.test_set}")
    st.html(
        f'<div class="ct"><p class="note">{escape(report.significance)}</p>'
        f'<p class="note">{escape(report.latency_note)}.</p></div>'
    )


def _plots(report: Report, table: TestSetTable) -> None:
    """The plots that the study has data for; a metric and a learning curve are chosen by name."""
    left, right = st.columns(2)
    metrics = {column.title: column.key for column in table.columns if column.signature}
    with left:
        if metrics:
            st.subheader("Quality against latency", anchor=False)
            title = st.selectbox("Metric", list(metrics)) if len(metrics) > 1 else next(iter(metrics))
            _figure(figures.quality_against_latency(report, table.test_set, metrics[title]), "no latency run")
    with right:
        scopes = ["idiom", "sentence"] if table.idioms else ["sentence"]
        st.subheader("Recall against size", anchor=False)
        scope = st.selectbox("Recall of the reference in", scopes) if len(scopes) > 1 else scopes[0]
        _figure(
            figures.recall_against_size(report, table.test_set, scope), "no vocabulary selection to sweep"
        )
    recorded = {curve.series for curve in report.learning}
    series = [name for name in figures.LEARNING_TITLES if name in recorded]
    if series:
        st.subheader("Learning curves", anchor=False)
        shown = st.selectbox("Curve", series, format_func=figures.LEARNING_TITLES.__getitem__)
        _figure(figures.learning_curves(report, shown), "")


def _figure(spec: dict[str, Any] | None, why_not: str) -> None:
    """A figure without its title, which the heading repeats; what is not drawn stands below, in full."""
    if spec is None:
        st.html(f'<p class="ct note">{why_not.capitalize()} in this study.</p>')
        return
    title = spec["title"]
    st.vega_lite_chart({name: value for name, value in spec.items() if name != "title"}, width="stretch")
    if "subtitle" in title:
        st.html(f'<p class="ct note">{escape(title["subtitle"].capitalize())}.</p>')
