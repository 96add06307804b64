"""Campaigns and answers of Pearmut (github.com/zouharvi/pearmut: README.md, examples/).

A campaign is one JSON object: `info` with the protocol, and `data`, documents by user (task-based) or one
list of documents for all; a document is a list of items, `{"src", "ref", "tgt": {system: text}, "item_id"}`.
Answers are JSON Lines, one line per submitted document:

    {"annotation": [{system: {"score", "error_spans", "textfield"}}], "actions": [{"time", "action", "index",
     "model", …}], "item": [the document], "user_id", "item_i", "comment"}

`annotation` has an entry for each segment, null for a segment without an answer. A document that is submitted
again has a further line: the last one counts. "__RESET__" as annotation takes back the user's earlier lines
(before version 1.1.6, only the lines of the document `item_i`). `item_i` is a number, or `welcome_0`,
`random_0`, `goodbye_0` in `data_welcome` and so on.

Errors are at `start_i` to `end_i`, the last included, in UTF-16 code units (`CodeUnits`). The campaign's
special tokens come after the text, each with one place: an omission is at `[missing]`, other tokens are
special marks. Version 1.1.4 and earlier did not count line feeds, and answers do not name their version: the
affected places are counted. Errors that are marked before annotators begin are `error_spans` of the item.

`validation` by system makes an item practice (in `data_welcome`, or `skippable`) or a check: a range for the
`score`, `error_spans` that must be marked (with ranges for their places), `score_greaterthan` another
system's; with a `warning` the check is loud.

An export leaves out repeats and bad references, which Pearmut would show as outputs of systems. Outputs of
practice and checks belong to no system, so the campaign's first systems name them. Data that creamtea cannot
hold are counted by name: no key is lost silently.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from creamtea.document.values import parse_json
from creamtea.error_spans import CodeUnits, name_key
from creamtea.errors import InputError, wrong_option
from creamtea.files import lines_of, write_texts
from creamtea.human.formats.base import (
    PEARMUT,
    Format,
    ImportFacts,
    NothingToExport,
    NotKept,
    Read,
    Written,
    cannot_hold,
    counts,
    first_line,
)
from creamtea.human.formats.columns import Place, moment_of, read_text
from creamtea.human.formats.losses import GIVEN, RATED, WORKING, category_of, not_held, written_category
from creamtea.human.formats.pearmut_media import TAGS, Assets, Entries, assets, assets_of, with_tags
from creamtea.human.formats.rating_rows import GivenRating, check_protocol, checked_items, made_elsewhere
from creamtea.human.making.known_answers import NO_SEGMENT
from creamtea.human.making.settings import settings_of
from creamtea.human.protocols import Protocol, find_protocol
from creamtea.human.protocols.scores import DaSqm
from creamtea.human.protocols.spans import ExpectedSpan, MarksErrors, Mqm, Span, spans_of
from creamtea.human.protocols.taxonomy import MISSING
from creamtea.human.record import AnswerContent, Content, ItemContent, files_of, of_systems
from creamtea.store.rows import check_text
from creamtea.store.tables import (
    CONTROL_KINDS,
    SYSTEM_KINDS,
    ItemKind,
    KnownAnswer,
    Payload,
    StoredSpan,
    shown_of,
)
from creamtea.wording import counted, option

PROTOCOLS = {"DA": "da", "ESA": "esa", "cESA": "cesa", "MQM": "mqm"}  # Pearmut's name → creamtea's
NAMES = {**{ours: theirs for theirs, ours in PROTOCOLS.items()}, DaSqm.name: "DA"}
RESET = "__RESET__"
LONGEST_PAUSE = 60.0  # seconds between two actions that count as work, as Pearmut counts them
CAMPAIGN, ANSWERS = "campaign.json", "annotations.jsonl"  # the files of an export
HTML = '" < and &'
NOBODY = "open"  # the user for documents that nobody rated


class Pearmut(Format):
    name = PEARMUT
    title = "answers given in Pearmut (annotations.json), or an export's zip"
    expected = "an object for each submitted document, with annotation; or an export's folder"
    options = ("campaign_file",)
    has_media = True

    def recognises(self, path: Path, text: str) -> bool:
        """Recognise answers with a line each, or in one object of many lines."""
        if path.is_dir():
            return (path / ANSWERS).is_file()
        for written in (first_line(text), text):
            try:
                record: Any = json.loads(written)
            except (ValueError, RecursionError):
                continue
            if not isinstance(record, dict):
                return False
            if "annotation" in record or {"info", "data"} <= record.keys():
                return True
            return bool(record) and all(isinstance(part, list) for part in record.values())
        return False

    def read(self, path: Path, facts: ImportFacts, now: datetime) -> Read:
        """Return the campaign in the answers, with its files, and the losses.

        An export's folder has the answers and the campaign's file; for other answers, `facts.campaign_file`
        gives the protocol, files and items without an answer. A document that is submitted again is a further
        revision. InputError with file, line and what was found.
        """
        file = path / ANSWERS if path.is_dir() else path
        entries = _entries(file)
        beside = facts.campaign_file or (path / CAMPAIGN if path.is_dir() else None)
        campaign, files = None, Assets()
        documents: Iterable[_GivenDocument] = ()
        if beside is not None:
            place = Place(beside.name, 1)
            campaign = place.read(Campaign, parse_json(read_text(beside), str(place)), "campaign")
            documents = _of_campaign(campaign, place)
            if campaign.info.assets is not None:
                files = assets_of(beside, campaign.info.assets.source, campaign.info.assets.destination)
        protocol = _protocol(facts, campaign)
        tokens = None if campaign is None else campaign.info.special_tokens
        read = _Import(protocol, now, files, (OMITTED,) if tokens is None else tokens)
        for document in [*documents, *_of_answers(entries, campaign, read.left)]:
            read.add(document)
        if tokens is None:
            read.left["places behind line feeds, read as Pearmut counts them from version 1.1.5 on"] += (
                read.behind_line_feeds
            )
        if campaign is None:
            seen = read.evidence
            check_protocol(protocol, file.name, seen["scores"], seen["errors"], seen["categories"])
        unread = () if campaign is None else _unread_settings(campaign, protocol, read)
        systems, items, ratings = read.campaign()
        not_kept = (*counts(read.left), *unread)
        if not ratings:
            found = "; ".join(map(str, not_kept)) or "nothing"
            raise InputError(f"{file.name}: no ratings of systems in it; found {found}")
        checked = checked_items(items, systems)
        made = made_elsewhere(facts, protocol.name, facts.pair, systems, checked, ratings)
        return replace(made, files=files.files), not_kept

    def write(self, content: Content, path: Path) -> Written:
        """Write campaign.json, for `pearmut add`, and annotations.jsonl into the folder.

        InputError for a protocol that Pearmut does not have, for names of systems that its page takes for
        numbers or HTML, and for texts that it would run as HTML.
        """
        _check(content)
        not_kept = not_held(content, PEARMUT)
        content = replace(content, items=tuple(map(_as_shown, content.items)))
        info = {**_protocol_info(content), **assets(content)}
        answered = _answered(content)
        tasks = _tasks(content, answered)
        if not tasks:
            raise NothingToExport(f"campaign {content.name!r} has no items that rate systems")
        practice = [(item,) for item in _of_kind(content, ItemKind.TUTORIAL)]
        campaign: dict[str, Any] = {
            "info": {"assignment": "task-based", "users": list(tasks), **info},
            "campaign_id": content.name.replace("/", "_"),  # the name of its files there
            "data": [
                [[_item(item, info) for item in document] for document in task] for task in tasks.values()
            ],
        }
        if practice:
            campaign["data_welcome"] = [[_item(item, info)] for (item,) in practice]
        lines = [
            line
            for user, task in tasks.items()
            for name, documents in (("welcome_", practice), ("", task))
            for number, document in enumerate(documents)
            for line in _lines(user, f"{name}{number}" if name else number, document, answered, info)
        ]
        texts = {
            CAMPAIGN: json.dumps(campaign, ensure_ascii=False, indent=1) + "\n",
            ANSWERS: "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines),
        }
        lost = _moments_lost(content, {user: [*practice, *task] for user, task in tasks.items()}, answered)
        not_kept = tuple(
            replace(part, count=lost[part.what]) if part.what in (WORKING, GIVEN, RATED) else part
            for part in not_kept
        )
        return write_texts(path, texts), tuple(part for part in not_kept if part.count)


# ---------------------------------------------------------------- what the files are made of


def _not_blank(name: str) -> str:
    if not name.strip():
        raise ValueError("a name is blank")
    return check_text(name)


Text = Annotated[str, AfterValidator(check_text)]
Name = Annotated[str, AfterValidator(_not_blank)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
# whole numbers become int; a scale of steps refuses other numbers with their place
Score = Annotated[Finite, AfterValidator(lambda score: int(score) if score.is_integer() else score)]
Pair = Annotated[list[int], Field(min_length=2, max_length=2)]
# version 0 has lists here; an empty list means nothing
NO_LIST = BeforeValidator(lambda value: {} if value in (None, []) else value)
# an example in Pearmut's README has a list of one rule
OF_LIST = BeforeValidator(lambda rule: rule[0] if isinstance(rule, list) and len(rule) == 1 else rule)


class _Loose(BaseModel):
    """A model that keeps unknown keys for `_unread_keys` and refuses values of other types."""

    model_config = ConfigDict(extra="allow", strict=True)


class PearmutSpan(_Loose):
    start_i: int
    end_i: int
    severity: str | None = None
    category: Text | None = None


class PearmutExpected(_Loose):
    """An error that must be marked; a place is a number, or the lowest and the highest number."""

    start_i: int | Pair | None = None
    end_i: int | Pair | None = None
    severity: str | None = None


class Validation(_Loose):
    warning: Text | None = None
    score: Annotated[list[Finite], Field(min_length=2, max_length=2)] | None = None
    error_spans: list[PearmutExpected] | None = None
    score_greaterthan: str | None = None
    allow_skip: bool = False  # for practice, an earlier form of the item's `skippable`


class PearmutItem(_Loose):
    src: Text = ""
    ref: Text | None = None
    tgt: Annotated[dict[Name, Text], Field(min_length=1)]
    item_id: str | int | None = None
    error_spans: Annotated[dict[str, list[PearmutSpan]], NO_LIST] = {}
    validation: Annotated[dict[str, Annotated[Validation, OF_LIST]], NO_LIST] = {}
    skippable: bool = False

    def kind(self, part: str) -> ItemKind:
        skippable = self.skippable or any(rule.allow_skip for rule in self.validation.values())
        if part == "welcome" or skippable:
            return ItemKind.TUTORIAL
        return ItemKind.ATTENTION if self.validation or part else ItemKind.RATED


class Response(_Loose):
    score: Score | None = None
    error_spans: list[PearmutSpan] = []
    textfield: Text | None = None
    sliders: dict[str, Any] | None = None


class Action(_Loose):
    time: Finite  # seconds since 1970
    action: str = ""
    index: int | None = None
    model: str | None = None


class Line(_Loose):
    user_id: Name
    item_i: int | str | None = None  # None for a reset
    annotation: list[Any] | str
    actions: list[Action] = []
    item: list[dict[str, Any]] | None = None
    comment: str = ""

    @property
    def part(self) -> str:
        return self.item_i.split("_")[0] if isinstance(self.item_i, str) else ""


class AssetsInfo(_Loose):
    source: str  # a folder
    destination: str  # where the server shows it


class Info(_Loose):
    protocol: str = "ESA"
    assets: AssetsInfo | None = None
    special_tokens: list[Name] | None = None  # written by version 1.1.5 and later
    users: int | list[Any] | None = None


class Campaign(_Loose):
    info: Info
    data: dict[str, list[list[dict[str, Any]]]] | list[Any]
    data_welcome: list[list[dict[str, Any]]] = []
    data_goodbye: list[list[dict[str, Any]]] = []
    data_random: list[list[dict[str, Any]]] = []

    @property
    def parts(self) -> dict[str, list[list[dict[str, Any]]]]:
        """Return the documents outside `data`, by their names in `item_i`."""
        return {"welcome": self.data_welcome, "goodbye": self.data_goodbye, "random": self.data_random}


OMITTED = "[missing]"  # the token of an omission; before version 1.1.5 the only one


def token_of(special_mark: str | None) -> str:
    return OMITTED if special_mark is None else f"[{special_mark}]"


def special_mark_of(token: str) -> str | None:
    name = token.strip().removeprefix("[").removesuffix("]").strip()
    return None if name_key(name) == MISSING else name or token


class Units(CodeUnits):
    """Pearmut's places in an output, with the campaign's special tokens after the text."""

    def __init__(self, text: str, tokens: Sequence[str] = (OMITTED,)) -> None:
        super().__init__(text)
        self._tokens = tokens

    def behind(self, unit: int) -> dict[str, str] | None:
        """Return the fields of a span at this special token; None if the unit is not a known token.

        An omission has no fields; a special mark has its name.
        """
        if not 0 <= unit - len(self) < len(self._tokens):
            return None
        name = special_mark_of(self._tokens[unit - len(self)])
        return {} if name is None else {"special_mark": name}

    def characters(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the first and last character of these units.

        None for units after the text (special tokens). ValueError for an invalid place.
        """
        if not 0 <= start <= end:
            raise ValueError(f"an error from {start} to {end}")
        if start >= len(self):
            return None
        return self.character(start), self.character(min(end, len(self) - 1))

    def of_span(self, span: Span) -> tuple[int, int]:
        """Return the first and last unit of a span.

        A special mark is on its token; other spans without a place in the output are on `[missing]`.
        """
        found = None
        if span.start is not None and span.end is not None and not span.in_source:
            found = self.units(span.start, span.end)
        if found is not None:
            return found
        place = len(self) + self._tokens.index(token_of(span.special_mark))
        return place, place


def choices(protocol: MarksErrors) -> dict[str, Any]:
    """Return the choices of raters as keys of `info`: severities and, for MQM, categories with kinds."""
    taxonomy = protocol.taxonomy or protocol.usual_taxonomy
    categories = {category.name: category.kinds for category in taxonomy.categories}
    return {
        "mqm_severities": [level.name.capitalize() for level in taxonomy.severities],
        **({"mqm_categories": categories} if isinstance(protocol, Mqm) else {}),
    }


# ---------------------------------------------------------------- reading: documents


def _protocol(facts: ImportFacts, campaign: Campaign | None) -> Protocol:
    known = (*PROTOCOLS.values(), DaSqm.name)
    if facts.protocol is None and campaign is None:
        raise InputError(
            f"Pearmut's answers do not name the protocol: give the campaign with {option('campaign-file')}, "
            f"or {option('protocol')}, one of {', '.join(known)}",
            about="campaign-file",
        )
    names = {theirs.lower(): ours for theirs, ours in PROTOCOLS.items()}
    told = names.get(campaign.info.protocol.lower()) if campaign else None
    same = (None, told, DaSqm.name if told == "da" else told)  # Pearmut has one name for DA and DA+SQM
    if told is not None and facts.protocol in known and facts.protocol not in same:
        raise wrong_option("protocol", f"the campaign's file contradicts it: it says {told}", facts.protocol)
    name = facts.protocol or told
    if name not in known:
        found = facts.protocol or (campaign.info.protocol[:60] if campaign else "")
        raise InputError(
            f"protocol {found}: answers given in Pearmut are of {', '.join(known)}; give one of these with "
            f"{option('protocol')}",
            about="protocol",
        )
    return facts.find_protocol(name)


@dataclass(frozen=True)
class _GivenDocument:
    """The items of a document of the campaign, or of a `line` of answers.

    `part` is "welcome", "random" or "goodbye" for documents outside `data`, else "".
    """

    place: Place
    part: str
    items: list[Any]
    line: Line | None = None


def _of_campaign(campaign: Campaign, place: Place) -> Iterator[_GivenDocument]:
    """Yield all documents of the campaign, with users and without."""
    data = campaign.data
    for task in data.values() if isinstance(data, dict) else data:
        if not isinstance(task, list):
            allowed = "lists of documents, which are lists of items"
            raise InputError(f"the campaign's data: found {repr(task)[:60]}; allowed: {allowed}")
        if all(isinstance(item, dict) for item in task):
            yield _GivenDocument(place, "", task)  # from a list of documents for all users
        else:
            yield from (
                _GivenDocument(place, "", document) for document in task if isinstance(document, list)
            )
    for part, documents in campaign.parts.items():
        yield from (_GivenDocument(place, part, document) for document in documents)


def _of_answers(
    entries: Iterable[tuple[Place, Any]], campaign: Campaign | None, left: Counter[str]
) -> list[_GivenDocument]:
    """Return the submitted documents, except repeated lines and those that a reset took back."""
    found: list[tuple[Place, Line]] = []
    known: dict[str, list[Any]] = defaultdict(list)  # by user
    for place, written in entries:
        if isinstance(written, dict) and isinstance(written.get("annotation"), dict):
            raise InputError(
                f"{place}: annotation: found an object, as Pearmut wrote before version 1; allowed: a list "
                "with an entry for each segment"
            )
        line = place.read(Line, written, "the line")
        if isinstance(line.annotation, list):
            # without the moments of its actions, an equal line may be another submission
            if line.actions and written in known[line.user_id]:
                left["submitted documents in lines that say all that an earlier line says: kept once"] += 1
                continue
            known[line.user_id].append(written)
            found.append((place, line))
        elif line.annotation == RESET:
            stays = [
                (earlier_place, before)
                for earlier_place, before in found
                if before.user_id != line.user_id or line.item_i not in (None, before.item_i)
            ]
            left["submitted documents before a reset"] += len(found) - len(stays)
            found = stays
            known.pop(line.user_id, None)
        else:
            raise InputError(f"{place}: annotation: found {line.annotation[:60]!r}; allowed: a list")
    return [
        _GivenDocument(place, line.part, _items_of_line(place, line, campaign), line) for place, line in found
    ]


def _entries(path: Path) -> list[tuple[Place, Any]]:
    """Return each line, or each entry of a download from the dashboard.

    A download is one object with a list for each campaign. InputError for a campaign's file.
    """
    text = read_text(path)
    place = Place(path.name, 1)
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):  # several lines, or not JSON
        whole = None
    if not isinstance(whole, dict) or "annotation" in whole:
        places = ((Place(path.name, at), line) for at, line in enumerate(lines_of(text, path.name), start=1))
        return [(place, parse_json(line, str(place))) for place, line in places if line.strip()]
    if "info" in whole and "data" in whole:
        raise InputError(
            f"{place}: a campaign of Pearmut, without answers: give them (data/annotations/NAME.jsonl, or a "
            f"download from the dashboard), and this file with {option('campaign-file')}",
            about="campaign-file",
        )
    if len(whole) != 1 or not isinstance(next(iter(whole.values())), list):
        raise InputError(
            f"{place}: found {', '.join(map(repr, whole))[:60]}; allowed: a line for each submitted "
            "document, or a download of one campaign"
        )
    return [(place, entry) for entries in whole.values() for entry in entries]


def _items_of_line(place: Place, line: Line, campaign: Campaign | None) -> list[Any]:
    """Return the items of a line: its own, or the campaign's."""
    if line.item is not None:
        return list(line.item)
    data: Any = [] if campaign is None else campaign.data
    at: Any = line.item_i
    try:
        if campaign is not None and isinstance(at, str):
            part, _, number = at.partition("_")
            data, at = campaign.parts[part], int(number)
        documents = data[line.user_id] if isinstance(data, dict) else data
        document = documents[at] if at >= 0 else None
    except (KeyError, IndexError, TypeError, ValueError):
        document = None
    if not isinstance(document, list) or not all(isinstance(item, dict) for item in document):
        raise InputError(
            f"{place}: it has no items, and {option('campaign-file')} none for document {line.item_i} of "
            f"{line.user_id}; give the file of the campaign that these answers belong to",
            about="campaign-file",
        )
    return document


# ---------------------------------------------------------------- reading: items and answers

ItemKey = tuple[Any, ...]
PASSED = "answers to practice and checks that any answer passes"


class _Import:
    """Collects items and ratings of documents; `left` counts losses."""

    def __init__(self, protocol: Protocol, now: datetime, files: Assets, tokens: Sequence[str]) -> None:
        self.protocol, self.now, self.files, self.tokens = protocol, now, files, tokens
        self.left: Counter[str] = Counter()
        self.special_marks: set[str | None] = {None}  # in answers and proposals; None: an omission
        self.evidence: Counter[str] = Counter()  # for and against protocols
        self.behind_line_feeds = 0  # places of errors that differ before version 1.1.5
        self._items: list[tuple[Place, ItemContent]] = []
        self._positions: dict[ItemKey, int | None] = {}  # None: a check that any answer passes
        self._ratings: list[GivenRating] = []
        # by rater and item: the documents in which the rater got it, numbered
        self._given: dict[tuple[str, ItemKey], dict[int | str | None, int]] = defaultdict(dict)
        self._segments: dict[str, tuple[int, int]] = {}  # each segment's number and document
        self._same_document: dict[int, int] = {}  # document → an earlier one, with which it shares segments
        self._documents = 0
        self._named: set[tuple[str, ItemKind, str]] = set()  # losses that were counted, by item
        # by rater and item: the moments and the comment of each revision
        self._answered: dict[tuple[str, int], list[tuple[Moments, str]]] = defaultdict(list)

    def add(self, document: _GivenDocument) -> None:
        place, raw, line = document.place, document.items, document.line
        if raw and isinstance(raw[0], dict) and "form" in raw[0]:
            self.left["answers to forms" if line else "questions of forms"] += len(
                line.annotation if line else raw
            )
            return
        items = [place.read(PearmutItem, item, f"item {at}") for at, item in enumerate(raw)]
        kinds = [item.kind(document.part) for item in items]
        segments = _segments(items, raw, [kind.is_written for kind in kinds])
        rated = [segment for segment, kind in zip(segments, kinds, strict=True) if not kind.is_written]
        self._place(rated)
        if line is not None:
            if len(line.annotation) != len(items):
                raise InputError(
                    f"{place}: found {counted(len(line.annotation), 'annotation')} of "
                    f"{counted(len(items), 'segment')}; allowed: as many"
                )
            self.left["comments on whole documents"] += bool(line.comment.strip())
            _count_unread(line, "lines", self.left)
            self.left["actions (their times are kept)"] += sum(a.index is not None for a in line.actions)
        times = Times(place, line.actions if line else (), self.now)
        for at, (item, segment, kind) in enumerate(zip(items, segments, kinds, strict=True)):
            self._name_losses(item, segment, kind)
            answers = None
            if line is not None and line.annotation[at] is not None:
                answers = self._responses(place, f"annotation {at}", item, line.annotation[at])
            together = self.protocol.max_outputs > 1
            for systems in [tuple(item.tgt)] if together else [(system,) for system in item.tgt]:
                known = self._item(place, segment, kind, item, systems, line)
                if answers is None or line is None:
                    continue
                given = {system: answers[system] for system in systems if system in answers}
                if known is None:
                    self.left[PASSED] += len(given)
                elif len(given) == len(systems):
                    self._answer(place, line.user_id, known, item, given, times.of(at, systems))
                else:
                    self.left["scores of segments on which another output has none"] += len(given)

    # ------------------------------------------------------------ items

    def _place(self, segments: Sequence[str]) -> None:
        """Number the segments of a document; documents that share a segment are one.

        Users, or systems, may have had different segments of one document.
        """
        documents = sorted(
            {self._joined(self._segments[segment][1]) for segment in segments if segment in self._segments}
        )
        if segments and not documents:
            self._documents += 1
            documents = [self._documents]
        self._same_document.update(dict.fromkeys(documents[1:], *documents[:1]))
        for segment in segments:
            self._segments.setdefault(segment, (len(self._segments), documents[0]))

    def _joined(self, document: int) -> int:
        while document in self._same_document:
            document = self._same_document[document]
        return document

    def _name_losses(self, item: PearmutItem, segment: str, kind: ItemKind) -> None:
        """Count the losses of an item once, however often it was rated."""
        lost = _unread_of_item(item, kind)
        texts = (item.ref or "", *(self.files.read(text)[0] for text in (item.src, *item.tgt.values())))
        lost["texts that show files (their tags stay in the text)"] += sum(
            text.startswith(TAGS) for text in texts
        )
        for what, count in lost.items():
            if (segment, kind, what) not in self._named:
                self._named.add((segment, kind, what))
                self.left[what] += count

    def _item(
        self,
        place: Place,
        segment: str,
        kind: ItemKind,
        item: PearmutItem,
        systems: tuple[str, ...],
        line: Line | None,
    ) -> ItemContent | None:
        """Return the item of these outputs; None for a check that any answer would pass.

        If a user gets it again in another document, it is another item, and its answer not a revision.
        """
        outputs = {system: self.files.read(item.tgt[system]) for system in systems}
        # an output with other errors marked beforehand, or with other files, is another item
        beside = [(item.error_spans.get(system, []), outputs[system][1]) for system in sorted(systems)]
        key: ItemKey = (kind, segment, *sorted(systems), repr(beside))
        number = 0
        if line is not None:
            given = self._given[line.user_id, key]
            number = given.setdefault(line.item_i, len(given))
        key = (*key, number)
        if key not in self._positions:
            made = self._new_item(place, segment, kind, item, outputs)
            self._positions[key] = None if made is None else made.position
            self._items += [] if made is None else [(place, made)]
        position = self._positions[key]
        if position is None:
            return None
        first, content = self._items[position]
        source = self.files.read(item.src)[0]
        texts = {system: text for system, (text, _) in outputs.items()}
        if (content.source, dict(zip(content.systems, content.outputs, strict=True))) != (source, texts):
            raise InputError(
                f"{place}: the segment {segment[:60]!r} has another text than in {first}; "
                "allowed: one source and one output of a system"
            )
        lost = (segment, kind, "references of segments that have another one in an earlier document")
        if content.references != self._references(item) and lost not in self._named:
            self._named.add(lost)
            self.left[lost[-1]] += 1
        return content

    def _references(self, item: PearmutItem) -> tuple[str, ...]:
        return () if item.ref is None else (item.ref,)

    def _new_item(
        self,
        place: Place,
        segment: str,
        kind: ItemKind,
        item: PearmutItem,
        shown: Mapping[str, tuple[str, Entries]],
    ) -> ItemContent | None:
        outputs = {system: text for system, (text, _) in shown.items()}
        guidance = None
        if kind.is_written:
            units = {system: Units(text, self.tokens) for system, text in outputs.items()}
            guidance = guidance_of(kind, units, item.validation, self.protocol, self.left)
            if guidance is None:
                return None
        source, media = self.files.read(item.src)
        of_outputs = ({"system": name, **file} for name, (_, files) in shown.items() for file in files)
        number, document = self._segments.get(segment, (NO_SEGMENT, 0))
        return ItemContent(
            position=len(self._items),
            kind=kind,
            segment=NO_SEGMENT if kind.is_written else number,
            document="" if kind.is_written else str(document),
            source=source,
            media=(*media, *of_outputs),
            references=self._references(item),
            systems=tuple(outputs),
            outputs=tuple(outputs.values()),
            weight=0.0 if kind.is_written else 1.0,
            guidance=guidance,
            proposals=None if kind.is_written else self._proposals(place, item, outputs),
        )

    def _proposals(
        self, place: Place, item: PearmutItem, outputs: Mapping[str, str]
    ) -> dict[str, list[StoredSpan]] | None:
        prefilled = {system: spans for system in outputs if (spans := item.error_spans.get(system))}
        if not self.protocol.marks_errors:
            self.left["pre-filled errors"] += sum(map(len, prefilled.values()))
            return None
        found = {}
        for system, spans in prefilled.items():
            units = Units(outputs[system], self.tokens)
            found[system] = [self._span(f"{place}: {system}", units, span) for span in spans]
        return found or None

    def _span(self, where: str, units: Units, span: PearmutSpan) -> StoredSpan:
        """Return a span as a payload stores it; InputError for an invalid place."""
        try:
            found = units.characters(span.start_i, span.end_i)
        except ValueError as error:
            raise InputError(f"{where}: {error}; allowed: characters of its output") from None
        placed: StoredSpan = {} if found is None else {"start": found[0], "end": found[1]}
        if found is None:
            special = units.behind(span.start_i)
            unnamed = (
                f"marks on special tokens that {option('campaign-file')} does not name, kept as omissions"
            )
            self.left[unnamed] += special is None
            placed = special or {}
            self.special_marks.add(placed.get("special_mark"))
        else:
            self.left["ends of errors behind the text, which end with it"] += span.end_i >= len(units)
        category = category_of(span.category)
        severe = {"severity": span.severity or "undecided", **({"category": category} if category else {})}
        return {**placed, **severe}

    # ------------------------------------------------------------ answers

    def _responses(self, place: Place, what: str, item: PearmutItem, annotation: Any) -> dict[str, Response]:
        """Return the complete answers by system, in the order on the page."""
        if not isinstance(annotation, dict):
            raise InputError(f"{place}: {what}: allowed: an object with an answer for each system")
        read = {
            system: place.read(Response, answer, f"{what}.{system}") for system, answer in annotation.items()
        }
        if unknown := sorted(set(read) - set(item.tgt)):
            raise InputError(f"{place}: {what}: the item has no output of {unknown[0]!r}")
        for response in read.values():
            _count_unread(response, "answers", self.left)
            self.evidence["scores"] += bool(response.score)
            self.evidence["errors"] += len(response.error_spans)
            self.evidence["categories"] += sum(bool(span.category) for span in response.error_spans)
            self.left["values of other scales (sliders)"] += len(response.sliders or {})
        whole = {
            system: response
            for system, response in read.items()
            if response.score is not None or isinstance(self.protocol, Mqm)
        }
        self.left["outputs without a score"] += len(read) - len(whole)
        return {system: whole[system] for system in item.tgt if system in whole}

    def _answer(
        self,
        place: Place,
        rater: str,
        item: ItemContent,
        pearmut: PearmutItem,
        answers: Mapping[str, Response],
        moments: Moments,
    ) -> None:
        answered, comment = self._answered[rater, item.position], _comment(answers)
        before = answered[-1][1] if answered else ""
        self.left["earlier texts of text fields"] += before not in ("", comment)
        answered.append((moments, comment))
        first, _ = answered[0]
        for shown, (system, response) in enumerate(answers.items(), start=1):
            self._ratings.append(
                GivenRating(
                    place=place,
                    rater=rater,
                    item=item.position,
                    system=system,
                    shown=shown,
                    revision=len(answered),
                    assigned_at=first.assigned_at,
                    submitted_at=first.rated_at,
                    rated_at=moments.rated_at,
                    active_ms=first.active_ms,
                    step=None if self.protocol.marks_errors else cast(int | None, response.score),
                    payload=self._payload(place, item, pearmut, system, response),
                )
            )

    def _payload(
        self, place: Place, item: ItemContent, pearmut: PearmutItem, system: str, response: Response
    ) -> Payload | None:
        """Return the payload with the marked errors; None if the protocol has none.

        A mark at the place of an error that was marked beforehand comes from this proposal.
        """
        if not self.protocol.marks_errors:
            self.left["marked errors"] += len(response.error_spans)
            return None
        output = item.outputs[item.systems.index(system)]
        units = Units(output, self.tokens)
        if "\n" in output:
            _, line_feed = units.of_span(Span(start=0, end=output.index("\n"), severity="minor"))
            self.behind_line_feeds += sum(
                place > line_feed for span in response.error_spans for place in (span.start_i, span.end_i)
            )
        proposals = [] if item.proposals is None else list(enumerate(pearmut.error_spans.get(system, [])))
        spans = []
        for span in response.error_spans:
            marked = self._span(f"{place}: {system}", units, span)
            for number, proposal in proposals:
                if (proposal.start_i, proposal.end_i) == (span.start_i, span.end_i):
                    marked["proposed"] = number
                    proposals.remove((number, proposal))
                    break
            spans.append(marked)
        if isinstance(self.protocol, Mqm):
            self.left["scores beside errors of MQM, from which its score follows"] += (
                response.score is not None
            )
            return {"spans": spans}
        return {"score": response.score, "spans": spans}

    # ------------------------------------------------------------ the campaign

    def campaign(self) -> tuple[tuple[str, ...], list[tuple[Place, ItemContent]], list[GivenRating]]:
        """Return the campaign's systems, items and ratings.

        The first systems name the outputs of practice and checks. Practice and checks with more outputs than
        there are systems are left out and counted.
        """
        rated = [item for _, item in self._items if not ItemKind(item.kind).is_written]
        systems = tuple(dict.fromkeys(name for item in rated for name in item.systems))
        names: dict[int, dict[str, str]] = {}  # by item: name of an output → system
        items = []
        for place, item in self._items:
            if not ItemKind(item.kind).is_written:
                item = replace(item, document=str(self._joined(int(item.document))))
                names[item.position] = dict(zip(item.systems, item.systems, strict=True))
            elif len(item.systems) <= len(systems):
                names[item.position] = dict(zip(item.systems, systems, strict=False))
                item = replace(item, **of_systems(item, names[item.position]))
            else:
                self.left["practice and checks with more outputs than there are systems"] += 1
                continue
            items.append((place, item))
        ratings = [
            replace(
                rating,
                system=names[rating.item][rating.system],
                comment=self._answered[rating.rater, rating.item][-1][1],  # the last text of the item
            )
            for rating in self._ratings
            if rating.item in names
        ]
        return systems, items, ratings


def _segments(items: Sequence[PearmutItem], raw: Sequence[Any], written: Sequence[bool]) -> list[str]:
    """Return a key of each item's segment: id and source, or all fields except outputs and errors.

    Without an id, the key also has the document's sources, because a sentence may be in several documents. If
    an output is in a document again, its key gets a number: it belongs to another segment.
    """
    document = [item.src for item, is_written in zip(items, written, strict=True) if not is_written]
    seen: Counter[tuple[str, str]] = Counter()
    keys = []
    for item, values in zip(items, raw, strict=True):
        if item.item_id is not None:
            segment = f"{item.item_id} {item.src}"
        else:
            same = {name: value for name, value in values.items() if name not in ("tgt", "error_spans")}
            segment = json.dumps([same, document], sort_keys=True, ensure_ascii=False)
        again = max(seen[segment, system] for system in item.tgt)
        seen.update((segment, system) for system in item.tgt)
        keys.append(f"{segment} {again}" if again else segment)
    return keys


def _comment(answers: Mapping[str, Response]) -> str:
    """Join the text fields, with the systems' names if there are several."""
    texts = {system: answer.textfield for system, answer in answers.items() if answer.textfield}
    if len(texts) < 2:
        return "".join(texts.values())
    return "\n".join(f"{system}: {text}" for system, text in texts.items())


def guidance_of(
    kind: ItemKind,
    outputs: Mapping[str, Units],
    rules: Mapping[str, Validation],
    protocol: Protocol,
    left: Counter[str],
) -> KnownAnswer | None:
    """Return the guidance of an item with these outputs; None if any answer would pass."""
    systems = list(outputs)
    steps: dict[str, list[int]] = {}
    spans: dict[str, list[StoredSpan]] = {}
    above: list[list[int]] = []
    warnings: list[str] = []
    for at, (system, units) in enumerate(outputs.items()):
        rule = rules.get(system) or Validation()
        warnings += [rule.warning] if rule.warning else []
        if rule.score is not None:
            if isinstance(protocol, MarksErrors) and not protocol.scored:
                left["accepted scores of checks, which the errors make"] += 1
            else:
                low, high = math.ceil(rule.score[0]), math.floor(rule.score[1])
                if low <= high:
                    steps[str(at)] = [low, high]
                else:
                    left["accepted scores of checks, between which no whole number lies"] += 1
        wanted = rule.error_spans or ()
        expected = [found for span in wanted if (found := _expected(span, units)) is not None]
        if not protocol.marks_errors or len(expected) < len(wanted):
            left["expected errors of checks"] += len(wanted)
        elif expected:
            spans[str(at)] = expected
        if rule.score_greaterthan is not None:
            if rule.score_greaterthan in systems:
                above.append([at, systems.index(rule.score_greaterthan)])
            else:
                left["comparisons of outputs in checks"] += 1
    if not (steps or spans or above):
        return None
    said = "\n".join(dict.fromkeys(warnings))
    if kind is ItemKind.TUTORIAL:
        left["comparisons of outputs in checks"] += len(above)
        return {"steps": steps, **({"spans": spans} if spans else {}), "explanation": said}
    return {"steps": steps, "spans": spans, "above": above, "warning": said or None}


def _expected(written: PearmutExpected, units: Units) -> StoredSpan | None:
    """Return an expected error as creamtea stores it; None if it cannot."""
    start, end = (_range(place, len(units)) for place in (written.start_i, written.end_i))
    try:
        if start[0] >= len(units):
            placed: Any = units.behind(start[0])
            if placed is None or _several_tokens(written.start_i, units):
                return None
        else:
            placed = {"start": [*map(units.character, start)], "end": [*map(units.character, end)]}
        span = ExpectedSpan.model_validate(
            {**placed, "severity": written.severity and written.severity.lower()}
        )
    except ValueError:  # pydantic's too
        return None
    return span.model_dump(mode="json", exclude_defaults=True)


def _several_tokens(written: int | list[int] | None, units: Units) -> bool:
    """Return True if a range of places has several special tokens; an expected error can have only one."""
    places = range(len(units), min(written[1], len(units) + 99) + 1) if isinstance(written, list) else ()
    return sum(units.behind(place) is not None for place in places) > 1


def _range(written: int | list[int] | None, units: int) -> tuple[int, int]:
    """Return the lowest and the highest place; only the lowest may lie after the end of the text."""
    low, high = (0, units) if written is None else (written, written) if isinstance(written, int) else written
    return max(low, 0), max(min(high, units - 1), 0)


Cell = tuple[int, str]  # segment of a line, system


@dataclass(frozen=True)
class Moments:
    """When an item was given and answered, and the rater's working time."""

    assigned_at: datetime
    rated_at: datetime
    active_ms: int | None


class Times:
    """Computes the moments and working times of a line's cells from its actions.

    The time from one action to the next, at most a minute, belongs to the cell of the later action.
    """

    def __init__(self, place: Place, actions: Sequence[Action], now: datetime) -> None:
        self._place, self._now = place, now
        self._seconds: dict[Cell, float] = defaultdict(float)
        times = [action.time for action in actions]
        self._ends = (min(times), max(times)) if times else None  # a clock may be set back
        waiting = 0.0
        last: Cell | None = None
        for at, action in enumerate(actions):
            if at:
                waiting += min(max(action.time - actions[at - 1].time, 0.0), LONGEST_PAUSE)
            if action.index is not None and action.model is not None:
                last = (action.index, action.model)
            if last is not None:
                self._seconds[last] += waiting
                waiting = 0.0

    def of(self, index: int, systems: Sequence[str]) -> Moments:
        """Return an answer's moments: the first and last action of the line, and its time."""
        if self._ends is None:
            return Moments(self._now, self._now, None)
        seconds = sum(self._seconds.get((index, system), 0.0) for system in systems)
        try:
            first, last = map(moment_of, self._ends)
        except ValueError:
            said = f"{self._place}: actions: found the times {self._ends[0]} and {self._ends[1]}"
            raise InputError(f"{said}; allowed: seconds since 1970") from None
        return Moments(first, last, round(1000 * seconds) or None)


def _moments_lost(
    content: Content, tasks: Mapping[str, list[Document]], answered: Mapping[tuple[str, int], AnswerContent]
) -> Counter[str]:
    """Count the times that an import of the actions returns otherwise.

    These are all times of answers that are not written or have revisions.
    """
    lost, kept = Counter[str](), set[tuple[str, int]]()
    for user, document in ((user, document) for user, task in tasks.items() for document in task):
        answers = [answered.get((user, item.position)) for item in document]
        revisions = {score.revision for answer in answers if answer for score in answer.scores}
        if len(revisions) != 1:
            continue
        actions = [Action.model_validate(action) for action in _actions(answers, *revisions)]
        times = Times(Place(ANSWERS, 1), actions, datetime.now(UTC))
        for at, (item, answer) in enumerate(zip(document, answers, strict=True)):
            if answer is None:
                continue
            found = times.of(at, item.systems)
            kept.add((user, item.position))
            lost[WORKING] += answer.active_ms not in (None, found.active_ms)
            lost[GIVEN] += answer.assigned_at != found.assigned_at
            lost[RATED] += sum({one.at, answer.submitted_at} != {found.rated_at} for one in answer.scores)
    for answer in content.answers:
        if (answer.rater, answer.item) not in kept:
            lost[WORKING] += answer.active_ms is not None
            lost[GIVEN] += 1
            lost[RATED] += len(answer.scores)
    return lost


# keys of the files' layout, and `validations`, the results of checks, which follow from the answers
LAYOUT = {"campaign_id", "token", "assignment", "validations"}
MAX_NAME = 60  # characters of a key, in a message


def _unread_settings(campaign: Campaign, protocol: Protocol, read: _Import) -> tuple[NotKept, ...]:
    """Name the settings that are not read (instructions, sliders and the like) in one line.

    Severities and categories are named unless they are the protocol's usual ones, special tokens if one of
    them is never marked.
    """
    usual = choices(protocol) if isinstance(protocol, MarksErrors) else {}
    own = campaign.info.model_extra or {}
    names = (name.removeprefix("info.") for name in _unread_keys(campaign))
    found = [name for name in names if usual.get(name, own) != own.get(name)]
    offered = {special_mark_of(token) for token in read.tokens}
    found += ["special_tokens"] if protocol.marks_errors and offered - read.special_marks else []
    return (NotKept(len(found), f"settings of Pearmut: {', '.join(found)}"),) if found else ()


def _unread_of_item(item: PearmutItem, kind: ItemKind) -> Counter[str]:
    """Count the parts of an item that are not read.

    These are `instructions` (HTML above the item), keys that are only for logs, and marks or expectations for
    an output that the item does not have.
    """
    left: Counter[str] = Counter()
    for name in _unread_keys(item):
        left["instructions of items" if name == "instructions" else f"values of {name!r} in items"] += 1
    shown = () if kind.is_written else item.tgt
    left["pre-filled errors"] += sum(
        len(spans) for name, spans in item.error_spans.items() if name not in shown
    )
    left["checks of outputs that are not there"] += len(set(item.validation) - set(item.tgt))
    return left


def _count_unread(read: BaseModel, where: str, left: Counter[str]) -> None:
    """Count the keys that are not read."""
    for name in _unread_keys(read):
        left[f"values of {name!r} in {where}"] += 1


def _unread_keys(read: Any) -> Iterator[str]:
    """Name each unread key with the keys that lead to it, without the names of systems.

    Keys of actions are left out: `_Import.add` counts actions.
    """
    empty: Sequence[Any] = (None, "", [], {})
    if isinstance(read, BaseModel) and not isinstance(read, Action):
        for name in type(read).model_fields:
            yield from (f"{name}.{inner}"[:MAX_NAME] for inner in _unread_keys(getattr(read, name)))
        for name, value in (read.model_extra or {}).items():
            if name not in LAYOUT and value not in empty:
                yield name[:MAX_NAME]
    elif isinstance(read, list | dict):
        for value in read if isinstance(read, list) else read.values():
            yield from _unread_keys(value)


# ---------------------------------------------------------------- writing

Document = tuple[ItemContent, ...]


def _check(content: Content) -> None:
    """Raise InputError for names and texts that Pearmut would refuse or show wrongly."""
    if content.protocol not in NAMES:
        why = f"Pearmut has no {content.protocol}, only {', '.join(NAMES)}"
        raise cannot_hold(f"{option('format')} pearmut: {why}", about="format")
    for system in content.systems:
        if system.isdigit():
            raise cannot_hold(f"system {system!r}: Pearmut refuses names of digits alone")
        if set(system) & set('"<&'):
            raise cannot_hold(f"system {system!r}: Pearmut's page reads {HTML} as HTML")
    for item in content.items:
        for text in (item.source, *item.outputs, *item.references):
            if text.startswith(TAGS):
                place = f"item {item.position + 1}"
                raise cannot_hold(f"{place}: Pearmut's page would run {text[:30]!r} as HTML")


def _as_shown(item: ItemContent) -> ItemContent:
    """Return the item with the outputs that raters saw, if the campaign drew them."""
    shown = item.shown
    if shown in ([], list(item.systems)):
        return item
    proposals = item.proposals and {name: found for name, found in item.proposals.items() if name in shown}
    outputs = tuple(shown_of(item.outputs, item.output_drawn))
    return replace(item, systems=tuple(shown), outputs=outputs, output_drawn=None, proposals=proposals)


def _protocol_info(content: Content) -> dict[str, Any]:
    """Return the protocol and, for marked errors, the choices of raters, as keys of `info`."""
    info: dict[str, Any] = {"protocol": NAMES[content.protocol]}
    protocol = find_protocol(content.protocol, content.settings)
    if not isinstance(protocol, MarksErrors):
        return {**info, "special_tokens": []}
    info |= {"special_tokens": [*map(token_of, (None, *_special_marks(content)))], **choices(protocol)}
    if isinstance(protocol, Mqm):
        info["sliders"] = []  # the errors are the rating
    return info


def _special_marks(content: Content) -> list[str]:
    """Return the special marks that the campaign offers, and others that its errors have."""
    offered = (content.settings.get("taxonomy") or {}).get("special_marks", ())
    found = [item.proposals or {} for item in content.items]
    found += [(item.guidance or {}).get("spans", {}) for item in content.items]
    found += [
        {score.system: (score.payload or {}).get("spans", ())}
        for answer in _answered(content).values()  # the answers that the file has
        for score in answer.scores
    ]
    spans = (span for by_output in found for spans in by_output.values() for span in spans)
    return [*dict.fromkeys((*offered, *(span["special_mark"] for span in spans if span.get("special_mark"))))]


def _answered(content: Content) -> dict[tuple[str, int], AnswerContent]:
    """Return answers with scores by raters who are not excluded, by rater and item."""
    excluded = content.excluded
    exported = {item.position for item in content.items if item.kind not in CONTROL_KINDS}
    return {
        (answer.rater, answer.item): answer
        for answer in content.answers
        if answer.scores and answer.rater not in excluded and answer.item in exported
    }


def _of_kind(content: Content, kind: ItemKind) -> list[ItemContent]:
    return sorted((item for item in content.items if item.kind == kind), key=lambda item: item.position)


def _documents(content: Content) -> list[Document]:
    """Group items into Pearmut's documents, which are its pages.

    Segments of a document with the same systems are together; second items of a segment, and segments without
    a document, are documents of their own.
    """
    found: dict[tuple[Any, ...], list[ItemContent]] = defaultdict(list)
    taken: set[tuple[Any, ...]] = set()  # documents with their segments
    for item in sorted(content.items, key=lambda item: (item.segment, item.position)):
        if item.kind not in SYSTEM_KINDS:
            continue
        key: tuple[Any, ...] = (item.document, item.systems)
        if not item.document or (key, item.segment) in taken or item.kind != "rated":
            key = (item.position,)
        taken.add((key, item.segment))
        found[key].append(item)
    return [tuple(items) for items in found.values()]


def _tasks(content: Content, answered: dict[tuple[str, int], AnswerContent]) -> dict[str, list[Document]]:
    """Return the documents of each user: a rater's rated documents, and one more user for the rest.

    Without any rating, there are `ratings_per_item` users, each with all documents and attention checks among
    them.
    """
    documents = _documents(content)
    raters = dict.fromkeys(rater for rater, _ in answered)
    checks: list[Document] = [(item,) for item in _of_kind(content, ItemKind.ATTENTION)]
    if not raters and documents:
        mixed = _with_checks(documents, checks, settings_of(content.settings).attention_every)
        return {f"rater-{number + 1}": mixed for number in range(content.ratings_per_item)}
    documents += checks
    tasks = {
        rater: [
            document for document in documents if any((rater, item.position) in answered for item in document)
        ]
        for rater in raters
    }
    rated = {position for _, position in answered}
    rest = [document for document in documents if rated.isdisjoint(item.position for item in document)]
    nobody = NOBODY
    while nobody in tasks:
        nobody += "-"
    return {**tasks, **({nobody: rest} if rest else {})}


def _with_checks(documents: Sequence[Document], checks: Sequence[Document], every: int) -> list[Document]:
    """Put a check at the end of a document after every `every` items."""
    mixed: list[Document] = []
    waiting, rated = list(checks), 0
    for document in documents:
        mixed.append(document)
        rated += len(document)
        if waiting and rated >= every:
            mixed.append(waiting.pop(0))
            rated = 0
    return mixed


def _item(item: ItemContent, info: dict[str, Any], answer: AnswerContent | None = None) -> dict[str, Any]:
    """Return an item as JSON, with the outputs in the order of an answer's page."""
    order = [system for group in answer.order for system in group] if answer else item.systems
    outputs = dict(zip(item.systems, item.outputs, strict=True))
    kind = ItemKind(item.kind)
    units = _units(item, info)
    prefilled = {
        system: [_error_span(Span.model_validate(span), units[system]) for span in spans]
        for system, spans in (item.proposals or {}).items()
    }
    return {
        "item_id": f"{item.document} {item.segment}" if not kind.is_written else f"{kind} {item.position}",
        "src": with_tags(item.source, files_of(item), info),
        **({"ref": item.references[0]} if item.references else {}),
        "tgt": {system: with_tags(outputs[system], files_of(item, system), info) for system in order},
        **({"validation": validation_of(item, info)} if kind.is_written else {}),
        **({"skippable": True} if kind is ItemKind.TUTORIAL else {}),
        **({"error_spans": prefilled} if prefilled else {}),
    }


def _lines(
    user: str,
    number: int | str,
    document: Document,
    answered: dict[tuple[str, int], AnswerContent],
    info: dict[str, Any],
) -> list[dict[str, Any]]:
    """Return a line for each revision, with null for a segment that lacks the revision."""
    answers = [answered.get((user, item.position)) for item in document]
    revisions = {score.revision for answer in answers if answer for score in answer.scores}
    return [
        {
            "annotation": [
                _annotation(item, answer, revision, info)
                for item, answer in zip(document, answers, strict=True)
            ],
            "actions": _actions(answers, revision),
            "item": [_item(item, info, answer) for item, answer in zip(document, answers, strict=True)],
            "user_id": user,
            "item_i": number,
        }
        for revision in sorted(revisions)
    ]


def _units(item: ItemContent, info: dict[str, Any]) -> dict[str, Units]:
    outputs = zip(item.systems, item.outputs, strict=True)
    return {system: Units(output, info["special_tokens"]) for system, output in outputs}


def _annotation(
    item: ItemContent, answer: AnswerContent | None, revision: int, info: dict[str, Any]
) -> dict[str, Any] | None:
    scores = [] if answer is None else [score for score in answer.scores if score.revision == revision]
    if answer is None or not scores:
        return None
    units = _units(item, info)
    return {
        score.system: {
            "score": None if score.payload and "score" not in score.payload else score.step,
            "error_spans": [_error_span(span, units[score.system]) for span in spans_of(score.payload)],
            "textfield": answer.comment if score is scores[0] and answer.comment else None,
        }
        for score in scores
    }


def _error_span(span: Span, units: Units) -> dict[str, Any]:
    start, end = units.of_span(span)
    return {
        "start_i": start,
        "end_i": end,
        "category": written_category(span.category),
        "severity": span.severity,
    }


def _actions(answers: Sequence[AnswerContent | None], revision: int) -> list[dict[str, Any]]:
    """Return an action for each score, between the actions that load and submit the document."""
    scored = sorted(
        (score.at.timestamp(), index, score.system, score.step)
        for index, answer in enumerate(answers)
        for score in (answer.scores if answer else ())
        if score.revision == revision
    )
    given = min(answer.assigned_at.timestamp() for answer in answers if answer and answer.scores)
    return [
        {"time": min(given, scored[0][0]), "action": "load"},
        *(
            {"time": time, "action": "score", "index": index, "model": system, "value": step}
            for time, index, system, step in scored
        ),
        {"time": scored[-1][0], "action": "submit"},
    ]


def validation_of(item: ItemContent, info: dict[str, Any]) -> dict[str, Any]:
    """Return the rules of a check by system, in Pearmut's form.

    Pearmut has at most one comparison per output, and no category of an error.
    """
    guidance: KnownAnswer = item.guidance or {}
    said = guidance.get("explanation") or guidance.get("warning")
    above = {better: item.systems[worse] for better, worse in reversed(guidance.get("above", []))}
    found: dict[str, dict[str, Any]] = {}
    for at, (system, units) in enumerate(_units(item, info).items()):
        spans = guidance.get("spans", {}).get(str(at), [])
        rules = {
            "warning": said,
            "score": guidance.get("steps", {}).get(str(at)),
            "error_spans": [_expectation(span, units) for span in spans],
            "score_greaterthan": above.get(at),
        }
        found[system] = {name: rule for name, rule in rules.items() if rule}
    return found


def _expectation(stored: StoredSpan, units: Units) -> dict[str, Any]:
    expected = ExpectedSpan.model_validate(stored)
    severity = {"severity": expected.severity} if expected.severity else {}
    if expected.start is None or expected.end is None:
        place, _ = units.of_span(Span(severity="minor", special_mark=expected.special_mark))
        return {"start_i": place, "end_i": place, **severity}
    places = {"start_i": expected.start, "end_i": expected.end}
    return {
        name: [
            units.of_span(Span(start=low, end=low, severity="minor"))[0],
            units.of_span(Span(start=high, end=high, severity="minor"))[1],
        ]
        for name, (low, high) in places.items()
    } | severity
