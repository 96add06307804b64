"""A study's steps, and the log of one of them: why it failed, then the end of its log."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote

import streamlit as st

from creamtea.access import rights
from creamtea.errors import CreamteaError, InputError
from creamtea.orders.rows import UNFINISHED
from creamtea.report.text import one_line
from creamtea.report.watching import timeline, watched_examples
from creamtea.store.areas import list_logs, read_log
from creamtea.store.queries import Node, events_of, find_study, steps_of, study_nodes
from creamtea.store.rows import row_id
from creamtea.store.tables import StudyRow
from creamtea.wording import duration
from creamtea_webapp import session
from creamtea_webapp.markup import Cell, moment, note, render, show, show_list, show_missing
from creamtea_webapp.pages import blocks

TEMPLATE = "steps.html"
HEADS = ("step", "state", "machine", "started (UTC)", "took", "attempts", "why it failed")
EVERY = 3.0  # seconds between two looks at a step that has not ended
LINES = 200  # last lines of a log that are shown


def page() -> None:
    session.require(rights.READ_LOGS)
    asked = st.query_params["study"].replace("\0", "")
    number = row_id(asked)
    with session.database().session() as reading:
        try:
            study = find_study(reading, asked if number is None else number)
        except InputError as error:
            show_missing("No such study", "All studies", "./", error)
            return
        nodes = {node.name: node for node in study_nodes(reading, study.id)}
        now = session.database().now(reading)
    node = nodes.get(st.query_params["step"])
    if node is None:
        show(TEMPLATE, "head", study=study, node=None)
        drawn = timeline(steps_of(nodes.values()).values(), study.created_at, now)
        if drawn.rows:
            blocks.show_chart(drawn, "timeline")
        show_list("steps", HEADS, [_row(study, node, now) for node in nodes.values()], words=[0, 1, 2, 6])
        return
    runs = node.state in UNFINISHED
    st.fragment(_step, run_every=EVERY if runs else None)(study, node.name, runs)


def _row(study: StudyRow, node: Node, now: datetime) -> list[Cell]:
    took = ((node.finished_at or now) - node.started_at).total_seconds() if node.started_at else None
    error = one_line(node.error or "") if node.has_failed else ""
    return [
        render("parts.html", "link", address=f"?study={study.id}&step={quote(node.name)}", text=node.name),
        render("parts.html", "state_badge", state=node.outcome),
        str(node.facts.get("node", "")),
        moment(node.started_at).removesuffix(" UTC") if node.started_at else "",
        ("" if took is None else duration(took), "" if took is None else took),
        f"{node.attempts:,}",
        error,
    ]


def _step(study: StudyRow, place: str, runs: bool) -> None:
    """Show a step as a fragment, redrawn while the step `runs`, and once more when it has ended."""
    session.require(rights.READ_LOGS)
    with session.database().session() as reading:
        (node,) = [node for node in study_nodes(reading, study.id) if node.name == place]
        events = events_of(reading, node.key)
    if runs and node.state not in UNFINISHED:
        st.rerun()
    show(TEMPLATE, "head", study=study, node=node)
    if node.kind == "train":
        _examples(study, node)
    _log(node)
    if events:
        show(TEMPLATE, "events", events=events)


def _examples(study: StudyRow, node: Node) -> None:
    """Show the training's translations of some development sentences, also after its end."""
    try:
        view = session.artefacts().read_live(node.key, node.fence)
    except CreamteaError:  # `_log` says so
        return
    examples = watched_examples(node, view)
    if examples:
        languages = study.spec["languages"]
        with st.expander("How translations of development sentences change", key="step-examples"):
            show("watch.html", "examples", examples=examples, languages=languages)


def _log(node: Node) -> None:
    try:
        store = session.artefacts()
        names = list_logs(store, node.key)
        if not names:
            note("This step has no log yet.")
            return
        chosen = names[-1]
        if len(names) > 1:
            chosen = st.selectbox(
                "Attempt",
                names[::-1],
                format_func=lambda name: f"{name.fence}{f', worker {name.worker}' if name.worker else ''}",
            )
        lines = read_log(store, node.key, chosen).splitlines()
    except CreamteaError as error:
        note(f"The log cannot be read here: {error}")
        return
    show(TEMPLATE, "log", lines=lines[-LINES:], left_out=max(0, len(lines) - LINES))
