"""One row per rating, with everything that a re-analysis needs.

| column | what it is |
|---|---|
| campaign, protocol | of the campaign |
| rater, excluded | pseudonym; true while the rater's ratings do not count |
| item, kind, segment, document, weight | the item's position and fields |
| original, degraded | controls: the item it was made from, the system whose text was spoilt |
| source, system, output | what was rated |
| shown | the output's place on the rater's page, 1 for the first; identical outputs share a place |
| step, value | the score: steps above the lowest value, and as the scale writes it ("3.4") |
| payload | an answer that is more than its score, as JSON; none where the score is the answer |
| revision, counts | 1 for the first answer; true for the last revision of a rater who is not excluded |
| comment, skip_reason | what the rater wrote |
| assigned_at, submitted_at, skipped_at, rated_at | moments: item given, first answer, skipped, this score |
| active_ms | milliseconds on the item before the first answer |

A skipped item has a row for each system with `skipped_at`, and no step, value, payload, revision and
rated_at.
Items under a rater's hands (given, neither answered nor skipped) have no rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from creamtea.human.exchange.columns import (
    Document,
    Flag,
    Integer,
    KindName,
    Moment,
    Name,
    ProtocolName,
    Text,
    Weight,
    columns_of,
)
from creamtea.human.exchange.content import AnswerContent, Content, ItemContent
from creamtea.human.protocols import find_protocol


@dataclass(frozen=True)
class RatingRow:
    campaign: Name
    protocol: ProtocolName
    rater: Name
    excluded: Flag
    item: Integer
    kind: KindName
    segment: Integer
    document: Text
    weight: Weight
    original: Integer | None
    degraded: Name | None
    source: Text
    system: Name
    output: Text
    shown: Integer
    step: Integer | None
    value: Name | None
    payload: Document | None
    revision: Integer | None
    counts: Flag
    comment: Text
    skip_reason: Text
    assigned_at: Moment
    submitted_at: Moment | None
    skipped_at: Moment | None
    rated_at: Moment | None
    active_ms: Integer | None


COLUMNS = columns_of(RatingRow)


def rows_of(content: Content) -> Iterator[RatingRow]:
    """The rows by item, rater, revision, place on the page and system."""
    items = {item.position: item for item in content.items}
    excluded = {person.pseudonym for person in content.raters if person.excluded_at is not None}
    for answer in sorted(content.answers, key=lambda answer: (answer.item, answer.rater)):
        yield from _rows(content, items[answer.item], answer, answer.rater in excluded)


def _rows(content: Content, item: ItemContent, answer: AnswerContent, excluded: bool) -> Iterator[RatingRow]:
    scale = find_protocol(content.protocol).scale
    outputs = dict(zip(item.systems, item.outputs, strict=True))
    places = [(shown, system) for shown, group in enumerate(answer.order, start=1) for system in group]
    places.sort(key=lambda place: (place[0], content.systems.index(place[1])))
    scores = {(score.revision, score.system): score for score in answer.scores}
    revisions: list[int | None] = [*sorted({score.revision for score in answer.scores})]
    for revision in revisions or [None]:
        for shown, system in places:
            score = None if revision is None else scores.get((revision, system))
            if score is None and revision is not None:
                continue
            yield RatingRow(
                campaign=content.name,
                protocol=content.protocol,
                rater=answer.rater,
                excluded=excluded,
                item=item.position,
                kind=item.kind,
                segment=item.segment,
                document=item.document,
                weight=item.weight,
                original=item.original,
                degraded=item.degraded,
                source=item.source,
                system=system,
                output=outputs[system],
                shown=shown,
                step=None if score is None else score.step,
                value=None if score is None else scale.label(score.step),
                payload=None if score is None else score.payload,
                revision=revision,
                counts=score is not None and revision == answer.last_revision and not excluded,
                comment=answer.comment,
                skip_reason=answer.skip_reason,
                assigned_at=answer.assigned_at,
                submitted_at=answer.submitted_at,
                skipped_at=answer.skipped_at,
                rated_at=None if score is None else score.at,
                active_ms=answer.active_ms,
            )
