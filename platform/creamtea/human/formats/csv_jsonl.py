"""An export as a folder: campaign.json, items.jsonl, and ratings.csv or ratings.jsonl (docs/exchange.md).

campaign.json has the launch's registration with its digest, and the sha256 of the other two files: an import
refuses files that were changed or mixed up.

A file of ratings alone needs `rater`, `segment`, `system` and one of `value`, `step` and `payload`. Values of
the other columns follow from these: a side-by-side campaign has an item per segment, a DA campaign an item
per segment and system. Segments are counted over the whole test set, not within documents.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from creamtea.errors import InputError, wrong_option
from creamtea.files import write_texts
from creamtea.human.formats.base import (
    FIRST_SEGMENT,
    Format,
    ImportFacts,
    NotKept,
    Read,
    Written,
    counts,
    first_line,
    repeats,
)
from creamtea.human.formats.columns import (
    CheckedLine,
    column_name,
    columns_of,
    csv_records,
    csv_text,
    decoded,
    encoded,
    is_separator_line,
    jsonl_text,
    read_json,
    read_records,
)
from creamtea.human.formats.rating_rows import (
    ANSWER_COLUMNS,
    COLUMNS,
    OF_ITEM,
    GivenRating,
    checked_items,
    given_rating,
    made_elsewhere,
    rows_of,
    with_answers,
)
from creamtea.human.protocols import Protocol, find_protocol, protocol_names
from creamtea.human.record import Content, ItemContent, JsonObject, RaterContent, allowed_values
from creamtea.wording import file_name, option

RATERS_FILE = "raters.csv"  # raters' answers about themselves
VERSION = "creamtea campaign 4"  # raised with every change of a column

VERSION_0_1 = "creamtea campaign 1"  # written by creamtea 0.1.0, without these columns
NOT_IN_0_1 = (
    *("payload", "warned", "page", "references", "media", "drawn"),
    *("output_drawn", "block", "document_step", "proposals"),
)

HEADER = columns_of(Content, leave_out=("raters", "items", "answers", "whole", "files"))
RATER, ITEM = columns_of(RaterContent), columns_of(ItemContent)
_READABLE = (VERSION, VERSION_0_1)
ReadableFormat = Annotated[str, allowed_values(lambda: _READABLE), f"one of {', '.join(_READABLE)}"]


@dataclass(frozen=True)
class Sidecar:
    """campaign.json."""

    format: ReadableFormat
    campaign: JsonObject
    raters: Annotated[list[JsonObject], "a list of objects"]
    sha256: JsonObject  # by file name


SIDECAR = columns_of(Sidecar)


def read_folder(path: Path, kind: str) -> Content:
    """Read the campaign in an export's folder. InputError as in `read_records`."""
    sidecar = Sidecar(**read_json(path / "campaign.json", SIDECAR))
    content = Content(**decoded("campaign.json, campaign", sidecar.campaign, HEADER))
    ratings = path / f"ratings.{kind}"
    if not ratings.is_file():
        others = ", ".join(sorted(other.name for other in path.glob("ratings.*")))
        raise InputError(
            f"{path.name}: no ratings.{kind}{f', but {others}' if others else ''}; {option('format')} says "
            "which file of ratings to read",
            about="format",
        )
    _check_digests(path, sidecar.sha256, ("items.jsonl", ratings.name))
    missing = NOT_IN_0_1 if sidecar.format == VERSION_0_1 else ()
    needed = [[name for name in columns if name not in missing] for columns in (ITEM, COLUMNS)]
    records = read_records(path / "items.jsonl", "jsonl", ITEM, needed[0])
    items = checked_items(
        [(record.place, ItemContent(**record.values)) for record in records], content.systems
    )
    content = replace(content, raters=_raters(sidecar.raters), items=items)
    rows = read_records(ratings, kind, COLUMNS, needed[1])
    return with_answers(content, [given_rating(row) for row in rows])


def _check_digests(path: Path, digests: Mapping[str, Any], files: tuple[str, ...]) -> None:
    for name in files:
        try:
            digest = hashlib.sha256((path / name).read_bytes()).hexdigest()
        except OSError as error:
            raise InputError(
                f"{file_name(path / name)}: {error.strerror or error}; an export has this file"
            ) from None
        if digest != digests.get(name):
            raise InputError(
                f"{name}: its sha256 is not the one in campaign.json: the file was changed, or is another "
                "export's; import the file of ratings alone to read changed ratings (docs/exchange.md)"
            )


def _raters(entries: list[dict[str, Any]]) -> tuple[RaterContent, ...]:
    people: dict[str, RaterContent] = {}
    for number, entry in enumerate(entries, start=1):
        place = f"campaign.json, raters, entry {number}"
        person = RaterContent(**decoded(place, entry, RATER))
        if people.setdefault(person.pseudonym, person) is not person:
            raise InputError(
                f"{place}, column pseudonym: found {person.pseudonym!r} again; allowed: each rater once"
            )
    return tuple(people.values())


REQUIRED = ("rater", "segment", "system")


def read_ratings(
    path: Path, kind: str, facts: ImportFacts, now: datetime
) -> tuple[Content, tuple[NotKept, ...]]:
    """Make a campaign from a file of ratings. InputError as in `read_records`."""
    rows = read_records(path, kind, COLUMNS, REQUIRED)
    different: dict[str, CheckedLine] = {}
    keys = (json.dumps(row.values, sort_keys=True, default=repr) for row in rows)
    again = [
        row.place.line
        for key, row in zip(keys, rows, strict=True)
        if different.setdefault(key, row) is not row
    ]
    records = list(different.values())
    if not records:
        raise InputError(f"{path.name}: no ratings in it")
    name = facts.protocol or records[0].values.get("protocol")
    if name is None:
        give = f"give {option('protocol')}, one of {', '.join(protocol_names())}"
        raise InputError(f"{path.name}: it does not name the protocol: {give}", about="protocol")
    protocol = find_protocol(name)
    if protocol.edits_text and (without := [row for row in records if "output" not in row.values]):
        raise without[0].place.refuse("output", None, f"the text that was corrected, as {name} compares them")
    numbers = _item_numbers(records, protocol)
    ratings = [_rating(record, number, now) for record, number in zip(records, numbers, strict=True)]
    systems = tuple(dict.fromkeys(rating.system for rating in ratings))
    items = _items_of_ratings(ratings, systems)
    settings = {"first_segment": FIRST_SEGMENT[kind]}
    return made_elsewhere(facts, name, facts.pair, systems, items, ratings, settings), repeats(again)


def _item_numbers(records: Sequence[CheckedLine], protocol: Protocol) -> Iterator[int]:
    """Yield each row's item; without a column `item`, items are numbered as they appear."""
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


def _rating(record: CheckedLine, item: int, now: datetime) -> GivenRating:
    """Return a row as a rating, with defaults for missing columns.

    A score without a revision has the first one; a missing moment is the nearest moment in the row.
    """
    values = record.values
    submitted, rated = values.get("submitted_at"), values.get("rated_at")
    revision = values.get("revision")
    if any(values.get(column) is not None for column in ANSWER_COLUMNS):
        revision = 1 if revision is None else revision
        submitted, rated = submitted or rated or now, rated or submitted or now
    assigned = values.get("assigned_at") or submitted or values.get("skipped_at") or now
    return given_rating(
        record, item=item, revision=revision, assigned_at=assigned, submitted_at=submitted, rated_at=rated
    )


def _items_of_ratings(ratings: Sequence[GivenRating], systems: Sequence[str]) -> tuple[ItemContent, ...]:
    """Return the items, described by their first rows, with the systems of all their rows."""
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
            **{column: getattr(first, column) for column in OF_ITEM if column in first.columns},
        )
        items.append((first.place, item))
    return checked_items(items, systems)


class CampaignExport(Format):
    """A whole campaign in a folder, or one file of ratings with the same columns."""

    has_media = True

    def __init__(self, kind: str, called: str) -> None:
        self.name = kind
        self.title = f"ratings as {called}, or an export's zip with {called}"
        begins = "a header" if kind == "csv" else "an object a line"
        needed = f"{', '.join(REQUIRED)} and value, step or payload"
        self.expected = f"{begins} with {needed}; or an export's folder"

    def recognises(self, path: Path, text: str) -> bool:
        if path.is_dir():
            return (path / f"ratings.{self.name}").is_file()
        first = first_line(text)
        if self.name == "csv":
            if is_separator_line(first):
                first = first_line(text.partition("\n")[2])
            return len(set(REQUIRED) & {column_name(cell) for cell in re.split("[,;\t|]", first)}) > 1
        try:
            record = json.loads(first)
        except (ValueError, RecursionError):
            return False
        if isinstance(record, list) and record:
            record = record[0]
        return isinstance(record, dict) and bool(set(REQUIRED) & record.keys())

    def read(self, path: Path, facts: ImportFacts, now: datetime) -> Read:
        """Read an export's folder, or one file of ratings with its columns."""
        if not path.is_dir():
            return read_ratings(path, self.name, facts, now)
        if facts.protocol or facts.test_set or facts.pair:
            raise InputError(
                f"{option('protocol')}, {option('test-set')} and the languages are in the folder's "
                "campaign.json: leave them out",
                about="protocol",
            )
        if facts.taxonomy is not None:
            raise wrong_option("taxonomy", "the folder's campaign.json has the campaign's own: leave it out")
        content = replace(read_folder(path, self.name), name=facts.name)
        facts = facts.for_systems(content.systems)
        given = {"baseline": facts.baseline, "delta": facts.delta}
        settings = content.settings | {key: value for key, value in given.items() if value is not None}
        answers = csv_records(path / RATERS_FILE) if (path / RATERS_FILE).is_file() else ()
        answered = sum(any(cells[1:]) for row, (_, cells) in enumerate(answers) if row > 0)
        not_kept = counts({f"raters with answers to the campaign's questions ({RATERS_FILE})": answered})
        return replace(content, settings=settings), not_kept

    def write(self, content: Content, path: Path) -> Written:
        """Write the files, campaign.json last. InputError for a value that no file can hold."""
        name = f"ratings.{self.name}"
        texts = {
            "items.jsonl": jsonl_text(ITEM, content.items, "items.jsonl"),
            name: (csv_text if self.name == "csv" else jsonl_text)(COLUMNS, rows_of(content), name),
        }
        header = encoded(HEADER, content, "campaign.json, campaign")
        raters = [
            encoded(RATER, person, f"campaign.json, raters, entry {number}")
            for number, person in enumerate(content.raters, start=1)
        ]
        digests = {file: hashlib.sha256(text.encode()).hexdigest() for file, text in texts.items()}
        sidecar = encoded(SIDECAR, Sidecar(VERSION, header, raters, digests), "campaign.json")
        texts["campaign.json"] = f"{json.dumps(sidecar, ensure_ascii=False, allow_nan=False, indent=1)}\n"
        return write_texts(path, texts), ()
