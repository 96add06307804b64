"""Assign an organiser's files (human/media.py) to items, beside the source or as outputs."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from creamtea.document.mistakes import one_of, shown
from creamtea.errors import InputError
from creamtea.human.making.settings import CampaignSettings
from creamtea.human.making.texts import Line
from creamtea.human.media import MAX_PER_PLACE, GivenFile, distinct
from creamtea.human.protocols import Protocol
from creamtea.human.record import ItemContent
from creamtea.wording import key_name

FilesByTarget = Mapping[tuple[str, int | str], Sequence[GivenFile]]  # by target, and its number or name


def files_by_target(
    given: Sequence[GivenFile],
    documents: Collection[str],
    segments: int | None,
    settings: CampaignSettings,
    systems: Sequence[str],
) -> FilesByTarget:
    """Return the files of each segment, document, practice item and attention check.

    `segments`: of the test set; None if not known. InputError for a file whose target does not exist.
    """
    written = {"tutorial": len(settings.tutorial), "attention": len(settings.attention)}
    files: dict[tuple[str, int | str], list[GivenFile]] = defaultdict(list)
    for file in given:
        missing = ""
        if file.target == "document":
            if file.number not in documents:
                listed = one_of(sorted(documents), file.number, "there are")
                missing = f"{key_name('documents')} has no document {str(file.number)!r}; {listed}"
        elif file.target == "segment":
            if segments is not None and int(file.number) > segments:
                missing = f"there is no segment {file.number}: the test set has {segments}"
            elif file.output not in (None, *systems):
                missing = f"{shown(file.output)}: no such system; {one_of(systems, file.output, 'there are')}"
        elif int(file.number) > (count := written[file.target]):
            missing = f"there is no {file.target} item {file.number}: there are {count}"
        if missing:
            raise InputError(f"{file.place}: {missing}")
        files[file.target, file.number].append(file)
    return files


def with_identities(lines: Sequence[Line], files: FilesByTarget, systems: Sequence[str]) -> list[Line]:
    """Return the lines with the identities of their outputs (`media.distinct`), as some outputs have files.

    InputError if a system whose outputs are all files lacks the file of a segment.
    """
    result, filed = [], set()
    for line in lines:
        of_line: dict[str, list[GivenFile]] = {system: [] for system in systems}
        for file in files.get(("segment", line.index + 1), ()):
            if file.output is not None:
                of_line[str(file.output)].append(file)
        filed |= {system for system, own in of_line.items() if own}
        identities = (
            distinct(text, [file.media.stored() for file in own])
            for text, own in zip(line.outputs, of_line.values(), strict=True)
        )
        result.append(dataclasses.replace(line, identities=tuple(identities)))
    for position, system in enumerate(systems):
        without = [line.index + 1 for line in result if not line.identities[position].strip()]
        if system in filed and without and not any(line.outputs[position].strip() for line in lines):
            missing = f"system {system!r} has no texts, and no file for segment {without[0]}"
            raise InputError(f"{missing}: give a file of each output")
    return result


def with_files(item: ItemContent, files: Sequence[GivenFile], protocol: Protocol) -> ItemContent:
    """Return the item with its segment's files that belong to its source and its outputs.

    InputError for a repeated file, too many files, an unknown output, and an output without the text that
    raters of the protocol need.
    """
    seen: dict[tuple[str | None, str], GivenFile] = {}
    number: Counter[str | None] = Counter()
    media = []
    for file in files:
        system = file.output
        if isinstance(system, int):
            if system > len(item.systems):
                missing = f"there is no output {system} of it: there are {len(item.systems)}"
                raise InputError(f"{file.place}: {missing}")
            system = item.systems[system - 1]
        if system is not None and system not in item.systems:
            continue  # another item of the segment shows it
        where = "beside the same source" if system is None else "of the same output"
        first = seen.setdefault((system, file.media.digest), file)
        if first is not file:
            raise InputError(f"{file.place}: the same file as in {first.place}, {where}")
        number[system] += 1
        if number[system] > MAX_PER_PLACE:
            place = "beside one source" if system is None else "of one output"
            raise InputError(f"{file.place}: more than {MAX_PER_PLACE} files {place}: leave it out")
        needs_text = protocol.marks_errors or protocol.edits_text
        if needs_text and system is not None and not item.outputs[item.systems.index(system)].strip():
            act = "correct" if protocol.edits_text else "mark errors in"
            raise InputError(
                f"{file.place}: the output has no text, which raters of {protocol.name} {act}: give its text "
                "(a transcript, say), or choose a protocol that needs none, such as da"
            )
        media.append(file.media.model_copy(update={"system": system}).stored())
    return dataclasses.replace(item, media=tuple(media))
