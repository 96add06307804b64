"""Label marked errors as selection, search or model errors, and collect a campaign's marked errors.

The definitions are in docs/methods.md ("Where an error comes from"). Search errors and model errors are those
of Stahlberg and Byrne (2019), applied to one place in an output instead of the whole. A selection error is a
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

from creamtea.error_spans import OF_ERRORS
from creamtea.human.protocols import Protocol
from creamtea.human.protocols.spans import spans_of
from creamtea.human.results.ratings import Ratings, payloads
from creamtea.store.tables import SYSTEM_KINDS, Item
from creamtea.words import word_spans, words

Output = tuple[int, int]  # a segment of the test set, and a position in Campaign.systems
# names of candidates
OUTPUT, FULL, REFERENCE, POST_EDIT = "output", "full vocabulary", "reference", "post-edit"
EXACT = "exact search"
LACKS_OUTPUT = "the evidence lacks the output itself"


def of_system(name: str) -> str:
    """Name the candidate that a rated system gave."""
    return f"system {name}"


def of_variant(name: str) -> str:
    """Name the candidate that another of the study's models gave."""
    return f"model {name}"


def of_reference(number: int) -> str:
    """Name the candidate that is a reference of the segment, 0 for the first."""
    return REFERENCE if number == 0 else f"{REFERENCE} {number + 1}"


def of_edit(number: int) -> str:
    """Name the candidate that a rater made of the output."""
    return f"{POST_EDIT} {number + 1}"


class Origin(StrEnum):
    SELECTION = "selection"
    SEARCH = "search"
    MODEL = "model"
    UNDECIDED = "undecided"  # no translation is known that is better at the mark


@dataclass(frozen=True)
class Mark:
    """A marked error: its first and last character in the output; both None for an omission.

    `better`: the candidate that the rater corrected the output to, if known.
    """

    start: int | None = None
    end: int | None = None
    better: str = ""


def marks_of_edit(output: str, text: str) -> list[Mark]:
    """Mark each stretch of the output that the edited `text` lacks, and one omission for all additions."""
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
    """A translation of the segment.

    `rank`: its score by the objective of the system's search, over the model's full vocabulary. `forbidden`:
    places in the text of subwords that the selection does not allow.
    """

    names: tuple[str, ...]
    text: str
    rank: float
    tolerance: float  # a difference that rounding explains
    forbidden: tuple[tuple[int, int], ...] = ()
    proved: bool = False  # exact search proved that nothing scores higher

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        return word_spans(self.text)

    @cached_property
    def words(self) -> list[str]:
        return [self.text[start:end] for start, end in self.spans]


@dataclass(frozen=True)
class Evidence:
    """The candidates for one output that a worker has scored (`analysis.origins`)."""

    candidates: tuple[Candidate, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        power = row["normalization"]

        def candidate(scored: Mapping[str, Any]) -> Candidate:
            tokens = scored["length"] + 1  # with </s>
            score = -math.inf if scored["score"] is None else scored["score"]
            return Candidate(
                names=tuple(scored["names"]),
                text=scored["text"],
                rank=score / tokens**power,
                tolerance=row["tolerance"] * tokens / tokens**power,
                forbidden=tuple((start, end) for start, end in scored["forbidden"] or ()),
                proved=scored["outcome"] == "proved",
            )

        return cls(tuple(map(candidate, row["candidates"])))

    def named(self, name: str) -> Candidate | None:
        return next((candidate for candidate in self.candidates if name in candidate.names), None)

    @property
    def proved(self) -> bool | None:
        """True if exact search ended with a proof; None if it was not tried."""
        searched = self.named(EXACT)
        return None if searched is None else searched.proved

    def references(self) -> list[str]:
        """Return the names of the references, the closest to the output first.

        The closest shares the most words with the output; of equally close ones the first comes first.
        """
        output = self.named(OUTPUT)
        if output is None:
            raise ValueError(LACKS_OUTPUT)
        distances: dict[str, int] = {}  # number of words that only one of the two aligned texts has
        for candidate in self.candidates:
            for name in candidate.names:
                if name == REFERENCE or name.startswith(f"{REFERENCE} "):
                    matcher = SequenceMatcher(None, output.words, candidate.words, autojunk=False)
                    shared = sum(block.size for block in matcher.get_matching_blocks())
                    distances[name] = len(output.words) + len(candidate.words) - 2 * shared
                    break
        return sorted(distances, key=lambda name: (distances[name], len(name), name))


@dataclass(frozen=True)
class Region:
    """The words of another translation at a mark; `differs`: they are not the output's words."""

    differs: bool
    words: tuple[str, ...]
    places: tuple[tuple[int, int], ...]  # spans of the words


@dataclass(frozen=True)
class Finding:
    """Where a marked error comes from, and what shows it.

    `better`: the translation with the needed words. `instead`: for a selection error, the output with the
    full vocabulary; for a search error, the better translation that the model prefers; for a model error, the
    wrong translation that the model prefers.
    """

    origin: Origin
    marked: str
    needed: tuple[str, ...] = ()
    better: Candidate | None = None
    instead: Candidate | None = None


class Comparison:
    """A mark of an output, compared with other translations in the same place."""

    def __init__(self, output: Candidate, mark: Mark) -> None:
        self._output = output
        self._omission = mark.start is None or mark.end is None
        self._marked: list[int] = []
        self._gap = 0  # a mark without words stands before this word
        if mark.start is not None and mark.end is not None:
            self._marked = [
                number
                for number, (start, end) in enumerate(output.spans)
                if start <= mark.end and end > mark.start
            ]
            self._gap = sum(end <= mark.start for _, end in output.spans)
        self.text = " ".join(output.words[number] for number in self._marked)

    def _touches(self, first: int, last: int, words: int) -> bool:
        """Return True if a difference belongs to the mark.

        The difference replaces the output's words [first, last) by `words` words. An insertion beside a
        marked word does not belong to the mark.
        """
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
        """Return the changes that belong to the mark; for an omission only insertions, if there are any."""
        changes = self._changes(other)
        if self._omission and (inserted := [change for change in changes if change[0] == change[1]]):
            changes = inserted
        return [change for change in changes if self._touches(change[0], change[1], change[3] - change[2])]

    def _changes(self, other: Candidate) -> list[tuple[int, int, int, int]]:
        """Return changes (first, last, begin, end): the output's words, and the other's in their place."""
        matcher = SequenceMatcher(None, self._output.words, other.words, autojunk=False)
        return [
            (first, last, begin, end)
            for tag, first, last, begin, end in matcher.get_opcodes()
            if tag != "equal"
        ]

    def first_better(self, evidence: Evidence, names: Sequence[str]) -> Candidate | None:
        """Return the first of the better translations that differs from the output at the mark."""
        for candidate in map(evidence.named, names):
            if candidate is not None and self.region(candidate).differs:
                return candidate
        return None

    def mends(self, other: Candidate, better: Candidate) -> bool:
        """Return True if the other translation has the better translation's words at the mark."""
        if other.words == better.words:
            return True
        needed, other_region = self.region(better), self.region(other)
        if not other_region.differs:
            return False
        if needed.words:
            return not Counter(needed.words) - Counter(other_region.words)
        return not other_region.words and self._neighbours(better) <= self._kept(other)

    def keeps(self, other: Candidate, better: Candidate) -> bool:
        """Return True if the other translation has the same error.

        It then has the marked words, or lacks all omitted words between the same neighbours.
        """
        other_region = self.region(other)
        if not self._omission:
            return not other_region.differs
        missing = not set(other_region.words) & set(self.region(better).words)
        return missing and self._neighbours(better) <= self._kept(other)

    def _kept(self, other: Candidate) -> set[int]:
        """Return the numbers of the output's words that the other translation has in the same order."""
        changed = {number for first, last, _, _ in self._changes(other) for number in range(first, last)}
        return set(range(len(self._output.words))) - changed

    def _neighbours(self, better: Candidate) -> set[int]:
        """Return the nearest words on both sides of the error that the better translation keeps.

        Without this condition, an empty output would mend every superfluous word and have every omission.
        """
        kept = sorted(self._kept(better))
        neighbours: set[int] = set()
        for first, last, _, _ in self._touching(better):
            neighbours |= {*[n for n in kept if n < first][-1:], *[n for n in kept if n >= last][:1]}
        return neighbours


def label(evidence: Evidence, mark: Mark, better_names: Sequence[str]) -> Finding:
    """Find where the marked error comes from.

    `better_names`: better translations, the best first; the first that differs at the mark has the needed
    words. Without a vocabulary selection there is no candidate FULL.
    """
    output = evidence.named(OUTPUT)
    if output is None:
        raise ValueError(LACKS_OUTPUT)
    comparison = Comparison(output, mark)
    better = comparison.first_better(evidence, better_names)
    if better is None:
        return Finding(Origin.UNDECIDED, comparison.text)
    needed = comparison.region(better)
    full = evidence.named(FULL)
    if full is not None and _is_selection_error(comparison, full, better):
        return Finding(Origin.SELECTION, comparison.text, needed.words, better, full)
    mended = [candidate for candidate in evidence.candidates if comparison.mends(candidate, better)]
    with_error = [candidate for candidate in evidence.candidates if comparison.keeps(candidate, better)]
    best, wrong = (
        max(candidates, key=lambda candidate: candidate.rank) for candidates in (mended, with_error)
    )
    prefers = best.rank > wrong.rank + max(best.tolerance, wrong.tolerance)
    origin, instead = (Origin.SEARCH, best) if prefers else (Origin.MODEL, wrong)
    return Finding(origin, comparison.text, needed.words, better, instead)


def _is_selection_error(comparison: Comparison, full: Candidate, better: Candidate) -> bool:
    """Return True for a selection error.

    That needs two things: the same search over the full vocabulary writes something else at the mark, and
    the selection did not allow a needed word. If the full output mends the error, any forbidden word of it
    counts: a beam may drop words before one that it cannot write.
    """
    if not comparison.region(full).differs:
        return False
    needed = comparison.region(better)
    for start, end in needed.places:
        if any(start < banned[1] and banned[0] < end for banned in better.forbidden):
            return True
    return bool(full.forbidden) and comparison.mends(full, better)


@dataclass(frozen=True)
class Marked:
    """The marked errors of a campaign.

    `texts`: every rated output. `marks`: by all raters who count; outputs without marks are left out.
    `edits`: raters' corrections of an output, each text once.
    """

    texts: dict[Output, str] = field(default_factory=dict)
    marks: dict[Output, list[Mark]] = field(default_factory=lambda: defaultdict(list))
    edits: dict[Output, list[str]] = field(default_factory=lambda: defaultdict(list))

    def beside(self, output: Output) -> dict[int, str]:
        """Return the other systems' outputs of the same segment."""
        segment, system = output
        return {other: text for other, text in self._by_segment[segment].items() if other != system}

    @cached_property
    def _by_segment(self) -> dict[int, dict[int, str]]:
        """The texts by segment, grouped once: a report asks for each of thousands of outputs."""
        by_segment: dict[int, dict[int, str]] = defaultdict(dict)
        for (segment, system), text in self.texts.items():
            by_segment[segment][system] = text
        return by_segment


def marks_of(session: Session, ratings: Ratings) -> Marked:
    """Collect the errors that raters marked (without neutral and undecided ones) or corrected.

    A corrected stretch is a mark, and the corrected text is the better translation for it.
    """
    protocol = ratings.campaign.protocol
    marked = Marked(_texts(session, ratings.campaign.id))
    if not has_marks(protocol):
        return marked
    answers = payloads(session, ratings)
    for row in np.argsort(ratings.id).tolist():  # in the order in which they were stored
        output, payload = (int(ratings.segment[row]), int(ratings.system[row])), answers[row]
        if protocol.edits_text and payload is not None:
            edits, text = marked.edits[output], str(payload["text"])
            edits += [text] if text not in edits else []
            name = of_edit(edits.index(text))
            marks = [replace(mark, better=name) for mark in marks_of_edit(marked.texts[output], text)]
        else:
            # a special mark has no place, so there is no word to explain
            spans = [
                span for span in spans_of(payload) if span.severity in OF_ERRORS and span.special_mark is None
            ]
            marks = [Mark() if span.in_source else Mark(span.start, span.end) for span in spans]
        if marks:
            marked.marks[output] += marks
    return marked


def has_marks(protocol: Protocol) -> bool:
    return protocol.marks_errors or protocol.edits_text


def low_scores(marked: Marked, ratings: Ratings, below: float) -> Marked:
    """Mark the whole of each output with a mean score of at most `below`.

    This is for protocols without marked errors. Preferences give no marks: they say which of two outputs is
    better, not how good it is.
    """
    if ratings.campaign.protocol.relative:
        return marked
    marks: dict[Output, list[Mark]] = defaultdict(list)
    for (segment, system), score in scores_of(ratings).items():
        text = marked.texts.get((segment, system), "")
        if score <= below:
            marks[segment, system].append(Mark(0, max(0, len(text) - 1)))
    return Marked(marked.texts, marks)


def scores_of(ratings: Ratings) -> Mapping[Output, float]:
    """Return the mean score of each rated output; empty for preferences."""
    if ratings.campaign.protocol.relative:
        return {}
    matrix = ratings.matrix()
    return {
        (int(ratings.segment_index[unit]), system): float(matrix[unit, system])
        for unit in range(len(matrix))
        for system in range(matrix.shape[1])
        if not np.isnan(matrix[unit, system])
    }


def better_of(marked: Marked, scores: Mapping[Output, float], output: Output) -> list[int]:
    """Return the systems whose output of the segment has a higher score, the best first."""
    segment, _ = output
    score_of_output = scores.get(output)
    if score_of_output is None:
        return []
    higher = {
        other: score
        for other in marked.beside(output)
        if (score := scores.get((segment, other))) is not None and score > score_of_output
    }
    return sorted(higher, key=lambda other: (-higher[other], other))


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
