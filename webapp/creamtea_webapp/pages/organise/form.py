"""The form of a campaign, drawn from the declarations of its settings (`creamtea.human.making.settings`).

A setting has the widget of its type, the title and the help of its declaration, and stands there only while
what it needs is so. The values are read from the session at the click (`form_document`), not from the last
drawing: a field that is left by pressing the button changes in the same message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_origin

import streamlit as st

from creamtea.document.values import descriptions
from creamtea.human.making.questions import Question, write_questions
from creamtea.human.making.settings import CampaignDocument, Declaration, declarations, is_met
from creamtea.human.media import CAPTIONS_ENDING, ENDINGS
from creamtea.human.protocols import Protocol, find_protocol
from creamtea_webapp.pages.organise.shared import field_error

GENERATION = "campaign-generation"  # how many files have been put into the form
MEDIA_FILES = "media_files"  # beside the list `media`
USUAL = 4  # systems side by side
MAX_EXACT = 2**53 - 1  # whole numbers above are not exact in a browser
OF_STUDY = ("test_sets", "systems", "metrics", "finders")  # choices that another study changes
ENDINGS_OF = {"documents": ["txt", "docs", "tsv"], "media": ["jsonl", "json"], "proposals": ["jsonl", "json"]}
MEDIA_ENDINGS = [end[1:] for ends in (*ENDINGS.values(), (CAPTIONS_ENDING,)) for end in ends]


class Form:
    """`start`: the document that the fields begin with; `choices`: the names that a field offers, by
    `Setting.choices`."""

    def __init__(self, start: Mapping[str, Any], choices: Mapping[str, Sequence[str]], study: str) -> None:
        self.start, self.choices, self.study = start, choices, study

    def draw(self) -> None:
        """Draw all fields but the study, block by block, with the rare ones folded."""
        blocks: dict[str, list[tuple[str, Declaration]]] = {}
        for key, declared in declarations().items():
            if key != "study" and declared.setting.on_page:
                blocks.setdefault(declared.block, []).append((key, declared))
        for block, settings in blocks.items():
            if block:
                st.header(CampaignDocument.model_fields[block].title or block, anchor=False)
            self._draw([entry for entry in settings if not entry[1].setting.rare])
            rare = [entry for entry in settings if entry[1].setting.rare and self._applies(entry[1])]
            if rare:
                with st.expander("More settings", expanded=any(key in self._given() for key, _ in rare)):
                    self._draw(rare)

    def protocol(self) -> Protocol:
        return find_protocol(self.value("protocol.kind"))

    def value(self, key: str) -> Any:
        """What a field says now, or begins with."""
        return st.session_state.get(self.key(key), self.start_value(key))

    def start_value(self, key: str) -> Any:
        declared = declarations()[key]
        block = self.start.get(declared.block, {}) if declared.block else self.start
        if declared.key in block:
            return block[declared.key]
        return None if declared.field.is_required() else declared.default

    def key(self, key: str) -> str:
        """The key of a field's widget, with the value of the field that its choices depend on."""
        setting = declarations()[key].setting if key in declarations() else None
        of = self.study if setting and setting.choices in OF_STUDY else ""
        if key == "sample.kind":
            of = self.value("protocol.kind")
        generation = st.session_state.get(GENERATION, 0)
        return "-".join(filter(None, ("campaign", key, of, str(generation or ""))))

    def document(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the form says as a document, and the uploaded files by their keys."""
        document: dict[str, Any] = {}
        files: dict[str, Any] = {}
        for key, declared in declarations().items():
            file = declared.setting.file
            if not self._applies(declared):
                continue
            value = self.value(key) if declared.setting.on_page else self.start_value(key)
            if _is_upload(declared):
                if (upload := st.session_state.get(self.key(key))) is not None:
                    files[key], value = upload, upload.name
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

    def _given(self) -> set[str]:
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
        """Two short fields beside each other, a long one alone."""
        columns: list[Any] = []
        for key, declared in settings:
            if not self._applies(declared):
                continue
            if _is_long(declared):
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
            endings = ENDINGS_OF.get(setting.file, ["yaml", "yml", "json"])
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
        elif setting.choices or kind == "literal" or kind == "list":
            self._choice(key, declared, common)
        elif kind == "boolean":
            st.checkbox(setting.title, bool(start), **common)
        elif kind == "amount":
            st.number_input(setting.title, 0.0, 1e6, float(start), step=0.05, **common)
        elif kind == "number":
            schema = _schema(declared)
            whole = schema["type"] == "integer"
            lowest = schema["minimum"] if "minimum" in schema else schema["exclusiveMinimum"]
            highest = schema["maximum"] if "maximum" in schema else schema["exclusiveMaximum"]
            highest = min(highest, MAX_EXACT)
            st.number_input(
                setting.title,
                int(lowest) if whole else float(lowest),
                int(highest) if whole else float(highest),
                start if start is None or whole else float(start),
                placeholder="the default",
                **common,
            )
        else:
            st.text_input(setting.title, start, **common)

    def _choice(self, key: str, declared: Declaration, common: dict[str, Any]) -> None:
        setting, start = declared.setting, self.start_value(key)
        options: list[Any] = list(self.choices.get(setting.choices, ()))
        names = dict(setting.options)
        if key == "protocol.kind":
            names = {name: find_protocol(name).summary for name in options}
        if key == "sample.kind":
            options = list(self.protocol().selections)
        elif _kind(declared) == "literal":
            options = list(_literals(declared.field.annotation))
        elif not setting.choices:
            options = list(_literals(declared.field.annotation)) or [1, 2, 3, 4]

        def label(option: Any) -> str:
            return names.get(option, str(option))

        if _kind(declared) == "list":
            chosen = [entry for entry in start or () if entry in options]
            if key == "systems" and not chosen and len(options) <= USUAL:
                chosen = options
            most = _schema(declared).get("maxItems")
            st.multiselect(
                setting.title,
                options,
                chosen,
                format_func=label,
                max_selections=most,
                placeholder="none",
                **common,
            )
            return
        index = (
            options.index(start)
            if start in options
            else None
            if not declared.field.is_required() and declared.default is None
            else 0
        )
        st.selectbox(
            setting.title,
            options,
            index,
            format_func=label,
            placeholder="the default" if options else "none",
            disabled=not options,
            **common,
        )


def _schema(declared: Declaration) -> dict[str, Any]:
    """The JSON Schema of a setting's value, without what None adds."""
    schema: dict[str, Any] = declared.model.model_json_schema()["properties"][declared.key]
    choices = [choice for choice in schema.get("anyOf", [schema]) if choice != {"type": "null"}]
    return choices[0] if len(choices) == 1 else {"type": "amount"}


def _kind(declared: Declaration) -> str:
    """The kind of widget: literal, list, boolean, amount, number or text."""
    schema = _schema(declared)
    kinds = {
        "array": "list",
        "boolean": "boolean",
        "integer": "number",
        "number": "number",
        "amount": "amount",
    }
    return "literal" if "enum" in schema else kinds.get(schema.get("type", ""), "text")


def _literals(annotation: Any) -> Sequence[str]:
    if get_origin(annotation) is not None and not all(isinstance(part, str) for part in get_args(annotation)):
        return next((found for part in get_args(annotation) if (found := _literals(part))), ())
    return get_args(annotation)


def _is_upload(declared: Declaration) -> bool:
    return declared.setting.file not in ("", "text", "questions")


def _is_long(declared: Declaration) -> bool:
    return declared.setting.file in ("text", "questions") or declared.key in ("systems", "kind")


def _as_text(questions: Any) -> str:
    """Questions as the text area has them: one per line."""
    if not isinstance(questions, list):
        return str(questions)
    return write_questions([Question.model_validate(question) for question in questions])
