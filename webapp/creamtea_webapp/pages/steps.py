"""A study's steps, and the log of one of them: why it failed, then the end of what it said."""

from __future__ import annotations

import streamlit as st

from creamtea.errors import CreamteaError, InputError
from creamtea.human import rights
from creamtea.orders.rows import UNFINISHED
from creamtea.report.watching import watched_examples
from creamtea.store.logs import list_logs, read_log
from creamtea.store.queries import Node, events_of, find_study, study_nodes
from creamtea.store.row_ids import row_id
from creamtea.store.tables import StudyRow
from creamtea_webapp import session
from creamtea_webapp.markup import note, show

TEMPLATE = "steps.html"
EVERY = 3.0  # seconds between two looks at a step that has not ended
LINES = 200  # of a log that are shown


def page() -> None:
    session.require(rights.READ_LOGS)
    asked = st.query_params["study"].replace("\0", "")
    number = row_id(asked)
    with session.database().session() as reading:
        try:
            study = find_study(reading, asked if number is None else number)
        except InputError as error:
            show("report.html", "no_report", title="No such study", error=str(error))
            return
        nodes = {node.name: node for node in study_nodes(reading, study.id)}
    node = nodes.get(st.query_params["step"])
    if node is None:
        show(TEMPLATE, "head", study=study, node=None)
        show(TEMPLATE, "steps", study=study, nodes=list(nodes.values()))
        return
    runs = node.state in UNFINISHED
    st.fragment(_step, run_every=EVERY if runs else None)(study, node.name, runs)


def _step(study: StudyRow, place: str, runs: bool) -> None:
    """A fragment that is drawn anew while the step `runs`, and once more when it has ended."""
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
    show(TEMPLATE, "events", events=events)


def _examples(study: StudyRow, node: Node) -> None:
    """What the training made of some development sentences, also after its end."""
    try:
        view = session.artefacts().read_live(node.key, node.fence)
    except CreamteaError:  # told where the log is
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
