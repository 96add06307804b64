"""Ratings made elsewhere, or an export, as a campaign that can be analysed."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from creamtea.access import rights
from creamtea.errors import InputError
from creamtea.files import MAX_UNPACKED, unpack
from creamtea.human.formats import exchange
from creamtea.human.formats.base import ImportFacts
from creamtea.human.protocols import protocol_title, usable_protocols
from creamtea.human.protocols.taxonomy import read_taxonomy
from creamtea.store.database import Database
from creamtea.wording import counted, option, uploaded_to
from creamtea_webapp import session
from creamtea_webapp.markup import note, show
from creamtea_webapp.pages.organise.press import Made, on_press
from creamtea_webapp.pages.organise.shared import LABELS, field_error, is_wrong, show_notice
from creamtea_webapp.pages.organise.shared import TEMPLATE as SHARED
from creamtea_webapp.pages.organise.uploads import read_uploaded

IN_THE_FILE = "as the file says"
OF_CAMPAIGN = ("test_set", "source_language", "target_language", "scores")
TEXTS = ("sources", "output-of", "documents", "segment-scores", "first-segment", "rater-statistics")
BESIDE = "import"  # the place of errors: above the button


def page() -> None:
    session.require(rights.IMPORT_RATINGS)
    lead = "A file is stored completely or not at all. The new campaign is closed and ready for analysis."
    show(SHARED, "title", text="Import ratings", lead=lead)
    show_notice()
    with st.form("import", border=False):
        left, right = st.columns(2)
        with left:
            st.text_input("Campaign name", key="import-name")
            field_error("name")
        with right:
            titles = {"": "what the file looks like"}
            titles |= {name: found.title for name, found in exchange.usable_formats().items()}
            st.selectbox(LABELS["format"], list(titles), format_func=titles.__getitem__, key="import-kind")
            field_error("format")
        st.file_uploader("File", ["csv", "jsonl", "json", "zip", "tsv", "txt"], key="import-file")
        field_error("file")
        columns = st.columns(4)
        columns[0].selectbox(
            LABELS["protocol"],
            [IN_THE_FILE, *(protocol.name for protocol in usable_protocols())],
            format_func=protocol_title,
            key="import-protocol",
        )
        columns[1].text_input("Test set", key="import-test_set", placeholder="the campaign's name")
        columns[2].text_input(LABELS["source-language"], key="import-source_language", placeholder="de")
        columns[3].text_input(LABELS["target-language"], key="import-target_language", placeholder="en")
        field_error("protocol", "test-set", "source-language", "target-language")
        left, middle, right = st.columns(3)
        left.text_input(
            LABELS["scores"],
            key="import-scores",
            placeholder="where there are several",
            help="Of mt-metrics-eval: the NAME in human-scores/SOURCE-TARGET.NAME.seg.score.",
        )
        middle.file_uploader(
            LABELS["campaign-file"],
            ["json"],
            key="import-campaign",
            help="Of Pearmut: the file with which the campaign was made, where the answers are without it.",
        )
        right.file_uploader(
            LABELS["taxonomy"],
            ["yaml", "yml", "json"],
            key="import-taxonomy",
            help="For ratings with marked errors: the taxonomy that weights them. An export's zip "
            "has its own.",
        )
        field_error("scores", "campaign-file", "taxonomy")
        with st.expander("Texts for Appraise scores", expanded=is_wrong(*TEXTS)):
            _texts_of_appraise()
        show_notice(BESIDE)
        st.form_submit_button(
            "Import",
            type="primary",
            on_click=on_press(rights.IMPORT_RATINGS, None, _import, BESIDE, done_at="", usual_field="file"),
        )
    note(
        "Protocol, test set and languages are needed only where the file does not contain them; an export's "
        f"zip does. A zip may have a folder in it and unpack to {MAX_UNPACKED // 10**6} MB; the command line "
        "has no such limit."
    )


def _texts_of_appraise() -> None:
    show("organise/importing.html", "texts_of_appraise")
    left, middle, right = st.columns(3)
    left.file_uploader(LABELS["sources"], ["txt"], key="import-sources")
    middle.file_uploader(LABELS["output-of"], ["txt"], accept_multiple_files=True, key="import-outputs")
    right.file_uploader(LABELS["documents"], ["txt", "docs", "tsv"], key="import-documents")
    field_error("sources", "output-of", "documents")
    left, middle, right = st.columns(3)
    left.selectbox(
        LABELS["first-segment"],
        [None, 1, 0],
        format_func={None: "as the numbers tell", 1: "is number 1", 0: "is number 0"}.__getitem__,
        key="import-first",
    )
    middle.file_uploader(
        LABELS["segment-scores"],
        ["score", "txt", "tsv"],
        key="import-segment_scores",
        help="A published file (SYSTEM SCORE, a line per segment). It tells which lines of the documents "
        "the campaign has.",
    )
    right.file_uploader(
        LABELS["rater-statistics"],
        ["txt", "tsv", "csv"],
        key="import-statistics",
        help="Of crowd scores that are standardised (z): the file with which they are turned back.",
    )
    field_error("first-segment", "segment-scores", "rater-statistics")


def _import(database: Database, actor: str) -> Made:
    state = st.session_state
    file = state.get("import-file")
    name, kind = str(state["import-name"]).strip(), str(state["import-kind"])
    if not name:
        raise InputError("Enter a campaign name.", about="name")
    if file is None:
        raise InputError("Choose a file.", about="file")
    taxonomy = state.get("import-taxonomy")
    given: dict[str, Any] = {field: str(state[f"import-{field}"]).strip() or None for field in OF_CAMPAIGN}
    protocol = None if state["import-protocol"] == IN_THE_FILE else str(state["import-protocol"])
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path = folder / Path(file.name).name
        path.write_bytes(file.getvalue())
        if path.suffix.lower() == ".zip":
            path = unpack(path, folder / "export")
        facts = ImportFacts(
            name,
            protocol,
            **given,
            taxonomy=None if taxonomy is None else read_uploaded("taxonomy", taxonomy, read_taxonomy),
            first_segment=state["import-first"],
        )
        facts = _with_files(facts, folder / "texts")
        with uploaded_to(folder):
            kind = kind or exchange.recognise(path)
            done = exchange.import_campaign(database, path, kind, facts, actor, store=session.artefacts())
    not_kept = f" Not kept: {'; '.join(map(str, done.not_kept))}." if done.not_kept else ""
    not_kept += f" Note: {'; '.join(map(str, done.notices))}." if done.notices else ""
    return Made(
        f"Campaign {done.campaign}: {counted(done.ratings, 'rating')} by {counted(done.raters, 'rater')}, "
        f"{counted(done.items, 'item')}, {counted(done.systems, 'system')}, read as {kind}.{not_kept}"
    )


def _with_files(facts: ImportFacts, folder: Path) -> ImportFacts:
    """And the files beside the ratings, saved in this new folder."""
    folder.mkdir()
    state = st.session_state

    def save(file: Any) -> Path:
        path = folder / str(len(list(folder.iterdir()))) / Path(file.name).name
        path.parent.mkdir()
        path.write_bytes(file.getvalue())
        return path

    def saved(field: str) -> Path | None:
        file = state.get(f"import-{field}")
        return None if file is None else save(file)

    outputs: dict[str, Path] = {}
    for file in state.get("import-outputs") or []:
        system = Path(file.name).stem
        if system in outputs:
            raise InputError(f"{option('output-of')}: two files for the system {system!r}", about="output-of")
        outputs[system] = save(file)
    return replace(
        facts,
        sources=saved("sources"),
        outputs=outputs,
        documents=saved("documents"),
        segment_scores=saved("segment_scores"),
        campaign_file=saved("campaign"),
        statistics=saved("statistics"),
    )
