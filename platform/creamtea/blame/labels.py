"""Label a marked error as one of selection, search or model, and collect the marked errors of a campaign.

The definitions are in docs/methods.md ("Where an error comes from"). Search errors and model errors are those
of Stahlberg and Byrne (2019), asked of one place in an output instead of the whole; a selection error is a
word of the better translation that vocabulary selection did not allow (Domhan et al. 2022).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.human.protocols import Protocol
from creamtea.human.protocols.spans import Span, spans_of
from creamtea.human.results.ratings import Ratings, payloads
from creamtea.store.tables import SYSTEM_KINDS, Item
from creamtea.words import word_spans, words

OUTPUT, FULL, REFERENCE, POST_EDIT = "output", "full vocabulary", "reference", "post-edit"
EXACT = "exact search"
LACKS_OUTPUT = "the evidence lacks the output itself"


def of_system(name: str) -> str:
    """What a candidate is called that a rated system gave."""
    return f"system {name}"


def of_variant(name: str) -> str:
    """What a candidate is called that another of the study's models gave."""
    return f"model {name}"


def of_reference(number: int) -> str:
    """What a candidate is called that is a reference of the segment, 0 for the first."""
    return REFERENCE if number == 0 else f"{REFERENCE} {number + 1}"


def of_edit(number: int) -> str:
    """What a candidate is called that a rater made of the output."""
    return f"{POST_EDIT} {number + 1}"


class Origin(StrEnum):
    SELECTION = "selection"
    SEARCH = "search"
    MODEL = "model"
    UNDECIDED = "undecided"  # no translation is known that is better there


@dataclass(frozen=True)
class Mark:
    """A marked error: the first and the last character in the output; both None for an omission. `better`:
    the candidate that the rater corrected it to, where that is known."""

    start: int | None = None
    end: int | None = None
    better: str = ""


def marks_of_edit(output: str, text: str) -> list[Mark]:
    """A mark at each stretch of the output that the other text does not have, and one omission for all that
    it has more."""
    spans = word_spans(output)
    codes = SequenceMatcher(None, words(output), words(text), autojunk=False).get_opcodes()
    marks = [
        Mark(spans[first][0], spans[last - 1][1] - 1)
        for tag, first, last, _, _ in codes
        if tag in ("replace", "delete")
    ]
    return [*marks, Mark()] if any(tag == "insert" for tag, *_ in codes) else marks


@dataclass(frozen=True)
class Candidate:
    """A translation of the segment. `rank`: what the system's search maximises, of the model with its full
    vocabulary. `forbidden`: places in the text of subwords that the selection does not allow."""

    names: tuple[str, ...]
    text: str
    rank: float
    tolerance: float  # that rounding explains
    forbidden: tuple[tuple[int, int], ...] = ()
    proved: bool = False  # nothing scores higher

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        return word_spans(self.text)

    @cached_property
    def words(self) -> list[str]:
        return [self.text[start:end] for start, end in self.spans]


@dataclass(frozen=True)
class Evidence:
    """What is known of one output: the candidates that a worker has scored (`analysis.origins`)."""

    candidates: tuple[Candidate, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        power = row["normalization"]

        def candidate(one: Mapping[str, Any]) -> Candidate:
            tokens = one["length"] + 1  # with </s>
            score = -math.inf if one["score"] is None else one["score"]
            return Candidate(
                tuple(one["names"]),
                one["text"],
                score / tokens**power,
                row["tolerance"] * tokens / tokens**power,
                tuple((start, end) for start, end in one["forbidden"] or ()),
                one["outcome"] == "proved",
            )

        return cls(tuple(candidate(one) for one in row["candidates"]))

    def named(self, name: str) -> Candidate | None:
        return next((candidate for candidate in self.candidates if name in candidate.names), None)

    @property
    def proved(self) -> bool | None:
        """Whether exact search ended with a proof; None where it was not tried."""
        searched = self.named(EXACT)
        return None if searched is None else searched.proved

    def references(self) -> list[str]:
        """The names of the references, the closest to the output first: the one with the fewest words that
        only one of the two has. Of equally close ones the first."""
        output = self.named(OUTPUT)
        if output is None:
            raise ValueError(LACKS_OUTPUT)
        found: dict[str, Candidate] = {}
        for candidate in self.candidates:
            if name := next((name for name in candidate.names if _is_reference(name)), ""):
                found[name] = candidate
        return sorted(found, key=lambda name: (_distance(output, found[name]), len(name), name))


@dataclass(frozen=True)
class Region:
    """What another translation has in the place of a mark; whether that `differs` from the output."""

    differs: bool
    words: tuple[str, ...]
    places: tuple[tuple[int, int], ...]  # of the words


@dataclass(frozen=True)
class Finding:
    """`better`: the translation that says what was needed. `instead`: what shows the origin: the output with
    the full vocabulary, the translation that the model prefers, or the wrong one that it prefers."""

    origin: Origin
    marked: str
    needed: tuple[str, ...] = ()
    better: Candidate | None = None
    instead: Candidate | None = None


class Comparison:
    """A mark of an output, and what other translations have there."""

    def __init__(self, output: Candidate, mark: Mark) -> None:
        self._output = output
        self._omission = mark.start is None or mark.end is None
        self._marked: list[int] = []
        self._gap = 0  # where a mark without a word in it stands: before this word
        if mark.start is not None and mark.end is not None:
            self._marked = [
                number
                for number, (start, end) in enumerate(output.spans)
                if start <= mark.end and end > mark.start
            ]
            self._gap = sum(end <= mark.start for _, end in output.spans)
        self.text = " ".join(output.words[number] for number in self._marked)

    def _touches(self, first: int, last: int, words: int) -> bool:
        """Whether a difference over the output's words [first, last) with so many words in their place
        belongs to the mark. An insertion beside a marked word does not."""
        if self._omission:
            return words > 0
        if not self._marked:
            return first <= self._gap <= last
        if first == last:
            return self._marked[0] < first <= self._marked[-1]
        return any(first <= number < last for number in self._marked)

    def region(self, other: Candidate) -> Region:
        changes = self._touching(other)
        numbers = [number for _, _, begin, end in changes for number in range(begin, end)]
        places = tuple(other.spans[number] for number in numbers)
        return Region(bool(changes), tuple(other.words[number] for number in numbers), places)

    def _touching(self, other: Candidate) -> list[tuple[int, int, int, int]]:
        """The changes that belong to the mark. Of an omission: what is only missing, rather than said in
        other words, if there is such."""
        changes = self._changes(other)
        if self._omission and (inserted := [change for change in changes if change[0] == change[1]]):
            changes = inserted
        return [change for change in changes if self._touches(change[0], change[1], change[3] - change[2])]

    def _changes(self, other: Candidate) -> list[tuple[int, int, int, int]]:
        """The output's words [first, last) in whose place the other has its words [begin, end)."""
        matcher = SequenceMatcher(None, self._output.words, other.words, autojunk=False)
        return [
            (first, last, begin, end)
            for tag, first, last, begin, end in matcher.get_opcodes()
            if tag != "equal"
        ]

    def right(self, evidence: Evidence, better: Sequence[str]) -> Candidate | None:
        """The first of the better translations that differs there."""
        known = (evidence.named(name) for name in better)
        return next((one for one in known if one is not None and self.region(one).differs), None)

    def mends(self, other: Candidate, better: Candidate) -> bool:
        """Whether the other has there what the better translation has."""
        if other.words == better.words:
            return True
        needed, there = self.region(better), self.region(other)
        if not there.differs:
            return False
        if needed.words:
            return not Counter(needed.words) - Counter(there.words)
        return not there.words and self._neighbours(better) <= self._kept(other)

    def keeps(self, other: Candidate, better: Candidate) -> bool:
        """Whether the other has the same error: the marked words, or none of those that are missing between
        the same neighbours."""
        there = self.region(other)
        if not self._omission:
            return not there.differs
        missing = not set(there.words) & set(self.region(better).words)
        return missing and self._neighbours(better) <= self._kept(other)

    def _kept(self, other: Candidate) -> set[int]:
        """The output's words that the other has in the same order."""
        changed = {number for first, last, _, _ in self._changes(other) for number in range(first, last)}
        return set(range(len(self._output.words))) - changed

    def _neighbours(self, better: Candidate) -> set[int]:
        """The nearest words on both sides of the error that the better translation keeps: without them an
        empty output would mend every word too many, and have every omission."""
        kept = sorted(self._kept(better))
        found: set[int] = set()
        for first, last, _, _ in self._touching(better):
            found |= set([n for n in kept if n < first][-1:]) | set([n for n in kept if n >= last][:1])
        return found


def label(evidence: Evidence, mark: Mark, better: Sequence[str]) -> Finding:
    """Where the marked error comes from. `better`: names of candidates that are better translations, the best
    first; the first that differs there is what was needed. Without a vocabulary selection there is no
    candidate FULL."""
    output = evidence.named(OUTPUT)
    if output is None:
        raise ValueError(LACKS_OUTPUT)
    comparison = Comparison(output, mark)
    right = comparison.right(evidence, better)
    if right is None:
        return Finding(Origin.UNDECIDED, comparison.text)
    needed = comparison.region(right)
    full = evidence.named(FULL)
    if full is not None and _selection(comparison, full, right):
        return Finding(Origin.SELECTION, comparison.text, needed.words, right, full)
    mended = [one for one in evidence.candidates if comparison.mends(one, right)]
    kept = [one for one in evidence.candidates if comparison.keeps(one, right)]
    best, wrong = max(mended, key=_rank), max(kept, key=_rank)
    prefers = best.rank > wrong.rank + max(best.tolerance, wrong.tolerance)
    origin, instead = (Origin.SEARCH, best) if prefers else (Origin.MODEL, wrong)
    return Finding(origin, comparison.text, needed.words, right, instead)


def _is_reference(name: str) -> bool:
    return name == REFERENCE or name.startswith(f"{REFERENCE} ")


def _distance(one: Candidate, other: Candidate) -> int:
    """Words that only one of the two has, as they are aligned."""
    matcher = SequenceMatcher(None, one.words, other.words, autojunk=False)
    shared = sum(block.size for block in matcher.get_matching_blocks())
    return len(one.words) + len(other.words) - 2 * shared


def _rank(candidate: Candidate) -> float:
    return candidate.rank


def _selection(comparison: Comparison, full: Candidate, right: Candidate) -> bool:
    """The same search over the full vocabulary writes something else there, and a word that was needed there
    was not allowed; where it mends the error, any word of what it writes: a beam may give up words before one
    that it cannot write."""
    if not comparison.region(full).differs:
        return False
    needed = comparison.region(right)
    if any(_overlap(place, banned) for place in needed.places for banned in right.forbidden):
        return True
    return bool(full.forbidden) and comparison.mends(full, right)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


Output = tuple[int, int]  # a segment of the test set, and a position in Campaign.systems
COUNTED = ("minor", "major", "critical")


@dataclass(frozen=True)
class Marked:
    """`texts`: every rated output. `marks`: of all raters who count; outputs without any are left out.
    `edits`: what raters made of an output, each text once."""

    texts: dict[Output, str] = field(default_factory=dict)
    marks: dict[Output, list[Mark]] = field(default_factory=lambda: defaultdict(list))
    edits: dict[Output, list[str]] = field(default_factory=lambda: defaultdict(list))

    def beside(self, output: Output) -> dict[int, str]:
        """The other systems' outputs of the same segment."""
        segment, system = output
        return {at: text for (of, at), text in self.texts.items() if of == segment and at != system}


def marks_of(session: Session, ratings: Ratings) -> Marked:
    """Of a protocol in which raters mark errors (neutral and undecided ones are left out) or correct outputs:
    what a rater changed is marked, and the corrected text is better there."""
    protocol = ratings.campaign.protocol
    found = Marked(_texts(session, ratings.campaign.id))
    if not has_marks(protocol):
        return found
    given = payloads(session, ratings)
    for row in np.argsort(ratings.id).tolist():  # as they were stored
        output, payload = (int(ratings.segment[row]), int(ratings.system[row])), given[row]
        if protocol.edits_text and payload is not None:
            edits, text = found.edits[output], str(payload["text"])
            edits += [text] if text not in edits else []
            name = of_edit(edits.index(text))
            marks = [replace(mark, better=name) for mark in marks_of_edit(found.texts[output], text)]
        else:
            marks = [_mark(span) for span in spans_of(payload) if span.severity in COUNTED]
        if marks:
            found.marks[output] += marks
    return found


def has_marks(protocol: Protocol) -> bool:
    return protocol.marks_errors or protocol.edits_text


def low_scores(found: Marked, ratings: Ratings, below: float) -> Marked:
    """The same with one mark on the whole of each output whose mean score is at most `below`: for protocols
    without marked errors. Scores of pairs say which of two is better, not how good one is: they give none."""
    if ratings.campaign.protocol.relative:
        return found
    marks: dict[Output, list[Mark]] = defaultdict(list)
    for (segment, system), score in scores_of(ratings).items():
        text = found.texts.get((segment, system), "")
        if score <= below:
            marks[segment, system].append(Mark(0, max(0, len(text) - 1)))
    return Marked(found.texts, marks)


def scores_of(ratings: Ratings) -> Mapping[Output, float]:
    """The mean score of each rated output; none of pairs."""
    if ratings.campaign.protocol.relative:
        return {}
    matrix = ratings.matrix()
    return {
        (int(ratings.segment_index[unit]), system): float(matrix[unit, system])
        for unit in range(len(matrix))
        for system in range(matrix.shape[1])
        if matrix[unit, system] == matrix[unit, system]  # not NaN
    }


def better_of(marked: Marked, scores: Mapping[Output, float], output: Output) -> list[int]:
    """The systems whose output of the segment got a higher score than this one, the best first."""
    segment, _ = output
    own = scores.get(output)
    if own is None:
        return []
    higher = {
        at: score
        for at in marked.beside(output)
        if (score := scores.get((segment, at))) is not None and score > own
    }
    return sorted(higher, key=lambda at: (-higher[at], at))


def _mark(span: Span) -> Mark:
    return Mark() if span.in_source else Mark(span.start, span.end)


def _texts(session: Session, campaign: int) -> dict[Output, str]:
    query = (
        select(Item.segment_index, Item.systems, Item.outputs)
        .where(Item.campaign_id == campaign, Item.kind.in_(SYSTEM_KINDS))
        .order_by(Item.position)
    )
    return {
        (segment, system): text
        for segment, systems, outputs in session.execute(query)
        for system, text in zip(systems, outputs, strict=True)
    }
