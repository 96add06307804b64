"""Submitting a study: its YAML, pasted or from a file, checked as `creamtea validate` checks it."""

from __future__ import annotations

import streamlit as st

from creamtea.access import rights
from creamtea.document.mistakes import StudyErrors
from creamtea.errors import InputError
from creamtea.files import decode
from creamtea.orders.controllers import live_controller
from creamtea.orders.submission import (
    MAX_CHARACTERS,
    WrittenStudy,
    check_written,
    submit_written,
    would_cancel,
)
from creamtea.report.model import Warnings
from creamtea.settings import Settings
from creamtea.wording import on_page
from creamtea_webapp import session
from creamtea_webapp.markup import show, show_part

TEMPLATE = "submit.html"
TEXT, FILE = "submit-text", "submit-file"
LABELS = {"data": "the server's folder of files"}  # what messages call options
QUEUED, REFUSED = "submit-queued", "submit-refused"


def is_asked_for() -> bool:
    return "submit" in st.query_params


def page() -> None:
    session.require(rights.SUBMIT_STUDIES)
    folder = Settings.load().data
    show(TEMPLATE, "head", folder=folder)
    if folder is None:
        return
    if (queued := st.session_state.pop(QUEUED, None)) is not None:
        show(TEMPLATE, "queued", study=queued, runs=live_controller(session.database()) is not None)
    st.file_uploader("A study file", ["yaml", "yml"], key=FILE, on_change=_take_file, max_upload_size=1)
    st.text_area("Study (YAML)", key=TEXT, height=420, max_chars=MAX_CHARACTERS)
    if (refused := st.session_state.pop(REFUSED, None)) is not None:
        show(TEMPLATE, "mistakes", lines=[refused])
    if not (text := st.session_state.get(TEXT, "")).strip():
        return
    checked = _check(text)
    if checked is None:
        return
    cancels = would_cancel(session.database(), checked.planned, checked.loaded.config_hash)
    show(TEMPLATE, "checked", name=checked.name, steps=checked.planned.kinds(), cancels=cancels)
    if checked.warnings:
        show_part("warnings", Warnings("warnings", tuple(checked.warnings)), 2)
    st.button(f"Submit {checked.name}", type="primary", on_click=_submit, args=(text,), key="submit-study")


def _take_file() -> None:
    file = st.session_state[FILE]
    if file is None:
        return
    try:
        st.session_state[TEXT] = decode(file.getvalue(), file.name, "save it as UTF-8 and choose it again")
    except InputError as error:
        st.session_state[REFUSED] = str(error)


def _check(text: str) -> WrittenStudy | None:
    """Check the study; None if it has mistakes, which are shown."""
    folder = Settings.load().data
    assert folder is not None
    try:
        with on_page(LABELS):
            return check_written(text, folder)
    except InputError as error:
        lines = error.lines if isinstance(error, StudyErrors) else [str(error)]
        show(TEMPLATE, "mistakes", lines=lines)
        return None


def _submit(text: str) -> None:
    """Submit the study, after checking the right, the study and its files again: they may have changed."""
    session.require(rights.SUBMIT_STUDIES)
    folder = Settings.load().data
    if folder is None:
        return
    try:
        with on_page(LABELS):
            written = check_written(text, folder)
            submission = submit_written(session.database(), session.artefacts(), written)
    except InputError as error:  # an artefact store that cannot be written, say
        st.session_state[REFUSED] = str(error)
        return
    st.session_state[QUEUED] = submission.study_id
    st.session_state[TEXT] = ""
