"""What a rater's page is given and gives back. Names of systems are in none of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from creamtea.errors import CreamteaError
from creamtea.human.protocols import Protocol
from creamtea.store.tables import Item

LEASE = timedelta(hours=2)


class RatingRefused(CreamteaError):
    """What is not given out or not stored, with a reason for the rater. Nothing was changed."""


class ConsentMissing(RatingRefused):
    """The rater has not agreed to take part yet (`raters.welcome(...).consented`)."""

    def __init__(self) -> None:
        super().__init__("read what this is about and agree to take part first")


class TryAgain(RatingRefused):
    """A wrong answer to a loud attention check, which was counted but not stored: the organiser's warning."""


@dataclass(frozen=True)
class Work:
    """An item as its rater sees it.

    `outputs` are the distinct texts in the order drawn for this rater; `draft` has an answer for each, as
    the protocol's widget gives it, or None. `done` and `total` count items of the campaign, controls among
    them, or while `tutorial` is true those of the tutorial. `total` is what this rater may get at most: what
    others rate meanwhile leaves it.
    """

    assignment_id: int
    protocol: Protocol
    tutorial: bool
    source: str
    context: list[str]  # source segments before this one, oldest first
    outputs: list[str]
    draft: list[Any]
    comment: str
    revision: int  # the one that a submit will store
    done: int
    total: int
    seconds_left: int | None  # at this rater's median pace; None before there is one
    source_language: str
    target_language: str


@dataclass(frozen=True)
class Guidance:
    """What a tutorial item teaches, shown after the answer; lists are in the order of the shown outputs."""

    accepted: list[tuple[int, int] | None]  # lowest and highest step; None: any
    right: list[bool]  # whether the stored step is accepted
    explanation: str


@dataclass(frozen=True)
class Submitted:
    """What is stored for an assignment's revision: the score of each system by its position, in steps."""

    assignment_id: int
    revision: int
    steps: dict[int, int]
    guidance: Guidance | None = None  # of a tutorial item


@dataclass(frozen=True)
class Earlier:
    """An item that its rater has submitted; `number` counts them from 1."""

    assignment_id: int
    number: int
    source: str
    revision: int  # the newest stored one


def shown_outputs(item: Item, order: list[list[int]]) -> list[str]:
    """The item's distinct texts in a drawn order."""
    texts = dict(zip(item.systems, item.outputs, strict=True))
    return [texts[group[0]] for group in order]
