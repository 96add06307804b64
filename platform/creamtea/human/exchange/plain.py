"""Ratings made elsewhere, as one CSV or JSON Lines file with the columns of an export (docs/exchange.md).

`rater`, `segment`, `system` and one of `value`, `step` and `payload` are needed; what other columns would say
follows from these: a side-by-side campaign has an item for each segment, a DA campaign one for each segment
and system. Segments are counted over the whole test set, not within documents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from creamtea.errors import InputError
from creamtea.human.exchange.answers import checked_items
from creamtea.human.exchange.content import Content, ItemContent
from creamtea.human.exchange.elsewhere import ImportFacts, made_elsewhere
from creamtea.human.exchange.files import Record, read_records
from creamtea.human.exchange.rows import COLUMNS, OF_ITEM
from creamtea.human.protocols import Protocol, find_protocol, protocol_names

REQUIRED = ("rater", "segment", "system")


def read_ratings(path: Path, kind: str, facts: ImportFacts, now: datetime) -> Content:
    """The campaign that the ratings in a file make. Moments that the file does not give are `now`.

    Raises InputError with file, line, column, what was found and what is allowed.
    """
    records = read_records(path, kind, COLUMNS, REQUIRED)
    if not records:
        raise InputError(f"{path.name}: no ratings in it")
    name = facts.protocol or records[0].values.get("protocol")
    if name is None:
        raise InputError(
            f"{path.name}: it does not say the protocol: give --protocol, one of "
            f"{', '.join(protocol_names())}"
        )
    _number_items(records, find_protocol(name))
    for record in records:
        _fill_moments(record.values, now)
    systems = tuple(dict.fromkeys(record.values["system"] for record in records))
    return made_elsewhere(facts, name, facts.pair, systems, _items(records, systems), records)


def _number_items(records: Sequence[Record], protocol: Protocol) -> None:
    """Items in their order of appearance, where the file does not number them."""
    numbers: dict[tuple[Any, ...], int] = {}
    documents: dict[int, str] = {}
    for record in records:
        values = record.values
        segment, document = values["segment"], values.get("document", "")
        first = documents.setdefault(segment, document)
        if document != first:
            allowed = f"a segment of document {first!r} alone: they are counted over the whole test set"
            raise record.refuse("segment", f"{allowed}, and this row has document {document!r}")
        key = [document, segment, values.get("kind")]
        if protocol.max_outputs == 1:
            key.append(values["system"])
        values.setdefault("item", numbers.setdefault(tuple(key), len(numbers)))


def _fill_moments(values: dict[str, Any], now: datetime) -> None:
    """A score without a revision is the first; a moment that is missing is the nearest one given."""
    for column in ("submitted_at", "rated_at", "assigned_at", "revision"):
        values.setdefault(column, None)
    if any(values.get(column) is not None for column in ("step", "value", "payload")):
        values["revision"] = 1 if values["revision"] is None else values["revision"]
        values["submitted_at"] = values["submitted_at"] or values["rated_at"] or now
        values["rated_at"] = values["rated_at"] or values["submitted_at"]
    values["assigned_at"] = values["assigned_at"] or values["submitted_at"] or values.get("skipped_at") or now


def _items(records: Sequence[Record], systems: Sequence[str]) -> tuple[ItemContent, ...]:
    """An item as its first row describes it, with every system that any of its rows names."""
    firsts: dict[int, Record] = {}
    outputs: dict[int, dict[str, str]] = defaultdict(dict)
    for record in records:
        values = record.values
        firsts.setdefault(values["item"], record)
        outputs[values["item"]].setdefault(values["system"], values.get("output", ""))
    items = []
    for position, record in sorted(firsts.items()):
        texts = outputs[position]
        of_item = tuple(system for system in systems if system in texts)
        item = ItemContent(
            position=position,
            systems=of_item,
            outputs=tuple(texts[system] for system in of_item),
            **{column: record.values[column] for column in OF_ITEM if column in record.values},
        )
        items.append((record, item))
    return checked_items(items, systems)
