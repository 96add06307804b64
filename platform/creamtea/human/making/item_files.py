"""Which items show the files that an organiser gives (human/media.py), beside the source or as outputs."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

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
    given: Sequence[GivenFile], lines: Sequence[Line], settings: CampaignSettings, systems: Sequence[str]
) -> FilesByTarget:
    """Return the files of each segment, document, practice item and attention check.

    InputError for a file of something that is not there.
    """
    documents = {line.document for line in lines} - {""}
    written = {"tutorial": len(settings.tutorial), "attention": len(settings.attention)}
    found: dict[tuple[str, int | str], list[GivenFile]] = defaultdict(list)
    for file in given:
        missing = ""
        if file.target == "document":
            if file.number not in documents:
                listed = one_of(sorted(documents), file.number, "there are")
                missing = f"{key_name('documents')} has no document {str(file.number)!r}; {listed}"
        elif file.target == "segment":
            if int(file.number) > len(lines):
                missing = f"there is no segment {file.number}: the test set has {len(lines)}"
            elif file.output not in (None, *systems):
                missing = f"{shown(file.output)}: no such system; {one_of(systems, file.output, 'there are')}"
        elif int(file.number) > (there := written[file.target]):
            missing = f"there is no {file.target} item {file.number}: there are {there}"
        if missing:
            raise InputError(f"{file.place}: {missing}")
        found[file.target, file.number].append(file)
    return found


def with_identities(lines: Sequence[Line], files: FilesByTarget, systems: Sequence[str]) -> list[Line]:
    """Return the lines with what tells their outputs apart, where some outputs have files.

    InputError if a system whose outputs are all files lacks the file of a segment.
    """
    result, filed = [], set()
    for line in lines:
        of_line: dict[str, list[GivenFile]] = {system: [] for system in systems}
        for file in files.get(("segment", line.index + 1), ()):
            if file.output is not None:
                of_line[str(file.output)].append(file)
        filed |= {system for system, some in of_line.items() if some}
        identities = (
            distinct(text, [file.media.stored() for file in some])
            for text, some in zip(line.outputs, of_line.values(), strict=True)
        )
        result.append(dataclasses.replace(line, identities=tuple(identities)))
    for at, system in enumerate(systems):
        without = [line.index + 1 for line in result if not line.identities[at].strip()]
        if system in filed and without and not any(line.outputs[at].strip() for line in lines):
            raise InputError(
                f"system {system!r} has no texts, and no file for segment {without[0]}: give a file of each "
                "output"
            )
    return result


def with_files(item: ItemContent, files: Sequence[GivenFile], protocol: Protocol) -> ItemContent:
    """Return the item with those of its segment's files that are of its source and its outputs.

    InputError for a file that is given twice, too many, an output that is not there, and one without the text
    that raters of the protocol need.
    """
    seen: dict[tuple[str | None, str], GivenFile] = {}
    number: Counter[str | None] = Counter()
    media = []
    for file in files:
        system = file.output
        if isinstance(system, int):
            if system > len(item.systems):
                there = f"there is no output {system} of it: there are {len(item.systems)}"
                raise InputError(f"{file.place}: {there}")
            system = item.systems[system - 1]
        if system is not None and system not in item.systems:
            continue  # of another item of the segment
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
