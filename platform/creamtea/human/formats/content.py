"""A campaign with its answers as plain values: what an export writes, and what an import stores.

Systems go by their names, items by their positions, raters by their pseudonyms: numbers of rows in one
database mean nothing in another. Who a rater is (name, subject) has no place here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from creamtea.human.formats.columns import (
    Document,
    Flag,
    Flags,
    Integer,
    KindName,
    Long,
    MediaEntries,
    Moment,
    Name,
    Names,
    ProtocolName,
    Segment,
    State,
    Text,
    Texts,
    Weight,
    Weights,
)
from creamtea.human.making.settings import CampaignSettings, settings_of
from creamtea.store.item_kinds import ItemKind
from creamtea.store.tables import shown_of


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


@dataclass(frozen=True, kw_only=True)
class ItemContent:
    """An item of the campaign; the fields are those of the table `item`."""

    position: Integer
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
    original: Integer | None = None  # the position of the item that a control was made from
    degraded: Name | None = None  # the system whose text was spoilt
    guidance: Document | None = None
    proposals: Document | None = None  # errors that were marked beforehand, by system

    @property
    def shown(self) -> list[str]:
        """The systems whose outputs raters saw."""
        return shown_of(self.systems, self.output_drawn)


@dataclass(frozen=True, kw_only=True)
class ScoreContent:
    system: str
    revision: int
    step: int
    at: datetime
    payload: dict[str, Any] | None
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
        """The revision that counts; 0 without scores."""
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
    settings: Document = field(default_factory=dict)
    state: State = "closed"
    registered: Document | None = None
    created_at: Moment
    launched_at: Moment | None
    closed_at: Moment | None
    raters: tuple[RaterContent, ...] = ()
    items: tuple[ItemContent, ...] = ()
    answers: tuple[AnswerContent, ...] = ()

    def segment_name(self, index: int) -> str:
        """What reports call a segment."""
        return self._settings.segment_name(index)

    @cached_property
    def _settings(self) -> CampaignSettings:
        return settings_of(self.settings)

    @property
    def excluded(self) -> set[str]:
        """The raters (pseudonyms) whose ratings do not count."""
        return {rater.pseudonym for rater in self.raters if rater.excluded_at is not None}

    @property
    def ratings(self) -> int:
        """How many scores there are, in every revision."""
        return sum(len(answer.scores) for answer in self.answers)
