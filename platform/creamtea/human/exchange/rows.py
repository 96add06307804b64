"""One row a rating, with everything that a re-analysis needs.

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
from datetime import datetime
from typing import Any

from creamtea.human.exchange import columns
from creamtea.human.exchange.columns import Kind
from creamtea.human.exchange.content import AnswerContent, Content, ItemContent
from creamtea.human.protocols import find_protocol
from creamtea.store.item_kinds import ItemKind


@dataclass(frozen=True)
class RatingRow:
    campaign: str
    protocol: str
    rater: str
    excluded: bool
    item: int
    kind: str
    segment: int
    document: str
    weight: float
    original: int | None
    degraded: str | None
    source: str
    system: str
    output: str
    shown: int
    step: int | None
    value: str | None
    payload: dict[str, Any] | None
    revision: int | None
    counts: bool
    comment: str
    skip_reason: str
    assigned_at: datetime
    submitted_at: datetime | None
    skipped_at: datetime | None
    rated_at: datetime | None
    active_ms: int | None


COLUMNS: dict[str, Kind] = {
    "campaign": columns.NAME,
    "protocol": columns.PROTOCOL,
    "rater": columns.NAME,
    "excluded": columns.FLAG,
    "item": columns.INTEGER,
    "kind": columns.one_of(tuple(ItemKind)),
    "segment": columns.INTEGER,
    "document": columns.TEXT,
    "weight": columns.WEIGHT,
    "original": columns.optional(columns.INTEGER),
    "degraded": columns.optional(columns.NAME),
    "source": columns.TEXT,
    "system": columns.NAME,
    "output": columns.TEXT,
    "shown": columns.INTEGER,
    "step": columns.optional(columns.INTEGER),
    "value": columns.optional(columns.NAME),
    "payload": columns.optional(columns.DOCUMENT),
    "revision": columns.optional(columns.INTEGER),
    "counts": columns.FLAG,
    "comment": columns.TEXT,
    "skip_reason": columns.TEXT,
    "assigned_at": columns.MOMENT,
    "submitted_at": columns.optional(columns.MOMENT),
    "skipped_at": columns.optional(columns.MOMENT),
    "rated_at": columns.optional(columns.MOMENT),
    "active_ms": columns.optional(columns.INTEGER),
}


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
