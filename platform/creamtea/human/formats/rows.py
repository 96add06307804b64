"""A row per rating, with everything that a re-analysis needs, except of a campaign that aims: items.jsonl has
the chances with which items were rated.

docs/exchange.md says what each column is. A skipped item has a row for each system with `skipped_at`, and no
step, value, payload, revision and rated_at. Items under a rater's hands (given, neither answered nor skipped)
have no rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from creamtea.errors import InputError
from creamtea.human.formats.columns import (
    Document,
    Flag,
    Integer,
    KindName,
    Moment,
    Name,
    ProtocolName,
    Segment,
    Text,
    Weight,
    columns_of,
)
from creamtea.human.formats.content import AnswerContent, Content, ItemContent
from creamtea.human.formats.files import Place, Record
from creamtea.human.protocols import find_protocol


@dataclass(frozen=True)
class RatingRow:
    campaign: Name
    protocol: ProtocolName
    rater: Name
    excluded: Flag
    item: Integer
    kind: KindName
    segment: Segment
    document: Text
    weight: Weight
    original: Integer | None
    degraded: Name | None
    source: Text
    system: Name
    output: Text
    shown: Integer  # the place on the page, 1 for the first
    step: Integer | None
    value: Name | None  # as the scale writes the step
    payload: Document | None
    document_step: Integer | None
    revision: Integer | None
    counts: Flag  # the last revision of a rater who is not excluded
    comment: Text
    skip_reason: Text
    assigned_at: Moment
    submitted_at: Moment | None  # the first answer
    skipped_at: Moment | None
    rated_at: Moment | None  # this score
    active_ms: Integer | None
    warned: Integer = 0  # wrong answers to a loud attention check that were not stored


COLUMNS = columns_of(RatingRow)


@dataclass(frozen=True, kw_only=True)
class GivenRating:
    """A rating as an import has it; the fields mean what those of a RatingRow do. Of `step`, `value` and
    `payload` one is enough; where an item was skipped there is none."""

    place: Place
    rater: str
    item: int
    system: str
    output: str = ""
    shown: int | None = None  # None: in the order of the ratings
    step: float | None = None  # the protocol's scale says which there are
    value: str | None = None
    payload: dict[str, Any] | None = None
    document_step: int | None = None
    revision: int | None = 1
    comment: str = ""
    skip_reason: str = ""
    assigned_at: datetime
    submitted_at: datetime | None = None
    skipped_at: datetime | None = None
    rated_at: datetime | None = None
    active_ms: int | None = None
    warned: int = 0
    excluded: bool = False
    columns: Mapping[str, Any] = field(default_factory=dict)  # all of a row of an export, to be compared

    def refuse(self, column: str, allowed: str) -> InputError:
        """What is wrong with the value of a column."""
        return self.place.refuse(column, self.found(column), allowed)

    def found(self, column: str) -> Any:
        return getattr(self, column) if column in _GIVEN else self.columns[column]


_GIVEN = {field.name for field in fields(GivenRating)} & COLUMNS.keys()


def given_rating(record: Record, **others: Any) -> GivenRating:
    """Of a line with columns of an export; `others` are those that it lacks."""
    values = {name: value for name, value in record.values.items() if name in _GIVEN} | others
    return GivenRating(place=record.place, columns=record.values, **values)


# fields of the item and of the answer that a row repeats
OF_ITEM = ("kind", "segment", "document", "weight", "original", "degraded", "source")
OF_ANSWER = ("comment", "skip_reason", "assigned_at", "submitted_at", "skipped_at", "active_ms", "warned")


def rows_of(content: Content) -> Iterator[RatingRow]:
    """The rows by item, rater, revision, place on the page and system."""
    items = {item.position: item for item in content.items}
    excluded = content.excluded
    for answer in sorted(content.answers, key=lambda answer: (answer.item, answer.rater)):
        yield from _rows(content, items[answer.item], answer, answer.rater in excluded)


def _rows(content: Content, item: ItemContent, answer: AnswerContent, excluded: bool) -> Iterator[RatingRow]:
    scale = find_protocol(content.protocol, content.settings).scale
    repeated = {name: getattr(item, name) for name in OF_ITEM}
    repeated |= {name: getattr(answer, name) for name in OF_ANSWER}
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
                system=system,
                output=outputs[system],
                shown=shown,
                step=None if score is None else score.step,
                value=None if score is None else scale.label(score.step),
                payload=None if score is None else score.payload,
                document_step=None if score is None else score.document_step,
                revision=revision,
                counts=score is not None and revision == answer.last_revision and not excluded,
                rated_at=None if score is None else score.at,
                **repeated,
            )
