"""Scores of an Appraise file as a campaign: items, controls tied to their originals, texts where given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from creamtea.errors import InputError
from creamtea.human.formats.appraise import REFERENCE, AppraiseFile, Rated, occurrences, read_appraise
from creamtea.human.formats.code_units import CodeUnits
from creamtea.human.formats.content import Content, ItemContent
from creamtea.human.formats.elsewhere import Evidence, ImportFacts, Numbering, made_elsewhere
from creamtea.human.formats.files import Place, read_text, text_lines
from creamtea.human.formats.losses import APPRAISE, NotKept, counts, repeats
from creamtea.human.formats.rows import GivenRating
from creamtea.human.formats.statistics import read_statistics
from creamtea.human.making.documents import domain_settings, read_documents
from creamtea.human.protocols import find_protocol, usable_protocols
from creamtea.human.protocols.da import Da
from creamtea.human.protocols.spans import Mqm
from creamtea.store.item_kinds import ItemKind
from creamtea.wording import counted, option
from creamtea.words import meant

USUAL_PROTOCOL = "da"
SENT_TWICE = "all that an earlier line says, but for the end"
# kind, document, segment, system, and the number of the opinion (0: the first of a rater)
Key = tuple[ItemKind, str, int, str, int]
Segment = tuple[str, int]  # document, number


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
    file = read_appraise(path, statistics)
    ratings = _of_pair(file, facts.pair)
    scores = sum(rating.score > 0 for rating in ratings)
    errors = [error for rating in ratings for error in rating.errors]
    categories = sum(bool(error["category"]) for error in errors)
    Evidence(scores, len(errors), categories, file.has_errors).check(found, file.name)
    systems = tuple(sorted({rating.system for rating in ratings}))
    texts = _Texts(facts.for_systems(systems), systems, file, ratings)
    keyed = [(rating, _key(rating, opinion)) for rating, opinion in occurrences(ratings)]
    positions = _positions([key for _, key in keyed])
    items = {position: _item(key, positions, texts) for key, position in positions.items()}
    reading = _Errors()
    given = []
    for rating, key in keyed:
        item = items[positions[key]]
        payload = None
        if found.marks_errors:
            own = {"score": rating.score} if isinstance(found, Da) else {}
            payload = {**own, "spans": reading.spans(item, rating)}
        given.append(_given(Place(file.name, rating.line), rating, item.position, payload, now))
    listed = [replace(item, proposals=reading.proposals.get(item.position)) for item in items.values()]
    content = made_elsewhere(facts, protocol, ratings[0].pair, systems, listed, given)
    settings = {**content.settings, "references": [system for system in systems if system == REFERENCE]}
    if rule := "crowd" if file.crowd else "da-sqm" if protocol == "da-sqm" else "":
        settings["wmt"] = rule  # of stats.wmt.RULES; those of marked errors follow from the protocol
    settings |= domain_settings(texts.domains, content.test_set) | texts.numbering.settings
    if reading.proposals:
        settings["proposals_left"] = True
    content = replace(content, settings=settings)
    not_kept = counts(
        {
            **file.left_out.get(ratings[0].pair, {}),
            f"marked errors ({option('protocol')} esa keeps them)": 0 if found.marks_errors else len(errors),
            "scores beside errors of MQM, from which its score follows": (
                scores if isinstance(found, Mqm) else 0
            ),
            "scores of other language pairs": len(file.placed.ratings) - len(ratings),
            "numbers of batches and items (--batch-info)": sum(rating.batch for rating in ratings),
            "numbers and times of Mechanical Turk's tasks": len(ratings) if file.crowd else 0,
            f"scores of {option('segment-scores')}, which only tell the campaign's lines": texts.published,
        }
    )
    notes = {
        "ratings of incomplete documents, read as the documents' beginnings": file.placed.guessed,
        **reading.notes,
    }
    notices = (*texts.numbering.notes, *counts(notes, note=True))
    return content, (*repeats(file.sent_twice, SENT_TWICE), *not_kept, *notices)


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
    ratings = tuple(rating for rating in file.placed.ratings if rating.pair == wanted)
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


def _item(key: Key, positions: dict[Key, int], texts: _Texts) -> ItemContent:
    kind, document, segment, system, _ = key
    bad = kind is ItemKind.BAD_REFERENCE
    index = texts.numbering.indices[document, segment]
    return ItemContent(
        position=positions[key],
        kind=kind,
        segment=index,
        document=document,
        source=texts.sources[index] if texts.sources else "",
        systems=(system,),
        outputs=("" if bad or system not in texts.outputs else texts.outputs[system][index],),
        original=positions[_original(key)] if kind.is_control else None,
        degraded=system if bad else None,
    )


def _given(
    place: Place, rating: Rated, position: int, payload: dict[str, Any] | None, now: datetime
) -> GivenRating:
    end = rating.end or now
    return GivenRating(
        place=place,
        rater=rating.rater,
        item=position,
        system=rating.system,
        step=rating.score if payload is None else None,
        payload=payload,
        assigned_at=rating.start or now,
        submitted_at=end,
        rated_at=end,
        active_ms=rating.active_ms,
    )


class _Errors:
    """Marked errors with places that are characters of the output; those of a text that nobody has stay as
    Appraise counts them. Errors that were marked beforehand become proposals of their items."""

    def __init__(self) -> None:
        self.proposals: dict[int, dict[str, list[dict[str, Any]]]] = {}
        self.notes: Counter[str] = Counter()

    def spans(self, item: ItemContent, rating: Rated) -> list[dict[str, Any]]:
        output = item.outputs[0]
        units = CodeUnits(output, trimmed=True) if output else None
        taken: set[int] = set()  # proposals that errors of this rating came from
        spans = []
        for error in rating.errors:
            span = dict(error)
            if prefilled := span.pop("prefilled", False):
                self.notes["errors that were marked beforehand, read as proposals"] += 1
                if "end" in span:  # one past the last
                    span["end"] = max(span["start"], span["end"] - 1)
            if units is not None and "start" in span:
                self._place(span, units)
            if prefilled:
                span["proposed"] = self._proposal(item, span, taken)
            spans.append(span)
        return spans

    def _place(self, span: dict[str, Any], units: CodeUnits) -> None:
        if span["start"] >= len(units):
            self.notes["errors marked after the end of the text: read as omissions"] += 1
            del span["start"], span["end"]
            return
        if span["end"] >= len(units):
            self.notes["errors that end after the end of the text: they end with it here"] += 1
        span["start"] = units.character(span["start"])
        span["end"] = units.character(min(span["end"], len(units) - 1))

    def _proposal(self, item: ItemContent, span: dict[str, Any], taken: set[int]) -> int:
        """The number of the item's proposal at the place of an error, which may be a new one."""
        known = self.proposals.setdefault(item.position, {}).setdefault(item.systems[0], [])
        place = (span.get("start"), span.get("end"))
        for number, proposal in enumerate(known):
            if number not in taken and (proposal.get("start"), proposal.get("end")) == place:
                break
        else:
            number = len(known)
            known.append({name: span[name] for name in ("start", "end", "severity") if name in span})
        taken.add(number)
        return number


class _Texts:
    """Sources and outputs of the test set by their lines, and where the file's segments stand in it."""

    def __init__(
        self, facts: ImportFacts, systems: Sequence[str], file: AppraiseFile, ratings: Sequence[Rated]
    ) -> None:
        if unknown := sorted(set(facts.outputs) - set(systems)):
            raise InputError(
                f"{option('output-of')} {unknown[0]}: the file has no such system; it has "
                f"{', '.join(systems)}",
                about="output-of",
            )
        self._facts, self._file = facts, file
        self._segments = sorted({(rating.document, rating.segment) for rating in ratings})
        self.domains: Mapping[str, str] = {}
        self.published = 0  # scores of --segment-scores
        self._lines: dict[str, list[int]] | None = None  # of each document
        self._size: tuple[str, int] | None = None  # of the test set, and which file says so
        if facts.documents is not None:
            self._read_documents(facts.documents)
        elif facts.segment_scores is not None:
            raise InputError(
                f"{option('segment-scores')} says which lines of {option('documents')} the campaign has: "
                "give both",
                about="segment-scores",
            )
        self.sources = self._read_lines("sources", option("sources"), facts.sources)
        self.outputs = {
            system: self._read_lines("output-of", f"{option('output-of')} {system}", path)
            for system, path in facts.outputs.items()
        }
        self.numbering = self._numbered()
        self._check_inside()

    # ------------------------------------------------------------ files

    def _read_documents(self, path: Path) -> None:
        found = read_documents(read_text(path), path.name, with_domains=True)
        rated = {document for document, _ in self._segments}
        missing, unrated = rated - found.lines.keys(), found.lines.keys() - rated
        named = {meant(name, unrated): name for name in missing}  # "Café" may be in NFC here, in NFD there
        self.domains = {named.get(name, name): domain for name, domain in found.domains.items()}
        self._lines = {named.get(name, name): lines for name, lines in found.lines.items()}
        self._size = option("documents"), len(found.names)
        if self._facts.segment_scores is not None:
            scored = self._rated_lines(self._facts.segment_scores, len(found.names))
            kept = {name: [line for line in lines if line in scored] for name, lines in self._lines.items()}
            self._lines = {name: lines for name, lines in kept.items() if lines}

    def _rated_lines(self, path: Path, size: int) -> set[int]:
        """The lines of the test set with a score of any system."""
        rated: set[int] = set()
        seen: Counter[str] = Counter()
        for number, line in enumerate(text_lines(path), start=1):
            words = line.split()
            if len(words) != 2:
                raise InputError(
                    f"{path.name}, line {number}: found {line[:60]!r}; allowed: SYSTEM SCORE",
                    about="segment-scores",
                )
            if words[1] != "None":
                rated.add(seen[words[0]])
                self.published += 1
            seen[words[0]] += 1
        for system, lines in seen.items():
            if lines != size:
                raise InputError(
                    f"{path.name}: found {lines:,} scores of {system}; allowed: {size:,}, one for each line "
                    f"of {option('documents')}",
                    about="segment-scores",
                )
        return rated

    def _read_lines(self, about: str, name: str, path: Path | None) -> list[str]:
        if path is None:
            return []
        lines = text_lines(path)
        if self._size is None:
            self._size = name, len(lines)
        elif len(lines) != self._size[1]:
            raise InputError(
                f"{name}: {path.name} has {counted(len(lines), 'line')}, and {self._size[0]} has "
                f"{self._size[1]:,}; allowed: a line for each segment of the test set in both",
                about=about,
            )
        return lines

    # ------------------------------------------------------------ numbers

    def _numbered(self) -> Numbering[Segment]:
        told = self._facts.first_segment
        by_number = Numbering.of_numbers({key: key[1] for key in self._segments}, APPRAISE, told)
        if self._lines is None:
            unique = len({segment for _, segment in self._segments}) == len(self._segments)
            return by_number if unique and not self._file.placed.per_document else self._anew()
        if self._file.placed.per_document:
            return self._by_document(1)
        # numbers of the test set's lines tell by which number they begin
        other = Numbering.of_numbers({key: key[1] for key in self._segments}, APPRAISE, 1 - by_number.first)
        for numbering in (by_number, other) if told is None else (by_number,):
            if all(index in self._lines.get(key[0], ()) for key, index in numbering.indices.items()):
                return numbering
        return self._by_document(by_number.first)

    def _anew(self) -> Numbering[Segment]:
        """Without a file that says what lines a document has: a document after the other, as they appear."""
        documents = list(dict.fromkeys(rating.document for rating in self._file.placed.ratings))
        ordered = sorted(self._segments, key=lambda key: (documents.index(key[0]), key[1]))
        many = len({name for name, _ in ordered}) > 1
        if self._size is not None and (many or self._size[1] != len(ordered)):
            raise InputError(
                f"{self._size[0]}: {self._file.name} counts segments within documents: give "
                f"{option('documents')}, which says what lines each document has",
                about="documents",
            )
        return Numbering({key: at for at, key in enumerate(ordered)}, renumbered=len(ordered) if many else 0)

    def _by_document(self, first: int) -> Numbering[Segment]:
        """Each document's segments are its lines, in their order. InputError unless they are as many."""
        assert self._lines is not None
        longest: dict[str, int] = {}
        for document, segment in self._segments:
            longest[document] = max(longest.get(document, 0), segment - first + 1)
            if document not in self._lines:
                raise InputError(
                    f"{option('documents')}: no document {document!r} in it, which the scores name",
                    about="documents",
                )
        wrong = [
            f"{document} ({counted(len(self._lines[document]), 'line')}, {counted(segments, 'segment')})"
            for document, segments in longest.items()
            if segments != len(self._lines[document])
        ]
        if wrong:
            raise InputError(
                f"{option('documents')}: {counted(len(wrong), 'document')} with another number of lines than "
                f"of segments in {self._file.name}: {', '.join(wrong[:3])}{', …' if len(wrong) > 3 else ''}. "
                "The n-th segment of a document is its n-th line: write - in the lines that the campaign "
                f"does not have, or give {option('segment-scores')} (published ones tell these lines)",
                about="documents",
            )
        return Numbering({key: self._lines[key[0]][key[1] - first] for key in self._segments})

    def _check_inside(self) -> None:
        """InputError for a segment that no line is of."""
        name, size = self._size or ("", max(self.numbering.indices.values()) + 1)
        test_set = f"the test set, of which {name} has {counted(size, 'line')}" if name else "the test set"
        for (document, segment), index in self.numbering.indices.items():
            if not 0 <= index < size:
                of_document = f" of document {document!r}" if document else ""
                raise InputError(
                    f"segment {segment}{of_document} is not in {test_set}: "
                    f"{option('first-segment')} says how the first segment is numbered, "
                    f"{option('documents')} which lines a document has",
                    about="first-segment",
                )
