"""Errors that a practice item expects: where they begin and end, in ranges, and what they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from creamtea.document.values import Strict
from creamtea.error_spans import Position, Severity
from creamtea.human.protocols.spans import Span
from creamtea.human.protocols.taxonomy import Taxonomy

Range = Annotated[list[Position], Field(min_length=2, max_length=2)]  # the lowest and the highest


class ExpectedSpan(Strict):
    """A marked error whose first and last characters lie in these ranges; an omission without them."""

    start: Range | None = None  # [characters] from 0: the lowest and the highest place of the first one
    end: Range | None = None  # [characters] the same of the last one
    severity: Severity | None = None  # none: any
    # a first name alone stands for all its kinds
    category: Annotated[list[str], Field(max_length=2)] = Field(default_factory=list)

    def check(self, text: str, taxonomy: Taxonomy) -> None:
        """ValueError for what nobody can mark in this text with this taxonomy."""
        if (self.start is None) != (self.end is None):
            raise ValueError("an expected error has a start without an end, or the other way")
        if self.start is not None and self.end is not None:
            for which, (lowest, highest) in (("start", self.start), ("end", self.end)):
                if not lowest <= highest < len(text):
                    raise ValueError(
                        f"{which}: [{lowest}, {highest}] is no range of characters 0 to {len(text) - 1}"
                    )
            if self.start[0] > self.end[1]:
                raise ValueError(f"an expected error ends at {self.end[1]}, before it begins")
        levels = [level.name for level in taxonomy.severities]
        if self.severity not in (None, *levels):
            raise ValueError(f"an error is {' or '.join(levels)}, not {self.severity}")
        begun = [path[: len(self.category)] for category in taxonomy.categories for path in category.paths]
        if self.category and self.category not in begun:
            raise ValueError(f"the campaign has no category {'/'.join(self.category)}")

    def fits(self, span: Span) -> bool:
        if (self.start is None) != (span.start is None) or span.in_source:
            return False
        if self.start is not None and self.end is not None and span.start is not None:
            assert span.end is not None  # both or neither
            begins = self.start[0] <= span.start <= self.start[1]
            if not (begins and self.end[0] <= span.end <= self.end[1]):
                return False
        severe = self.severity in (None, span.severity)
        return severe and span.category[: len(self.category)] == self.category


def as_expected(expected: Sequence[Mapping[str, Any]], spans: Sequence[Span]) -> bool:
    """Whether all of these are marked, or nothing is where no error is expected. `expected`: as stored."""
    wanted = [ExpectedSpan.model_validate(span) for span in expected]
    return all(found(wanted, spans)) if wanted else not spans


def found(expected: Sequence[ExpectedSpan], spans: Sequence[Span]) -> list[bool]:
    """Which of the expected errors are marked, each by a mark of its own: as many as can be at once."""
    taken: dict[int, int] = {}  # mark → expected

    def place(at: int, tried: set[int]) -> bool:
        for mark, span in enumerate(spans):
            if mark in tried or not expected[at].fits(span):
                continue
            tried.add(mark)
            if mark not in taken or place(taken[mark], tried):
                taken[mark] = at
                return True
        return False

    for at in range(len(expected)):
        place(at, set())
    return [at in taken.values() for at in range(len(expected))]
