"""What a rater's page is given and gives back. Names of systems are in none of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from creamtea.errors import CreamteaError
from creamtea.human.protocols import Protocol

LEASE = timedelta(hours=2)


class RatingRefused(CreamteaError):
    """What is not given out or not stored, with a reason for the rater. Nothing was changed."""


class ConsentMissing(RatingRefused):
    """The rater has not agreed to take part yet (`raters.welcome(...).consented`)."""

    def __init__(self) -> None:
        super().__init__("first read the introduction and agree to take part")


class TryAgain(RatingRefused):
    """A wrong answer to a loud attention check, which was counted but not stored: the organiser's warning."""


@dataclass(frozen=True)
class ShownSegment:
    """A segment of a page as its rater sees it: the distinct outputs in the order drawn for this rater, and
    what each is called. A letter stands for the same system on the whole page."""

    source: str
    context: list[str]  # source segments before this one that the page does not show, oldest first
    outputs: list[str]
    letters: list[str]  # one for each output; "" where the page shows one output at a time
    proposals: list[list[dict[str, Any]]]  # of each output the errors that are marked beforehand
    references: list[str] = field(default_factory=list)  # human translations of the source
    media: list[dict[str, Any]] = field(default_factory=list)  # files beside the source (human/media)


@dataclass(frozen=True)
class ReadBefore:
    """A segment of the document on an earlier page, with an output for each text whose whole is scored."""

    source: str
    outputs: list[str]


@dataclass(frozen=True)
class Work:
    """A page as its rater sees it: one item, or the segments of a document in their order.

    `draft` has an answer for each shown output, those of the first segment first, as the protocol's widget
    gives it, or None. `done`, `left` and `total` count items of the campaign, controls among them, or while
    `tutorial` is true those of the tutorial. `left` is what this rater may still get at most, this page's
    items among them: what others rate meanwhile leaves it. `total` stays the same.
    """

    assignment_id: int  # of the first item, which names the page
    protocol: Protocol
    tutorial: bool
    document: bool  # whether the segments are a document's, however few
    segments: list[ShownSegment]
    draft: list[Any]
    # where a score of the whole document is asked for: what each text is called ("" where there is one), the
    # score so far, and the document's segments before the page; empty otherwise
    document_letters: list[str]
    document_draft: list[int | None]
    document_before: list[ReadBefore]
    comment: str
    revision: int  # the one that a submit will store
    done: int
    left: int
    total: int
    seconds_left: int | None  # at this rater's median pace; None before there is one
    source_language: str
    target_language: str

    @property
    def source(self) -> str:
        """The first segment's."""
        return self.segments[0].source

    @property
    def context(self) -> list[str]:
        """What comes before the page."""
        return self.segments[0].context

    @property
    def outputs(self) -> list[str]:
        """All of the page, those of the first segment first."""
        return [text for segment in self.segments for text in segment.outputs]


@dataclass(frozen=True)
class Guidance:
    """What a tutorial item teaches, shown after the answer; lists are in the order of the shown outputs."""

    accepted: list[tuple[int, int] | None]  # lowest and highest step; None: any
    right: list[bool]  # whether the stored step is accepted
    explanation: str
    # of each output the errors that were expected (None: any), and which of them were marked
    spans: list[list[dict[str, Any]] | None] = field(default_factory=list)
    found: list[list[bool]] = field(default_factory=list)
    marked: list[bool] = field(default_factory=list)  # whether all were marked, and none where there is none


@dataclass(frozen=True)
class Submitted:
    """What is stored for a page's revision: for each item the score of each system by its position, in
    steps."""

    assignment_id: int
    revision: int
    of_items: list[dict[int, int]]
    guidance: Guidance | None = None  # of a tutorial item
    document: dict[int, int] = field(default_factory=dict)  # the scores of the whole document, likewise
    differs: bool = field(default=False, compare=False)  # this revision was there, and other values were sent

    @property
    def steps(self) -> dict[int, int]:
        """Of a page with one item."""
        (steps,) = self.of_items
        return steps


@dataclass(frozen=True)
class Earlier:
    """A page that its rater has submitted; `number` counts items from 1 to the page's first."""

    assignment_id: int
    number: int
    source: str  # of the first segment
    revision: int  # the newest stored one
    given: str  # what the rater answered
    items: int = 1
