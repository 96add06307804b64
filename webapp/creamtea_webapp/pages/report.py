"""A study's report: its document's blocks, and between them the outputs of its systems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st
from sqlalchemy import select

from creamtea.access import rights
from creamtea.access.sessions import Identity
from creamtea.errors import InputError
from creamtea.human.results.ratings import fingerprint
from creamtea.orders.specs import UnreadableStudy
from creamtea.report import ngrams
from creamtea.report.build import build_report
from creamtea.report.human.build import build_human
from creamtea.report.model import Document, Fact, Heading, Section
from creamtea.store.queries import count_steps, find_study
from creamtea.store.rows import row_id
from creamtea.store.tables import Campaign
from creamtea_webapp import session
from creamtea_webapp.contents import show_contents
from creamtea_webapp.markup import prepare_tables, show
from creamtea_webapp.pages import blocks, manage, outputs, try_out, watch

TEMPLATE = "report.html"


def page() -> None:
    who = session.identity()
    try:
        study = _asked_for(who)
        report = build_report(session.database(), study, complete=False)
    except InputError as error:
        title = "This study cannot be read here" if isinstance(error, UnreadableStudy) else "No such study"
        show(TEMPLATE, "no_report", title=title, error=str(error))
        return
    facts = blocks.shown_facts(report.facts)
    show(TEMPLATE, "head", report=report, facts=facts, logs=rights.may(who, rights.READ_LOGS))
    steps = _steps(report.number)
    manage.section(who, report, steps)
    with st.container(key="progress"):
        watch.section(report.number, report.state, steps)
    names = report.test_sets
    test_set = (
        names[0]
        if len(names) == 1
        else st.selectbox("Test set", names, key="test_set", bind="query-params", width=400)
    )
    chosen = report.only(test_set, keep=lambda section: section.key == "analyses")
    place, campaigns = f"study-{report.number}", None
    characteristic, database = st.container(), session.database().url.render_as_string()
    to_try = try_out.trained(report.number)
    first, *rest = chosen.sections
    blocks.show_section(first, place)
    prepare_tables()
    show_contents(_headings(chosen, to_try is not None), key=f"{place}/contents")
    for section in rest:
        if section.key == "provenance":
            outputs.section(report.number, chosen.table(f"systems/{test_set}/systems"), test_set)
            if to_try is not None:
                try_out.section(report.number, to_try)
            characteristic = st.container()
        if section.key == "human":
            campaigns = st.container(), section
        else:
            blocks.show_section(section, place)
    if campaigns is not None:  # resampling takes longest: everything else is there to read before it
        with campaigns[0]:
            _campaigns(report, campaigns[1], place)
    found = ngrams.of_test_set(_ngrams(database, report.number, report.facts), test_set)
    if found.blocks:
        with characteristic:
            blocks.show_section(found, place)


def _asked_for(who: Identity | None) -> int:
    """The number of the study that the address asks for, if `who` may read it; a reader of one report need
    not ask. InputError, which names the studies, for those who may read them all."""
    asked = st.query_params.get("study", "").replace("\0", "")
    if rights.standing(who) == rights.ONE_REPORT and not asked:
        asked = str(who.study_id if who else "")
    number = row_id(asked)
    if rights.may(who, rights.READ_STUDIES):
        with session.database().session() as reading:
            return find_study(reading, asked if number is None else number).id
    if number is None or not rights.may(who, rights.READ_REPORT, study_id=number):
        session.refuse()
    return number


def _steps(study: int) -> tuple[int, int]:
    with session.database().session() as reading:
        return count_steps(reading, study)


def _headings(report: Document, can_try: bool) -> list[Heading]:
    """What the page shows of the report's contents (campaigns one at a time), and between them the outputs
    and the box to try a sentence."""
    headings = [heading for heading in report.contents() if not heading.path.startswith("human/")]
    last = next((at for at, heading in enumerate(headings) if heading.path == "provenance"), len(headings))
    between = [Heading(1, outputs.TITLE, outputs.ADDRESS)]
    between += [Heading(1, try_out.TITLE, try_out.ADDRESS)] if can_try else []
    return [*headings[:last], *between, *headings[last:]]


@st.fragment
def _campaigns(report: Document, summaries: Section, place: str) -> None:
    """A fragment: the summaries came with the report; all that takes resampling only of the campaign that is
    chosen."""
    session.require_report(report.number)
    path = f"{place}/human"
    blocks.show_block(replace(summaries, blocks=()), path, level=2)
    by_name = {block.key: block for block in summaries.blocks if isinstance(block, Section)}
    for block in summaries.blocks:
        if not isinstance(block, Section):
            blocks.show_block(block, f"{path}/{block.key}", level=3)
    if not by_name:
        return
    names = list(by_name)
    name = (
        names[0]
        if len(names) == 1
        else st.selectbox("Campaign", names, key="people", bind="query-params", width=400)
    )
    with session.database().session() as reading:
        number = reading.scalar(select(Campaign.id).where(Campaign.name == name))
        state = (report.number, report.facts, number, fingerprint(reading, number or 0))
    complete = _complete(session.database().url.render_as_string(), name, state)
    blocks.show_block(complete.section(f"human/{name}"), f"{path}/{name}", level=3)


@st.cache_resource(max_entries=64, show_spinner="Comparing the words of outputs …")
def _ngrams(database: str, study: int, facts: tuple[Fact, ...]) -> Section:
    """It reads every output; `facts` tell how many steps have succeeded."""
    return ngrams.build_ngrams(session.database(), study)


@st.cache_resource(max_entries=64, show_spinner="Comparing human scores …")
def _complete(database: str, campaign: str, state: tuple[Any, ...]) -> Document:
    """Frozen, and the same for every reader; `state` changes with whatever it is computed from."""
    return build_human(session.database(), campaign)
