"""One campaign: a draft's cost and power, the progress of a launched campaign, closing, export, results, log,
and the pages that its raters will see.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from creamtea.access import audit, rights, sessions
from creamtea.access.sessions import Identity
from creamtea.errors import InputError
from creamtea.human.formats.exchange import FORMATS, export_campaign
from creamtea.human.making import launching
from creamtea.human.making.campaigns import CampaignSummary, progress_by_kind
from creamtea.human.making.preview import preview
from creamtea.human.media import amount_of_media, first_media
from creamtea.human.rating import RatingRefused, page_ahead, raters
from creamtea.human.record import output_names
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.rows import row_id
from creamtea.store.tables import Campaign, ItemKind, Rater
from creamtea.wording import counted
from creamtea_webapp import session
from creamtea_webapp.board import BoardState, Notice, board
from creamtea_webapp.markup import moment, note, prepare_tables, show, show_list
from creamtea_webapp.pages import blocks, rate
from creamtea_webapp.pages.organise.shared import (
    Made,
    act,
    campaign_report,
    entry,
    find,
    fresh_link,
    head,
    on_press,
    safe_name,
    show_notice,
)

TEMPLATE = "organise/campaign.html"
REFRESH = 10  # seconds, of the progress
EXPORT = "organise-export"
SOURCES_WITH_FILES = 12  # sources with files that are shown


def page(campaign_id: int) -> None:
    who = session.require(rights.SEE_CAMPAIGN, campaign_id)
    campaign = find(campaign_id)
    head(who, campaign)
    if campaign.state == "draft":
        _draft(who, campaign)
        return
    _progress(campaign)
    _registration(campaign)
    _media(campaign)
    if rights.may(who, rights.RUN_CAMPAIGN, campaign_id):
        if campaign.is_planned:
            _close_or_reopen(campaign)
        _share(campaign)
    if rights.may(who, rights.EXPORT_RATINGS, campaign_id):
        _export(campaign)


# ---------------------------------------------------------------- a draft


def _draft(who: Identity, campaign: CampaignSummary) -> None:
    st.header("Before the launch", anchor=False)
    show(TEMPLATE, "preview", plan=preview(session.database(), campaign.name))
    _media(campaign)
    if rights.may(who, rights.CREATE_CAMPAIGN):
        address = f"?campaigns=new&from={campaign.id}"
        show("parts.html", "way", address=address, text="Change the draft")
    if not rights.may(who, rights.RUN_CAMPAIGN, campaign.id):
        return
    _share(campaign)
    note(
        "The launch opens the campaign to its raters. From then on, systems, items, settings and the planned "
        "analysis cannot be changed. Raters and their links can be added before or after it."
    )
    show_notice("launch")  # errors only: once the campaign is launched, the head says so
    launch = partial(_launch, campaign.name)
    press = on_press(rights.RUN_CAMPAIGN, campaign.id, launch, "launch", done_at="")
    st.button("Launch", type="primary", on_click=press, key="launch")


def _launch(name: str, database: Database, actor: str) -> Made:
    registered = launching.launch(database, name, actor)
    return Made(f"The campaign has been launched and registered as {registered['digest'][:16]}.")


def _media(campaign: CampaignSummary) -> None:
    """Show the media files, as raters get them."""
    with session.database().session() as reading:
        amount = amount_of_media(reading, campaign.id)
        shown = first_media(reading, campaign.id, SOURCES_WITH_FILES)
    if shown:
        st.header("Media files", anchor="media-files")
        names = output_names(campaign.systems)
        show(TEMPLATE, "media", shown=shown, amount=amount, language=campaign.languages[0], names=names)


# ---------------------------------------------------------------- progress


@st.fragment(run_every=REFRESH)
def _progress(campaign: CampaignSummary) -> None:
    """Refreshes itself, and checks the right each time."""
    who = session.require(rights.SEE_CAMPAIGN, campaign.id)
    database = session.database()
    with database.session() as reading:
        kinds = progress_by_kind(reading, find_campaign(reading, campaign.name))
        now = database.now(reading)
    people = raters.overview(database, campaign.id)
    rated = [kind for kind in kinds if not ItemKind(kind.kind).is_written]
    done, wanted = sum(kind.submitted for kind in rated), sum(kind.wanted for kind in rated)
    st.header("Progress", anchor=False)
    show(TEMPLATE, "progress", done=done, wanted=wanted, now=now)
    aimed = any(kind.passed_over for kind in kinds)
    rows = [
        [
            ItemKind(kind.kind).label,
            f"{kind.items:,}",
            f"{kind.submitted:,}",
            # every rater gets what the organiser wrote: no number of ratings is wanted
            *(["", ""] if ItemKind(kind.kind).is_written else [f"{kind.wanted:,}", f"{kind.complete:,}"]),
            *([f"{kind.passed_over:,}"] * aimed),
        ]
        for kind in kinds
    ]
    show_list("kinds", ["items", "number", "ratings", "wanted", "complete", *["passed over"] * aimed], rows)
    standings = Counter(person.standing for person in people)
    organises = rights.may(who, rights.SEE_RATERS, campaign.id)
    show(TEMPLATE, "raters", campaign=campaign, people=len(people), standings=standings, organises=organises)


def _registration(campaign: CampaignSummary) -> None:
    with session.database().session() as reading:
        row = find_campaign(reading, campaign.name)
        registered, changed = row.registered, launching.changes(reading, row)
    if registered is not None:
        show(TEMPLATE, "registration", digest=registered["digest"], changed=changed)


def _close_or_reopen(campaign: CampaignSummary) -> None:
    if campaign.state == "launched":
        verb, effect = "Close", "Nobody will be able to rate until you open it again. Saved ratings are kept."
    else:
        verb, effect = (
            "Reopen",
            "Raters will be able to continue. The report will say that the campaign was reopened.",
        )
    key = verb.lower()
    with st.popover(f"{verb} the campaign"):
        note(effect)
        st.text_input("Reason", key=f"{key}-reason", placeholder="enough items" if verb == "Close" else "")
        show_notice(key)
        do = partial(_change_state, key, campaign.name)
        press = on_press(rights.RUN_CAMPAIGN, campaign.id, do, key, done_at="")
        st.button(f"{verb} it", key=key, on_click=press)


def _change_state(key: str, name: str, database: Database, actor: str) -> Made:
    reason = str(st.session_state.get(f"{key}-reason", "")).strip()
    (launching.close if key == "close" else launching.reopen)(database, name, actor, reason)
    return Made(f"The campaign {'has been closed' if key == 'close' else 'is open again'}.")


def _share(campaign: CampaignSummary) -> None:
    with st.popover("Share with a viewer"):
        note(
            "The link shows progress, the campaign as raters see it, and its results for 14 days. Whoever "
            "opens it can change nothing, and sees neither raters nor the log."
        )
        press = on_press(rights.MANAGE_RATERS, campaign.id, partial(_view_link, campaign.id), "share")
        st.button("Make a view-only link", key="share", on_click=press)
        show_notice("share")


def _view_link(campaign_id: int, database: Database, actor: str) -> Made:
    secret = sessions.create_link(database, "reader", campaign_id=campaign_id, actor=actor)
    return Made("A view-only link has been made.", fresh_link(entry(secret), ". It works once"))


# ---------------------------------------------------------------- export


def _export(campaign: CampaignSummary) -> None:
    st.header("Export", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.selectbox("Format", list(FORMATS.usable()), key="export-format", width=220)
        prepare = partial(_prepare, campaign.name)
        press = partial(act, rights.EXPORT_RATINGS, campaign.id, prepare, "export", "export")
        st.button("Prepare the files", key="export", on_click=press)
        name, data = st.session_state.get(EXPORT, ("", b""))
        if name.endswith(f"-{kind}.zip"):
            st.download_button("Download", data, file_name=name, mime="application/zip", key="download")
    show_notice("export")
    note(
        "csv and jsonl contain every revision and all that a re-analysis needs. The others are formats of "
        "other tools, which hold less. All of them name raters by their pseudonyms."
    )


def _prepare(name: str, database: Database, actor: str) -> str:
    kind = str(st.session_state.get("export-format", "csv"))
    with tempfile.TemporaryDirectory() as folder:
        done = export_campaign(database, name, kind, Path(folder) / "export", actor, session.artefacts())
        packed = Path(shutil.make_archive(f"{folder}/packed", "zip", f"{folder}/export")).read_bytes()
    st.session_state[EXPORT] = (f"{safe_name(name)}-{kind}.zip", packed)
    left_out = f" Left out: {'; '.join(done.left_out)}." if done.left_out else ""
    if done.not_kept:
        left_out += f" This format cannot hold: {'; '.join(map(str, done.not_kept))}."
    ready = f"Ready to download: {counted(done.ratings, 'rating')} in {counted(len(done.files), 'file')}."
    return ready + left_out


# ---------------------------------------------------------------- results


def results(campaign_id: int) -> None:
    """Show what raters have said, as `creamtea campaign report` does."""
    who = session.require(rights.SEE_CAMPAIGN, campaign_id)
    campaign = find(campaign_id)
    head(who, campaign, "results")
    try:
        report = campaign_report(campaign_id, campaign.name)
    except InputError as error:  # a draft, or a protocol that is not installed here
        note(str(error))
        return
    place = f"campaign-{campaign_id}"
    first, *rest = report.sections
    blocks.show_section(first, place)
    prepare_tables()
    blocks.show_contents(report.contents(), key=f"{place}/contents")
    for section in rest:
        blocks.show_section(section, place)


# ---------------------------------------------------------------- the log


def log(campaign_id: int) -> None:
    who = session.require(rights.READ_LOG, campaign_id)
    head(who, find(campaign_id), "log")
    rows = [
        [
            moment(entry.at),
            entry.actor,
            entry.action,
            entry.rater or "",
            entry.reason,
            ", ".join(_detail(key, value) for key, value in entry.detail.items()),
        ]
        for entry in reversed(audit.read(session.database(), campaign_id))
    ]
    show_list("log", ["when", "who", "what", "rater", "why", "detail"], rows, words=range(6))
    note("Newest first. Entries are never changed or removed.")


def _detail(key: str, value: Any) -> str:
    """Write a detail as "items: 35" or "made anew: no"; a digest is cut as the campaign's page cuts it."""
    shown = ("no", "yes")[value] if isinstance(value, bool) else str(value)[: 16 if key == "digest" else None]
    return f"{key.replace('_', ' ')}: {shown}"


# ---------------------------------------------------------------- what raters will see


DRAFT = "ahead-draft"  # what was entered on the page on show
ITEM = "item"  # of the address: the page's number, from 1


def ahead(campaign_id: int) -> None:
    """Show a campaign as its raters will see it, from the welcome to the end; nothing entered is kept."""
    who = session.require(rights.SEE_CAMPAIGN, campaign_id)
    head(who, find(campaign_id), "ahead")
    note("What raters see, page by page, with their buttons. Nothing that you enter here is kept.")
    number = row_id(st.query_params.get(ITEM, "")) or None  # 0 is the welcome, too
    with session.database().session() as reading:
        campaign = reading.get_one(Campaign, campaign_id)
        try:
            known = raters.welcome_of(reading, campaign, Rater(pseudonym="rater-01"))
        except RatingRefused as refused:
            note(str(refused).capitalize())
            return
        workload = raters.workload_of(reading, campaign)
        work = None if number is None else page_ahead(reading, campaign, number - 1)
    if number is None:
        rate.consent(known, workload, on_agree=partial(_go, 1))
    elif work is None:
        rate.all_done(known, workload.items, away=False, on_earlier=partial(_go, 1))
    else:
        page_id, entered = st.session_state.get(DRAFT, (None, {}))
        if page_id == work.assignment_id:
            work = replace(work, **entered)
        rate.domain_instructions(st.empty(), work)
        with st.empty():  # holds one element: the old board goes as the new one comes
            board(
                work,
                BoardState(work.done + 1, Notice()),
                on_draft=partial(_keep, work.assignment_id),
                on_act=lambda _: _go(number + 1),
            )
        rate.instructions(known)


def _go(number: int) -> None:
    st.query_params[ITEM] = str(number)
    st.session_state.pop(DRAFT, None)


def _keep(page_id: int, sent: Any) -> None:
    """Keep what the board sent, so that it gets this back, as on the rating page: it waits for that."""
    entered = {"draft": sent["answers"], "document_draft": sent["document"], "comment": sent["comment"]}
    st.session_state[DRAFT] = page_id, entered
