"""The marked errors of a campaign by output, and the outputs that were rated beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.blame.labels import Mark, marks_of_edit, of_edit
from creamtea.human.protocols import Protocol
from creamtea.human.protocols.spans import Span, spans_of
from creamtea.human.results.ratings import Ratings, payloads
from creamtea.store.tables import SYSTEM_KINDS, Item

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
