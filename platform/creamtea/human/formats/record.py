"""A campaign with its answers as plain values: what an export writes, and what an import stores.

Systems go by their names, items by their positions, raters by their pseudonyms: numbers of rows in one
database mean nothing in another. Who a rater is (name, subject) has no place here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import groupby
from pathlib import Path

from creamtea.errors import InputError
from creamtea.human.formats.columns import (
    BlockObject,
    Flag,
    Flags,
    Integer,
    JsonObject,
    KindName,
    KnownAnswerObject,
    Long,
    MediaEntries,
    Moment,
    Name,
    Names,
    ProposalsObject,
    ProtocolName,
    Segment,
    State,
    Text,
    Texts,
    Weight,
    Weights,
)
from creamtea.human.making.settings import CampaignSettings, settings_of
from creamtea.human.media import types_of
from creamtea.human.protocols.base import MAX_SYSTEMS
from creamtea.store.tables import CONTROL_KINDS, SYSTEM_KINDS, ItemKind, Payload, shown_of


@dataclass(frozen=True, kw_only=True)
class RaterContent:
    """A rater by a pseudonym; the fields are columns of the table `rater`.

    With `excluded_at`, the ratings are kept and do not count.
    """

    pseudonym: Name
    created_at: Moment
    consented_at: Moment | None = None
    excluded_at: Moment | None = None
    forgotten_at: Moment | None = None


NOT_PLACED = -1  # the position of an item that is made and not yet in its campaign's order


def output_names(systems: Sequence[str]) -> tuple[str, ...]:
    """Return what outputs are called, by their numbers in the database: systems, then "output 3" and so on.

    Outputs of practice items and checks are numbered from 0 as if they were of systems, and may be more.
    """
    return (*systems, *(f"output {number}" for number in range(len(systems) + 1, MAX_SYSTEMS + 1)))


def output_numbers(systems: Sequence[str]) -> dict[str, int]:
    """Return the numbers of `output_names`; a system called "output 3" keeps its own."""
    return {name: number for number, name in reversed([*enumerate(output_names(systems))])}


@dataclass(frozen=True, kw_only=True)
class ItemContent:
    """An item of the campaign, as it is made, stored, exported and imported.

    Systems are named and `original` is a position; the table `item` has their numbers.
    """

    position: Integer = NOT_PLACED
    page: Integer | None = None  # the position of the first item that was shown with it
    kind: KindName = ItemKind.RATED
    segment: Segment
    document: Text = ""
    source: Text = ""
    context: Texts = ()
    references: Texts = ()  # that raters saw
    media: MediaEntries = ()  # files beside the source
    systems: Names
    outputs: Texts  # one for each of `systems`
    weight: Weight = 1.0
    chance: Weight | None = None  # of being rated, where the campaign aimed, and what came of it
    drawn: Flag | None = None
    output_chances: Weights | None = None  # of each output, where they stood side by side
    output_drawn: Flags | None = None
    block: BlockObject | None = None  # the systems that were drawn for the segment or document
    original: Integer | None = None  # the position of the item that a control was made from
    degraded: Name | None = None  # the system whose text was spoilt
    guidance: KnownAnswerObject | None = None  # of practice items and checks
    proposals: ProposalsObject | None = None  # errors that were marked beforehand

    @property
    def shown(self) -> list[str]:
        """Return the systems whose outputs raters saw."""
        return shown_of(self.systems, self.output_drawn)


@dataclass(frozen=True, kw_only=True)
class ScoreContent:
    system: str
    revision: int
    step: int
    at: datetime
    payload: Payload | None
    document_step: int | None = None  # of the whole document, with the first item of its last page


@dataclass(frozen=True, kw_only=True)
class AnswerContent:
    """What one rater made of one item: scores in one or more revisions, or a skip."""

    item: int  # position
    rater: str
    order: tuple[tuple[str, ...], ...]  # the shown outputs from left to right, each with its systems
    assigned_at: datetime
    submitted_at: datetime | None
    skipped_at: datetime | None = None
    skip_reason: str = ""
    comment: str = ""
    active_ms: int | None = None
    warned: int = 0  # wrong answers to a loud attention check that were not stored
    scores: tuple[ScoreContent, ...]

    @property
    def last_revision(self) -> int:
        """Return the revision that counts; 0 without scores."""
        return max((score.revision for score in self.scores), default=0)


@dataclass(frozen=True, kw_only=True)
class Content:
    """The campaign; what has a default is usual for ratings made elsewhere."""

    name: Name
    study: Name | None = None  # for people: an import belongs to no study
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
    whole: WholeTestSet | None = field(default=None, compare=False)  # for a format that writes it
    # of an import, the files beside sources that are not called by their SHA-256
    files: Mapping[str, Path] = field(default_factory=dict, compare=False)

    def segment_name(self, index: int) -> str:
        """Name a segment as reports do."""
        return self._settings.segment_name(index)

    @cached_property
    def _settings(self) -> CampaignSettings:
        return settings_of(self.settings)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Return the numbers of outputs in the database (`output_numbers`), by which they are sorted."""
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
        """Return the rater and what they rated; an equal one is a second opinion."""
        return self.answer.rater, self.item.segment, self.score.system


def counted_scores(content: Content, kinds: Collection[str] = SYSTEM_KINDS) -> Iterator[CountedScore]:
    """Yield the scores that count, by item, rater and system.

    These are last revisions by raters who are not excluded, on items of these kinds.
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
    """Yield one score of each rater and output, the first, for formats that hold one."""
    seen: set[tuple[str, int, str]] = set()
    for counted in counted_scores(content):
        if counted.judged not in seen:
            seen.add(counted.judged)
            yield counted


@dataclass(frozen=True)
class TestLine:
    """A segment; `outputs` in the campaign's order of systems."""

    __test__ = False  # for pytest

    index: int
    document: str
    source: str
    reference: str | None
    outputs: tuple[str | None, ...]


@dataclass(frozen=True)
class TestSetMetric:
    """A metric's values of every system: `segments` by system and line, empty without values of segments."""

    name: str
    systems: tuple[float, ...]
    segments: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class WholeTestSet:
    __test__ = False

    lines: tuple[TestLine, ...]
    metrics: tuple[TestSetMetric, ...] = ()
    left_out: tuple[str, ...] = ()  # metrics without a value of each system and segment


def known_test_set(content: Content) -> WholeTestSet:
    """Return the segments that the items have.

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
    """Return the document of each segment.

    Items name the documents of what is rated. Segments between two of one document belong to it, and each
    other stretch is a document of its own: documents are contiguous.
    """
    known = {item.segment: item.document for item in rating_items(content) if item.document}
    names = [known.get(index, "") for index in indices]
    if not any(names):
        return [content.test_set] * len(names)
    last: dict[str, int] = {name: at for at, name in enumerate(names) if name}
    current = ""
    for at, name in enumerate(names):
        current = name or (current if last.get(current, -1) > at else "")
        names[at] = current
    return [
        name or f"{content.test_set}-{number}"
        for number, (name, stretch) in enumerate(groupby(names), start=1)
        for _ in stretch
    ]


MEDIA_FOLDER = "media"


def media_types(content: Content) -> dict[str, str]:
    """Return the MIME type of every file that the items name, by SHA-256."""
    items = sorted(content.items, key=lambda item: item.position)
    return types_of(entry for item in items for entry in item.media)
