"""Systems' outputs side by side, with differences marked, filters, a sort order and pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import streamlit as st

from creamtea.access import rights
from creamtea.orders.submission import spec_of
from creamtea.report.across_studies import StudyTestSet
from creamtea.report.cells import StudyResults
from creamtea.report.model import Table
from creamtea.report.outputs import Translations, lines, translations
from creamtea.report.tables import systems_table
from creamtea.store.queries import ByDifference, PageQuery, SegmentFilter, find_study, side_by_side
from creamtea_webapp import session
from creamtea_webapp.markup import note, show, show_part

TEMPLATE = "outputs.html"
TITLE, ADDRESS = "Outputs side by side", "outputs"
PAGE_SIZE = 10  # segments
REFERENCE = "the reference"
IN_ORDER, WORST, BEST = (
    "As in the test set",
    "Worst against the baseline first",
    "Best against the baseline first",
)


@dataclass(frozen=True)
class View:
    """The choices made in the widgets."""

    systems: list[str]
    against: str
    metric: str | None
    filter: SegmentFilter
    order: ByDifference | None


@st.fragment
def section(study: int, table: Table, test_set: str) -> None:
    """Show a study's outputs; the widgets redraw this fragment only. `table`: the test set's systems."""
    session.require_report(study)
    show_part("heading", TITLE, 2, (), ADDRESS)
    _show(_find(study, table, test_set))


@st.fragment
def section_of_studies(studies: Sequence[StudyTestSet]) -> None:
    """Show the outputs of several studies; system names begin with the study's name."""
    session.require(rights.READ_STUDIES)
    show_part("heading", TITLE, 2, (), ADDRESS)
    of_studies: list[Translations] = []
    for study in studies:
        with session.database().session() as reading:
            spec = spec_of(find_study(reading, study.number))
            table = systems_table(StudyResults(reading, study.number, spec), study.test_set)
        of_study = _find(study.number, table, study.test_set, f"{study.name}: ")
        of_studies += [] if of_study is None else [of_study]
    _show(_together(of_studies))


def _alternating(ours: dict[str, str], theirs: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield items of both in turn, so that the default choice has systems of both."""
    for pair in zip_longest(ours.items(), theirs.items()):
        yield from (item for item in pair if item is not None)


def _together(of_studies: Sequence[Translations]) -> Translations | None:
    if not of_studies:
        return None
    together = of_studies[0]
    for of_study in of_studies[1:]:
        together = replace(
            together,
            against=together.against | of_study.against,
            decodes=dict(_alternating(together.decodes, of_study.decodes)),
            scores={
                metric: together.scores.get(metric, {}) | of_study.scores.get(metric, {})
                for metric in [*together.scores, *of_study.scores]
            },
            columns=together.columns | of_study.columns,
        )
    return together


def _show(outputs: Translations | None) -> None:
    if outputs is None:
        note("No system has translated this test set yet.")
        return
    view = _choose(outputs)
    by_system = outputs.scores.get(view.metric or "", {})
    scored = [system for system in view.systems if system in by_system]
    key = f"page-{outputs.test_set}-{view}"  # any other choice begins on its first page
    number_of_page = st.session_state.get(key, 1)
    query = PageQuery(
        test_set=outputs.test_set,
        decodes=tuple(outputs.decodes[system] for system in view.systems),
        scores=tuple(by_system[system] for system in scored),
        filter=view.filter,
        order=view.order,
        offset=(number_of_page - 1) * PAGE_SIZE,
        limit=PAGE_SIZE,
    )
    with session.database().session() as reading:
        page = side_by_side(reading, query)
    pages = max(1, -(-page.total // PAGE_SIZE))
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        show(TEMPLATE, "counts", page=page, offset=query.offset)
    if pages > 1:
        right.number_input(f"Page (1 to {pages:,})", 1, pages, key=key)
    against = None if view.against == REFERENCE else view.against
    segments = [
        (row.index + 1, lines(row, outputs, view.systems, against, view.metric, scored)) for row in page.rows
    ]
    show_part("segments", segments)


def _find(study: int, table: Table, test_set: str, before_names: str = "") -> Translations | None:
    with session.database().session() as reading:
        return translations(reading, study, table, test_set, before_names)


# ---------------------------------------------------------------- choosing


def _choose(outputs: Translations) -> View:
    # baselines first; the other systems keep their order, the best first
    every = sorted(outputs.decodes, key=outputs.against.__contains__)
    systems = st.multiselect("Systems", every, default=every[:4]) or every[:1]
    left, middle, right = st.columns(3)
    baselines = [system for system in systems if system not in outputs.against]
    choices = [*systems, *([REFERENCE] if outputs.has_references else [])]
    default = systems.index(baselines[0]) if baselines else len(choices) - 1
    against = left.selectbox("Differences marked against", choices, index=default)
    contains = middle.text_input("Containing", placeholder="in source, reference or output")
    metric = (
        right.selectbox(
            "Segment scores", list(outputs.scores), format_func=lambda key: outputs.columns[key].title
        )
        if outputs.scores
        else None
    )
    order = _choose_order(outputs, metric)
    left, middle, right = st.columns(3)
    wanted = SegmentFilter(
        contains=contains,
        different=left.checkbox("Only where they differ"),
        idioms=middle.checkbox("Only with idioms"),
        empty=right.checkbox("Only with an empty output"),
    )
    return View(systems, against, metric, wanted, order)


def _choose_order(outputs: Translations, metric: str | None) -> ByDifference | None:
    """Let the reader order segments by a system's difference from its baseline, if both have scores."""
    scores = outputs.scores.get(metric or "", {})
    others = [system for system in scores if outputs.against.get(system) in scores]
    if not others:
        return None
    left, right = st.columns(2)
    order = left.selectbox("Order", [IN_ORDER, WORST, BEST])
    if order == IN_ORDER:
        return None
    system = right.selectbox("of the system", others)
    return by_difference(outputs, metric or "", system, worst_first=order == WORST)


def by_difference(outputs: Translations, metric: str, system: str, *, worst_first: bool) -> ByDifference:
    """Order segments by the system's difference from its baseline. Low is good in error metrics."""
    scores, errors = outputs.scores[metric], outputs.columns[metric].better == "lower"
    return ByDifference(scores[system], scores[outputs.against[system]], lowest_first=worst_first != errors)
