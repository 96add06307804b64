"""Which files an organiser gives for which sources (a list in JSON Lines).

A file in JSON Lines has one object for each file beside a source:

    {"segment": 1, "file": "photos/tea.png", "description": "A cup of tea beside a scone"}
    {"document": "interview-3", "file": "interview-3.mp3"}
    {"tutorial": 1, "file": "practice.webm"}
    {"attention": 2, "file": "check.png"}

`segment` counts the test set's from 1; `document` is a name in `documents`; `tutorial` and `attention`
count the practice items and the attention checks from 1. The files are in the folder of this file, or below
it. A document's file is shown once on each of its pages, or with each of its segments where these are rated
alone. A file `interview-3.vtt` beside `interview-3.mp3` has its captions (`captions`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from creamtea.document.checked import read_lines
from creamtea.document.values import Strict
from creamtea.errors import InputError
from creamtea.human.making.new_items import NewItem
from creamtea.human.making.outputs import Line
from creamtea.human.media.captions import captions_of
from creamtea.human.media.files import (
    MAX_PER_ITEM,
    CheckedFile,
    Description,
    FileStore,
    ItemMedia,
    check_file,
    check_total,
    inside,
    keeper,
)
from creamtea.human.media.types import kind_of
from creamtea.wording import key_name

TARGETS = ("segment", "document", "tutorial", "attention")
Number = Annotated[int, Field(ge=1, le=10**9)]


class MediaLine(Strict):
    segment: Number | None = None
    document: Annotated[str, Field(min_length=1)] | None = None
    tutorial: Number | None = None
    attention: Number | None = None
    file: Annotated[str, Field(min_length=1)]
    description: Description = ""

    @model_validator(mode="after")
    def _says_beside_what(self) -> MediaLine:
        if sum(getattr(self, target) is not None for target in TARGETS) != 1:
            raise ValueError(f"one of {', '.join(TARGETS)} says beside what the file is shown")
        return self


@dataclass(frozen=True)
class Given:
    """A file that is checked and kept, and beside what it is shown: `target` is one of TARGETS, `number` a
    number from 1 or a document's name."""

    place: str  # "media.jsonl, line 3"
    target: str
    number: int | str
    media: ItemMedia
    sizes: Mapping[str, int]  # bytes of the file and of its captions, by SHA-256


def read_media(path: Path, store: FileStore) -> list[Given]:
    """The lines of a file, once all files that they name are checked and then kept in the store.

    InputError with file and line for what they must not be; nothing is kept then.
    """
    lines = read_lines(path, MediaLine, "media")
    checked = [_checked(path.parent, line.file, place) for place, line in lines]
    check_total({file.path: file.size for found in checked for file in found}.values(), path.name)
    keep = keeper(store)
    given = []
    for (place, line), found in zip(lines, checked, strict=True):
        digests = [keep(file) for file in found]
        media = ItemMedia(
            digest=digests[0],
            type=found[0].type,
            description=line.description,
            captions=digests[1] if len(found) > 1 else None,
        )
        sizes = {digest: file.size for digest, file in zip(digests, found, strict=True)}
        given.append(Given(place, *_target(line), media, sizes))
    return given


def _checked(folder: Path, name: str, place: str) -> list[CheckedFile]:
    """The file, and its captions where there are any."""
    file = check_file(inside(folder, name, place), place)
    captions = None if kind_of(file.type) == "image" else captions_of(folder, name, place)
    return [file] if captions is None else [file, captions]


def _target(line: MediaLine) -> tuple[str, int | str]:
    return next((target, value) for target in TARGETS if (value := getattr(line, target)) is not None)


# ---------------------------------------------------------------- into items


def add_media(pages: Sequence[Sequence[NewItem]], given: Sequence[Given], lines: Sequence[Line]) -> None:
    """Give the items their `media`: what is a document's with the first item of each page, and
    before what is a segment's. InputError for a segment or a document that is not there.
    """
    segments, documents = {line.index for line in lines}, {line.document for line in lines} - {""}
    for file in given:
        if file.target == "segment" and int(file.number) - 1 not in segments:
            raise InputError(
                f"{file.place}: there is no segment {file.number}: the test set has {len(segments)}"
            )
        if file.target == "document" and file.number not in documents:
            raise InputError(
                f"{file.place}: there is no document {str(file.number)!r}: name one of "
                f"{key_name('documents')}"
            )
    files = _by_target(given)
    for page in pages:
        for at, item in enumerate(page):
            of_document = files["document", item.document] if at == 0 else []
            _give(item, [*of_document, *files["segment", item.segment_index + 1]])


def add_to_written(items: Sequence[NewItem], given: Sequence[Given], target: str) -> None:
    """The same for practice items (`target` is "tutorial") and attention checks ("attention")."""
    for file in given:
        if file.target == target and not int(file.number) <= len(items):
            raise InputError(f"{file.place}: there is no {target} item {file.number}: there are {len(items)}")
    files = _by_target(given)
    for number, item in enumerate(items, start=1):
        _give(item, files[target, number])


def _by_target(given: Iterable[Given]) -> dict[tuple[str, int | str], list[Given]]:
    found: dict[tuple[str, int | str], list[Given]] = defaultdict(list)
    for file in given:
        found[file.target, file.number].append(file)
    return found


def _give(item: NewItem, files: Sequence[Given]) -> None:
    seen: dict[str, Given] = {}
    for file in files:
        first = seen.setdefault(file.media.digest, file)
        if first is not file:
            raise InputError(f"{file.place}: the same file as in {first.place}, beside the same source")
    if len(files) > MAX_PER_ITEM:
        raise InputError(f"{files[-1].place}: more than {MAX_PER_ITEM} files beside one source: leave it out")
    item.media = [file.media.stored() for file in files]
