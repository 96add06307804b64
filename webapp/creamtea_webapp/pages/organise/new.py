"""A new campaign, or a change to a draft: every setting, then the draft's page with its preview."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from pydantic import BaseModel

from creamtea.access import rights
from creamtea.errors import InputError, about
from creamtea.human.making import campaigns
from creamtea.human.making.attention import read_attention
from creamtea.human.making.campaigns import CampaignRequest
from creamtea.human.making.documents import Documents, read_documents
from creamtea.human.making.metric_proposals import metrics_with_errors, one_of_the_two, proposals_of_metric
from creamtea.human.making.outputs import metric_names
from creamtea.human.making.proposals import Proposal, read_proposals
from creamtea.human.making.questions import read_questions
from creamtea.human.making.settings import ProposedBy, settings_of
from creamtea.human.making.tutorial import read_tutorial
from creamtea.human.media.given import Given, read_media
from creamtea.human.protocols.taxonomy import Taxonomy, read_taxonomy
from creamtea.regular import decode
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign, find_study, study_names
from creamtea.store.row_ids import row_id
from creamtea.store.rows import from_row
from creamtea.store.tables import Campaign
from creamtea.wording import counted, uploaded_to
from creamtea_webapp import session
from creamtea_webapp.markup import note, show
from creamtea_webapp.pages.organise.form import NOTHING, draw, form_values, index_of, key
from creamtea_webapp.pages.organise.press import Made, on_press
from creamtea_webapp.pages.organise.shared import TEMPLATE, show_notice
from creamtea_webapp.pages.organise.uploads import read_uploaded

MADE = "campaign-made"
BESIDE = "make"  # the place of errors: above the button
# files of items that the organiser wrote
READERS: dict[str, Callable[[Path], Sequence[BaseModel]]] = {
    "tutorial": read_tutorial,
    "attention": read_attention,
}
# what a draft had of a file that is not kept, as messages call it
LOST = {
    "documents": "documents",
    "proposals": "errors marked beforehand",
    "media": "files beside sources",
}
OF_REQUEST = ("test_set", "systems", "protocol", "ratings_per_item", "seed", "instructions")


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
        study = st.selectbox("Study", studies, index_of(studies, start.study), key=key("study"))
        row = find_study(reading, study)
        metrics, with_errors = metric_names(reading, row), metrics_with_errors(reading, row)
    draw(draft, start, study, row.spec, metrics, with_errors)
    show_notice(BESIDE)
    st.button(
        "Replace the draft" if draft else "Create a draft",
        type="primary",
        key="make",
        on_click=on_press(rights.CREATE_CAMPAIGN, None, partial(_make, draft, start), BESIDE, done_at=""),
    )
    note("Nobody can rate a draft. Its page shows items, hours and power, and lets you launch it.")


def _start() -> tuple[str, CampaignRequest]:
    """The draft that the address names, and what it was made of; nothing without one."""
    asked = row_id(st.query_params.get("from", ""))
    with session.database().session() as reading:
        row = None if asked is None else reading.get(Campaign, asked)
        if row is None or row.state != "draft" or row.study_id is None:
            return "", NOTHING
        study, settings = find_study(reading, row.study_id).name, settings_of(row.settings)
        return row.name, from_row(
            CampaignRequest, row, study=study, settings=settings, documents=None, proposals=None, media=None
        )


def _make(draft: str, start: CampaignRequest, database: Database, actor: str) -> Made:
    values = form_values(st.session_state)
    typed = values.pop("name").strip()
    request = {field: values.pop(field) for field in OF_REQUEST}
    documents = values.pop("documents")
    for field, read in READERS.items():
        file = values[field]
        items = getattr(start.settings, field) if file is None else read_uploaded(field, file, read)
        values[field] = [item.model_dump() for item in items]
    taxonomy = _taxonomy(values.get("taxonomy"), request["protocol"], start)
    values["taxonomy"] = None if taxonomy is None else taxonomy.model_dump()
    study, metric = st.session_state[key("study")], values.pop("proposals_from")
    proposals, proposed_by = _proposals(database, study, request, values.pop("proposals", None), metric)
    media = _media(values.pop("media"), values.pop("media_files"))
    given = {"documents": documents, "proposals": proposals, "media": media}
    _check_files(database, draft, start, request["protocol"], {name for name in given if given[name]})
    values["questions"] = [one.model_dump() for one in read_questions(values["questions"])]
    for field in ("contact", "completion_code", "completion_url", "failing_code"):
        values[field] = values[field].strip()
    for field in ("delta", "minutes_per_item"):
        values[field] = values[field] or None  # 0 is as good as empty: the usual one
    made = campaigns.create_campaign(
        database,
        draft or typed,
        CampaignRequest(
            study=study,
            settings=settings_of(values).model_copy(update={"proposed_by": proposed_by}),
            documents=None if documents is None else _documents(documents),
            media=media,
            proposals=proposals,
            **request,
        ),
        replace=bool(draft),
        actor=actor,
    )
    return Made(f"The draft has {counted(made.items, 'item')}.", {MADE: made.id})


def _check_files(
    database: Database, draft: str, start: CampaignRequest, protocol: str, given: set[str]
) -> None:
    """InputError where the draft would lose without a word what it had of a file."""
    if not draft:
        return
    with database.session() as reading:
        had = campaigns.from_files(reading, find_campaign(reading, draft).id)
    if protocol != start.protocol or start.settings.proposed_by is not None:  # a metric's are of no file
        had -= {"proposals"}
    for name in sorted(had - given):
        raise InputError(
            f"the draft has {LOST[name]}, whose file is not kept: give it again, or make a new campaign "
            "without",
            about=name,
        )


def _proposals(
    database: Database, study: str, request: dict[str, Any], file: Any, metric: str | None
) -> tuple[list[Proposal] | None, ProposedBy | None]:
    """What is marked before a rater begins: the file's errors, or those that the metric has found."""
    if metric is None:
        return None if file is None else read_uploaded("proposals", file, read_proposals), None
    if file is not None:
        raise one_of_the_two()
    with database.session() as reading:
        return proposals_of_metric(
            reading, session.artefacts().read, study, request["test_set"], request["systems"], metric
        )


def _taxonomy(file: Any, protocol: str, start: CampaignRequest) -> Taxonomy | None:
    """The file's, or the draft's while its protocol stays; None: the protocol's usual one."""
    if file is not None:
        return read_uploaded("taxonomy", file, read_taxonomy)
    return start.settings.taxonomy if protocol == start.protocol else None


def _media(file: Any, beside: Sequence[Any]) -> list[Given] | None:
    """What the list says, of the files that were uploaded with it."""
    if file is None:
        if beside:
            raise InputError("these files need a list that says beside what each is shown", about="media")
        return None
    with tempfile.TemporaryDirectory() as folder:
        for one in (file, *beside):
            (Path(folder) / Path(one.name).name).write_bytes(one.getvalue())
        with about("media"), uploaded_to(Path(folder)):
            return read_media(Path(folder) / Path(file.name).name, session.artefacts())


def _documents(file: Any) -> Documents:
    with about("documents"):
        return read_documents(decode(file.getvalue(), file.name), file.name)
