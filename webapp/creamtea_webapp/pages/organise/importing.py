"""Ratings made elsewhere, or an export, as a campaign that can be analysed."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import streamlit as st

from creamtea.access import rights
from creamtea.errors import InputError, wrong_option
from creamtea.files import MAX_UNPACKED, unpack
from creamtea.human.formats import exchange
from creamtea.human.formats.base import ImportFacts, ImportOption, import_options
from creamtea.human.protocols import protocol_title, usable_protocols
from creamtea.human.protocols.taxonomy import read_taxonomy
from creamtea.store.database import Database
from creamtea.wording import counted, uploaded_to
from creamtea_webapp import session
from creamtea_webapp.markup import note, show
from creamtea_webapp.pages.organise.shared import (
    LABELS,
    Made,
    field_error,
    is_wrong,
    on_press,
    read_uploaded,
    show_notice,
)

FROM_FILE = "as the file says"
BESIDE = "import"  # the place of errors: above the button


def page() -> None:
    session.require(rights.IMPORT_RATINGS)
    lead = "A file is stored completely or not at all. The new campaign is closed and ready for analysis."
    show("parts.html", "head", text="Import ratings", lead=lead)
    show_notice()
    with st.form("import", border=False):
        left, right = st.columns(2)
        with left:
            st.text_input("Campaign name", key="import-name")
            field_error("name")
        with right:
            titles = {"": "recognised from the file"}
            titles |= {name: found.title for name, found in exchange.FORMATS.usable().items()}
            st.selectbox(LABELS["format"], list(titles), format_func=titles.__getitem__, key="import-kind")
            field_error("format")
        st.file_uploader("File", ["csv", "jsonl", "json", "zip", "tsv", "txt"], key="import-file")
        field_error("file")
        formats = exchange.FORMATS.usable()
        special = {field: found for found in formats.values() for field in found.options}
        _draw([field for field in import_options() if field not in special])
        for found in formats.values():
            if found.options:
                with st.expander(f"Only for {found.title}", expanded=is_wrong(*map(_dashed, found.options))):
                    if "sources" in found.options:
                        show("organise/importing.html", "texts_of_appraise")
                    _draw(found.options)
        show_notice(BESIDE)
        press = on_press(rights.IMPORT_RATINGS, None, _import, BESIDE, done_at="", usual_field="file")
        st.form_submit_button("Import", type="primary", on_click=press)
    note(
        "Protocol, test set and languages are needed only if the file does not contain them; an export's zip "
        f"does. A zip may contain a folder, and unpack to at most {MAX_UNPACKED // 10**6} MB; the command "
        "line has no such limit."
    )


def _draw(fields: Collection[str]) -> None:
    """Draw a field for each of these options of an import, three beside each other."""
    names = list(fields)
    for row in (names[at : at + 3] for at in range(0, len(names), 3)):
        for column, field in zip(st.columns(3), row, strict=False):
            with column:
                _field(field, *import_options()[field])
                field_error(_dashed(field))


def _field(name: str, declared: Any, asked: ImportOption) -> None:
    common: dict[str, Any] = {"key": f"import-{name}", "help": asked.help}
    if asked.endings:
        many = name == "output_of"
        st.file_uploader(asked.title, list(asked.endings), accept_multiple_files=many, **common)
    elif name == "protocol":
        names = [None, *(protocol.name for protocol in usable_protocols())]
        st.selectbox(
            asked.title, names, format_func=lambda name: protocol_title(name) if name else FROM_FILE, **common
        )
    elif asked.lowest is not None:
        step = 1 if declared == int | None else 1.0
        st.number_input(asked.title, asked.lowest, asked.highest, None, step, **common)
    else:
        st.text_input(asked.title, **common)


def _dashed(field: str) -> str:
    """Return a field's name as messages have it."""
    return field.replace("_", "-")


def _import(database: Database, actor: str) -> Made:
    state = st.session_state
    file = state.get("import-file")
    name, kind = str(state["import-name"]).strip(), str(state["import-kind"])
    if not name:
        raise InputError("Enter a campaign name.", about="name")
    if file is None:
        raise InputError("Choose a file.", about="file")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path = folder / Path(file.name).name
        path.write_bytes(file.getvalue())
        if path.suffix.lower() == ".zip":
            path = unpack(path, folder / "export")
        facts = ImportFacts(name, **_field_values(folder / "texts"))
        with uploaded_to(folder):
            kind = kind or exchange.recognise(path)
            done = exchange.import_campaign(database, path, kind, facts, actor, store=session.artefacts())
    not_kept = f" Not kept: {'; '.join(map(str, done.not_kept))}." if done.not_kept else ""
    not_kept += f" Note: {'; '.join(map(str, done.notices))}." if done.notices else ""
    return Made(
        f"Campaign {done.campaign}: {counted(done.ratings, 'rating')} by {counted(done.raters, 'rater')}, "
        f"{counted(done.items, 'item')}, {counted(done.systems, 'system')}, read as {kind}.{not_kept}"
    )


def _field_values(folder: Path) -> dict[str, Any]:
    """Return the values of the fields; uploaded files are saved in this new folder."""
    folder.mkdir()

    def save(file: Any) -> Path:
        path = folder / str(len(list(folder.iterdir()))) / Path(file.name).name
        path.parent.mkdir()
        path.write_bytes(file.getvalue())
        return path

    given: dict[str, Any] = {}
    for field, (_, asked) in import_options().items():
        value = st.session_state.get(f"import-{field}")
        if value is None or value == "":
            continue
        if field == "taxonomy":
            given[field] = read_uploaded(field, value, read_taxonomy)
        elif field == "output_of":
            given[field] = {}
            for file in value:
                system = Path(file.name).stem
                if system in given[field]:
                    raise wrong_option("output-of", f"two files for the system {system!r}")
                given[field][system] = save(file)
        elif field == "leave_out":
            given[field] = tuple(name.strip() for name in value.split(",") if name.strip())
        elif asked.endings:
            given[field] = save(value)
        else:
            given[field] = value.strip() if isinstance(value, str) else value
    return {field: value for field, value in given.items() if value != ""}
