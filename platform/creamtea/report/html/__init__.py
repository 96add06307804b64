"""A report as one HTML file that opens without a server or a network, with the terminal's numbers.

No script is in it, and its content policy lets none run: whatever a model or a person wrote is text. Figures
are drawn into it as SVG.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from creamtea.report import figures, text
from creamtea.report.analysis_figures import (
    analysis_columns,
    analysis_figure,
    analysis_over_parameter,
    score_over_parameter,
)
from creamtea.report.html import svg, views
from creamtea.report.human.figures import figures as human_figures
from creamtea.report.model import HumanReport, Report
from creamtea.report.terminal import corpus_line
from creamtea.report.vega import Spec

HERE = Path(__file__).parent


def to_html(report: Report) -> str:
    """The whole report of a study."""
    notes, drawing = text.Footnotes(), _Drawing()
    tables = [views.main_table(table, notes) for table in report.tables]
    people = [(views.people(one, notes), drawing.all(human_figures(one))) for one in report.human]
    analyses = [
        (
            one,
            text.analysed(one),
            views.analysis_grids(one, notes),
            drawing.all(map(analysis_figure, one.plots)),
        )
        for one in report.analyses
    ]
    return _template("report.html").render(
        css=_css(),
        report=report,
        tables=tables,
        plots=drawing.all(_plots(report)),
        people=people,
        analyses=analyses,
        training=views.training(report, notes),
        failures=[one for one in report.failures if one.state != "upstream"],
        lines=_lines(report),
        footnotes=notes.notes,
    )


def human_html(report: HumanReport) -> str:
    """One campaign by itself."""
    notes = text.Footnotes()
    shown = views.people(report, notes), _Drawing().all(human_figures(report))
    return _template("campaign.html").render(css=_css(), people=[shown], footnotes=notes.notes)


class _Drawing:
    """Draws figures, each with ids of its own."""

    def __init__(self) -> None:
        self._drawn = 0

    def all(self, specs: Iterable[Spec | None]) -> list[tuple[Markup, str, str]]:
        """SVG, title and what is not drawn, of those that there is data for."""
        found = []
        for spec in specs:
            if spec is None:
                continue
            self._drawn += 1
            title = spec["title"]
            untitled = {**spec, "title": {"text": title["text"]}}
            drawn = Markup(svg.draw(untitled, self._drawn))  # noqa: S704 - `svg` keeps shapes and text only
            found.append((drawn, str(title["text"]), str(title.get("subtitle", ""))))
        return found


def _plots(report: Report) -> Iterable[Spec | None]:
    """What the web app lets a reader choose, one after the other."""
    for table in report.tables:
        scored = [column for column in table.columns if column.signature]
        yield from (figures.quality_against_latency(report, table.test_set, one.key) for one in scored)
        for scope in ("idiom", "sentence") if table.idioms else ("sentence",):
            yield figures.recall_against_size(report, table.test_set, scope)
        for sweep in report.sweeps:
            yield from (score_over_parameter(report, table.test_set, one.key, sweep) for one in scored)
    for sweep in report.sweeps:
        for kind, key in analysis_columns(report):
            yield analysis_over_parameter(report, kind, key, sweep)
    yield from (figures.learning_curves(report, series) for series in figures.LEARNING_TITLES)


def _lines(report: Report) -> list[str]:
    """What one must know to read the tables, and where the numbers come from."""
    known = report.provenance
    lines = [report.significance, report.latency_note]
    lines += dict.fromkeys(
        f"{column.title}: {column.signature or column.note}"
        for table in report.tables
        for column in table.columns
        if column.signature or column.note
    )
    lines += text.analysis_notes(report.analyses)
    lines += [corpus_line(corpus) for corpus in report.corpora]
    lines += known.hardware
    seeds = "; ".join(f"{name} {', '.join(map(str, seeds))}" for name, seeds in known.seeds.items())
    lines.append(f"code {known.code_version}, study config {known.config_hash}, seeds {seeds}")
    return lines


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _template(name: str) -> Template:
    return _environment().get_template(name)


@cache
def _css() -> Markup:
    return Markup((HERE / "report.css").read_text(encoding="utf-8"))  # noqa: S704 - a file of this package
