"""Try a sentence on the systems of a study: each system's translation, and the subwords that it may not use.

The process keeps the systems that it has loaded (`creamtea.engine.try_out`), so that only the first sentence
waits for them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import streamlit as st

from creamtea.errors import CreamteaError
from creamtea.settings import Settings
from creamtea.store.queries import find_study, study_nodes
from creamtea_webapp import session
from creamtea_webapp.helper_process import HelperProcess, TookTooLong
from creamtea_webapp.markup import note, show, show_part

TEMPLATE = "try_out.html"
TITLE, ADDRESS = "Try a sentence", "try"
COMMAND = [sys.executable, "-m", "creamtea.engine.try_out"]
SECONDS = 120.0  # for all systems together; the process is ended then
MAX_CHARACTERS = 1000  # of a sentence
MAX_WORD = 60  # characters
MAX_SYSTEMS = 4
SHOWN_SUBWORDS = 3000

_process = HelperProcess()  # one per server: a model takes memory and a processor


class CannotTry(CreamteaError):
    """Some or all systems did not translate; the message says why."""


def is_available() -> bool:
    """Return whether models can be loaded here.

    torch must be installed, and the artefacts be in a folder of this machine. CREAMTEA_TRY_OUT=off switches
    it off.
    """
    settings = Settings.load()
    return (
        settings.try_out
        and find_spec("torch") is not None
        and "://" not in settings.artefacts
        and Path(settings.artefacts).is_dir()
    )


def try_sentence(study: int, systems: Sequence[str], line: str, word: str = "") -> list[dict[str, Any]]:
    """Return a row of `creamtea.engine.try_out` for each system, in their order.

    Raises CannotTry if somebody else is trying a sentence, if the text is too long, and after `SECONDS`.
    """
    if len(line) > MAX_CHARACTERS or len(word) > MAX_WORD or len(systems) > MAX_SYSTEMS:
        raise CannotTry(
            f"A sentence has at most {MAX_CHARACTERS:,} characters here, a word {MAX_WORD}, and at most "
            f"{MAX_SYSTEMS} systems translate at a time."
        )
    if not _process.busy.acquire(blocking=False):
        raise CannotTry("Somebody else is trying a sentence. Try again in a minute.")
    try:
        request = {"study": study, "systems": list(systems), "line": line, "word": word}
        rows = _process.rows(COMMAND, request, len(systems), SECONDS)
    except TookTooLong as error:
        raise CannotTry(f"{error} Choose fewer systems.") from None
    finally:
        _process.busy.release()
    if len(rows) < len(systems):
        raise CannotTry(
            f"{systems[len(rows)]} could not be tried: its process ended early. `creamtea translate` on the "
            "server's machine says why."
        )
    return rows


@dataclass(frozen=True)
class Trained:
    """The systems that can be tried, in the study's order: those with outputs on some test set."""

    systems: list[str]
    target_language: str


def trained(study: int) -> Trained | None:
    """Return the systems that can be tried; None if there are none, or if no model can be loaded here."""
    if not is_available():
        return None
    with session.database().session() as reading:
        target = find_study(reading, study).spec["languages"]["target"]
        nodes = study_nodes(reading, study, "decode")
    systems = dict.fromkeys(
        node.labels["system"] for node in nodes if node.state == "succeeded" and "system" in node.labels
    )
    return Trained(list(systems), target) if systems else None


@st.fragment
def section(study: int, trained_systems: Trained) -> None:
    """Show the form as a fragment, which redraws alone."""
    session.require_report(study)
    show_part("heading", TITLE, 2, (), ADDRESS)
    with st.form("try-a-sentence", border=False):
        line = st.text_input("Sentence", max_chars=MAX_CHARACTERS)
        left, right = st.columns(2)
        systems = left.multiselect(
            "Translated by",
            trained_systems.systems,
            default=trained_systems.systems[: min(2, MAX_SYSTEMS)],
            max_selections=MAX_SYSTEMS,
        )
        word = right.text_input(
            "Missing word (optional)",
            max_chars=MAX_WORD,
            help="A word that a translation lacks: which of its subwords a vocabulary selection left out, "
            "and which setting would have let them in.",
        )
        asked = st.form_submit_button("Translate")
    note("By the first model of each system, with its own search, selection and precision.")
    key = f"tried-{study}"  # kept, because a redrawn page must not lose what took seconds
    if asked:
        st.session_state.pop(key, None)
        if not line.strip() or not systems:
            st.error("Enter a sentence, and choose at least one system.")
            return
        try:
            with st.spinner("Loading the models and translating …"):
                rows = try_sentence(study, systems, " ".join(line.split()), word.strip())
        except CannotTry as error:
            st.error(str(error))
            return
        st.session_state[key] = [_shown(row) for row in rows]
    if key in st.session_state:
        show(TEMPLATE, "results", rows=st.session_state[key], language=trained_systems.target_language)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Return the answer with no more subwords than a page can hold."""
    selected, usual = row.get("selected"), {"error": "", "word": [], "unknown": []}
    hidden = max(0, len(selected or ()) - SHOWN_SUBWORDS)
    return usual | row | {"selected": selected and selected[:SHOWN_SUBWORDS], "hidden": hidden}
