"""The common parts of formats: the facts that an import is given, losses, and the base class of a format.

A format is a file in this folder or in a plug-in: a class with its name, the look of its files, and how it
reads and writes them (docs/extending.md has an example).
"""

# ruff: noqa: RUF009 (each `_asked` makes a field of its own)

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, get_type_hints

from creamtea.errors import InputError, wrong_option
from creamtea.human.protocols import Protocol, find_protocol
from creamtea.human.protocols.taxonomy import Taxonomy
from creamtea.human.record import Content
from creamtea.wording import option
from creamtea.words import meant


@dataclass(frozen=True)
class NotKept:
    """A kind of data that an import or an export loses, and its count.

    `once`: a campaign has it only once. `note`: it is kept, but not as a reader may expect.
    """

    count: int
    what: str
    once: bool = False
    note: bool = False

    @property
    def number(self) -> str:
        return "" if self.once else f"{self.count:,}"

    def __str__(self) -> str:
        return self.what if self.once else f"{self.what} ({self.number})"


def counts(numbers: Mapping[str, int], note: bool = False) -> tuple[NotKept, ...]:
    """Return an entry for each count above 0."""
    return tuple(NotKept(count, what, note=note) for what, count in numbers.items() if count)


def known_keys(
    written: Mapping[str, Any], known: Collection[str], where: str, left: Counter[str]
) -> dict[str, Any]:
    """Return the values of the known keys; `left` counts the others by name."""
    left.update(f"values of {str(key)[:60]!r} in {where}" for key in written if key not in known)
    return {key: value for key, value in written.items() if key in known}


Named = TypeVar("Named")


def first_places(names: Iterable[Named]) -> dict[Named, int]:
    """Number the different names in the order in which they appear."""
    return {name: place for place, name in enumerate(dict.fromkeys(names))}


def repeats(lines: Sequence[int], said: str = "all that an earlier line says") -> tuple[NotKept, ...]:
    """Count lines that repeat an earlier line by accident; `said`: what they repeat."""
    if not lines:
        return ()
    where = "line " if len(lines) == 1 else "lines "
    where += ", ".join(f"{line:,}" for line in lines[:3]) + (", …" if len(lines) > 3 else "")
    return (NotKept(len(lines), f"lines that say {said}: sent twice, and kept once ({where})"),)


APPRAISE, MQM, MT_METRICS_EVAL, PEARMUT = "appraise", "mqm", "mt-metrics-eval", "pearmut"
FOREIGN = (APPRAISE, MQM, MT_METRICS_EVAL, PEARMUT)


@dataclass(frozen=True)
class ImportOption:
    """How the command line and the organiser's page ask for one of the `ImportFacts`."""

    title: str  # of the field on the page
    value: str  # the placeholder of the value in `--help`
    help: str
    endings: tuple[str, ...] = ()  # of the file that the page accepts
    lowest: float | None = None  # for a number
    highest: float | None = None


def _asked(title: str, value: str, help: str, empty: Callable[[], Any] = lambda: None, **more: Any) -> Any:
    return field(default_factory=empty, metadata={"option": ImportOption(title, value, help, **more)})


@dataclass(frozen=True)
class ImportFacts:
    """Facts about a campaign that its file of ratings lacks. Each field except the name is an option."""

    name: str
    protocol: str | None = _asked("Protocol", "NAME", "The protocol, if the file does not name it.")
    test_set: str | None = _asked("Test set", "NAME", "The name of the test set; by default the campaign's.")
    source_language: str | None = _asked(
        "Source language", "CODE", "The source language, if the file does not name it."
    )
    target_language: str | None = _asked(
        "Target language", "CODE", "The target language, if the file does not name it."
    )
    baseline: str | None = _asked(
        "Baseline", "SYSTEM", "The system that others are compared with; by default the first."
    )
    delta: float | None = _asked(
        "Smallest difference that matters",
        "POINTS",
        "The smallest difference that matters, in points of the scale; by default the protocol's.",
        lowest=0.0,
    )
    leave_out: tuple[str, ...] = _asked(
        "Systems to leave out", "SYSTEM[,…]", "Systems to leave out, with their ratings and pairs.", tuple
    )
    taxonomy: Taxonomy | None = _asked(
        "Taxonomy",
        "FILE",
        "For ratings with marked errors: the taxonomy that weights them. An export has its own.",
        endings=("yaml", "yml", "json"),
    )
    scores: str | None = _asked(
        "Human scores",
        "NAME",
        "Which human scores, if there are several: the NAME in human-scores/SOURCE-TARGET.NAME.seg.score.",
    )
    campaign_file: Path | None = _asked(
        "Pearmut's campaign",
        "FILE",
        "The JSON file of the campaign, which names the protocol.",
        endings=("json",),
    )
    sources: Path | None = _asked(
        "Sources", "FILE", "The source texts, one line per segment.", endings=("txt",)
    )
    output_of: Mapping[str, Path] = _asked(
        "Outputs",
        "SYSTEM=FILE",
        "A system's texts, one line per segment. Repeatable.",
        dict,
        endings=("txt",),
    )
    documents: Path | None = _asked(
        "Documents",
        "FILE",
        "DOMAIN TAB DOCUMENT, one line per segment, if segments are counted within documents.",
        endings=("txt", "docs", "tsv"),
    )
    first_segment: int | None = _asked(
        "First segment",
        "0|1",
        "The number of the first segment; by default 0 if the file has a segment 0, else 1.",
        lowest=0,
        highest=1,
    )
    segment_scores: Path | None = _asked(
        "Published segment scores",
        "FILE",
        "SYSTEM SCORE per segment, as published; shows which lines of the documents the campaign has.",
        endings=("score", "txt", "tsv"),
    )
    rater_statistics: Path | None = _asked(
        "Means and deviations of raters",
        "FILE",
        "The raters' means and deviations, to turn standardised scores (z) back into raw scores.",
        endings=("txt", "tsv", "csv"),
    )

    @property
    def pair(self) -> tuple[str, str] | None:
        """Return source and target language; None if neither is given.

        InputError if only one is given.
        """
        if self.source_language and self.target_language:
            return self.source_language, self.target_language
        if self.source_language or self.target_language:
            both = f"{option('source-language')} and {option('target-language')}"
            raise InputError(f"{both} go together: give both or neither", about="source-language")
        return None

    def for_systems(self, systems: Sequence[str]) -> Self:
        """Return a copy with the systems' names as the file writes them (in other Unicode forms, say).

        InputError for a baseline that is not one of the systems.
        """
        baseline = None if self.baseline is None else meant(self.baseline, systems)
        if baseline is not None and baseline not in systems:
            raise wrong_option("baseline", f"no such system; there are {', '.join(systems)}", baseline)
        outputs = {meant(system, systems): path for system, path in self.output_of.items()}
        leave_out = tuple(meant(system, systems) for system in self.leave_out)
        return replace(self, baseline=baseline, output_of=outputs, leave_out=leave_out)

    def find_protocol(self, name: str) -> Protocol:
        """Find the protocol of this name, bound to the taxonomy.

        InputError if there is a taxonomy but raters of the protocol mark no errors.
        """
        found = find_protocol(name)
        if self.taxonomy is None:
            return found
        if found.usual_taxonomy is None:
            none = f"is for marked errors, and {name} has none: leave it out"
            raise InputError(f"{option('taxonomy')} {none}", about="taxonomy")
        return found.with_settings({"taxonomy": self.taxonomy.model_dump()})


@cache
def import_options() -> dict[str, tuple[Any, ImportOption]]:
    """Return the type and the declaration of each option of an import, by its field of `ImportFacts`."""
    types = get_type_hints(ImportFacts)
    return {
        each.name: (types[each.name], each.metadata["option"])
        for each in fields(ImportFacts)
        if each.metadata
    }


def several_pairs(found: str) -> InputError:
    """Return an InputError about files of several language pairs."""
    options = f"{option('source-language')} and {option('target-language')}"
    return InputError(f"{found}; choose one with {options}", about="source-language")


Read = tuple[Content, tuple[NotKept, ...]]  # the campaign, and the losses
Written = tuple[list[Path], tuple[NotKept, ...]]  # the files, and the losses


def first_line(text: str) -> str:
    """Return the first line of a file that is not blank."""
    return text.lstrip("\ufeff \t\r\n").split("\n", 1)[0].rstrip("\r")


class NothingToExport(InputError):
    """A campaign has nothing that the format can hold: no ratings that count, say."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}: nothing to export")


def cannot_hold(why: str, about: str = "") -> InputError:
    """Return an InputError about something that a format cannot hold."""
    return InputError(f"{why}; export as csv or jsonl", about=about)


class Format:
    """Files of ratings: `read` makes a campaign from them, `write` makes them from a campaign."""

    name: str  # the value of `--format`
    title: str  # on pages
    expected: str  # how such files begin, for the message that no format recognises a file
    options: ClassVar[Collection[str]] = ()  # fields of ImportFacts that other formats do not read
    has_media: ClassVar[bool] = False  # whether exports have the media files, in a folder
    of_test_set: ClassVar[bool] = False  # whether `write` needs `Content.whole`, the whole test set
    only_file: ClassVar[str] = ""  # the name of an export's only file; its folder can be imported, too

    def located(self, path: Path) -> Path:
        """Return the path to read: an export's only file if `path` is its folder, else `path`."""
        inside = path / self.only_file
        return inside if self.only_file and inside.is_file() else path

    def recognises(self, path: Path, text: str) -> bool:
        """Return True if the folder or file at `path` has this format; `text` is the file's content."""
        return False

    def read(self, path: Path, facts: ImportFacts, now: datetime) -> Read:
        """Return the campaign and the losses. Moments that the files lack become `now`.

        InputError with file, line, what was found and what is allowed.
        """
        raise wrong_option("format", "it can only be written", self.name)

    def write(self, content: Content, path: Path) -> Written:
        """Write the campaign into a new folder. InputError for what the format cannot hold."""
        raise wrong_option("format", "it can only be read", self.name)


# The number of the first segment in each format. The database counts segments from 0, and reports use the
# file's numbers (`CampaignSettings.first_segment`).
FIRST_SEGMENT = {"csv": 0, "jsonl": 0, APPRAISE: 1, MQM: 1}


def end_with_text(error: dict[str, Any], length: int, notes: Counter[str]) -> None:
    """Cut an error at the end of its text; an error that begins after the end becomes an omission."""
    if error.get("end", -1) < length:
        return
    if error["start"] < length:
        error["end"] = length - 1
        notes["errors that end after the end of the text: they end with it here"] += 1
    else:
        del error["start"], error["end"]
        notes["errors marked after the end of the text: read as omissions"] += 1
