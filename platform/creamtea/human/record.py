"""A campaign with its answers as plain values, which an export writes and an import stores.

Names identify systems, positions items and pseudonyms raters, because row numbers of one database mean
nothing in another. Raters' identities (name, subject) are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from itertools import count, groupby
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, GetPydanticSchema, PlainValidator
from pydantic_core.core_schema import no_info_plain_validator_function

from creamtea.errors import InputError
from creamtea.human.making.settings import CampaignSettings, settings_of
from creamtea.human.media import checked_entries, distinct, types_of
from creamtea.human.protocols import BUILT_IN, PROTOCOLS, protocol_names
from creamtea.human.protocols.base import MAX_SYSTEMS
from creamtea.store.rows import check_json, check_text
from creamtea.store.tables import (
    CAMPAIGN_STATES,
    CONTROL_KINDS,
    SYSTEM_KINDS,
    Block,
    Item,
    ItemKind,
    KnownAnswer,
    MediaEntry,
    Payload,
    StoredSpan,
    shown_of,
)

MAX_INTEGER = 2**31 - 1  # of an INTEGER column


# ---------------------------------------------------------------- types of fields
# Each type has a validator for pydantic and a text that says what is allowed: `formats.columns` makes file
# columns of these types.


def checked_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return check_text(value)


def checked_name(value: Any) -> str:
    if not checked_text(value).strip():
        raise ValueError
    return str(value)


def checked_value(value: Any) -> str:
    """Return a score as text; JSON may have it as a number."""
    return repr(value) if type(value) in (int, float) else checked_name(value)


def checked_whole(cell: str) -> int:
    """Parse a whole number written by other tools, in digits."""
    if not re.fullmatch(r"[0-9]{1,10}", cell) or int(cell) > MAX_INTEGER:
        raise ValueError
    return int(cell)


def allowed_values(values: Callable[[], Sequence[str]]) -> PlainValidator:
    def check(value: Any) -> str:
        if value not in values():
            raise ValueError
        return str(value)

    return PlainValidator(check)


def _protocol(value: Any) -> str:
    # creamtea's names first: finding plug-ins reads the metadata of all distributions, too slow for each row
    if not (isinstance(value, str) and (value in BUILT_IN or value in protocol_names())):
        raise ValueError
    return value


def _moment(value: Any) -> datetime:
    if not isinstance(value, str):
        raise ValueError
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError from None


def _json_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError
    check_json(value)
    return value


def _different(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) != len(names):
        raise ValueError
    return names


Text = Annotated[str, PlainValidator(checked_text), "text without NUL"]
Name = Annotated[str, PlainValidator(checked_name), "a name: text that is not blank"]
Value = Annotated[str, PlainValidator(checked_value), "a value of the scale"]
ProtocolName = Annotated[
    str,
    PlainValidator(_protocol),
    f"a protocol of creamtea, or of a plug-in that is installed ({PROTOCOLS.group})",
]

KindName = Annotated[str, allowed_values(lambda: tuple(ItemKind)), f"one of {', '.join(ItemKind)}"]
State = Annotated[str, allowed_values(lambda: CAMPAIGN_STATES), f"one of {', '.join(CAMPAIGN_STATES)}"]
Integer = Annotated[int, Field(strict=True, ge=0, le=MAX_INTEGER), f"a whole number from 0 to {MAX_INTEGER}"]
Segment = Annotated[
    int,
    Field(strict=True, ge=-1, le=MAX_INTEGER),
    f"a whole number from 0 to {MAX_INTEGER}, or -1 for practice and attention checks",
]

Long = Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63), "a whole number of 64 bits"]
Weight = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False), "a finite number, 0 or more"]
Flag = Annotated[bool, Field(strict=True), "true or false"]
Flags = Annotated[tuple[Annotated[bool, Field(strict=True)], ...], "a list of true and false"]
Moment = Annotated[
    datetime, PlainValidator(_moment), "a moment with its offset, as 2026-03-01T09:30:00+00:00"
]

Texts = Annotated[tuple[Text, ...], "a list of texts without NUL"]
Names = Annotated[
    tuple[Name, ...],
    Field(min_length=1),
    AfterValidator(_different),
    "a list of different names, at least one",
]

MediaEntries = Annotated[
    tuple[MediaEntry, ...],
    PlainValidator(checked_entries),
    "a list of files of the item: digest (SHA-256), type, description, and the system if it is of an output",
]

# not PlainValidator, which inspects the annotated type
_OBJECT = GetPydanticSchema(lambda *_: no_info_plain_validator_function(_json_object))
_OBJECT_TEXT = "a JSON object without NUL, NaN or infinity"
JsonObject = Annotated[dict[str, Any], _OBJECT, _OBJECT_TEXT]
BlockObject = Annotated[Block[str], _OBJECT, _OBJECT_TEXT]  # `checked_items` checks its values
KnownAnswerObject = Annotated[KnownAnswer, _OBJECT, _OBJECT_TEXT]
ProposalsObject = Annotated[dict[str, list[StoredSpan]], _OBJECT, _OBJECT_TEXT]  # by system


# ---------------------------------------------------------------- the campaign


@dataclass(frozen=True, kw_only=True)
class RaterContent:
    """A rater under a pseudonym; the fields are columns of the table `rater`.

    If `excluded_at` is set, the ratings are kept but do not count.
    """

    pseudonym: Name
    created_at: Moment
    consented_at: Moment | None = None
    excluded_at: Moment | None = None
    forgotten_at: Moment | None = None


NOT_PLACED = -1  # position of a new item before it has a place in its campaign's order


def output_names(systems: Sequence[str]) -> tuple[str, ...]:
    """Return the names of outputs by their numbers in the database: systems, then "output 3" and so on.

    Practice items and checks number their outputs as if they were systems', but may have more of them.
    """
    return (*systems, *(f"output {number}" for number in range(len(systems) + 1, MAX_SYSTEMS + 1)))


def output_numbers(systems: Sequence[str]) -> dict[str, int]:
    """Invert `output_names`; a system that is called "output 3" keeps its own number."""
    return {name: number for number, name in reversed([*enumerate(output_names(systems))])}


@dataclass(frozen=True, kw_only=True)
class ItemContent:
    """An item of the campaign, in the form that is made, stored, exported and imported.

    Systems are names, and `original` is a position; the table `item` has numbers for both.
    """

    position: Integer = NOT_PLACED
    page: Integer | None = None  # position of the first item on the same page
    kind: KindName = ItemKind.RATED
    segment: Segment
    document: Text = ""
    source: Text = ""
    context: Texts = ()
    references: Texts = ()  # shown to raters
    media: MediaEntries = ()  # files beside the source and, with a `system`, files of its output
    systems: Names
    outputs: Texts  # one for each of `systems`
    weight: Weight = 1.0
    drawn: Flag | None = None  # in an adaptive design: whether the item is rated
    output_drawn: Flags | None = None  # the same for each output
    block: BlockObject | None = None  # the systems drawn for the segment or document
    original: Integer | None = None  # position of the item that a control was made from
    degraded: Name | None = None  # the system whose text was spoilt
    guidance: KnownAnswerObject | None = None  # the known answer of a practice item or check
    proposals: ProposalsObject | None = None  # errors that are marked before a rater begins

    @property
    def shown(self) -> list[str]:
        """Return the systems whose outputs raters saw."""
        return shown_of(self.systems, self.output_drawn)


def of_systems(item: Item | ItemContent, names: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the fields of an item that refer to systems, translated by `names`.

    For a row `names` maps numbers (also as text, as in JSON) to names, for a record names to numbers.
    """
    return {
        "systems": tuple(names[system] for system in item.systems),
        "block": item.block
        and {**item.block, "systems": [names[system] for system in item.block["systems"]]},
        "degraded": None if item.degraded is None else names[item.degraded],
        "media": tuple(
            {**entry, "system": names[entry["system"]]} if "system" in entry else entry
            for entry in item.media
        ),
        "proposals": item.proposals
        and {str(names[system]): spans for system, spans in item.proposals.items()},
    }


def files_of(item: Item | ItemContent, system: object = None) -> list[MediaEntry]:
    """Return the files of a system's output, by default the files beside the source."""
    return [entry for entry in item.media if entry.get("system") == system]


def distinct_outputs(item: Item | ItemContent) -> list[str]:
    """Return `distinct` of each output: its text alone if it has no file."""
    outputs = zip(item.systems, item.outputs, strict=True)
    return [distinct(text, files_of(item, system)) for system, text in outputs]


def fields_without(content: Any, *names: str) -> dict[str, Any]:
    """Return the fields of a dataclass except the named ones."""
    every = (field.name for field in fields(content))
    return {name: getattr(content, name) for name in every if name not in names}


@dataclass(frozen=True, kw_only=True)
class ScoreContent:
    system: str
    revision: int
    step: int
    at: datetime
    payload: Payload | None
    # score of the whole document, stored with the first item of its last page
    document_step: int | None = None


@dataclass(frozen=True, kw_only=True)
class AnswerContent:
    """One rater's answer to one item: scores in one or more revisions, or a skip."""

    item: int  # position
    rater: str
    order: tuple[tuple[str, ...], ...]  # shown outputs from left to right, each as the systems that wrote it
    assigned_at: datetime
    submitted_at: datetime | None
    skipped_at: datetime | None = None
    skip_reason: str = ""
    comment: str = ""
    active_ms: int | None = None
    warned: int = 0  # number of wrong answers to a loud attention check, which are not stored
    scores: tuple[ScoreContent, ...]

    @property
    def last_revision(self) -> int:
        """Return the revision that counts; 0 without scores."""
        return max((score.revision for score in self.scores), default=0)


@dataclass(frozen=True, kw_only=True)
class Content:
    """The campaign. Defaults are for imported ratings."""

    name: Name
    study: Name | None = None  # for information only: an import belongs to no study
    test_set: Name
    protocol: ProtocolName
    systems: Names
    source_language: Name
    target_language: Name
    ratings_per_item: Integer
    seed: Long = 0
    instructions: Text = ""
    settings: JsonObject = field(default_factory=dict)
    state: State = "closed"
    registered: JsonObject | None = None
    created_at: Moment
    launched_at: Moment | None
    closed_at: Moment | None
    raters: tuple[RaterContent, ...] = ()
    items: tuple[ItemContent, ...] = ()
    answers: tuple[AnswerContent, ...] = ()
    whole: WholeTestSet | None = field(default=None, compare=False)  # for formats that write it
    # for an import: the files of items whose names are not their SHA-256
    files: Mapping[str, Path] = field(default_factory=dict, compare=False)

    def segment_name(self, index: int) -> str:
        """Name a segment as reports do."""
        return self._settings.segment_name(index)

    @cached_property
    def _settings(self) -> CampaignSettings:
        return settings_of(self.settings)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Return the outputs' numbers in the database (`output_numbers`), for sorting."""
        return output_numbers(self.systems)

    @cached_property
    def excluded(self) -> set[str]:
        """Return the raters (pseudonyms) whose ratings do not count."""
        return {rater.pseudonym for rater in self.raters if rater.excluded_at is not None}

    @property
    def ratings(self) -> int:
        """Count the scores in every revision."""
        return sum(len(answer.scores) for answer in self.answers)


WITH_CONTROLS = (*SYSTEM_KINDS, *CONTROL_KINDS)


@dataclass(frozen=True)
class CountedScore:
    """One rater's last score of one system on an item."""

    item: ItemContent
    answer: AnswerContent
    score: ScoreContent

    @property
    def output(self) -> str:
        return self.item.outputs[self.item.systems.index(self.score.system)]

    @property
    def judged(self) -> tuple[str, int, str]:
        """Return rater, segment and system; a second score with the same three is a second opinion."""
        return self.answer.rater, self.item.segment, self.score.system


def counted_scores(content: Content, kinds: Collection[str] = SYSTEM_KINDS) -> Iterator[CountedScore]:
    """Yield the scores that count, sorted by item, rater and system.

    A score counts in an answer's last revision, on an item of these kinds, from a rater who is not excluded.
    """
    items = {item.position: item for item in content.items if item.kind in kinds}
    excluded = content.excluded
    for answer in sorted(content.answers, key=lambda answer: (answer.item, answer.rater)):
        if answer.item not in items or answer.rater in excluded:
            continue
        for score in sorted(answer.scores, key=lambda score: content.numbers[score.system]):
            if score.revision == answer.last_revision:
                yield CountedScore(items[answer.item], answer, score)


def first_opinions(content: Content) -> Iterator[CountedScore]:
    """Yield the first score of each rater for each output, for formats that hold only one."""
    seen: set[tuple[str, int, str]] = set()
    for counted in counted_scores(content):
        if counted.judged not in seen:
            seen.add(counted.judged)
            yield counted


@dataclass(frozen=True)
class TestLine:
    """A segment of a test set; `outputs` are in the campaign's order of systems."""

    __test__ = False  # for pytest

    index: int
    document: str
    source: str
    reference: str | None
    outputs: tuple[str | None, ...]


@dataclass(frozen=True)
class TestSetMetric:
    """A metric's value for each system, and in `segments` by system and line if segments have values."""

    name: str
    systems: tuple[float, ...]
    segments: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class WholeTestSet:
    __test__ = False

    lines: tuple[TestLine, ...]
    metrics: tuple[TestSetMetric, ...] = ()
    left_out: tuple[str, ...] = ()  # metrics that lack a value of some system or segment


def known_test_set(content: Content) -> WholeTestSet:
    """Return the segments of the rated items as a test set.

    InputError if a system has two outputs of one segment.
    """
    sources: dict[int, str] = {}
    outputs: dict[tuple[int, str], str] = {}
    for item in rating_items(content):
        sources.setdefault(item.segment, item.source)
        for system, output in zip(item.systems, item.outputs, strict=True):
            if outputs.setdefault((item.segment, system), output) != output:
                raise InputError(
                    f"{content.segment_name(item.segment)}: system {system!r} has two outputs in the "
                    "campaign's items; an mt-metrics-eval folder holds one"
                )
    indices = sorted(sources)
    lines = []
    for index, document in zip(indices, document_names(content, indices), strict=True):
        texts = tuple(outputs.get((index, system)) for system in content.systems)
        lines.append(TestLine(index, document, sources[index], None, texts))
    return WholeTestSet(tuple(lines))


def rating_items(content: Content) -> list[ItemContent]:
    """Return the items whose ratings count in the statistics of systems."""
    return [item for item in content.items if ItemKind(item.kind).rates_systems]


def document_names(content: Content, indices: Sequence[int]) -> list[str]:
    """Return the document of each segment, rated or not.

    Rated items name their documents. Segments between two segments of one document belong to it, too; every
    other stretch of segments becomes a document with a new name.
    """
    known = {item.segment: item.document for item in rating_items(content) if item.document}
    names = [known.get(index, "") for index in indices]
    if not any(names):
        return [content.test_set] * len(names)
    last: dict[str, int] = {name: position for position, name in enumerate(names) if name}
    current = ""
    for position, name in enumerate(names):
        current = name or (current if last.get(current, -1) > position else "")
        names[position] = current
    taken, documents = set(names), []
    for number, (name, stretch) in enumerate(groupby(names), start=1):
        if not name:
            numbered = (f"{content.test_set}-{n}" for n in count(number))
            name = next(new for new in numbered if new not in taken)
            taken.add(name)
        documents += [name for _ in stretch]
    return documents


MEDIA_FOLDER = "media"


def media_types(content: Content) -> dict[str, str]:
    """Return the MIME type of every file that the items name, by SHA-256."""
    items = sorted(content.items, key=lambda item: item.position)
    return types_of(entry for item in items for entry in item.media)
