"""The outputs of systems side by side, with what differs marked, filters, an order and pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from typing import Any

import streamlit as st

from creamtea.contract.columns import Column
from creamtea.diff import Piece, differences
from creamtea.human import rights
from creamtea.orders.specs import spec_of
from creamtea.report.cells import Material
from creamtea.report.model import Table
from creamtea.report.several import OfStudy
from creamtea.report.tables import systems_table
from creamtea.report.text import number
from creamtea.store.queries import (
    OUTPUTS,
    ByDifference,
    Page,
    PageQuery,
    SegmentFilter,
    SideBySide,
    find_study,
    side_by_side,
    study_nodes,
)
from creamtea_webapp import session
from creamtea_webapp.markup import note, show

TEMPLATE = "outputs.html"
TITLE, ADDRESS = "Outputs side by side", "outputs"
PAGE = 10  # segments
REFERENCE = "the reference"
IN_ORDER, WORST, BEST = (
    "As in the test set",
    "Worst against the baseline first",
    "Best against the baseline first",
)


@dataclass(frozen=True)
class Translations:
    """Where the outputs of a study on one test set are; systems in the table's order."""

    test_set: str  # step key
    against: dict[str, str]  # what each system is compared with; no baselines
    decodes: dict[str, str]  # system: step key, of its first seed
    scores: dict[str, dict[str, str]]  # metric: system: step key, of the same seed
    columns: dict[str, Column]  # by metric
    source_language: str
    target_language: str


@dataclass(frozen=True)
class View:
    """What the widgets choose."""

    systems: list[str]
    against: str
    metric: str | None
    filter: SegmentFilter
    order: ByDifference | None


@dataclass(frozen=True)
class Line:
    """A text of a segment; `own` for that of a system, None where it has not translated the segment."""

    name: str
    text: str | None
    language: str
    # the text in pieces, marked where it differs or has an idiom; empty where nothing could be marked
    pieces: Sequence[Piece] = ()
    score: str = ""
    own: bool = False


@st.fragment
def section(study: int, table: Table, test_set: str) -> None:
    """A fragment: its widgets redraw it alone. `table` is that of the test set's systems."""
    session.require_report(study)
    show("report.html", "heading", title=TITLE, level=2, address=ADDRESS)
    _show(_find(study, table, test_set))


@st.fragment
def several(studies: Sequence[OfStudy]) -> None:
    """The same of several studies, whose systems are told apart by the studies' names."""
    session.require(rights.READ_STUDIES)
    show("report.html", "heading", title=TITLE, level=2, address=ADDRESS)
    found: list[Translations] = []
    for study in studies:
        with session.database().session() as reading:
            spec = spec_of(find_study(reading, study.number))
            table = systems_table(Material(reading, study.number, spec), study.test_set)
        own = _find(study.number, table, study.test_set)
        if own is not None:
            found.append(_named(study.name, own))
    _show(_together(found))


def _named(study: str, own: Translations) -> Translations:
    def name(system: str) -> str:
        return f"{study}: {system}"

    return replace(
        own,
        against={name(system): name(other) for system, other in own.against.items()},
        decodes={name(system): key for system, key in own.decodes.items()},
        scores={
            metric: {name(system): key for system, key in by_system.items()}
            for metric, by_system in own.scores.items()
        },
    )


def _alternating(ours: dict[str, str], theirs: dict[str, str]) -> Iterator[tuple[str, str]]:
    """One of each in turn, so that the first few are of all."""
    for pair in zip_longest(ours.items(), theirs.items()):
        yield from (item for item in pair if item is not None)


def _together(found: Sequence[Translations]) -> Translations | None:
    if not found:
        return None
    together = found[0]
    for own in found[1:]:
        together = replace(
            together,
            against=together.against | own.against,
            decodes=dict(_alternating(together.decodes, own.decodes)),
            scores={
                metric: together.scores.get(metric, {}) | own.scores.get(metric, {})
                for metric in [*together.scores, *own.scores]
            },
            columns=together.columns | own.columns,
        )
    return together


def _show(translations: Translations | None) -> None:
    if translations is None:
        note("No system has translated this test set yet.")
        return
    view = _choose(translations)
    by_system = translations.scores.get(view.metric or "", {})
    scored = [system for system in view.systems if system in by_system]
    key = f"page-{translations.test_set}-{view}"  # so that another choice starts on its first page
    number_of_page = st.session_state.get(key, 1)
    query = PageQuery(
        test_set=translations.test_set,
        decodes=tuple(translations.decodes[system] for system in view.systems),
        scores=tuple(by_system[system] for system in scored),
        filter=view.filter,
        order=view.order,
        offset=(number_of_page - 1) * PAGE,
        limit=PAGE,
    )
    with session.database().session() as reading:
        page = side_by_side(reading, query)
    _pager(page, query.offset, key)
    segments = [
        {"number": row.index + 1, "lines": _lines(row, translations, view, scored)} for row in page.rows
    ]
    show(TEMPLATE, "segments", segments=segments)


def _find(study: int, table: Table, test_set: str) -> Translations | None:
    with session.database().session() as reading:
        spec = find_study(reading, study).spec
        nodes = [node for node in study_nodes(reading, study) if node.state == "succeeded"]
    here = [node for node in nodes if node.labels.get("test_set") == test_set]
    decodes: dict[str, tuple[Any, str]] = {}  # with the seed, None for outputs that are given
    scores: dict[str, dict[str, str]] = {}
    for node in here:
        if node.kind in OUTPUTS:
            decodes.setdefault(node.labels["system"], (node.labels.get("seed"), node.key))
    for node in here:
        seed, _ = decodes.get(node.labels.get("system", ""), ("none", ""))
        if node.kind == "score" and seed == node.labels.get("seed"):
            scores.setdefault(node.labels["metric"], {})[node.labels["system"]] = node.key
    prepared = [node.key for node in here if node.kind == "test_set"]
    if not decodes or not prepared:
        return None
    return Translations(
        test_set=prepared[0],
        against={row.name: row.against for row in table.rows if row.against},
        decodes={system: key for system, (_, key) in decodes.items()},
        scores=scores,
        columns={column.key: column for column in table.columns},
        source_language=spec["languages"]["source"],
        target_language=spec["languages"]["target"],
    )


# ---------------------------------------------------------------- choosing


def _choose(outputs: Translations) -> View:
    every = sorted(outputs.decodes, key=outputs.against.__contains__)  # baselines, then the best
    systems = st.multiselect("Systems", every, default=every[:4]) or every[:1]
    left, middle, right = st.columns(3)
    baselines = [system for system in systems if system not in outputs.against]
    default = systems.index(baselines[0]) if baselines else len(systems)
    against = left.selectbox("Differences marked against", [*systems, REFERENCE], index=default)
    contains = middle.text_input("Containing", placeholder="in source, reference or output")
    metric = (
        right.selectbox(
            "Segment scores", list(outputs.scores), format_func=lambda key: outputs.columns[key].title
        )
        if outputs.scores
        else None
    )
    order = _choose_order(outputs, metric)
    a, b, c = st.columns(3)
    wanted = SegmentFilter(
        contains=contains,
        different=a.checkbox("Only where they differ"),
        idioms=b.checkbox("Only with idioms"),
        empty=c.checkbox("Only with an empty output"),
    )
    return View(systems, against, metric, wanted, order)


def _choose_order(outputs: Translations, metric: str | None) -> ByDifference | None:
    """An order by the difference of a system's segment scores from the baseline's, where both have them."""
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
    """The lowest scores are the best of an error metric."""
    scores, errors = outputs.scores[metric], outputs.columns[metric].better == "lower"
    return ByDifference(scores[system], scores[outputs.against[system]], lowest_first=worst_first != errors)


def _pager(page: Page, offset: int, key: str) -> None:
    pages = max(1, -(-page.total // PAGE))
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        show(TEMPLATE, "counts", page=page, offset=offset)
    if pages > 1:
        right.number_input(f"Page of {pages:,}", 1, pages, key=key)


# ---------------------------------------------------------------- the texts of a segment


def _lines(row: SideBySide, outputs: Translations, view: View, scored: Sequence[str]) -> list[Line]:
    source, target = outputs.source_language, outputs.target_language
    values = dict(zip(scored, row.scores, strict=True))
    texts = {
        system: None if output is None else output.text
        for system, output in zip(view.systems, row.outputs, strict=True)
    }
    base = row.reference if view.against == REFERENCE else texts[view.against]
    return [
        Line("source", row.source, source, _idioms(row.source, _spans(row.idioms, "source"))),
        Line("reference", row.reference, target, _idioms(row.reference, _spans(row.idioms, "target"))),
        *(
            Line(
                system,
                text,
                target,
                _differences(text, None if system == view.against else base),
                _score(values.get(system), view, outputs),
                own=True,
            )
            for system, text in texts.items()
        ),
    ]


def _score(value: float | None, view: View, outputs: Translations) -> str:
    return "" if value is None or view.metric is None else number(value, outputs.columns[view.metric])


def _differences(text: str | None, against: str | None) -> list[Piece]:
    if text is None or against is None or not text.strip():
        return []
    return differences(text, against)


def _idioms(text: str, spans: Sequence[tuple[int, int]]) -> list[Piece]:
    if not text.strip() or not spans:
        return []
    cuts = [0, *(position for span in spans for position in span), len(text)]
    return [
        Piece(text[start:end], marked=bool(number % 2)) for number, (start, end) in enumerate(pairwise(cuts))
    ]


def _spans(idioms: Sequence[dict[str, Any]], side: str) -> list[tuple[int, int]]:
    """The stretches of the idioms on one side, sorted, overlaps joined."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted((int(idiom[side][0]), int(idiom[side][1])) for idiom in idioms if idiom[side]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
