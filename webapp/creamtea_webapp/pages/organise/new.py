"""A new campaign, or a change to a draft: every setting, then the draft's page with its preview.

The form is drawn from the declarations of the settings (`creamtea.human.making.settings`). A setting has
the widget of its type, the title and the help of its declaration, and is shown while its `needs` are met. The
values are read from the session at the click (`Form.document`), not from the last drawing: a field that is
left by pressing the button changes in the same message.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from creamtea.access import rights
from creamtea.document.document import YamlDocument, read_document
from creamtea.document.mistakes import one_of
from creamtea.document.values import descriptions
from creamtea.errors import InputError, wrong
from creamtea.human.making import campaigns
from creamtea.human.making.campaign_file import (
    KEYS,
    Folder,
    as_yaml,
    check_campaign,
    create_campaigns,
    document_of,
    names_file,
)
from creamtea.human.making.campaigns import CampaignRequest
from creamtea.human.making.proposals import metrics_with_errors
from creamtea.human.making.questions import Question, write_questions
from creamtea.human.making.settings import (
    CampaignDocument,
    Declaration,
    declarations,
    is_met,
    settings_of,
)
from creamtea.human.making.texts import check_names, metric_names
from creamtea.human.media import CAPTIONS_ENDING, ENDINGS
from creamtea.human.protocols import Protocol, find_protocol, usable_protocols
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign, find_study, study_names
from creamtea.store.rows import from_row, row_id
from creamtea.store.tables import Campaign
from creamtea.wording import counted, uploaded_to
from creamtea_webapp import session
from creamtea_webapp.markup import note, show
from creamtea_webapp.pages.organise.shared import (
    Made,
    act,
    field_error,
    on_press,
    read_uploaded,
    safe_name,
    show_notice,
)

MADE = "campaign-made"
FILLED = "campaign-filled"  # the document that was put into the form
BESIDE, ABOVE = "make", "fill"  # places of errors: above the button, below the campaign file
# contents of a draft whose files are not kept, as messages call them
LOST = {
    "texts.folder": "sources and outputs",
    "texts.sources": "sources",
    "texts.outputs": "outputs",
    "texts.references": "references",
    "documents": "documents",
    "protocol.proposals": "errors marked beforehand",
    "media": "media files",
}
GENERATION = "campaign-generation"  # how many files have been put into the form
NO_STUDY = "none: texts from files"
MEDIA_FILES = "media_files"  # beside the list `media`
USUAL = 4  # systems side by side
MAX_EXACT = 2**53 - 1  # whole numbers above are not exact in a browser
OF_STUDY = ("test_sets", "systems", "metrics", "finders")  # choices that another study changes
# endings of files, by the kind of file or the key
ENDINGS_OF = {"documents": ["txt", "docs", "tsv"], "media": ["jsonl", "json"], "proposals": ["jsonl", "json"]}
ENDINGS_OF |= {
    "sources": ["txt", "jsonl", "json"],
    "outputs": ["txt", "jsonl", "json"],
    "references": ["txt"],
}
MANY = ("outputs", "references")  # keys of `texts` with several files
MEDIA_ENDINGS = [end[1:] for ends in (*ENDINGS.values(), (CAPTIONS_ENDING,)) for end in ends]


def page() -> None:
    session.require(rights.CREATE_CAMPAIGN)
    made = st.session_state.pop(MADE, None)
    if made is not None:
        st.query_params.from_dict({"campaign": str(made)})
        st.rerun()
    draft, start = _start()
    show("parts.html", "head", text="Change a draft" if draft else "New campaign")
    show_notice()  # of an action on an earlier page
    with session.database().session() as reading:
        studies = [*dict.fromkeys(study_names(reading).values()), ""]
        _campaign_file()
        document = st.session_state.get(FILLED) or start
        begun = Form(document, {}, "")
        asked = "" if "texts" in document else document.get("study")
        index = studies.index(asked) if asked in studies else 0
        study = st.selectbox(
            "Study", studies, index, format_func=lambda name: name or NO_STUDY, key=begun.key("study")
        )
        row = find_study(reading, study) if study else None
        uploaded = st.session_state.get(begun.key("texts.outputs")) or ()
        systems = [Path(file.name).stem for file in uploaded] if row is None else list(row.spec["systems"])
        choices = {
            "draft": [draft] if draft else [],
            "protocols": [protocol.name for protocol in usable_protocols() if protocol.rated_here],
            "test_sets": [] if row is None else list(row.spec["test_sets"]),
            "systems": systems,
            "metrics": [] if row is None else metric_names(reading, row),
            "finders": [] if row is None else metrics_with_errors(reading, row),
        }
    form = Form(document, choices, study)
    form.draw()
    show_notice(BESIDE)
    with st.container(horizontal=True):
        label = "Replace the draft" if draft else "Create a draft"
        press = on_press(rights.CREATE_CAMPAIGN, None, partial(_make, draft, form), BESIDE, done_at="")
        st.button(label, type="primary", key="make", on_click=press)
        values, _ = form.document()
        name = f"{safe_name(str(values.get('name', 'campaign')))}.yaml"
        st.download_button("Download as YAML", as_yaml(values), name, "application/yaml", on_click="ignore")
    note("Nobody can rate a draft. Its page shows items, hours and power, and lets you launch it.")


def _campaign_file() -> None:
    """Show a field for a campaign file, whose values fill the form."""
    with st.expander("Begin with a campaign file"):
        file = st.file_uploader("Campaign file (YAML)", ["yaml", "yml"], key="campaign-file")
        press = partial(act, rights.CREATE_CAMPAIGN, None, _fill, errors_at=ABOVE, done_at=ABOVE)
        st.button("Load it into the form", key="fill", disabled=file is None, on_click=press)
        show_notice(ABOVE)


def _fill(database: Database, actor: str) -> str:
    """Fill the form anew from an uploaded file. Files that it names are uploaded in their own fields."""
    file = st.session_state["campaign-file"]
    read = partial(read_document, keys=KEYS, kind="a campaign (.yaml)")
    document = read_uploaded("campaign-file", file, read)
    to_add: dict[str, list[str]] = {"Upload": [], "Paste": []}
    later: list[str] = []  # the keys of what is to be added
    for key, declared in declarations().items():
        values = document.data.get(declared.block) if declared.block else document.data
        value = values.get(declared.key) if isinstance(values, dict) else None
        is_file = key in LOST or names_file(declared, value)
        if not isinstance(values, dict) or value in (None, []) or not is_file:
            continue
        how = "Upload" if key in LOST or _is_upload(declared) else "Paste"
        to_add[how].append(LOST.get(key, declared.setting.title.replace(" (Markdown)", "").lower()))
        later.append(key)
        del values[declared.key]
    campaign = check_campaign(document, Folder(Path(), ()), later=later).campaign
    if campaign.study:
        _check_study(database, campaign)
    st.session_state[FILLED] = document.data
    st.session_state[GENERATION] = st.session_state.get(GENERATION, 0) + 1
    also = [f"{how} its {' and '.join(what)} below." for how, what in to_add.items() if what]
    return " ".join([f"The form now has the values of {file.name}.", *also])


def _check_study(database: Database, campaign: CampaignDocument) -> None:
    """Raise InputError for a name that the form cannot show because the study does not have it."""
    with database.session() as reading:
        row = find_study(reading, campaign.study)
        check_names(reading, row, campaign.test_set, campaign.systems)
        finder = [campaign.protocol.proposals_from] if campaign.protocol.proposals_from else []
        for key, names, known in (
            ("sample.metrics", campaign.sample.metrics, metric_names(reading, row)),
            ("protocol.proposals_from", finder, metrics_with_errors(reading, row)),
        ):
            for name in names:
                if name not in known:
                    raise wrong(key, f"{name!r}: allowed {one_of(known, name)}")


def _start() -> tuple[str, dict[str, Any]]:
    """Return the draft that the address names, and its document; nothing without one."""
    asked = row_id(st.query_params.get("from", ""))
    with session.database().session() as reading:
        row = None if asked is None else reading.get(Campaign, asked)
        if row is None or row.state != "draft":
            return "", {}
        study = "" if row.study_id is None else find_study(reading, row.study_id).name
        files = dict.fromkeys(("documents", "proposals", "media", "texts"))
        request = from_row(CampaignRequest, row, study=study, settings=settings_of(row.settings), **files)
        document = document_of(row.name, request)
        if not study:
            pair = (code.replace("-", "_") for code in (row.source_language, row.target_language))
            document["texts"] = {"languages": "-".join(pair)}
        return row.name, document


def _make(draft: str, form: Form, database: Database, actor: str) -> Made:
    values, files = form.document()
    if not form.study:
        values.setdefault("texts", {})
    values["name"] = name = draft or str(values.get("name", "")).strip()
    if not name:
        raise InputError("Enter a campaign name", about="name")
    beside = st.session_state.get(form.key(MEDIA_FILES)) or []
    if beside and "media" not in files:
        raise wrong("media", "these files need a list that says where each is shown")
    _check_files(database, draft, form, values, files)
    with tempfile.TemporaryDirectory() as folder, uploaded_to(Path(folder)):
        uploads = {Path(file.name).name: file for file in beside}
        if len(uploads) < len(beside):
            raise wrong("media", "two of these files have the same name: rename one, here and in the list")
        for key, given in files.items():
            uploads |= {_place(key, file): file for file in (given if isinstance(given, list) else [given])}
        for place, file in uploads.items():
            (Path(folder) / place).parent.mkdir(exist_ok=True)
            (Path(folder) / place).write_bytes(file.getvalue())
        loaded = check_campaign(YamlDocument("", values), Folder(Path(folder), {*uploads, "outputs"}))
        more: dict[str, Any] = {"replace": bool(draft), "actor": actor}
        texts = create_campaigns(database, [loaded], session.artefacts(), **more)[name].texts
    made = campaigns.summary(database, name)
    notes = [f"Note: {notice}." for notice in (texts.notices if texts is not None else ())]
    return Made(" ".join([f"The draft has {counted(made.items, 'item')}.", *notes]), {MADE: made.id})


def _place(key: str, file: Any) -> str:
    """Return the path of an uploaded file: texts are in a folder per key, other files beside each other."""
    block, _, last = key.rpartition(".")
    return f"{last}/{Path(file.name).name}" if block == "texts" else Path(file.name).name


def _check_files(
    database: Database, draft: str, form: Form, values: dict[str, Any], given: Collection[str]
) -> None:
    """Raise InputError if the draft would silently lose contents of a file that is not kept."""
    if not draft:
        return
    with database.session() as reading:
        had = campaigns.from_files(reading, find_campaign(reading, draft).id)
    lost = [name for name in LOST if name.rpartition(".")[2] in had and name not in given]
    if str(values.get("texts", {}).get("sources")).endswith((".jsonl", ".json")):
        lost = [name for name in lost if name != "documents"]  # the sources name them
    start = form.start.get("protocol", {})
    if values.get("protocol", {}).get("kind") != start.get("kind") or "proposals_from" in start:
        lost = [name for name in lost if name != "protocol.proposals"]  # a metric's come from no file
    for name in lost:
        remedy = "give it again, or make a new campaign without"
        raise wrong(name, f"the draft has {LOST[name]}, whose file is not kept: {remedy}")


# ---------------------------------------------------------------- the form


class Form:
    """The form of a campaign's settings.

    `start`: the document that the fields begin with; `choices`: the names that a field offers, by
    `Setting.choices`.
    """

    def __init__(self, start: Mapping[str, Any], choices: Mapping[str, Sequence[str]], study: str) -> None:
        self.start, self.choices, self.study = start, choices, study

    def draw(self) -> None:
        """Draw all fields but the study, block by block, with the rare ones folded."""
        blocks: dict[str, list[tuple[str, Declaration]]] = {}
        for key, declared in declarations().items():
            if key != "study" and declared.setting.on_page and (declared.block != "texts" or not self.study):
                blocks.setdefault(declared.block, []).append((key, declared))
        for block, settings in blocks.items():
            if block:
                st.header(CampaignDocument.model_fields[block].title or block, anchor=False)
            self._draw([entry for entry in settings if not entry[1].setting.rare])
            rare = [entry for entry in settings if entry[1].setting.rare and self._applies(entry[1])]
            if rare:
                with st.expander("More settings", expanded=any(key in self._changed() for key, _ in rare)):
                    self._draw(rare)

    def protocol(self) -> Protocol:
        return find_protocol(self.value("protocol.kind"))

    def value(self, key: str) -> Any:
        """Return a field's current value, or the one it begins with."""
        return st.session_state.get(self.key(key), self.start_value(key))

    def start_value(self, key: str) -> Any:
        declared = declarations()[key]
        block = self.start.get(declared.block, {}) if declared.block else self.start
        if declared.key in block:
            return block[declared.key]
        return None if declared.field.is_required() else declared.default

    def key(self, key: str) -> str:
        """Return the key of a field's widget, with the value of the field that its choices depend on."""
        setting = declarations()[key].setting if key in declarations() else None
        depends_on = self.study if setting and setting.choices in OF_STUDY else ""
        if key == "sample.kind":
            depends_on = self.value("protocol.kind")
        generation = st.session_state.get(GENERATION, 0)
        return "-".join(filter(None, ("campaign", key, depends_on, str(generation or ""))))

    def document(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the form as a document, and the uploaded files by their keys."""
        document: dict[str, Any] = {}
        files: dict[str, Any] = {}
        for key, declared in declarations().items():
            file = declared.setting.file
            if not self._applies(declared):
                continue
            value = self.value(key) if declared.setting.on_page else self.start_value(key)
            if _is_upload(declared):
                if upload := st.session_state.get(self.key(key)):
                    files[key] = upload
                    value = [_place(key, file) for file in upload] if isinstance(upload, list) else None
                    value = "outputs" if key == "texts.outputs" else value or _place(key, upload)
                else:
                    value = self.start_value(key)
            elif isinstance(value, float) and value >= 1 and value % 1 == 0 and _kind(declared) == "amount":
                value = int(value)  # below 1 a share, from 1 a number of items
            if file == "questions" and isinstance(value, list):
                value = _as_text(value)
            if value not in (None, "", []) and (declared.field.is_required() or value != declared.default):
                block = document.setdefault(declared.block, {}) if declared.block else document
                block[declared.key] = value
        return document, files

    def _changed(self) -> set[str]:
        """Return the keys that do not begin with their default."""
        return {
            key for key in declarations() if self.start_value(key) not in (None, declarations()[key].default)
        }

    def _applies(self, declared: Declaration) -> bool:
        setting = declared.setting
        if setting.asks and not getattr(self.protocol(), setting.asks):
            return False
        if setting.needs.startswith("attention.items"):
            return bool(
                st.session_state.get(self.key("attention.items")) or self.start_value("attention.items")
            )
        return is_met(setting.needs, self.value)

    def _draw(self, settings: Sequence[tuple[str, Declaration]]) -> None:
        """Draw two short fields beside each other, a long one alone."""
        columns: list[Any] = []
        for key, declared in settings:
            if not self._applies(declared):
                continue
            if declared.setting.file in ("text", "questions") or declared.key in ("systems", "kind"):
                columns, place = [], st.container()
            else:
                columns = columns or list(st.columns(2))
                place = columns.pop(0)
            with place:
                self._field(key, declared)
                field_error(key)

    def _field(self, key: str, declared: Declaration) -> None:
        setting, start = declared.setting, self.start_value(key)
        about = str(descriptions(declared.model)[declared.key])
        common: dict[str, Any] = {"help": about[0].upper() + about[1:], "key": self.key(key)}
        kind = _kind(declared)
        if key == "name":
            st.text_input(setting.title, start or "", disabled=bool(self.choices["draft"]), **common)
        elif _is_upload(declared):
            kept = " (kept unless another is given)" if start else ""
            endings = ENDINGS_OF.get(setting.file or declared.key, ["yaml", "yml", "json"])
            common["accept_multiple_files"] = declared.block == "texts" and declared.key in MANY
            st.file_uploader(f"{setting.title}{kept}", endings, **common)
            if setting.file == "media":
                st.file_uploader(
                    "The files of this list",
                    MEDIA_ENDINGS,
                    accept_multiple_files=True,
                    key=self.key(MEDIA_FILES),
                )
        elif setting.file:
            text = _as_text(start) if setting.file == "questions" else start
            st.text_area(setting.title, text, height=120, **common)
        elif key == "test_set" and not self.study:
            st.text_input(setting.title, start or "", **common)
        elif setting.choices or kind == "literal" or kind == "list":
            self._choice(key, declared, common)
        elif kind == "boolean":
            st.checkbox(setting.title, bool(start), **common)
        elif kind == "amount":
            st.number_input(setting.title, 0.0, 1e6, float(start), step=0.05, **common)
        elif kind == "number":
            schema = _schema(declared)
            of = int if schema["type"] == "integer" else float
            lowest: Any = schema.get("minimum", schema.get("exclusiveMinimum"))
            highest: Any = schema.get("maximum", schema.get("exclusiveMaximum"))
            common |= {"value": None if start is None else of(start), "placeholder": self._unset(key)}
            st.number_input(setting.title, of(lowest), of(min(highest, MAX_EXACT)), **common)
        else:
            st.text_input(setting.title, start, **common)

    def _unset(self, key: str, label: Callable[[Any], str] = "{:g}".format) -> str:
        """Say what an empty field stands for: a value, or what the setting's description says of none."""
        protocol, declared = self.protocol(), declarations()[key]
        usual = {"delta": protocol.usual_delta, "raters.disputed_from": protocol.far_apart()}
        value = (usual | {"sample.kind": protocol.usual_selection}).get(key, declared.default)
        about = str(descriptions(declared.model)[declared.key])
        return about.partition("none: ")[2].partition(";")[0] or "none" if value is None else label(value)

    def _choice(self, key: str, declared: Declaration, common: dict[str, Any]) -> None:
        setting, start, schema = declared.setting, self.start_value(key), _schema(declared)
        entry_schema = schema.get("items", schema)
        options: list[Any] = list(self.choices.get(setting.choices, ()))
        names = dict(setting.options)
        if key == "protocol.kind":
            names = {name: find_protocol(name).summary for name in options}
        if key == "sample.kind":
            options = list(self.protocol().selections)
        elif not setting.choices and "enum" in entry_schema:
            options = list(entry_schema["enum"])
        elif not setting.choices and entry_schema["type"] == "string":
            options, common["accept_new_options"] = list(start or ()), True  # names of the organiser's own
        elif not setting.choices:
            options = [1, 2, 3, 4]

        def label(option: Any) -> str:
            return names.get(option, str(option))

        if _kind(declared) == "list":
            chosen = [entry for entry in start or () if entry in options]
            if key == "systems" and not chosen and len(options) <= USUAL:
                chosen = options
            common |= {"max_selections": schema.get("maxItems"), "placeholder": "none"}
            st.multiselect(setting.title, options, chosen, format_func=label, **common)
            return
        index = 0 if declared.field.is_required() or declared.default is not None else None
        index = options.index(start) if start in options else index
        common |= {"placeholder": self._unset(key, label) if options else "none", "disabled": not options}
        st.selectbox(setting.title, options, index, format_func=label, **common)


def _schema(declared: Declaration) -> dict[str, Any]:
    """Return the JSON Schema of a setting's value, without the alternative None."""
    schema: dict[str, Any] = declared.model.model_json_schema()["properties"][declared.key]
    choices = [choice for choice in schema.get("anyOf", [schema]) if choice != {"type": "null"}]
    return choices[0] if len(choices) == 1 else {"type": "amount"}


def _kind(declared: Declaration) -> str:
    """Return the kind of widget: literal, list, boolean, amount, number or text."""
    schema = _schema(declared)
    kinds = {"array": "list", "integer": "number"} | {same: same for same in ("boolean", "number", "amount")}
    return "literal" if "enum" in schema else kinds.get(schema.get("type", ""), "text")


def _is_upload(declared: Declaration) -> bool:
    if declared.block == "texts":
        return declared.key != "languages"
    return declared.setting.file not in ("", "text", "questions")


def _as_text(questions: Any) -> str:
    """Return questions as the text area has them: one per line."""
    if not isinstance(questions, list):
        return str(questions)
    return write_questions([Question.model_validate(question) for question in questions])
