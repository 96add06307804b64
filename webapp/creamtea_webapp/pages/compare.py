"""Several studies on one page: their systems on a test set that they have in common, and the outputs.

The address has their numbers: `?compare=3,7`. Differences are tested when a reader asks for it, by a process
beside the web app (`creamtea.engine.compare_outputs`).
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from typing import Any

import streamlit as st
from sqlalchemy import select

from creamtea.access import rights
from creamtea.errors import InputError
from creamtea.report.across_studies import (
    NOTHING_IN_COMMON,
    TESTS,
    Compared,
    common_test_sets,
    compared_specs,
    compared_systems,
    shared_title,
)
from creamtea.report.answer import comparison_answer
from creamtea.report.model import column_meanings
from creamtea.store.queries import study_names
from creamtea.store.rows import row_id
from creamtea.store.tables import StudyRow
from creamtea_webapp import session
from creamtea_webapp.helper_process import HelperProcess, TookTooLong
from creamtea_webapp.markup import note, prepare_tables, show
from creamtea_webapp.pages import blocks, outputs

TEMPLATE = "compare.html"
CHOSEN = "compare-studies"
COMMAND = [sys.executable, "-m", "creamtea.engine.compare_outputs"]
SECONDS = 300.0  # for all tests together
MAX_TESTS = 100

_process = HelperProcess()


def is_asked_for() -> bool:
    return "compare" in st.query_params


def page() -> None:
    session.require(rights.READ_STUDIES)
    with session.database().session() as reading:
        names = {number: f"{name} #{number}" for number, name in study_names(reading).items()}
    show("parts.html", "head", text="Studies compared")
    numbers = dict.fromkeys(row_id(part) for part in st.query_params["compare"].split(","))
    asked = [number for number in numbers if number in names]
    chosen = st.multiselect("Studies", list(names), asked, format_func=names.__getitem__, key=CHOSEN)
    st.query_params["compare"] = ",".join(map(str, chosen))
    if len(chosen) < 2:
        note("Choose at least two studies.")
        return
    with session.database().session() as reading:
        rows = {row.id: row for row in reading.scalars(select(StudyRow).where(StudyRow.id.in_(chosen)))}
        common = common_test_sets(reading, [rows[number] for number in chosen])
    if not common:
        note(NOTHING_IN_COMMON)
        return
    keys = list(common)
    titles = {key: shared_title(of_studies) for key, of_studies in common.items()}
    key = keys[0] if len(keys) == 1 else st.selectbox("Test set", keys, format_func=titles.__getitem__)
    try:
        with session.database().session() as reading:
            compared = compared_systems(reading, key, common[key])
            specs = compared_specs(reading, common[key])
    except InputError as error:
        note(str(error))
        return
    show(TEMPLATE, "test_set", title=shared_title(common[key]), studies=common[key])
    prepare_tables()
    _systems(compared)
    if specs is not None:
        blocks.show_block(specs, "compare/specs", level=3)
    outputs.section_of_studies(common[key])


# ---------------------------------------------------------------- differences and their tests


def _systems(compared: Compared) -> None:
    names = list(dict.fromkeys(row for row, _ in compared.tested))
    table = compared.table
    if len(names) > 1 and find_spec("sacrebleu") is not None:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            against = st.selectbox("Compared with", names, key="compare-against", width=400)
            asked = st.button("Test the differences", key="compare-test")
        tests = compared.comparisons(against)
        request = json.dumps(list(tests.values()))
        if asked:
            st.session_state["compare-tested"] = request
        if st.session_state.get("compare-tested") == request:
            results = _test_results(request, len(tests))
            if results is not None:
                table = compared.against(against, dict(zip(tests, results, strict=True)))
                if (answer := comparison_answer(table, compared.pairs, names)) is not None:
                    blocks.show_block(answer, "compare/answer", level=3)
                note(TESTS)
    blocks.show_block(table, "compare/systems", level=3)
    for warnings in compared.warnings:
        blocks.show_block(warnings, "compare/warnings", level=3)
    for meanings in column_meanings(table.columns):
        blocks.show_block(meanings, "compare/columns", level=3)


def _test_results(request: str, count: int) -> list[dict[str, Any]] | None:
    """Return the results of the tests; None, with the reason on the page, if they could not all be made."""
    if count > MAX_TESTS:
        st.error(f"This comparison needs {count} tests; a page allows {MAX_TESTS}. Choose fewer studies.")
        return None
    try:
        return _run_tests(session.database().url.render_as_string(), request, count)
    except TookTooLong as error:
        st.error(f"{error} Choose fewer studies.")
    except EndedEarly:
        st.error(
            "The tests failed: their process ended early. Check that creamtea's workers are installed here."
        )
    return None


class EndedEarly(Exception):
    """The process gave fewer answers than it was asked for."""


@st.cache_resource(max_entries=64, show_spinner="Testing the differences …")
def _run_tests(database: str, request: str, count: int) -> list[dict[str, Any]]:
    """Run the tests. The request names outputs by the keys of their steps, so that results can be cached."""
    with _process.busy:
        rows = _process.rows(COMMAND, json.loads(request), count, SECONDS)
        _process.end()
    if len(rows) < count:
        raise EndedEarly
    return rows
