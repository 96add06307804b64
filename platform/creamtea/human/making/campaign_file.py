"""A campaign as a file (campaign.yaml): read with a place for every mistake, and written again.

A value may be the name of another file, relative to the campaign file's folder: texts, practice items,
attention checks, questions, a taxonomy. Its content replaces the name before anything is checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from textwrap import fill, indent
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from creamtea.access import audit
from creamtea.document.document import YamlDocument, apply_override, read_document
from creamtea.document.mistakes import (
    REQUIRED,
    UNKNOWN,
    KeyPath,
    Mistake,
    StudyErrors,
    mistakes_of_pydantic,
    one_of,
    shown,
)
from creamtea.document.values import descriptions
from creamtea.errors import InputError, about, wrong
from creamtea.files import read_storable
from creamtea.human.making.campaigns import CampaignRequest, mistakes_of, plan_campaign, store_draft
from creamtea.human.making.item_files import files_by_target
from creamtea.human.making.known_answers import read_attention, read_tutorial
from creamtea.human.making.proposals import FIELD, check_systems, proposals_of_metric, read_proposals
from creamtea.human.making.questions import read_questions, write_questions
from creamtea.human.making.settings import (
    USUAL_PROTOCOL,
    CampaignDocument,
    CampaignSettings,
    Declaration,
    declarations,
)
from creamtea.human.making.texts import Documents, read_documents, read_texts
from creamtea.human.media import FileStore, read_media
from creamtea.human.protocols import find_protocol, protocol_names
from creamtea.human.protocols.taxonomy import read_taxonomy
from creamtea.store.database import Database
from creamtea.wording import file_name, key_name

T = TypeVar("T")
MAX_BYTES = 5_000_000  # of a text
TEXT_FILE = re.compile(r"[^\n]*\.(md|txt)")
BLOCKS = {declared.block for declared in declarations().values()}
KEYS = "name, study, test_set, systems, …"
OF_STUDY = ("study", "test_set", "systems")
TEST_SET = "test"  # the default name of a test set from files


def _read_text(path: Path) -> str:
    if not path.exists():
        raise InputError(f"{file_name(path)}: no such file (a line that ends in .md or .txt names one)")
    return read_storable(path, file_name(path), MAX_BYTES)


# by kind of file, the function that reads the content that replaces the file's name
READERS: dict[str, Callable[[Path], Any]] = {
    "text": _read_text,
    "questions": _read_text,
    "taxonomy": read_taxonomy,
    "practice": read_tutorial,
    "attention": read_attention,
}


@dataclass(frozen=True)
class Folder:
    """The folder of the files that a campaign names."""

    path: Path
    uploads: Collection[str] | None = None  # the only files that may be named; None: any

    def file(self, name: str) -> Path:
        if self.uploads is not None and name not in self.uploads:
            raise InputError(f"the file {name} is not here: upload it, too")
        return self.path / name


@dataclass(frozen=True)
class LoadedCampaign:
    campaign: CampaignDocument
    document: YamlDocument
    folder: Folder
    direction: str = ""  # of a programme

    @contextmanager
    def naming_places(self) -> Iterator[None]:
        """Begin an InputError's message with the direction and the place of the key that it is about."""
        try:
            yield
        except InputError as error:
            place = f"direction {self.direction}: " if self.direction else ""
            if error.about and self.document.name:
                place += f"{self.document.place(tuple(error.about.split('.'))).text}: "
                if error.about not in str(error):
                    place += f"{error.about}: "
            if not place:
                raise
            raise InputError(f"{place}{error}", error.about) from None

    def check(self) -> list[str]:
        """Return the systems that take part.

        InputError for everything that creating the campaign would refuse, except what depends on a study's
        results.
        """
        asked = self.campaign
        with self.naming_places():
            if asked.study:
                documents = self._read("documents", asked.documents, _read_documents)
                proposals = self._read("protocol.proposals", asked.protocol.proposals, read_proposals)
                with about("protocol.proposals"):
                    check_systems(proposals or (), asked.systems)
                media = self._read("media", asked.media, partial(read_media, store=None))
                segments = None if documents is None else len(documents.names)
                names = () if documents is None else documents.lines
                with about("media"):
                    files_by_target(media or (), names, segments, asked.settings(), asked.systems)
                return asked.systems
            request = self.request(None, None)
            plan_campaign(None, self.campaign.name, request)
        return list(request.systems)

    def request(self, database: Database | None, store: FileStore | None) -> CampaignRequest:
        """Read all files and return the contents of the new campaign.

        A campaign without a study needs no database. Without a store, media files are only checked.
        InputError for a file that cannot be read or does not fit.
        """
        asked, finder = self.campaign, self.campaign.protocol.proposals_from
        if finder is not None and not asked.study:
            raise wrong(FIELD, "a study's metric finds them, and texts have none")
        documents, texts = self._read("documents", asked.documents, _read_documents), None
        media = self._read("media", asked.media, partial(read_media, store=store))
        if not asked.study:
            filed = {file.output for file in media or ()}
            texts = read_texts(asked.texts, self.folder.path, asked.systems, documents, filed)
            documents = texts.documents
        if finder is not None and asked.protocol.proposals is not None:
            both = f"{key_name(FIELD)} and {key_name('protocol.proposals')}"
            raise InputError(f"{both}: give one of the two", about=FIELD)
        proposals = self._read("protocol.proposals", asked.protocol.proposals, read_proposals)
        proposed_by = None
        if finder is not None:
            assert database is not None
            assert store is not None
            with database.session() as session:
                proposals, proposed_by = proposals_of_metric(
                    session, store.read, asked.study, asked.test_set, asked.systems, finder
                )
        return CampaignRequest(
            study=asked.study,
            test_set=asked.test_set or TEST_SET,
            systems=asked.systems if texts is None else list(texts.outputs),
            protocol=asked.protocol.kind,
            settings=asked.settings().model_copy(update={"proposed_by": proposed_by}),
            ratings_per_item=asked.raters.ratings_per_item,
            seed=asked.seed,
            instructions=asked.raters.instructions,
            documents=documents,
            proposals=proposals,
            media=media,
            texts=texts,
        )

    def _read(self, key: str, name: str | None, read: Callable[[Path], T]) -> T | None:
        """Read the file that a key names; None if the key has no value."""
        if name is None:
            return None
        with about(key):
            return read(self.folder.file(name))


def create_campaigns(
    database: Database,
    loaded: Sequence[LoadedCampaign],
    store: FileStore,
    *,
    replace: bool = False,
    actor: str = audit.COMMAND_LINE,
    programme: str | None = None,
) -> dict[str, CampaignRequest]:
    """Make all drafts or none; return their contents by name. InputError as in `store_draft`."""
    requests = {}
    for each in loaded:
        with each.naming_places():
            requests[each.campaign.name] = each.request(database, store)
    with database.transaction() as session:
        for each in loaded:
            name = each.campaign.name
            with each.naming_places():
                store_draft(session, name, requests[name], replace=replace, actor=actor, programme=programme)
    return requests


def _read_documents(path: Path) -> Documents:
    return read_documents(read_storable(path, file_name(path), MAX_BYTES), file_name(path))


def load_campaign(path: Path, overrides: Sequence[str] = ()) -> LoadedCampaign:
    """Read a campaign file, apply the overrides (`key=value` each) and check it.

    StudyErrors with every mistake; InputError if the file cannot be read at all.
    """
    document = read_document(path, KEYS, kind="a campaign (.yaml)")
    return check_campaign(document, Folder(path.parent), overrides)


def check_campaign(
    document: YamlDocument, folder: Folder, overrides: Sequence[str] = (), later: Collection[str] = ()
) -> LoadedCampaign:
    """Apply overrides to a document and check it, as `load_campaign` does.

    `later`: keys that get their values later, so other settings may need them.
    """
    for order, text in enumerate(overrides):
        apply_override(document, text, order)
    for block in [name for name, value in document.data.items() if value is None and name in BLOCKS]:
        del document.data[block]  # a block whose keys are all comments
    mistakes = [*document.mistakes, *_mistakes_in_texts(document.data, folder)]
    lines: list[str] = []  # mistakes in files that the document names
    unread = _read_named(document.data, folder, mistakes, lines)
    campaign = None
    try:
        campaign = CampaignDocument.model_validate(document.data)
    except ValidationError as error:
        for mistake in mistakes_of_pydantic(error.errors(), CampaignDocument, document.data):
            if mistake.path == ("directions",):
                mistake = replace(mistake, allowed="no directions: `creamtea programme` reads such a file")
            elsewhere = [key for key, declared in declarations().items() if declared.key == mistake.path[-1]]
            if mistake.found == UNKNOWN and len(mistake.path) < 3 and elsewhere:
                mistake = replace(mistake, allowed=" or ".join(elsewhere))
            if key_of(mistake.path) not in unread:
                mistakes.append(mistake)
    rating = document.data.get("protocol")
    kind = rating.get("kind", USUAL_PROTOCOL) if isinstance(rating, dict) else USUAL_PROTOCOL
    known = kind in protocol_names()
    if isinstance(kind, str) and not known:
        allowed = one_of(protocol_names(rated_here=True), kind)
        mistakes.append(Mistake(("protocol", "kind"), shown(kind), allowed))
    if campaign is not None:
        if known:
            protocol = find_protocol(kind)
            settings, systems = campaign.settings(), campaign.systems
            misfits = [*mistakes_of(campaign.name, protocol, systems)]
            if systems:
                misfits += settings.conflicts(protocol, systems)
            else:  # all of the texts' systems take part, or the key is missing
                misfits = [misfit for misfit in misfits if misfit[0] != "systems"]
                misfits += settings.misfits(protocol)
            mistakes += (
                Mistake(tuple(name.split(".")), "", message)
                for name, message in misfits
                if declarations()[name].setting.needs not in later
            )
        try:  # questions given as a list must be valid as text, too
            text = write_questions(campaign.raters.questions)
            if read_questions(text) != campaign.raters.questions:
                raise InputError("a bar, a line end, or an answer `number` or `optional` cannot be in one")
        except InputError as error:
            message = str(error).replace(f"{key_name('raters.questions')}: line", "question")
            mistakes.append(Mistake(("raters", "questions"), "", message))
    if campaign is None or mistakes or lines:
        mistakes.sort(key=lambda mistake: mistake.place or document.place(mistake.path))
        keyed = [(key_of(mistake.path), _line(mistake, document)) for mistake in mistakes]
        by_key = dict.fromkeys(unread, "\n".join(lines)) | dict(reversed(keyed))
        lines = [*(line for _, line in keyed), *lines]
        raise StudyErrors(lines, document.name or "the form", by_key)
    return LoadedCampaign(campaign, document, folder)


def _mistakes_in_texts(data: Mapping[str, Any], folder: Folder) -> Iterator[Mistake]:
    """Yield mistakes unless the campaign rates either the outputs of a study or the outputs in files."""
    if "texts" not in data and not {*OF_STUDY} & {*data}:
        yield Mistake(("study",), "", f"{REQUIRED}: a study, or files under `texts`, whose outputs are rated")
    elif "texts" not in data:
        yield from (Mistake((key,), "", REQUIRED) for key in OF_STUDY if key not in data)
    elif "study" in data:
        yield Mistake(("texts",), "", "the outputs are those of the study: leave out one of study and texts")
    elif folder.uploads is not None and isinstance(texts := data["texts"], dict):
        if "folder" in texts:
            yield Mistake(("texts", "folder"), "", "upload its files one by one")
        named = [texts.get("sources"), texts.get("outputs"), *(texts.get("references") or ())]
        for name in named:
            if name is not None and name not in folder.uploads:
                yield Mistake(("texts",), shown(name), "a file that is uploaded, too")


def _line(mistake: Mistake, document: YamlDocument) -> str:
    """Return a mistake with its place in the file, or with the title of its field on a page."""
    if document.name:
        return mistake.line(document.place(mistake.path))
    return f"{key_name(key_of(mistake.path))}: {replace(mistake, path=()).line()}"


def key_of(path: KeyPath) -> str:
    """Return the key of the setting at a path or around it; "" if there is none."""
    keys = (".".join(map(str, path[:length])) for length in (2, 1))
    return next((key for key in keys if key in declarations()), "")


def _read_named(
    data: dict[str, Any], folder: Folder, mistakes: list[Mistake], lines: list[str]
) -> dict[str, None]:
    """Replace names of files by the files' content; return the keys whose files could not be read."""
    unread: dict[str, None] = {}
    for key, declared in declarations().items():
        block = data.get(declared.block) if declared.block else data
        value, kind = block.get(declared.key) if isinstance(block, dict) else None, declared.setting.file
        if not isinstance(block, dict):
            continue
        if isinstance(value, dict) and declared.name == "domain_instructions":
            for name, text in value.items():
                if isinstance(text, str) and TEXT_FILE.fullmatch(text):
                    try:
                        value[name] = _read_text(folder.file(text))
                    except InputError as error:
                        on_page = f"write the content of {text} there: pages take no file for it"
                        reason = str(error) if folder.uploads is None else on_page
                        mistakes.append(Mistake((*key.split("."), name), "", reason))
        if not isinstance(value, str) or not kind:
            continue
        try:
            if kind not in READERS:  # the file is read when the campaign is made
                folder.file(value)
            elif names_file(declared, value):
                value = READERS[kind](folder.file(value))
            block[declared.key] = _plain(read_questions(value) if kind == "questions" else value)
        except StudyErrors as error:
            lines += error.lines
            unread[key] = None
        except InputError as error:
            mistakes.append(Mistake(tuple(key.split(".")), "", str(error).removeprefix(f"{key_name(key)}: ")))
            unread[key] = None
    return unread


def names_file(declared: Declaration, value: Any) -> bool:
    """Return True if a setting's value is the name of a file with its content."""
    kind = declared.setting.file
    is_text = kind in ("text", "questions")
    return bool(kind) and isinstance(value, str) and (not is_text or bool(TEXT_FILE.fullmatch(value)))


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_defaults=True)
    return [_plain(part) for part in value] if isinstance(value, list) else value


# ---------------------------------------------------------------- writing


def document_of(name: str, request: CampaignRequest) -> dict[str, Any]:
    """Return a campaign's document: the settings that differ from the defaults.

    Texts, documents, media files and errors marked beforehand are left out: the names of their files
    are unknown.
    """
    settings = request.settings
    own = {
        **{"name": name, "kind": request.protocol},
        "proposals_from": settings.proposed_by and settings.proposed_by.metric,
    }
    document: dict[str, Any] = {}
    for declared in declarations().values():
        if declared.name in own:
            value = own[declared.name]
        elif declared.name in CampaignSettings.model_fields:
            value = getattr(settings, declared.name)
        elif (
            declared.block == "texts"
            or not declared.setting.on_page
            or declared.setting.file in ("documents", "media", "proposals")
        ):
            continue
        else:
            value = getattr(request, declared.name)
        if declared.field.is_required() or value != declared.default:
            block = document.setdefault(declared.block, {}) if declared.block else document
            block[declared.key] = _plain(list(value) if isinstance(value, tuple) else value)
    return document


def as_yaml(document: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=100)


def commented(
    values: Mapping[str, Any],
    head: str = "A campaign of creamtea: `creamtea campaign create FILE` makes a draft of it.",
) -> str:
    """Write a campaign file with these values by key, and with the meaning of every key.

    Keys without a value are comments with their defaults.
    """
    lines = [f"# {head}", ""]
    block = ""
    for key, declared in declarations().items():
        if declared.block != block:
            block = declared.block
            lines += ["", f"{block}: # {descriptions(CampaignDocument)[block].text}"]
        meaning = descriptions(declared.model)[declared.key]
        text = [f"# {line}" for line in fill(str(meaning), 96).splitlines()]
        given = key in values
        value = values[key] if given else declared.default
        written = json.dumps(_plain(value), ensure_ascii=False) if value not in (None, "", []) else ""
        text.append(f"{declared.key}: {written}" if given else f"# {declared.key}: {written}".rstrip())
        lines.append(indent("\n".join(text), "  " if block else ""))
    return "\n".join(lines) + "\n"
