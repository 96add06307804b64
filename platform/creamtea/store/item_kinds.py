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
        """For pages, after a number of items or above them."""
        return _LABELS.get(self, self.value)

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


_LABELS = {
    ItemKind.RANDOM: "drawn at random",
    ItemKind.REPEAT: "repeats",
    ItemKind.BAD_REFERENCE: "bad references",
    ItemKind.TUTORIAL: "practice items",
    ItemKind.ATTENTION: "attention checks",
}
SYSTEM_KINDS = tuple(kind for kind in ItemKind if kind.rates_systems)
CONTROL_KINDS = tuple(kind for kind in ItemKind if kind.is_control)
WRITTEN_KINDS = tuple(kind for kind in ItemKind if kind.is_written)
