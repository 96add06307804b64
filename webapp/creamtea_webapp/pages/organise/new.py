"""A new campaign, or a change to a draft: every setting, then the draft's page with its preview."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from creamtea.access import rights
from creamtea.document.document import Document, read_document
from creamtea.errors import InputError, wrong
from creamtea.human.making import campaigns
from creamtea.human.making.campaign_file import KEYS, Folder, as_yaml, check_campaign, document_of
from creamtea.human.making.campaigns import CampaignRequest
from creamtea.human.making.outputs import metric_names
from creamtea.human.making.proposals import metrics_with_errors
from creamtea.human.making.settings import settings_of
from creamtea.human.protocols import usable_protocols
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign, find_study, study_names
from creamtea.store.rows import from_row, row_id
from creamtea.store.tables import Campaign
from creamtea.wording import counted, uploaded_to
from creamtea_webapp import session
from creamtea_webapp.markup import note, show
from creamtea_webapp.pages.organise.form import GENERATION, MEDIA_FILES, Form
from creamtea_webapp.pages.organise.press import Made, on_press
from creamtea_webapp.pages.organise.shared import TEMPLATE, act, safe_name, show_notice
from creamtea_webapp.pages.organise.uploads import read_uploaded

MADE = "campaign-made"
FILLED = "campaign-filled"  # the document that was put into the form
BESIDE, ABOVE = "make", "fill"  # places of errors: above the button, below the campaign file
# what a draft had of a file that is not kept, as messages call it
LOST = {
    "documents": "documents",
    "protocol.proposals": "errors marked beforehand",
    "media": "files beside sources",
}


def page() -> None:
    session.require(rights.CREATE_CAMPAIGN)
    made = st.session_state.pop(MADE, None)
    if made is not None:
        st.query_params.from_dict({"campaign": str(made)})
        st.rerun()
    draft, start = _start()
    show(TEMPLATE, "title", text="Change a draft" if draft else "New campaign")
    show_notice()  # what a page before did
    with session.database().session() as reading:
        studies = list(dict.fromkeys(study_names(reading).values()))
        if not studies:
            note("A campaign rates the outputs of a study, and there are no studies yet.")
            return
        _campaign_file()
        document = st.session_state.get(FILLED) or start
        key = Form(document, {}, "").key("study")
        index = studies.index(document["study"]) if document.get("study") in studies else 0
        study = st.selectbox("Study", studies, index, key=key)
        row = find_study(reading, study)
        choices = {
            "draft": [draft] if draft else [],
            "protocols": [protocol.name for protocol in usable_protocols() if protocol.rated_here],
            "test_sets": list(row.spec["test_sets"]),
            "systems": list(row.spec["systems"]),
            "metrics": metric_names(reading, row),
            "finders": metrics_with_errors(reading, row),
        }
    form = Form(document, choices, study)
    form.draw()
    show_notice(BESIDE)
    with st.container(horizontal=True):
        st.button(
            "Replace the draft" if draft else "Create a draft",
            type="primary",
            key="make",
            on_click=on_press(rights.CREATE_CAMPAIGN, None, partial(_make, draft, form), BESIDE, done_at=""),
        )
        values, _ = form.document()
        name = f"{safe_name(str(values.get('name', 'campaign')))}.yaml"
        st.download_button("Download as YAML", as_yaml(values), name, "application/yaml", on_click="ignore")
    note("Nobody can rate a draft. Its page shows items, hours and power, and lets you launch it.")


def _campaign_file() -> None:
    """A field for a campaign file, whose values the form then has."""
    with st.expander("Begin with a campaign file"):
        file = st.file_uploader("Campaign file (YAML)", ["yaml", "yml"], key="campaign-file")
        st.button(
            "Put it into the form",
            key="fill",
            disabled=file is None,
            on_click=partial(act, rights.CREATE_CAMPAIGN, None, _fill, errors_at=ABOVE, done_at=ABOVE),
        )
        show_notice(ABOVE)


def _fill(database: Database, actor: str) -> str:
    """Begin the form anew with an uploaded file. Files that it names are uploaded in their fields."""
    file = st.session_state["campaign-file"]

    def read(path: Path) -> Document:
        return read_document(path, KEYS, kind="a campaign (.yaml)")

    document = read_uploaded("campaign-file", file, read)
    left: list[str] = []
    for key in LOST:
        *block, last = key.split(".")
        values = document.data.get(block[0]) if block else document.data
        if isinstance(values, dict) and values.pop(last, None) is not None:
            left.append(LOST[key])
    check_campaign(document, Folder(Path(), ()))
    st.session_state[FILLED] = document.data
    st.session_state[GENERATION] = st.session_state.get(GENERATION, 0) + 1
    also = f" Upload its {' and '.join(left)} below." if left else ""
    return f"The form has the values of {file.name}.{also}"


def _start() -> tuple[str, dict[str, Any]]:
    """The draft that the address names, and its document; nothing without one."""
    asked = row_id(st.query_params.get("from", ""))
    with session.database().session() as reading:
        row = None if asked is None else reading.get(Campaign, asked)
        if row is None or row.state != "draft" or row.study_id is None:
            return "", {}
        study, settings = find_study(reading, row.study_id).name, settings_of(row.settings)
        request = from_row(
            CampaignRequest,
            row,
            study=study,
            settings=settings,
            documents=None,
            proposals=None,
            media=None,
            texts=None,
        )
        return row.name, document_of(row.name, request)


def _make(draft: str, form: Form, database: Database, actor: str) -> Made:
    values, files = form.document()
    values |= {"study": st.session_state[form.key("study")]}
    if not str(values.get("name", "")).strip():
        raise InputError("Enter a campaign name", about="name")
    beside = st.session_state.get(form.key(MEDIA_FILES)) or []
    if beside and "media" not in files:
        raise wrong("media", "these files need a list that says beside what each is shown")
    _check_files(database, draft, form, values, files)
    with tempfile.TemporaryDirectory() as folder, uploaded_to(Path(folder)):
        uploads = {Path(file.name).name: file for file in (*files.values(), *beside)}
        for name, file in uploads.items():
            (Path(folder) / name).write_bytes(file.getvalue())
        loaded = check_campaign(Document("", values), Folder(Path(folder), set(uploads)))
        request = loaded.request(database, session.artefacts())
    made = campaigns.create_campaign(
        database, draft or loaded.campaign.name.strip(), request, replace=bool(draft), actor=actor
    )
    return Made(f"The draft has {counted(made.items, 'item')}.", {MADE: made.id})


def _check_files(
    database: Database, draft: str, form: Form, values: dict[str, Any], given: Collection[str]
) -> None:
    """InputError where the draft would lose without a word what it had of a file."""
    if not draft:
        return
    with database.session() as reading:
        had = campaigns.from_files(reading, find_campaign(reading, draft).id)
    lost = [name for name in LOST if name.rpartition(".")[2] in had and name not in given]
    start = form.start.get("protocol", {})
    if values.get("protocol", {}).get("kind") != start.get("kind") or "proposals_from" in start:
        lost = [name for name in lost if name != "protocol.proposals"]  # a metric's are of no file
    for name in lost:
        raise wrong(
            name,
            f"the draft has {LOST[name]}, whose file is not kept: give it again, or make a new campaign "
            "without",
        )
