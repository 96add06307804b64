"""A campaign with its answers as plain values: what an export writes, and what an import stores.

Systems go by their names, items by their positions, raters by their pseudonyms: numbers of rows in one
database mean nothing in another. Who a rater is (name, subject) has no place here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class RaterContent:
    """A rater by a pseudonym. With `excluded_at`, the ratings are kept and do not count."""

    pseudonym: str
    created_at: datetime
    consented_at: datetime | None = None
    excluded_at: datetime | None = None
    forgotten_at: datetime | None = None


@dataclass(frozen=True)
class ItemContent:
    """An item of the campaign; the fields are those of the table `item`."""

    position: int
    kind: str  # of ItemKind
    segment: int
    document: str
    source: str
    context: tuple[str, ...]
    systems: tuple[str, ...]
    outputs: tuple[str, ...]  # one for each of `systems`
    weight: float
    original: int | None  # the position of the item that a control was made from
    degraded: str | None  # the system whose text was spoilt
    guidance: dict[str, Any] | None = None


@dataclass(frozen=True)
class ScoreContent:
    system: str
    revision: int
    step: int
    at: datetime
    payload: dict[str, Any] | None = None


@dataclass(frozen=True)
class AnswerContent:
    """What one rater made of one item: scores in one or more revisions, or a skip."""

    item: int  # position
    rater: str
    order: tuple[tuple[str, ...], ...]  # the shown outputs from left to right, each with its systems
    assigned_at: datetime
    submitted_at: datetime | None
    skipped_at: datetime | None
    skip_reason: str
    comment: str
    active_ms: int | None
    scores: tuple[ScoreContent, ...]

    @property
    def last_revision(self) -> int:
        """The revision that counts; 0 without scores."""
        return max((score.revision for score in self.scores), default=0)


@dataclass(frozen=True)
class Content:
    name: str
    study: str | None  # for people: an import belongs to no study
    test_set: str
    protocol: str
    systems: tuple[str, ...]
    source_language: str
    target_language: str
    ratings_per_item: int
    seed: int
    instructions: str
    settings: dict[str, Any]
    state: str
    registered: dict[str, Any] | None
    created_at: datetime
    launched_at: datetime | None
    closed_at: datetime | None
    raters: tuple[RaterContent, ...] = ()
    items: tuple[ItemContent, ...] = ()
    answers: tuple[AnswerContent, ...] = field(default=())
