"""One sentence, typed in, by several systems side by side: what each makes of it, and what it may not use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from creamtea.store.queries import find_study, study_nodes
from creamtea_webapp import session, trying
from creamtea_webapp.markup import note, show, show_part

TEMPLATE = "try_out.html"
TITLE, ADDRESS = "Try a sentence", "try"
SHOWN_SUBWORDS = 3000


@dataclass(frozen=True)
class Trained:
    """What there is to try: the systems whose outputs on some test set are there, in the study's order."""

    systems: list[str]
    target_language: str


def trained(study: int) -> Trained | None:
    """None where nothing can be tried: no such system, or no model can be loaded here."""
    if not trying.is_available():
        return None
    with session.database().session() as reading:
        target = find_study(reading, study).spec["languages"]["target"]
        nodes = study_nodes(reading, study, "decode")
    systems = dict.fromkeys(
        node.labels["system"] for node in nodes if node.state == "succeeded" and "system" in node.labels
    )
    return Trained(list(systems), target) if systems else None


@st.fragment
def section(study: int, there: Trained) -> None:
    """A fragment: sending the form redraws it alone."""
    session.require_report(study)
    show_part("heading", TITLE, 2, (), ADDRESS)
    with st.form("try-a-sentence", border=False):
        line = st.text_input("Sentence", max_chars=trying.MAX_CHARACTERS)
        left, right = st.columns(2)
        systems = left.multiselect(
            "Translated by",
            there.systems,
            default=there.systems[: min(2, trying.MAX_SYSTEMS)],
            max_selections=trying.MAX_SYSTEMS,
        )
        word = right.text_input(
            "Missing word (optional)",
            max_chars=trying.MAX_WORD,
            help="A word that a translation lacks: which of its subwords a vocabulary selection left out, "
            "and which setting would have let them in.",
        )
        asked = st.form_submit_button("Translate")
    note("By the first model of each system, with its own search, selection and precision.")
    found = f"tried-{study}"  # kept, because a redrawn page must not lose what took seconds
    if asked:
        st.session_state.pop(found, None)
        if not line.strip() or not systems:
            st.error("Enter a sentence, and choose at least one system.")
            return
        try:
            with st.spinner("Loading the models and translating …"):
                rows = trying.try_sentence(study, systems, " ".join(line.split()), word.strip())
        except trying.CannotTry as error:
            st.error(str(error))
            return
        st.session_state[found] = [_shown(row) for row in rows]
    if found in st.session_state:
        show(TEMPLATE, "results", rows=st.session_state[found], language=there.target_language)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """With as many subwords as a page can hold."""
    selected = row.get("selected")
    hidden = max(0, len(selected) - SHOWN_SUBWORDS) if selected else 0
    return {
        "error": "",
        "word": [],
        "unknown": [],
        **row,
        "selected": None if selected is None else selected[:SHOWN_SUBWORDS],
        "hidden": hidden,
    }
