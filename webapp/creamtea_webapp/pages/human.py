"""What people say of a test set's systems: tables, verdicts, plots, and where people, metrics and raters
disagree.

The comparison above has means and verdicts at once; what takes more resampling is computed here, after
everything else on the page, and kept as long as no rating comes or goes.
"""

from __future__ import annotations

from typing import Any

import streamlit as st
from sqlalchemy import select

from creamtea.human.results import fingerprint
from creamtea.report.human import figures, words
from creamtea.report.human.build import build_human
from creamtea.report.model import HumanReport, HumanTable, Report, TestSetTable
from creamtea.store.tables import Campaign
from creamtea_webapp import session
from creamtea_webapp.comparison import analysis_table
from creamtea_webapp.markup import escape, foreign
from creamtea_webapp.pages.plots import figure

OPEN = ("means", "comparisons", "random_means", "random_comparisons")  # the others when asked for


def section(report: Report, table: TestSetTable) -> None:
    """Nothing for a test set without a campaign."""
    campaigns = [one for one in report.human if one.test_set == table.test_set]
    if not campaigns:
        return
    st.subheader("Human judgement", anchor=False)
    for summary in campaigns:
        with session.database().session() as reading:
            number = reading.scalar(select(Campaign.id).where(Campaign.name == summary.campaign))
            state = (report.id, *sorted(report.steps.items()), number, fingerprint(reading, number or 0))
        _show(_complete(session.database().url.render_as_string(), summary.campaign, state), report.id)


@st.cache_resource(max_entries=64, show_spinner="Comparing what people say …")
def _complete(database: str, campaign: str, state: tuple[Any, ...]) -> HumanReport:
    """Frozen, and the same for every reader; `state` changes with whatever it is computed from."""
    return build_human(session.database(), campaign)


def _show(report: HumanReport, study: int) -> None:
    facts = "".join(f"<span>{escape(fact)}</span>" for fact in words.about(report))
    st.html(f'<div class="ct"><h3>{escape(report.campaign)}</h3><p class="facts">{facts}</p></div>')
    key = f"human-{study}-{report.campaign}"
    for one in report.tables:
        if one.key in OPEN:
            _table(one, key)
    _plots(report, key)
    more = [one for one in report.tables if one.key not in OPEN]
    if more:
        with st.expander("Agreement, ranks, metrics against people"):
            for one in more:
                _table(one, key)
    for texts in words.judged_differently(report):
        with st.expander(texts.title):
            st.html(_judged_differently(texts, report))
    listed = "".join(
        f"<dt>{escape(title)}</dt><dd>{escape(note)}</dd>"
        for title, note in words.column_notes(report).items()
    )
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in report.notes)
    meanings = ""
    if listed:
        meanings = f'<details><summary>Columns</summary><dl class="list">{listed}</dl></details>'
    st.html(f'<div class="ct analysis">{notes}{meanings}</div>')


def _table(one: HumanTable, key: str) -> None:
    about = f'<p class="note">{escape(one.about)}</p>' if one.about else ""
    st.html(f'<div class="ct"><p class="ct plot-title">{escape(one.title)}</p>{about}</div>')
    analysis_table(one.table, f"{key}-{one.key}")


def _plots(report: HumanReport, key: str) -> None:
    left, right = st.columns(2)
    with left:
        if (hundred := figures.baseline_is_hundred(report)) is not None:
            st.html(f'<p class="ct plot-title">{escape(report.baseline)} = 100 %</p>')
            figure(hundred, "")
            st.html('<p class="ct note">Thick: delta method. Thin: paired t.</p>')
        if (ranks := figures.rank_ranges(report)) is not None:
            st.html('<p class="ct plot-title">Rank ranges, WMT mode</p>')
            figure(ranks, "")
    with right:
        found = report.table("people_and_metrics")
        if found is not None:
            titles = {column.key: column.title for column in found.columns if column.key != "people"}
            st.html('<p class="ct plot-title">People against a metric</p>')
            chosen = next(iter(titles))
            if len(titles) > 1:
                chosen = st.selectbox(
                    "Metric that people are compared with",
                    list(titles),
                    format_func=titles.__getitem__,
                    key=f"{key}-metric",
                )
            figure(figures.people_against_metric(report, chosen), "no segment scores")


def _judged_differently(texts: words.Texts, report: HumanReport) -> str:
    shown = "".join(
        f'<div class="segment"><p class="where">{escape(one.head)}</p>'
        '<dl class="pair"><div><dt>source</dt>'
        f"<dd>{foreign(one.source, report.source_language)}</dd></div>"
        "<div><dt>output</dt>"
        f'<dd class="own">{foreign(one.output, report.target_language)}</dd></div></dl></div>'
        for one in texts.shown
    )
    return f'<div class="ct"><p class="note">{escape(texts.about)}</p>{shown}</div>'
