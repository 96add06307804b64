"""A new campaign, or a change to a draft: every setting, then the draft's page with its preview."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from creamtea.errors import InputError
from creamtea.human import campaigns, rights
from creamtea.human.outputs import metric_names
from creamtea.human.settings import settings_of
from creamtea.human.tutorial import read_tutorial
from creamtea.store.database import Database
from creamtea.store.queries import find_study, list_studies
from creamtea.store.tables import Campaign
from creamtea_webapp import session
from creamtea_webapp.markup import counted, note, show
from creamtea_webapp.pages.organise.form import Start, draw, form_values, index_of, key
from creamtea_webapp.pages.organise.shared import TEMPLATE, act, show_notice

MADE = "campaign-made"
OF_REQUEST = ("test_set", "systems", "protocol", "ratings_per_item", "seed", "instructions")


def page() -> None:
    session.require(rights.CREATE_CAMPAIGN)
    made = st.session_state.pop(MADE, None)
    if made is not None:
        st.query_params.from_dict({"campaign": str(made)})
        st.rerun()
    start = _start()
    show(TEMPLATE, "title", text="Change a draft" if start.name else "New campaign")
    show_notice()
    with session.database().session() as reading:
        studies = list(dict.fromkeys(summary.name for summary in list_studies(reading)))
        if not studies:
            note("A campaign rates the outputs of a study, and there are no studies yet.")
            return
        study = st.selectbox("Study", studies, index_of(studies, start.study), key=key("study"))
        row = find_study(reading, study)
        metrics = metric_names(reading, row)
    draw(start, study, row.spec, metrics)
    st.button(
        "Replace the draft" if start.name else "Create a draft",
        type="primary",
        key="make",
        on_click=partial(act, rights.CREATE_CAMPAIGN, None, partial(_make, start)),
    )
    note("Nobody can rate a draft. Its page shows items, hours and power, and lets you launch it.")


def _start() -> Start:
    asked = st.query_params.get("from", "")
    if not asked.isdecimal() or len(asked) > 9:
        return Start()
    with session.database().session() as reading:
        row = reading.get(Campaign, int(asked))
        if row is None or row.state != "draft" or row.study_id is None:
            return Start()
        return Start(
            name=row.name,
            study=find_study(reading, row.study_id).name,
            test_set=row.test_set,
            systems=list(row.systems),
            protocol=row.protocol,
            ratings=row.ratings_per_item,
            seed=row.seed,
            instructions=row.instructions,
            settings=row.settings,
        )


def _make(start: Start, database: Database, actor: str) -> str:
    values = form_values(st.session_state)
    typed = values.pop("name").strip()
    name = start.name or typed
    request = {field: values.pop(field) for field in OF_REQUEST}
    documents, tutorial = values.pop("documents"), values.pop("tutorial")
    values["tutorial"] = start.settings.get("tutorial", []) if tutorial is None else _tutorial(tutorial)
    for field in ("delta", "minutes_per_item"):
        values[field] = values[field] or None  # 0 is as good as empty: the usual one
    made = campaigns.create_campaign(
        database,
        name,
        campaigns.CampaignRequest(
            study=st.session_state[key("study")],
            settings=settings_of(values),
            documents=None if documents is None else _lines(documents.getvalue()),
            **request,
        ),
        replace=bool(start.name),
        actor=actor,
    )
    st.session_state[MADE] = made.id
    return f"The draft has {counted(made.items, 'item')}."


def _tutorial(file: Any) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(file.name).name
        path.write_bytes(file.getvalue())
        return [item.model_dump() for item in read_tutorial(path)]


def _lines(data: bytes) -> list[str]:
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise InputError("the file of documents is not UTF-8 text: save it as UTF-8") from None
    return [line.rpartition("\t")[2].strip() for line in lines]
