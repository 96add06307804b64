"""Ratings made elsewhere, as one CSV or JSON Lines file with the columns of an export (docs/exchange.md).

`rater`, `segment`, `system` and one of `value`, `step` and `payload` are needed; what other columns would say
follows from these: a side-by-side campaign has an item for each segment, a DA campaign one for each segment
and system. Segments are counted over the whole test set, not within documents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from creamtea.errors import InputError
from creamtea.human.formats.answers import checked_items
from creamtea.human.formats.content import Content, ItemContent
from creamtea.human.formats.elsewhere import FIRST_SEGMENT, ImportFacts, made_elsewhere
from creamtea.human.formats.files import Record, read_records
from creamtea.human.formats.losses import NotKept, repeats
from creamtea.human.formats.rows import COLUMNS, OF_ITEM, GivenRating, given_rating
from creamtea.human.protocols import Protocol, find_protocol, protocol_names
from creamtea.wording import option

REQUIRED = ("rater", "segment", "system")


def read_ratings(
    path: Path, kind: str, facts: ImportFacts, now: datetime
) -> tuple[Content, tuple[NotKept, ...]]:
    """The campaign that the ratings in a file make, and what is not kept. Moments that the file does not give
    are `now`.

    Raises InputError with file, line, column, what was found and what is allowed.
    """
    rows = read_records(path, kind, COLUMNS, REQUIRED)
    different: dict[str, Record] = {}
    again = [row.place.line for row in rows if different.setdefault(repr(row.values), row) is not row]
    records = list(different.values())
    if not records:
        raise InputError(f"{path.name}: no ratings in it")
    name = facts.protocol or records[0].values.get("protocol")
    if name is None:
        raise InputError(
            f"{path.name}: it does not say the protocol: give {option('protocol')}, one of "
            f"{', '.join(protocol_names())}",
            about="protocol",
        )
    protocol = find_protocol(name)
    if protocol.edits_text and (without := [one for one in records if "output" not in one.values]):
        raise without[0].place.refuse("output", None, f"the text that was corrected, as {name} compares them")
    numbers = _item_numbers(records, protocol)
    ratings = [_rating(record, number, now) for record, number in zip(records, numbers, strict=True)]
    systems = tuple(dict.fromkeys(rating.system for rating in ratings))
    made = made_elsewhere(facts, name, facts.pair, systems, _items(ratings, systems), ratings)
    made = replace(made, settings={**made.settings, "first_segment": FIRST_SEGMENT[kind]})
    return made, repeats(again)


def _item_numbers(records: Sequence[Record], protocol: Protocol) -> Iterator[int]:
    """In their order of appearance, where the file does not number the items."""
    numbers: dict[tuple[Any, ...], int] = {}
    documents: dict[int, str] = {}
    for record in records:
        values = record.values
        segment, document = values["segment"], values.get("document", "")
        first = documents.setdefault(segment, document)
        if document != first:
            allowed = f"a segment of document {first!r} alone: they are counted over the whole test set"
            raise record.place.refuse(
                "segment", segment, f"{allowed}, and this row has document {document!r}"
            )
        key = [document, segment, values.get("kind")]
        if protocol.max_outputs == 1:
            key.append(values["system"])
        yield values.get("item", numbers.setdefault(tuple(key), len(numbers)))


def _rating(record: Record, item: int, now: datetime) -> GivenRating:
    """A score without a revision is the first; a moment that is missing is the nearest one given."""
    values = record.values
    submitted, rated = values.get("submitted_at"), values.get("rated_at")
    revision = values.get("revision")
    if any(values.get(column) is not None for column in ("step", "value", "payload")):
        revision = 1 if revision is None else revision
        submitted, rated = submitted or rated or now, rated or submitted or now
    assigned = values.get("assigned_at") or submitted or values.get("skipped_at") or now
    return given_rating(
        record, item=item, revision=revision, assigned_at=assigned, submitted_at=submitted, rated_at=rated
    )


def _items(ratings: Sequence[GivenRating], systems: Sequence[str]) -> tuple[ItemContent, ...]:
    """An item as its first row describes it, with every system that any of its rows names."""
    firsts: dict[int, GivenRating] = {}
    outputs: dict[int, dict[str, str]] = defaultdict(dict)
    for rating in ratings:
        firsts.setdefault(rating.item, rating)
        outputs[rating.item].setdefault(rating.system, rating.output)
    items = []
    for position, first in sorted(firsts.items()):
        texts = outputs[position]
        of_item = tuple(system for system in systems if system in texts)
        item = ItemContent(
            position=position,
            systems=of_item,
            outputs=tuple(texts[system] for system in of_item),
            **{column: first.columns[column] for column in OF_ITEM if column in first.columns},
        )
        items.append((first.place, item))
    return checked_items(items, systems)
