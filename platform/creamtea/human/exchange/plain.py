"""Ratings made elsewhere, as one CSV or JSON Lines file with the columns of an export (docs/exchange.md).

`rater`, `segment`, `system` and one of `value`, `step` and `payload` are needed; what other columns would say
follows from these: a side-by-side campaign has an item for each segment, a DA campaign one for each segment
and system. Segments are counted over the whole test set, not within documents.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from creamtea.errors import InputError
from creamtea.human.exchange.answers import answers_of, checked_items
from creamtea.human.exchange.content import Content, ItemContent, RaterContent
from creamtea.human.exchange.files import Record, read_csv, read_jsonl
from creamtea.human.exchange.rows import COLUMNS
from creamtea.human.protocols import Protocol, find_protocol, protocol_names
from creamtea.store.item_kinds import ItemKind

REQUIRED = ("rater", "segment", "system")
CONSTANT: dict[str, Any] = {
    "excluded": False,
    "kind": ItemKind.RATED,
    "document": "",
    "weight": 1.0,
    "original": None,
    "degraded": None,
    "source": "",
    "output": "",
    "step": None,
    "value": None,
    "payload": None,
    "comment": "",
    "skip_reason": "",
    "skipped_at": None,
    "active_ms": None,
}


@dataclass(frozen=True)
class RatingsFacts:
    """What a file of ratings does not say of its campaign."""

    name: str
    protocol: str | None  # None: the column says it
    test_set: str
    source_language: str
    target_language: str


def read_ratings(path: Path, kind: str, facts: RatingsFacts, now: datetime) -> Content:
    """The campaign that the ratings in a file make. Moments that the file does not give are `now`.

    Raises InputError with file, line, column, what was found and what is allowed.
    """
    records = (read_csv if kind == "csv" else read_jsonl)(path, COLUMNS, REQUIRED)
    if not records:
        raise InputError(f"{path.name}: no ratings in it")
    name = facts.protocol or records[0].values.get("protocol")
    if name is None:
        raise InputError(
            f"{path.name}: it does not say the protocol: give --protocol, one of "
            f"{', '.join(protocol_names())}"
        )
    protocol = find_protocol(name)
    filled = [
        replace(
            record, values={**CONSTANT, "campaign": facts.name, "protocol": protocol.name, **record.values}
        )
        for record in records
    ]
    # rows of an export keep its name; the campaign is stored under the name asked for
    name = filled[0].values["campaign"]
    _number_items(filled, protocol)
    _fill_scores(filled, now)
    _fill_shown(filled)
    _fill_counts(filled)
    content = _without_answers(filled, replace(facts, name=name, protocol=protocol.name))
    return replace(content, answers=answers_of(filled, content), name=facts.name)


def _number_items(records: list[Record], protocol: Protocol) -> None:
    """Items in their order of appearance, where the file does not number them."""
    numbers: dict[tuple[Any, ...], int] = {}
    documents: dict[int, str] = {}
    for record in records:
        values = record.values
        document = documents.setdefault(values["segment"], values["document"])
        if document != values["document"]:
            raise InputError(
                f"{record.place('segment')}: found {values['segment']} in document {values['document']!r} "
                f"and in {document!r}; allowed: segments counted over the whole test set"
            )
        key = [values[column] for column in ("document", "segment", "kind")]
        if protocol.max_outputs == 1:
            key.append(values["system"])
        values.setdefault("item", numbers.setdefault(tuple(key), len(numbers)))


def _fill_scores(records: list[Record], now: datetime) -> None:
    """A score without a revision is the first; a moment that is missing is the nearest one given."""
    for record in records:
        values = record.values
        scored = any(values[column] is not None for column in ("step", "value", "payload"))
        for column in ("submitted_at", "rated_at", "assigned_at", "revision"):
            values.setdefault(column, None)
        if scored:
            values["revision"] = 1 if values["revision"] is None else values["revision"]
            values["submitted_at"] = values["submitted_at"] or values["rated_at"] or now
            values["rated_at"] = values["rated_at"] or values["submitted_at"]
        values["assigned_at"] = values["assigned_at"] or values["submitted_at"] or values["skipped_at"] or now


def _fill_shown(records: list[Record]) -> None:
    """Places on the page in the file's order, where the file does not give them."""
    places: dict[tuple[int, str], dict[str, int]] = defaultdict(dict)
    for record in records:
        values = record.values
        systems = places[values["item"], values["rater"]]
        place = systems.setdefault(values["system"], len(systems) + 1)
        values.setdefault("shown", place)


def _fill_counts(records: list[Record]) -> None:
    last: dict[tuple[int, str], int] = defaultdict(int)
    for record in records:
        values = record.values
        key = (values["item"], values["rater"])
        last[key] = max(last[key], values["revision"] or 0)
    for record in records:
        values = record.values
        counts = values["revision"] == last[values["item"], values["rater"]] and not values["excluded"]
        values.setdefault("counts", counts)


def _without_answers(records: list[Record], facts: RatingsFacts) -> Content:
    systems = tuple(dict.fromkeys(record.values["system"] for record in records))
    first = min(record.values["assigned_at"] for record in records)
    last = max(record.values["submitted_at"] or record.values["assigned_at"] for record in records)
    raters: dict[str, RaterContent] = {}
    rated_by: dict[int, set[str]] = defaultdict(set)
    for record in records:
        values = record.values
        rated_by[values["item"]].add(values["rater"])
        excluded_at = last if values["excluded"] else None
        raters.setdefault(values["rater"], RaterContent(values["rater"], first, excluded_at=excluded_at))
    assert facts.protocol is not None
    return Content(
        name=facts.name,
        study=None,
        test_set=facts.test_set,
        protocol=facts.protocol,
        systems=systems,
        source_language=facts.source_language,
        target_language=facts.target_language,
        ratings_per_item=max(map(len, rated_by.values())),
        seed=0,
        instructions="",
        settings={},
        state="closed",
        registered=None,
        created_at=first,
        launched_at=first,
        closed_at=last,
        raters=tuple(raters.values()),
        items=_items(records, systems),
    )


def _items(records: list[Record], systems: tuple[str, ...]) -> tuple[ItemContent, ...]:
    """An item as its first row describes it, with every system that any of its rows names."""
    firsts: dict[int, Record] = {}
    outputs: dict[int, dict[str, str]] = defaultdict(dict)
    for record in records:
        values = record.values
        firsts.setdefault(values["item"], record)
        outputs[values["item"]].setdefault(values["system"], values["output"])
    items = []
    for position, record in sorted(firsts.items()):
        values, texts = record.values, outputs[position]
        of_item = tuple(system for system in systems if system in texts)
        items.append(
            (
                record,
                ItemContent(
                    position=position,
                    kind=values["kind"],
                    segment=values["segment"],
                    document=values["document"],
                    source=values["source"],
                    context=(),
                    systems=of_item,
                    outputs=tuple(texts[system] for system in of_item),
                    weight=values["weight"],
                    original=values["original"],
                    degraded=values["degraded"],
                ),
            )
        )
    return checked_items(items, systems)
