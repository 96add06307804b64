"""An export as a folder: campaign.json, items.jsonl, and ratings.csv or ratings.jsonl (docs/exchange.md).

campaign.json carries what was registered at launch with its digest, and the sha256 of the other two files:
an import refuses files that were changed or mixed up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from creamtea.errors import InputError
from creamtea.human.formats.answers import checked_items, with_answers
from creamtea.human.formats.columns import Document, columns_of, one_of
from creamtea.human.formats.content import Content, ItemContent, RaterContent
from creamtea.human.formats.files import (
    csv_text,
    decoded,
    encoded,
    json_text,
    jsonl_text,
    read_json,
    read_records,
)
from creamtea.human.formats.rows import COLUMNS, given_rating, rows_of
from creamtea.new_folder import write_texts
from creamtea.wording import file_name, option

FORMAT = "creamtea campaign 3"  # raised with every change of a column
_ADDED_TO_3 = (
    *("page", "references", "media", "chance", "drawn", "output_chances", "output_drawn"),
    *("document_step", "proposals"),
)
# the columns of either file that each does not have
EARLIER_FORMATS = {
    "creamtea campaign 1": ("payload", "warned", *_ADDED_TO_3),
    "creamtea campaign 2": ("warned", *_ADDED_TO_3),
}
FORMATS = ("csv", "jsonl")

HEADER = columns_of(Content, leave_out=("raters", "items", "answers"))
RATER, ITEM = columns_of(RaterContent), columns_of(ItemContent)


_READABLE = (FORMAT, *EARLIER_FORMATS)
ReadableFormat = Annotated[str, one_of(lambda: _READABLE), f"one of {', '.join(_READABLE)}"]


@dataclass(frozen=True)
class Sidecar:
    """campaign.json."""

    format: ReadableFormat
    campaign: Document
    raters: Annotated[list[Document], "a list of objects"]
    sha256: Document  # by the file's name


SIDECAR = columns_of(Sidecar)

# ---------------------------------------------------------------- writing


def write_folder(content: Content, path: Path, kind: str) -> list[Path]:
    """Write the export into a folder; the files, campaign.json last. Raises InputError with its place for a
    value that no file can hold (a NUL character)."""
    name = f"ratings.{kind}"
    texts = {
        "items.jsonl": jsonl_text(ITEM, content.items, "items.jsonl"),
        name: (csv_text if kind == "csv" else jsonl_text)(COLUMNS, rows_of(content), name),
    }
    header = encoded(HEADER, content, "campaign.json, campaign")
    raters = [
        encoded(RATER, person, f"campaign.json, raters, entry {number}")
        for number, person in enumerate(content.raters, start=1)
    ]
    digests = {file: hashlib.sha256(text.encode()).hexdigest() for file, text in texts.items()}
    texts["campaign.json"] = json_text(SIDECAR, Sidecar(FORMAT, header, raters, digests), "campaign.json")
    return write_texts(path, texts)


# ---------------------------------------------------------------- reading


def read_folder(path: Path, kind: str) -> Content:
    """The campaign in an export's folder.

    Raises InputError with file, line, column, what was found and what is allowed.
    """
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
    missing = EARLIER_FORMATS.get(sidecar.format, ())
    items = _items(path / "items.jsonl", content, missing)
    content = replace(content, raters=_raters(sidecar.raters), items=items)
    required = [column for column in COLUMNS if column not in missing]
    return with_answers(
        content, [given_rating(row) for row in read_records(ratings, kind, COLUMNS, required)]
    )


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
    people = [
        RaterContent(**decoded(f"campaign.json, raters, entry {number}", entry, RATER))
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


def _items(path: Path, content: Content, missing: Sequence[str]) -> tuple[ItemContent, ...]:
    records = read_records(path, "jsonl", ITEM, [column for column in ITEM if column not in missing])
    items = [(record.place, ItemContent(**record.values)) for record in records]
    return checked_items(items, content.systems)
