"""The analyses of a study: of each its plots, and its table."""

from __future__ import annotations

import streamlit as st

from creamtea.report import text
from creamtea.report.analysis_figures import analysis_figure
from creamtea.report.model import Analysis, AnalysisTable, Report
from creamtea_webapp.comparison import analysis_table
from creamtea_webapp.markup import escape
from creamtea_webapp.pages.plots import figure

FOLDED_FROM = 9  # rows of tables that are shown when asked for
PLOTS_A_ROW = 3
FEW_COLUMNS = 4  # of a table that stands beside the plot


def section(report: Report) -> None:
    """Nothing for a study without analyses."""
    if not report.analyses:
        return
    st.subheader("Analyses", anchor=False)
    for analysis in report.analyses:
        _show(report, analysis)


def _show(report: Report, analysis: Analysis) -> None:
    _head(analysis)
    few = len(analysis.plots) == 1 and all(len(table.columns) <= FEW_COLUMNS for table in analysis.tables)
    columns = []
    for start in range(0, len(analysis.plots), PLOTS_A_ROW):
        columns = st.columns(max(2, min(PLOTS_A_ROW, len(analysis.plots))))
        for plot, column in zip(analysis.plots[start : start + PLOTS_A_ROW], columns, strict=False):
            with column:
                st.html(f'<p class="ct plot-title">{escape(plot.title)}</p>')
                figure(analysis_figure(plot), "nothing to draw yet")
    for number, table in enumerate(analysis.tables):
        with columns[1] if few else st.container():
            _table(table, f"analysis-{report.id}-{analysis.name}-{number}")


def _head(analysis: Analysis) -> None:
    listed = "".join(
        f"<dt>{escape(title)}</dt><dd>{escape(note)}</dd>" for title, note in text.meanings(analysis).items()
    )
    columns = f'<details><summary>Columns</summary><dl class="list">{listed}</dl></details>' if listed else ""
    st.html(
        f'<div class="ct analysis"><h3>{escape(analysis.title)}</h3>'
        f'<p class="facts"><strong>{escape(analysis.name)}</strong>'
        f"<span>{escape(text.analysed(analysis))}</span></p>"
        f'<p class="note">{escape(analysis.about)}</p>{columns}</div>'
    )


def _table(table: AnalysisTable, key: str) -> None:
    if len(table.rows) < FOLDED_FROM:
        analysis_table(table, key)
    else:
        with st.expander(f"Table: {len(table.rows)} rows"):
            analysis_table(table, key)
