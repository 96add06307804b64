"""A study's report: its progress, what organisers do with it, its blocks, and its outputs.

The progress is a fragment of its own: when it refreshes, choices elsewhere on the page stay, and so does the
reader's place. New results wait for a click, since they would move everything below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

import streamlit as st
from sqlalchemy import select

from creamtea.access import rights, sessions
from creamtea.access.sessions import Identity
from creamtea.errors import InputError
from creamtea.orders.controllers import live_controller
from creamtea.orders.rows import LIVE
from creamtea.orders.submission import UnreadableStudy, cancel, requeue
from creamtea.report.build import build_report
from creamtea.report.model import Document, Fact, Heading, Section
from creamtea.report.outputs import build_ngrams
from creamtea.report.watching import watch
from creamtea.store.database import Database
from creamtea.store.queries import count_steps, find_study
from creamtea.store.rows import row_id
from creamtea.store.tables import Campaign
from creamtea.wording import counted
from creamtea_webapp import session
from creamtea_webapp.markup import moment, note, prepare_tables, render, show, show_missing, show_part
from creamtea_webapp.pages import blocks, outputs, try_out
from creamtea_webapp.pages.organise.shared import (
    Made,
    act,
    campaign_report,
    entry,
    fresh_link,
    on_press,
    show_notice,
)

TEMPLATE = "watch.html"
SHARED = "share"  # the place of a fresh link
DAYS = 14
QUEUED = "It is queued again."
NOBODY = " No controller is running: start one with `creamtea controller`."
EVERY = 3.0  # seconds
LARGE, EVERY_OF_LARGE = 2000, 30.0  # a study with so many steps takes long to read


def progress_section(study: int, state: str, steps: tuple[int, int]) -> None:
    """Show the progress of a study that has not ended.

    `steps`: how many had succeeded when the rest of the page was drawn, and how many there are.
    """
    if state in ("queued", "running"):
        done, total = steps
        st.fragment(_draw_progress, run_every=EVERY if total < LARGE else EVERY_OF_LARGE)(study, done)


def _draw_progress(study: int, done: int) -> None:
    who = session.require_report(study)
    watched = watch(session.database(), session.artefacts(), study)
    if not watched.is_live:
        st.rerun()  # it has ended: the whole page
    logs = rights.may(who, rights.READ_LOGS)
    show(TEMPLATE, "head", watched=watched)
    if watched.nothing_runs:
        show(TEMPLATE, "nothing_runs", command=logs)
    if watched.done > done:
        finished = counted(watched.done - done, "step")
        if st.button(f"{finished} finished since the results below were drawn: show them", key="new-results"):
            st.rerun()
    if watched.failed:
        show(TEMPLATE, "failed", watched=watched, study=study, logs=logs)
    show(TEMPLATE, "running", watched=watched, study=study, logs=logs)
    if watched.waiting:
        show(TEMPLATE, "waiting", watched=watched)
    blocks.in_rows(watched.curves, lambda figure: blocks.show_chart(figure, f"watched-{figure.key}"))
    if watched.examples:
        with st.expander("How translations of development sentences change", key="watched-examples"):
            show(TEMPLATE, "examples", examples=watched.examples, languages=watched.languages)


# ---------------------------------------------------------------- what organisers do with a study


def manage_section(who: Identity | None, report: Document, steps: tuple[int, int]) -> None:
    """Show what this identity may do with the study; nothing for readers.

    `steps`: how many have succeeded, and how many there are.
    """
    may_control, may_share = (
        rights.may(who, right) for right in (rights.CONTROL_STUDIES, rights.SHARE_REPORTS)
    )
    if not may_control and not may_share:
        return
    # containers of their own, so that the rest of the page does not move when they fill
    with st.container(key="manage-notice"):
        show_notice()
    with st.container(horizontal=True, gap="small", key="manage"):
        if may_control:
            _control(report.number, report.state, incomplete=steps[0] < steps[1])
        if may_share:
            with st.popover("Share this report"):
                _share(report.number)


def _control(study: int, state: str, incomplete: bool) -> None:
    if state in LIVE:
        with st.popover("Cancel this study"):
            note("Running steps stop within seconds; finished ones are kept. You can retry the study later.")
            st.button("Cancel it now", on_click=_cancel, args=(study,), key="cancel-study")
    elif incomplete:
        st.button(
            "Retry",
            on_click=_retry,
            args=(study,),
            key="retry-study",
            help="Retry what failed, was cancelled or was unavailable",
        )


def _cancel(study: int) -> None:
    def do(database: Database, actor: str) -> str:
        stopped = cancel(database, study)
        return "The study is cancelled." if stopped else "The study had already ended."

    act(rights.CONTROL_STUDIES, None, do)


def _retry(study: int) -> None:
    def do(database: Database, actor: str) -> str:
        requeue(database, session.artefacts(), study)
        return QUEUED + ("" if live_controller(database) else NOBODY)

    act(rights.CONTROL_STUDIES, None, do)


# ---------------------------------------------------------------- links to this report


def _share(study: int) -> None:
    note("A link opens this report and nothing else, in one browser, until it expires or is revoked.")
    st.number_input("Days", 1, 365, DAYS, key="share-days")
    press = on_press(rights.SHARE_REPORTS, None, partial(_make_link, study), SHARED)
    st.button("Make a link", on_click=press, key="share-make")
    show_notice(SHARED)
    for link in sessions.list_links(session.database(), opening=True):
        if link.study_id == study:
            used = "open in a browser" if link.sessions else "not used yet"
            note(f"Link {link.id}, {used}, until {moment(link.expires_at)}")
            st.button("Revoke", on_click=_revoke, args=(study, link.id), key=f"share-revoke-{link.id}")


def _make_link(study: int, database: Database, actor: str) -> Made:
    lifetime = timedelta(days=st.session_state["share-days"])
    secret = sessions.create_link(database, "reader", study_id=study, lifetime=lifetime, actor=actor)
    return Made(
        "The link has been made.", fresh_link(entry(secret), " and send it to one reader. It works once")
    )


def _revoke(study: int, link: int) -> None:
    def do(database: Database, actor: str) -> str:
        if all(known.id != link or known.study_id != study for known in sessions.list_links(database)):
            return "That link does not belong to this report."
        sessions.revoke(database, link, actor)
        return "The link is revoked."

    act(rights.SHARE_REPORTS, None, do)


# ---------------------------------------------------------------- the page


def page() -> None:
    who = session.identity()
    try:
        study = _asked_for(who)
        report = build_report(session.database(), study, complete=False)
    except InputError as error:
        title = "This study cannot be read here" if isinstance(error, UnreadableStudy) else "No such study"
        show_missing(title, "All studies", "./", error)
        return
    logs = rights.may(who, rights.READ_LOGS)
    steps_link = render("parts.html", "link", address=f"?study={report.number}&step=", text="Steps and logs")
    show_part("masthead", report, steps_link if logs else "")
    with session.database().session() as reading:
        steps = count_steps(reading, report.number)
    manage_section(who, report, steps)
    with st.container(key="progress"):
        progress_section(report.number, report.state, steps)
    test_set = _chosen("Test set", report.test_sets, "test_set")
    chosen = report.only(test_set, keep=lambda section: section.key == "analyses")
    place, campaigns = f"study-{report.number}", None
    characteristic, database = st.container(), session.database().url.render_as_string()
    to_try = try_out.trained(report.number)
    first, *rest = chosen.sections
    blocks.show_section(first, place)
    prepare_tables()
    blocks.show_contents(_headings(chosen, to_try is not None), key=f"{place}/contents")
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
    ngrams = _ngrams(database, report.number, report.facts).only(test_set)
    if ngrams is not None and ngrams.blocks:
        with characteristic:
            blocks.show_section(ngrams, place)


def _chosen(label: str, names: Sequence[str], key: str) -> str:
    """Let the reader choose a name, which the address keeps; if there is only one, return it."""
    if len(names) == 1:
        return names[0]
    return st.selectbox(label, names, key=key, bind="query-params", width=400)


def _asked_for(who: Identity | None) -> int:
    """Return the number of the study that the address asks for, if `who` may read it.

    A reader of one report need not ask. For those who may read all studies, InputError names them.
    """
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


def _headings(report: Document, can_try: bool) -> list[Heading]:
    """Return the report's table of contents, without single campaigns, and the page's own parts."""
    headings = [heading for heading in report.contents() if not heading.path.startswith("human/")]
    last = next(
        (place for place, heading in enumerate(headings) if heading.path == "provenance"), len(headings)
    )
    between = [Heading(1, outputs.TITLE, outputs.ADDRESS)]
    between += [Heading(1, try_out.TITLE, try_out.ADDRESS)] if can_try else []
    return [*headings[:last], *between, *headings[last:]]


@st.fragment
def _campaigns(report: Document, summaries: Section, place: str) -> None:
    """Show campaigns as a fragment.

    Their summaries came with the report. Only the chosen campaign is resampled.
    """
    session.require_report(report.number)
    path = f"{place}/human"
    blocks.show_block(replace(summaries, blocks=()), path, level=2)
    names = [block.key for block in summaries.blocks if isinstance(block, Section)]
    for block in summaries.blocks:
        if not isinstance(block, Section):
            blocks.show_block(block, f"{path}/{block.key}", level=3)
    if not names:
        return
    name = _chosen("Campaign", names, "people")
    with session.database().session() as reading:
        number = reading.scalar(select(Campaign.id).where(Campaign.name == name))
    complete = campaign_report(number or 0, name, report.number, report.facts)
    blocks.show_block(complete.section(f"human/{name}"), f"{path}/{name}", level=3)


@st.cache_resource(max_entries=64, show_spinner="Comparing the words of outputs …")
def _ngrams(database: str, study: int, facts: tuple[Fact, ...]) -> Section:
    """Build the n-grams of every output. `facts` change with the number of steps that have succeeded."""
    return build_ngrams(session.database(), study)
