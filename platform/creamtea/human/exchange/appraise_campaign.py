"""Scores of an Appraise file as a campaign: items, controls tied to their originals, texts where given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from creamtea.errors import InputError
from creamtea.human.exchange.appraise import AppraiseFile, Rated, occurrences
from creamtea.human.exchange.content import AnswerContent, Content, ItemContent, RaterContent, ScoreContent
from creamtea.human.exchange.files import read_text
from creamtea.human.protocols import find_protocol, usable_protocols
from creamtea.store.item_kinds import ItemKind

# kind, document, segment, system, and the number of the opinion (0: the first of a rater)
Key = tuple[ItemKind, str, int, str, int]


@dataclass(frozen=True)
class AppraiseOptions:
    """What the file does not say. Texts are files with one line per segment of the test set."""

    name: str
    protocol: str  # one that `reads_appraise`: the files do not tell them apart
    test_set: str
    pair: tuple[str, str] | None = None  # languages; needed where the file has several pairs
    sources: Path | None = None
    outputs: Mapping[str, Path] = field(default_factory=dict)  # system → file
    documents: Path | None = None  # DOMAIN TAB DOC per line, for segments counted within documents
    first_segment: int = 1  # the number of a first segment


def appraise_campaign(file: AppraiseFile, options: AppraiseOptions, now: datetime) -> Content:
    """The campaign that the scores of one language pair make. Moments that the file lacks are `now`.

    Segments keep their numbers; where these are counted within documents (one number in two documents), the
    segments are numbered anew, document after document. Raises InputError for options that do not fit.
    """
    if not find_protocol(options.protocol).reads_appraise:
        raise InputError(
            f"--protocol {options.protocol}: Appraise's scores are of {' or '.join(appraise_protocols())}"
        )
    ratings = _of_pair(file, options.pair)
    systems = tuple(sorted({rating.system for rating in ratings}))
    texts = _Texts(options, systems)
    numbers = _segment_numbers(ratings, texts)
    keyed = [(rating, _key(rating, opinion)) for rating, opinion in occurrences(ratings)]
    positions = _positions([key for _, key in keyed])
    starts = [rating.start for rating in ratings if rating.start is not None]
    first, last = min(starts, default=now), max((rating.end for rating in ratings if rating.end), default=now)
    people = dict.fromkeys(rating.rater for rating in ratings)
    rated_by: dict[Key, int] = defaultdict(int)
    for _, key in keyed:
        rated_by[key] += 1
    return Content(
        name=options.name,
        study=None,
        test_set=options.test_set,
        protocol=options.protocol,
        systems=systems,
        source_language=ratings[0].source_language,
        target_language=ratings[0].target_language,
        ratings_per_item=max(rated_by.values()),
        seed=0,
        instructions="",
        settings={},
        state="closed",
        registered=None,
        created_at=first,
        launched_at=first,
        closed_at=last,
        raters=tuple(RaterContent(rater, first) for rater in people),
        items=tuple(_item(key, positions, numbers, texts) for key in positions),
        answers=tuple(_answer(rating, positions[key], now) for rating, key in keyed),
    )


def appraise_protocols() -> list[str]:
    return [protocol.name for protocol in usable_protocols() if protocol.reads_appraise]


def _of_pair(file: AppraiseFile, pair: tuple[str, str] | None) -> tuple[Rated, ...]:
    pairs = file.pairs
    known = ", ".join("-".join(pair) for pair in pairs)
    if pair is None and len(pairs) > 1:
        raise InputError(
            f"{file.name}: scores of several language pairs ({known}); choose one with --source-language and "
            "--target-language"
        )
    wanted = pair or pairs[0]
    ratings = tuple(
        rating for rating in file.ratings if (rating.source_language, rating.target_language) == wanted
    )
    if not ratings:
        raise InputError(f"{file.name}: no scores of {'-'.join(wanted)}; it has {known}")
    return ratings


def _key(rating: Rated, opinion: int) -> Key:
    return (rating.kind, rating.document, rating.segment, rating.system, opinion)


def _original(key: Key) -> Key:
    return (ItemKind.RATED, *key[1:4], 0)


def _positions(keys: list[Key]) -> dict[Key, int]:
    """Items in their order of appearance. The original of a control is an item, rated in the file or not."""
    wanted: dict[Key, None] = {}
    for key in keys:
        if key[0].is_control:
            wanted.setdefault(_original(key))
        wanted.setdefault(key)
    return {key: position for position, key in enumerate(wanted)}


def _segment_numbers(ratings: tuple[Rated, ...], texts: _Texts) -> dict[tuple[str, int], int]:
    """(document, segment) → number in the test set."""
    places = dict.fromkeys((rating.document, rating.segment) for rating in ratings)
    if texts.documents is not None:
        return {place: texts.line(*place) for place in places}
    if len({segment for _, segment in places}) == len(places):
        return {place: place[1] for place in places}
    documents = list(dict.fromkeys(document for document, _ in places))
    ordered = sorted(places, key=lambda place: (documents.index(place[0]), place[1]))
    return {place: number for number, place in enumerate(ordered)}


def _item(
    key: Key, positions: dict[Key, int], numbers: dict[tuple[str, int], int], texts: _Texts
) -> ItemContent:
    kind, document, segment, system, _ = key
    bad = kind is ItemKind.BAD_REFERENCE
    return ItemContent(
        position=positions[key],
        kind=kind,
        segment=numbers[document, segment],
        document=document,
        source=texts.source(document, segment),
        context=(),
        systems=(system,),
        outputs=("" if bad else texts.output(system, document, segment),),  # no file has the spoilt text
        weight=1.0,
        original=positions[_original(key)] if kind.is_control else None,
        degraded=system if bad else None,
    )


def _answer(rating: Rated, position: int, now: datetime) -> AnswerContent:
    end = rating.end or now
    return AnswerContent(
        item=position,
        rater=rating.rater,
        order=((rating.system,),),
        assigned_at=rating.start or now,
        submitted_at=end,
        skipped_at=None,
        skip_reason="",
        comment="",
        active_ms=rating.active_ms,
        scores=(ScoreContent(rating.system, 1, rating.step, end),),
    )


class _Texts:
    """Sources and outputs by document and segment; "" where no file was given."""

    def __init__(self, options: AppraiseOptions, systems: tuple[str, ...]) -> None:
        unknown = sorted(set(options.outputs) - set(systems))
        if unknown:
            raise InputError(
                f"--output-of {unknown[0]}: the file has no such system; it has {', '.join(systems)}"
            )
        self.first = options.first_segment
        self.sources = None if options.sources is None else _file_lines(options.sources)
        self.outputs = {system: _file_lines(path) for system, path in options.outputs.items()}
        self.documents = None if options.documents is None else _document_lines(options.documents)

    def line(self, document: str, segment: int) -> int:
        """Where a segment stands in the test set, 0 for the first."""
        offset = segment - self.first
        if self.documents is None:
            if offset >= 0:
                return offset
        elif document not in self.documents:
            raise InputError(f"--documents: no document {document!r} in it, which the scores name")
        elif 0 <= offset < len(self.documents[document]):
            return self.documents[document][offset]
        raise InputError(
            f"segment {segment}{f' of document {document!r}' if document else ''} is not in the test set: "
            "--first-segment says how the first segment is numbered, --documents which lines a document has"
        )

    def source(self, document: str, segment: int) -> str:
        return "" if self.sources is None else self._text(self.sources, "--sources", document, segment)

    def output(self, system: str, document: str, segment: int) -> str:
        if system not in self.outputs:
            return ""
        return self._text(self.outputs[system], f"--output-of {system}", document, segment)

    def _text(self, lines: list[str], option: str, document: str, segment: int) -> str:
        at = self.line(document, segment)
        if at >= len(lines):
            raise InputError(f"{option}: {len(lines)} lines in the file, none for segment {segment}")
        return lines[at]


def _file_lines(path: Path) -> list[str]:
    lines = read_text(path).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _document_lines(path: Path) -> dict[str, list[int]]:
    """Document → the numbers of its lines, 0 for the first."""
    lines_of: dict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(_file_lines(path)):
        words = line.split()
        if len(words) != 2:
            raise InputError(f"{path.name}, line {number + 1}: found {line[:60]!r}; allowed: DOMAIN TAB DOC")
        lines_of[words[1]].append(number)
    return dict(lines_of)
