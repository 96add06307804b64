"""The outputs of systems side by side, with what differs marked, filters, an order and pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import streamlit as st

from creamtea.contract.columns import Column
from creamtea.report.diff import differences
from creamtea.report.model import TestSetTable
from creamtea.report.text import number
from creamtea.store.queries import (
    ByDifference,
    Page,
    SegmentFilter,
    SideBySide,
    find_study,
    side_by_side,
    study_nodes,
)
from creamtea_webapp import session
from creamtea_webapp.markup import escape, foreign

PAGE = 10  # segments
REFERENCE = "the reference"
IN_ORDER, WORST, BEST = (
    "As in the test set",
    "Worst against the baseline first",
    "Best against the baseline first",
)


@dataclass(frozen=True)
class Outputs:
    """Where the outputs of a study on one test set are; systems and metrics in the study's order."""

    test_set: str  # step key
    against: dict[str, str]  # what each system is compared with, without the baselines
    decodes: dict[str, str]  # system: step key, of its first seed
    scores: dict[str, dict[str, str]]  # metric: system: step key, of the same seed
    columns: dict[str, Column]  # by metric
    source_language: str
    target_language: str


@dataclass(frozen=True)
class Chosen:
    """What the widgets say."""

    systems: list[str]
    against: str
    metric: str | None
    filter: SegmentFilter
    order: ByDifference | None


@st.fragment
def section(study: int, table: TestSetTable) -> None:
    """A fragment: its widgets redraw it alone. `table` names the test set and its metrics."""
    session.require_reader()
    st.subheader("Outputs side by side", anchor=False)
    found = _find(study, table)
    if found is None:
        st.html('<p class="ct note">No system has translated this test set yet.</p>')
        return
    chosen = _choose(found)
    shown = chosen.systems
    keys = [found.decodes[system] for system in shown]
    by_system = found.scores.get(chosen.metric or "", {})
    scored = [system for system in shown if system in by_system]
    page_number = st.session_state.get(f"page-{chosen}", 1)
    with session.database().session() as reading:
        page = side_by_side(
            reading,
            found.test_set,
            keys,
            [by_system[system] for system in scored],
            chosen.filter,
            offset=(page_number - 1) * PAGE,
            limit=PAGE,
            order=chosen.order,
        )
    _pager(page, chosen)
    segments = "".join(_segment(row, found, chosen, scored) for row in page.rows)
    st.html(f'<div class="ct outputs">{segments}</div>')


def _find(study: int, table: TestSetTable) -> Outputs | None:
    with session.database().session() as reading:
        spec = find_study(reading, study).spec
        nodes = [node for node in study_nodes(reading, study) if node.state == "succeeded"]
    here = [node for node in nodes if node.labels.get("test_set") == table.test_set]
    decodes: dict[str, tuple[int, str]] = {}
    scores: dict[str, dict[str, str]] = {}
    for node in here:
        if node.kind == "decode":
            decodes.setdefault(node.labels["system"], (node.labels["seed"], node.key))
    for node in here:
        if node.kind == "score" and decodes.get(node.labels["system"], (None,))[0] == node.labels["seed"]:
            scores.setdefault(node.labels["metric"], {})[node.labels["system"]] = node.key
    prepared = [node.key for node in here if node.kind == "test_set"]
    if not decodes or not prepared:
        return None
    return Outputs(
        test_set=prepared[0],
        against={row.system: row.against for row in table.rows if row.against},
        decodes={system: key for system, (_, key) in decodes.items()},
        scores=scores,
        columns={column.key: column for column in table.columns},
        source_language=spec["languages"]["source"],
        target_language=spec["languages"]["target"],
    )


# ---------------------------------------------------------------- choosing


def _choose(found: Outputs) -> Chosen:
    every = list(found.decodes)
    systems = st.multiselect("Systems", every, default=every[:4]) or every[:1]
    left, middle, right = st.columns(3)
    baselines = [system for system in systems if system not in found.against]
    default = systems.index(baselines[0]) if baselines else len(systems)
    against = left.selectbox("Differences marked against", [*systems, REFERENCE], index=default)
    contains = middle.text_input("Containing", placeholder="in source, reference or output")
    metric = (
        right.selectbox(
            "Segment scores", list(found.scores), format_func=lambda key: found.columns[key].title
        )
        if found.scores
        else None
    )
    order = _choose_order(found, metric)
    a, b, c = st.columns(3)
    wanted = SegmentFilter(
        contains=contains,
        different=a.checkbox("Only where they differ"),
        idioms=b.checkbox("Only with idioms"),
        empty=c.checkbox("Only with an empty output"),
    )
    return Chosen(systems, against, metric, wanted, order)


def _choose_order(found: Outputs, metric: str | None) -> ByDifference | None:
    """An order by the difference of a system's segment scores from the baseline's, where both have them."""
    scores = found.scores.get(metric or "", {})
    others = [system for system in scores if found.against.get(system) in scores]
    if not others:
        return None
    left, right = st.columns(2)
    order = left.selectbox("Order", [IN_ORDER, WORST, BEST])
    if order == IN_ORDER:
        return None
    system = right.selectbox("of the system", others)
    return ByDifference(scores[system], scores[found.against[system]], worst_first=order == WORST)


def _pager(page: Page, chosen: Chosen) -> None:
    pages = max(1, -(-page.total // PAGE))
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    left.html(
        f'<p class="ct note">{page.total:,} segment{"s" * (page.total != 1)}'
        + (f", {page.offset + 1:,}–{page.offset + len(page.rows):,} shown" if page.rows else "")
        + "</p>"
    )
    if pages > 1:
        # the key holds the choice, so that another choice starts on its first page
        right.number_input(f"Page of {pages:,}", 1, pages, key=f"page-{chosen}")


# ---------------------------------------------------------------- drawing


def _segment(row: SideBySide, found: Outputs, chosen: Chosen, scored: Sequence[str]) -> str:
    values = dict(zip(scored, row.scores, strict=True))
    texts = {
        system: None if output is None else output.text
        for system, output in zip(chosen.systems, row.outputs, strict=True)
    }
    base = row.reference if chosen.against == REFERENCE else texts[chosen.against]
    lines = [
        _line("source", _with_idioms(row.source, _spans(row.idioms, "source"), found.source_language)),
        _line("reference", _with_idioms(row.reference, _spans(row.idioms, "target"), found.target_language)),
    ]
    for system, text in texts.items():
        marked_against = None if system == chosen.against else base
        lines.append(
            _line(
                system,
                _output(text, marked_against, found.target_language),
                _score(values.get(system), chosen, found),
                own=True,
            )
        )
    where = f'<p class="where">{row.index + 1}</p>'
    return f'<div class="segment">{where}<dl class="pair">{"".join(lines)}</dl></div>'


def _line(name: str, content: str, score: str = "", own: bool = False) -> str:
    kind = ' class="own"' if own else ""
    return f'<div><dt{kind}>{escape(name)}</dt><dd class="score">{score}</dd><dd>{content}</dd></div>'


def _score(value: float | None, chosen: Chosen, found: Outputs) -> str:
    return "" if value is None or chosen.metric is None else number(value, found.columns[chosen.metric])


def _output(text: str | None, against: str | None, language: str) -> str:
    if text is None:
        return '<p class="empty">(not translated)</p>'
    if against is None or not text.strip():
        return foreign(text, language)
    pieces = "".join(
        f"<mark>{escape(piece.text)}</mark>" if piece.differs else escape(piece.text)
        for piece in differences(text, against)
    )
    return f'<p dir="auto" lang="{escape(language)}">{pieces}</p>'


def _spans(idioms: Sequence[dict[str, Any]], side: str) -> list[tuple[int, int]]:
    """The stretches of the idioms on one side, sorted, overlaps joined."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted((int(idiom[side][0]), int(idiom[side][1])) for idiom in idioms):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _with_idioms(text: str, spans: Sequence[tuple[int, int]], language: str) -> str:
    """A text with its idioms underlined."""
    if not text.strip() or not spans:
        return foreign(text, language)
    cuts = [0, *(position for span in spans for position in span), len(text)]
    stretches = [
        f"<u>{escape(text[start:end])}</u>" if number % 2 else escape(text[start:end])
        for number, (start, end) in enumerate(pairwise(cuts))
    ]
    return f'<p dir="auto" lang="{escape(language)}">{"".join(stretches)}</p>'
