"""Scores of an Appraise file as a campaign: items, controls tied to their originals, texts where given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from creamtea.errors import InputError
from creamtea.human.documents import domain_settings, read_documents
from creamtea.human.exchange.appraise import REFERENCE, AppraiseFile, Rated, occurrences, read_appraise
from creamtea.human.exchange.code_units import CodeUnits
from creamtea.human.exchange.content import Content, ItemContent
from creamtea.human.exchange.elsewhere import ImportFacts, made_elsewhere
from creamtea.human.exchange.files import Place, read_text, text_lines
from creamtea.human.exchange.losses import NotKept, counts, repeats
from creamtea.human.exchange.rows import GivenRating
from creamtea.human.exchange.statistics import read_statistics
from creamtea.human.protocols import find_protocol, usable_protocols
from creamtea.store.item_kinds import ItemKind
from creamtea.wording import counted, option

USUAL_PROTOCOL = "da"
SENT_TWICE = "all that an earlier line says, but for the end"
# kind, document, segment, system, and the number of the opinion (0: the first of a rater)
Key = tuple[ItemKind, str, int, str, int]


def read_appraise_campaign(
    path: Path, facts: ImportFacts, now: datetime
) -> tuple[Content, tuple[NotKept, ...]]:
    """The campaign that the scores of one language pair make, and what is not kept. Moments that the file
    lacks are `now`.

    `facts.protocol` is one that `reads_appraise`: the files do not tell them apart. Segments keep their
    numbers; where these are counted within documents (one number in two documents), the segments are numbered
    anew, document after document. Raises InputError for facts that do not fit.
    """
    protocol = facts.protocol or USUAL_PROTOCOL
    found = find_protocol(protocol)
    if not found.reads_appraise:
        known = " or ".join(kind.name for kind in usable_protocols() if kind.reads_appraise)
        raise InputError(
            f"{option('protocol')} {protocol}: Appraise's scores are of {known}", about="protocol"
        )
    statistics = None if facts.statistics is None else read_statistics(facts.statistics)
    file = read_appraise(path, found, statistics)
    ratings = _of_pair(file, facts.pair)
    marked = 0 if found.marks_errors else sum(rating.errors for rating in ratings)
    if marked and not any(rating.answer for rating in ratings):
        raise InputError(
            f"{file.name}: all scores are 0 and {marked} errors are marked, which are the ratings: "
            f"{option('protocol')} mqm reads them",
            about="protocol",
        )
    systems = tuple(sorted({rating.system for rating in ratings}))
    texts = _Texts(facts, systems, ratings)
    numbers = _segment_numbers(ratings, texts)
    keyed = [(rating, _key(rating, opinion)) for rating, opinion in occurrences(ratings)]
    positions = _positions([key for _, key in keyed])
    pair = ratings[0].source_language, ratings[0].target_language
    items = [_item(key, positions, numbers, texts) for key in positions]
    outputs = {item.position: item.outputs[0] for item in items}
    given = [
        _given(Place(file.name, rating.line), rating, positions[key], outputs[positions[key]], now)
        for rating, key in keyed
    ]
    content = made_elsewhere(facts, protocol, pair, systems, items, given)
    settings = {**content.settings, "references": [system for system in systems if system == REFERENCE]}
    if rule := "crowd" if file.crowd else "da-sqm" if protocol == "da-sqm" else "":
        settings["wmt"] = rule  # of stats.wmt.RULES; those of marked errors follow from the protocol
    settings |= domain_settings(texts.domains, content.test_set)
    content = replace(content, settings=settings)
    not_kept = counts(
        {
            "scores of whole documents": file.document_scores,
            "scores of practice (tutorials)": file.practice,
            "scores of documents that fill a task up (#incomplete, #dup)": file.filling,
            f"marked errors ({option('protocol')} esa keeps them)": marked,
            "scores of other language pairs": len(file.ratings) - len(ratings),
        }
    )
    return content, (*repeats(file.sent_twice, SENT_TWICE), *not_kept)


def _of_pair(file: AppraiseFile, pair: tuple[str, str] | None) -> tuple[Rated, ...]:
    pairs = file.pairs
    known = ", ".join("-".join(pair) for pair in pairs)
    if pair is None and len(pairs) > 1:
        raise InputError(
            f"{file.name}: scores of several language pairs ({known}); choose one with "
            f"{option('source-language')} and {option('target-language')}",
            about="source-language",
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
        systems=(system,),
        outputs=("" if bad else texts.output(system, document, segment),),  # no file has the spoilt text
        original=positions[_original(key)] if kind.is_control else None,
        degraded=system if bad else None,
    )


def _given(place: Place, rating: Rated, position: int, output: str, now: datetime) -> GivenRating:
    end = rating.end or now
    answer = rating.answer
    return GivenRating(
        place=place,
        rater=rating.rater,
        item=position,
        system=rating.system,
        step=answer if isinstance(answer, int) else None,
        payload=None if isinstance(answer, int) else _in_characters(place, answer, output),
        assigned_at=rating.start or now,
        submitted_at=end,
        rated_at=end,
        active_ms=rating.active_ms,
    )


def _in_characters(place: Place, payload: dict[str, Any], output: str) -> dict[str, Any]:
    """The answer with places that are characters of the output; as they stand in the file where nobody has
    it."""
    if not output:
        return payload
    units = CodeUnits(output, trimmed=True)
    try:
        spans = [
            span
            | {end: units.character(span[end]) for end in ("start", "end") if isinstance(span.get(end), int)}
            for span in payload["spans"]
        ]
    except ValueError as error:
        raise InputError(
            f"{place}, field errors: found {error}; allowed: places of its text in {option('output-of')}",
            about="output-of",
        ) from None
    return {**payload, "spans": spans}


class _Texts:
    """Sources and outputs by document and segment; "" where no file was given."""

    def __init__(self, facts: ImportFacts, systems: tuple[str, ...], ratings: Sequence[Rated]) -> None:
        unknown = sorted(set(facts.outputs) - set(systems))
        if unknown:
            raise InputError(
                f"{option('output-of')} {unknown[0]}: the file has no such system; it has "
                f"{', '.join(systems)}",
                about="output-of",
            )
        self.first = facts.first_segment
        self.sources = None if facts.sources is None else text_lines(facts.sources)
        self.outputs = {system: text_lines(path) for system, path in facts.outputs.items()}
        self.documents: dict[str, list[int]] | None = None
        self.domains: Mapping[str, str] = {}
        if facts.documents is not None:
            found = read_documents(read_text(facts.documents), facts.documents.name, with_domains=True)
            self.domains = found.domains
            places = {document: set(numbers) for document, numbers in found.lines.items()}
            if any(rating.segment - self.first not in places.get(rating.document, ()) for rating in ratings):
                self.documents = found.lines  # else segments are numbered as the test set's lines are

    def line(self, document: str, segment: int) -> int:
        """Where a segment stands in the test set, 0 for the first."""
        offset = segment - self.first
        if self.documents is None:
            if offset >= 0:
                return offset
        elif document not in self.documents:
            raise InputError(
                f"{option('documents')}: no document {document!r} in it, which the scores name",
                about="documents",
            )
        elif 0 <= offset < len(self.documents[document]):
            return self.documents[document][offset]
        raise InputError(
            f"segment {segment}{f' of document {document!r}' if document else ''} is not in the test set: "
            f"{option('first-segment')} says how the first segment is numbered, {option('documents')} which "
            "lines a document has",
            about="first-segment",
        )

    def source(self, document: str, segment: int) -> str:
        return "" if self.sources is None else self._text(self.sources, option("sources"), document, segment)

    def output(self, system: str, document: str, segment: int) -> str:
        if system not in self.outputs:
            return ""
        return self._text(self.outputs[system], f"{option('output-of')} {system}", document, segment)

    def _text(self, lines: list[str], option: str, document: str, segment: int) -> str:
        at = self.line(document, segment)
        if at >= len(lines):
            raise InputError(
                f"{option}: {counted(len(lines), 'line')} in the file, none for segment {segment}"
            )
        return lines[at]
