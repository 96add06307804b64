"""The kinds of a campaign's items, named once: the table's CHECK and everything in `human/` use these."""

from __future__ import annotations

from enum import StrEnum


class ItemKind(StrEnum):
    RATED = "rated"
    RANDOM = "random"  # the part drawn at random beside a choice by disagreement
    REPEAT = "repeat"
    BAD_REFERENCE = "bad-reference"
    TUTORIAL = "tutorial"
    ATTENTION = "attention-check"

    @property
    def label(self) -> str:
        """For pages, above items or beside their number."""
        return f"{_NOUNS[self]}s" if self in _NOUNS else _STATES[self]

    @property
    def single(self) -> str:
        """For pages, of one item: "practice item"."""
        return _NOUNS.get(self) or f"item, {_STATES[self]}"

    def counted(self, count: int) -> str:
        """ "1 repeat", "2,000 repeats", "30 rated"."""
        return f"{count:,} {_NOUNS[self] if count == 1 and self in _NOUNS else self.label}"

    @property
    def rates_systems(self) -> bool:
        """Whether ratings of such items count in the statistics of systems."""
        return self in (ItemKind.RATED, ItemKind.RANDOM)

    @property
    def is_control(self) -> bool:
        """Whether such an item was made from another one, to tell whether a rater reads."""
        return self in (ItemKind.REPEAT, ItemKind.BAD_REFERENCE)

    @property
    def is_written(self) -> bool:
        """Whether the organiser wrote such an item, with its answer; every rater gets it."""
        return self in (ItemKind.TUTORIAL, ItemKind.ATTENTION)


_STATES = {ItemKind.RATED: "rated", ItemKind.RANDOM: "drawn at random"}
_NOUNS = {
    ItemKind.REPEAT: "repeat",
    ItemKind.BAD_REFERENCE: "bad reference",
    ItemKind.TUTORIAL: "practice item",
    ItemKind.ATTENTION: "attention check",
}
SYSTEM_KINDS = tuple(kind for kind in ItemKind if kind.rates_systems)
CONTROL_KINDS = tuple(kind for kind in ItemKind if kind.is_control)
WRITTEN_KINDS = tuple(kind for kind in ItemKind if kind.is_written)
