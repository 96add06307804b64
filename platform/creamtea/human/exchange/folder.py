"""An export as a folder: campaign.json, items.jsonl, and ratings.csv or ratings.jsonl (docs/exchange.md).

campaign.json carries what was registered at launch with its digest, and the sha256 of the other two files:
an import refuses files that were changed or mixed up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from creamtea.errors import InputError
from creamtea.human.exchange import columns
from creamtea.human.exchange.answers import answers_of, checked_items
from creamtea.human.exchange.columns import Kind
from creamtea.human.exchange.content import Content, ItemContent, RaterContent
from creamtea.human.exchange.files import csv_text, json_text, jsonl_text, read_csv, read_json, read_jsonl
from creamtea.human.exchange.rows import COLUMNS, rows_of
from creamtea.store.item_kinds import ItemKind
from creamtea.store.tables import CAMPAIGN_STATES

FORMAT = "creamtea campaign 2"  # raised with every change of a column
EARLIER_FORMATS = {"creamtea campaign 1": ("payload",)}  # the columns that each does not have
FORMATS = ("csv", "jsonl")

HEADER: dict[str, Kind] = {
    "name": columns.NAME,
    "study": columns.optional(columns.NAME),
    "test_set": columns.NAME,
    "protocol": columns.PROTOCOL,
    "systems": columns.NAMES,
    "source_language": columns.NAME,
    "target_language": columns.NAME,
    "ratings_per_item": columns.INTEGER,
    "seed": columns.LONG,
    "instructions": columns.TEXT,
    "settings": columns.DOCUMENT,
    "state": columns.one_of(CAMPAIGN_STATES),
    "registered": columns.optional(columns.DOCUMENT),
    "created_at": columns.MOMENT,
    "launched_at": columns.optional(columns.MOMENT),
    "closed_at": columns.optional(columns.MOMENT),
}
RATER: dict[str, Kind] = {
    "pseudonym": columns.NAME,
    "created_at": columns.MOMENT,
    "consented_at": columns.optional(columns.MOMENT),
    "excluded_at": columns.optional(columns.MOMENT),
    "forgotten_at": columns.optional(columns.MOMENT),
}
ITEM: dict[str, Kind] = {
    "position": columns.INTEGER,
    "kind": columns.one_of(tuple(ItemKind)),
    "segment": columns.INTEGER,
    "document": columns.TEXT,
    "source": columns.TEXT,
    "context": columns.TEXTS,
    "systems": columns.NAMES,
    "outputs": columns.TEXTS,
    "weight": columns.WEIGHT,
    "original": columns.optional(columns.INTEGER),
    "degraded": columns.optional(columns.NAME),
    "guidance": columns.optional(columns.DOCUMENT),
}


def _objects(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise ValueError
    return [columns.DOCUMENT.from_json(entry) for entry in value]


SIDECAR: dict[str, Kind] = {
    "format": columns.one_of((FORMAT, *EARLIER_FORMATS)),
    "campaign": columns.DOCUMENT,
    "raters": Kind("a list of objects", _objects, lambda cell: cell),
    "sha256": columns.DOCUMENT,
}


# ---------------------------------------------------------------- writing


def write_folder(content: Content, path: Path, kind: str) -> list[Path]:
    """Write the export into a folder that is new or empty; the files, campaign.json last.

    Raises InputError for a folder with something in it, and with its place for a value that no file can hold
    (a NUL character).
    """
    rows = [vars(row) for row in rows_of(content)]
    name = f"ratings.{kind}"
    texts = {
        "items.jsonl": jsonl_text(ITEM, [vars(item) for item in content.items], "items.jsonl"),
        name: (csv_text if kind == "csv" else jsonl_text)(COLUMNS, rows, name),
    }
    header = _json_values(HEADER, {field: getattr(content, field) for field in HEADER}, "campaign")
    raters = [
        _json_values(RATER, asdict(person), f"raters, entry {number}")
        for number, person in enumerate(content.raters, start=1)
    ]
    digests = {file: hashlib.sha256(text.encode()).hexdigest() for file, text in texts.items()}
    sidecar = {"format": FORMAT, "campaign": header, "raters": raters, "sha256": digests}
    texts["campaign.json"] = json_text(SIDECAR, sidecar, "campaign.json")
    make_empty_folder(path)
    for file, text in texts.items():
        (path / file).write_bytes(text.encode())
    return [path / file for file in texts]


def make_empty_folder(path: Path) -> None:
    """InputError where something lies already: an export never overwrites."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"--output {path}: something is there already; give a folder that is new or empty")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--output {path}: {error.strerror or error}") from None


def _json_values(kinds: Mapping[str, Kind], values: Mapping[str, Any], where: str) -> dict[str, Any]:
    return {
        name: kind.encode(values[name], f"campaign.json, {where}, column {name}")
        for name, kind in kinds.items()
    }


# ---------------------------------------------------------------- reading


def read_folder(path: Path, kind: str) -> Content:
    """The campaign in an export's folder.

    Raises InputError with file, line, column, what was found and what is allowed.
    """
    sidecar = read_json(path / "campaign.json", SIDECAR)
    header = _values(HEADER, sidecar["campaign"], "campaign")
    content = Content(**header)
    ratings = path / f"ratings.{kind}"
    if not ratings.is_file():
        raise InputError(f"{path}: no ratings.{kind}; --format says which file of ratings to read")
    _check_digests(path, sidecar["sha256"], ("items.jsonl", ratings.name))
    content = replace(content, raters=_raters(sidecar["raters"]), items=_items(path / "items.jsonl", content))
    missing = EARLIER_FORMATS.get(sidecar["format"], ())
    required = [column for column in COLUMNS if column not in missing]
    records = (read_csv if kind == "csv" else read_jsonl)(ratings, COLUMNS, required)
    without = dict.fromkeys(missing)
    filled = [replace(record, values=without | record.values) for record in records]
    return replace(content, answers=answers_of(filled, content))


def _values(kinds: Mapping[str, Kind], values: Mapping[str, Any], where: str) -> dict[str, Any]:
    place = f"campaign.json, {where}"
    for name in values:
        if name not in kinds:
            raise InputError(f"{place}, column {name}: found an unknown column; allowed: {', '.join(kinds)}")
    for name in kinds:
        if name not in values:
            raise InputError(f"{place}, column {name}: missing; needed: {', '.join(kinds)}")
    return {name: kind.decode(values[name], f"{place}, column {name}") for name, kind in kinds.items()}


def _check_digests(path: Path, digests: Mapping[str, Any], files: tuple[str, ...]) -> None:
    for name in files:
        try:
            digest = hashlib.sha256((path / name).read_bytes()).hexdigest()
        except OSError as error:
            raise InputError(f"{path / name}: {error.strerror or error}; an export has this file") from None
        if digest != digests.get(name):
            raise InputError(
                f"{name}: its sha256 is not the one in campaign.json: the file was changed, or is another "
                "export's; import the file of ratings alone to read changed ratings (docs/exchange.md)"
            )


def _raters(entries: list[dict[str, Any]]) -> tuple[RaterContent, ...]:
    people = [
        RaterContent(**_values(RATER, entry, f"raters, entry {number}"))
        for number, entry in enumerate(entries, start=1)
    ]
    seen: set[str] = set()
    for number, person in enumerate(people, start=1):
        if person.pseudonym in seen:
            raise InputError(
                f"campaign.json, raters, entry {number}, column pseudonym: found {person.pseudonym!r} again; "
                "allowed: each rater once"
            )
        seen.add(person.pseudonym)
    return tuple(people)


def _items(path: Path, content: Content) -> tuple[ItemContent, ...]:
    names = [field.name for field in fields(ItemContent)]
    return checked_items(
        [
            (record, ItemContent(**{name: record.values[name] for name in names}))
            for record in read_jsonl(path, ITEM)
        ],
        content.systems,
    )
