"""Answers given in Pearmut as a campaign (`layout` has what the files are made of).

Outputs of practice and checks belong to no system: the campaign's first systems stand in for them. What
creamtea has no place for is counted by name: no key is left out without a word.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from creamtea.document.strict_json import parse_json
from creamtea.error_spans import CodeUnits
from creamtea.errors import InputError
from creamtea.human.formats.base import ImportFacts, NotKept, Read, counts
from creamtea.human.formats.columns import Place, read_text
from creamtea.human.formats.losses import category_of
from creamtea.human.formats.pearmut.layout import (
    ANSWERS,
    CAMPAIGN,
    LONGEST_PAUSE,
    PROTOCOLS,
    RESET,
    Action,
    Campaign,
    Line,
    OwnItem,
    PearmutExpected,
    PearmutItem,
    PearmutSpan,
    Response,
    Units,
    Validation,
    choices,
)
from creamtea.human.formats.pearmut.media import TAGS, Assets, Entries, assets_of
from creamtea.human.formats.ratings import (
    CostError,
    Evidence,
    GivenRating,
    checked_items,
    given_cost,
    made_elsewhere,
)
from creamtea.human.formats.record import ItemContent
from creamtea.human.making.known_answers import NO_SEGMENT
from creamtea.human.protocols import Protocol
from creamtea.human.protocols.direct_assessment import DaSqm
from creamtea.human.protocols.spans import ExpectedSpan, MarksErrors, Mqm
from creamtea.store.tables import ItemKind
from creamtea.wording import counted, option


def read_campaign(path: Path, facts: ImportFacts, now: datetime) -> Read:
    """Return the campaign in Pearmut's answers, with its files beside sources where others wrote it, and what
    is not kept. A folder of an export has the answers and the campaign's file;
    `facts.campaign_file` is that of others, for the protocol, files and items without an answer.

    Each submission of a document again is a further revision. InputError with file, line and what was found.
    """
    file = path / ANSWERS if path.is_dir() else path
    beside = facts.campaign_file or (path / CAMPAIGN if path.is_dir() else None)
    campaign, place = None, Place("", 0)
    if beside is not None:
        place = Place(beside.name, 1)
        campaign = place.read(Campaign, parse_json(read_text(beside), str(place)), "campaign")
    protocol = _protocol(facts, campaign)
    unread = unread_settings(campaign, protocol) if campaign is not None else ()
    assets = Assets()
    if beside is not None and campaign is not None and (named := campaign.info.assets):
        assets = assets_of(beside, named.source, named.destination)
    answers = _read(Answers(protocol, now, assets), file, place, campaign)
    if answers.on_line_feeds:
        answers = _read(Answers(protocol, now, assets, without="\n"), file, place, campaign)
    elif campaign is None or campaign.info.special_tokens is None:
        answers.left["places behind line feeds, read as Pearmut counts them from version 1.1.5 on"] += (
            answers.behind_line_feeds
        )
    if campaign is None:
        seen = answers.evidence
        Evidence(seen["scores"], seen["errors"], seen["categories"]).check(answers.protocol, file.name)
    ordered = sorted(answers.items.values(), key=lambda item: item.position)
    systems, items, ratings = stand_in(ordered, answers.with_comments(), answers.left)
    if not ratings:
        found = "; ".join(map(str, (*counts(answers.left), *unread))) or "nothing"
        raise InputError(f"{file.name}: no ratings of systems in it; found {found}")
    places = {item.position: answers.places[key] for key, item in answers.items.items()}
    checked = checked_items([(places[item.position], item) for item in items], systems)
    made = made_elsewhere(facts, answers.protocol.name, facts.pair, systems, checked, ratings)
    return replace(made, files=assets.files), (*counts(answers.left), *unread)


def _read(answers: Answers, file: Path, beside: Place, campaign: Campaign | None) -> Answers:
    """The items of the campaign's file and the lines of the answers."""
    for part, document in _documents(campaign):
        if answers.add_document(beside, document, part) is None:
            answers.left["questions of forms"] += len(document)
    for place, line in _submitted(file, answers.left):
        document = _document(place, line, campaign)
        part = line.item_i.split("_")[0] if isinstance(line.item_i, str) else ""
        read = answers.add_document(place, document, part)
        if read is None:
            answers.left["answers to forms"] += len(line.annotation)
        else:
            answers.add_line(place, line, read, document, part)
    return answers


def _protocol(facts: ImportFacts, campaign: Campaign | None) -> Protocol:
    known = (*PROTOCOLS.values(), DaSqm.name)
    if facts.protocol is None and campaign is None:
        raise InputError(
            f"Pearmut's answers do not say the protocol: give the campaign with {option('campaign-file')}, "
            f"or {option('protocol')}, one of {', '.join(known)}",
            about="campaign-file",
        )
    told = PROTOCOLS.get(campaign.info.protocol) if campaign else None
    same = (None, told, DaSqm.name if told == "da" else told)  # Pearmut has one name for DA and DA+SQM
    if told is not None and facts.protocol in known and facts.protocol not in same:
        raise InputError(
            f"{option('protocol')} {facts.protocol}: the campaign's file contradicts it: it says {told}",
            about="protocol",
        )
    name = facts.protocol or told
    if name not in known:
        found = facts.protocol or (campaign.info.protocol[:60] if campaign else "")
        raise InputError(
            f"protocol {found}: answers given in Pearmut are of {', '.join(known)}; give one of these with "
            f"{option('protocol')}",
            about="protocol",
        )
    return facts.find_protocol(name)


def _submitted(path: Path, left: Counter[str]) -> list[tuple[Place, Line]]:
    """The submitted documents, but those that a reset took back."""
    found: list[tuple[Place, Line]] = []
    for place, written in _written(path):
        if isinstance(written, dict) and isinstance(written.get("annotation"), dict):
            raise InputError(
                f"{place}: annotation: found an object, as Pearmut wrote before version 1; allowed: a list "
                "with an entry for each segment"
            )
        line = place.read(Line, written, "the line")
        if isinstance(line.annotation, list):
            found.append((place, line))
        elif line.annotation == RESET:
            stays = [
                (place, before)
                for place, before in found
                if before.user_id != line.user_id or line.item_i not in (None, before.item_i)
            ]
            left["submitted documents before a reset"] += len(found) - len(stays)
            found = stays
        else:
            raise InputError(f"{place}: annotation: found {line.annotation[:60]!r}; allowed: a list")
    return found


def _written(path: Path) -> Iterator[tuple[Place, Any]]:
    """Each line; of a download from the dashboard, one object with a list for each campaign, each entry."""
    text = read_text(path)
    place = Place(path.name, 1)
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):  # several lines, or not JSON
        whole = None
    if not isinstance(whole, dict) or "annotation" in whole:
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                place = Place(path.name, number)
                yield place, parse_json(line, str(place))
        return
    if "info" in whole and "data" in whole:
        raise InputError(
            f"{place}: a campaign of Pearmut, without answers: give them (data/annotations/NAME.jsonl, or a "
            f"download from the dashboard), and this file with {option('campaign-file')}",
            about="campaign-file",
        )
    if len(whole) != 1 or not isinstance(next(iter(whole.values())), list):
        raise InputError(
            f"{place}: found {', '.join(map(repr, whole))[:60]}; allowed: a line for each submitted "
            "document, or a download of one campaign"
        )
    for entries in whole.values():
        yield from ((place, entry) for entry in entries)


def _documents(campaign: Campaign | None) -> Iterator[tuple[str, list[Any]]]:
    """All documents of the campaign, with users and without, and the part of it that each is in."""
    if campaign is None:
        return
    data = campaign.data
    for task in data.values() if isinstance(data, dict) else data:
        if not isinstance(task, list):
            raise InputError(
                f"the campaign's data: found {repr(task)[:60]}; allowed: lists of documents, which are lists "
                "of items"
            )
        if all(isinstance(item, dict) for item in task):
            yield "", task  # of a list of documents for all
        else:
            yield from (("", document) for document in task if isinstance(document, list))
    for part, documents in campaign.parts.items():
        yield from ((part, document) for document in documents)


def _document(place: Place, line: Line, campaign: Campaign | None) -> list[Any]:
    """The items of a line: its own, or the campaign's."""
    if line.item is not None:
        return list(line.item)
    data: Any = [] if campaign is None else campaign.data
    at: Any = line.item_i
    try:
        if campaign is not None and isinstance(at, str):
            part, _, number = at.partition("_")
            data, at = campaign.parts[part], int(number)
        documents = data[line.user_id] if isinstance(data, dict) else data
        document = documents[at] if at >= 0 else None
    except (KeyError, IndexError, TypeError, ValueError):
        document = None
    if not isinstance(document, list) or not all(isinstance(item, dict) for item in document):
        raise InputError(
            f"{place}: it has no items, and {option('campaign-file')} none for document {line.item_i} of "
            f"{line.user_id}; give the file of the campaign that these answers belong to",
            about="campaign-file",
        )
    return document


ItemKey = tuple[Any, ...]
OWN_FIELDS = set(OwnItem.model_fields) - {"systems", "source", "media"}  # that an item has as they are


@dataclass
class Answers:
    """What has been read so far. `left` counts what is not kept."""

    protocol: Protocol
    now: datetime
    assets: Assets = field(default_factory=Assets)
    without: str = ""  # characters that the places do not count
    on_line_feeds: int = 0  # places at which nobody can click, but in an older version
    behind_line_feeds: int = 0
    items: dict[ItemKey, ItemContent] = field(default_factory=dict)
    places: dict[ItemKey, Place] = field(default_factory=dict)
    _passed_by_any: set[ItemKey] = field(default_factory=set)  # checks that are no items for that
    ratings: list[GivenRating] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)
    evidence: Counter[str] = field(default_factory=Counter)  # of the protocol
    _segments: dict[str, int] = field(default_factory=dict)
    _documents: dict[str, str] = field(default_factory=dict)  # of segments
    _document: int = 0  # how many there are
    _read: set[tuple[str, ItemKind, str]] = field(default_factory=set)
    _revisions: Counter[tuple[str, int]] = field(default_factory=Counter)
    _firsts: dict[tuple[str, int], Moments] = field(default_factory=dict)
    _comments: dict[tuple[str, int], str] = field(default_factory=dict)

    # ------------------------------------------------------------ items

    def add_document(self, place: Place, written: Sequence[Any], part: str = "") -> list[PearmutItem] | None:
        """The items of a document; None for a form. `part` is "welcome", "random" or "goodbye"."""
        if written and isinstance(written[0], dict) and "form" in written[0]:
            return None
        read = [place.read(PearmutItem, item, f"item {at}") for at, item in enumerate(written)]
        kinds = [_kind(item, part) for item in read]
        keys = [_segment_key(item, written[at]) for at, item in enumerate(read)]
        rated = [key for key, kind in zip(keys, kinds, strict=True) if not kind.is_written]
        self._document += not all(key in self._documents for key in rated)
        for key, kind, item in zip(keys, kinds, read, strict=True):
            unread = unread_of_item(item, kind) | self._tags(item)
            for what, count in unread.items():
                if (key, kind, what) not in self._read:  # of one item once, however often it was rated
                    self._read.add((key, kind, what))
                    self.left[what] += count
            if not kind.is_written:
                self._segments.setdefault(key, len(self._segments))
                self._documents.setdefault(key, str(self._document))
            for systems in self._shown(item):
                self._add_item(place, key, kind, item, systems)
        return read

    def _shown(self, item: PearmutItem) -> list[tuple[str, ...]]:
        """The systems of each item that the segment is here; an export says itself."""
        if item.creamtea is not None:
            return [tuple(item.creamtea.systems or item.tgt)]
        return [tuple(item.tgt)] if self.protocol.max_outputs > 1 else [(system,) for system in item.tgt]

    def _key(self, segment: str, kind: ItemKind, item: PearmutItem, systems: Sequence[str]) -> ItemKey:
        """Outputs with other errors marked beforehand are other items."""
        if item.creamtea:
            return (item.creamtea.position,)
        return (kind, segment, *sorted(systems), repr([item.prefilled(system) for system in sorted(systems)]))

    def _add_item(
        self, place: Place, segment: str, kind: ItemKind, item: PearmutItem, systems: tuple[str, ...]
    ) -> None:
        key = self._key(segment, kind, item, systems)
        for system in systems:
            if system not in item.tgt:
                raise InputError(f"{place}: creamtea.systems: the item has no output of {system!r}")
        outputs = {system: item.tgt[system] for system in systems}
        known = self.items.get(key)
        if known is None:
            if key in self._passed_by_any:
                return
            known = self._item(place, segment, kind, item, outputs)
            if known is None:
                self._passed_by_any.add(key)  # what it loses is counted once
                return
            self.items[key] = known
            self.places[key] = place
        source = self._source(item)[0]
        if (known.source, dict(zip(known.systems, known.outputs, strict=True))) != (source, outputs):
            raise InputError(
                f"{place}: the segment {segment[:60]!r} has another text than in {self.places[key]}; "
                "allowed: one source and one output of a system"
            )

    def _item(
        self, place: Place, segment: str, kind: ItemKind, item: PearmutItem, outputs: Mapping[str, str]
    ) -> ItemContent | None:
        """None for a check that any answer would pass."""
        guidance = None
        source, media = self._source(item)
        if kind.is_written and item.creamtea is None:
            guidance = guidance_of(kind, outputs, item.rules, self.protocol, self.left)
            if guidance is None:
                return None
        made = ItemContent(
            position=len(self.items),
            kind=kind,
            segment=self._segments.get(segment, NO_SEGMENT),
            document=self._documents.get(segment, ""),
            source=source,
            media=media,
            references=() if item.ref is None else (item.ref,),
            systems=tuple(outputs),
            outputs=tuple(outputs.values()),
            weight=0.0 if kind.is_written else 1.0,
            guidance=guidance,
            proposals=None if kind.is_written else self._proposals(place, item, outputs),
        )
        if own := item.creamtea:
            lists = {name: tuple(getattr(own, name)) for name in ("context", "references")}
            made = replace(made, **{**own.model_dump(include=OWN_FIELDS), **lists})
        return made

    def _source(self, item: PearmutItem) -> tuple[str, Entries]:
        """The text without tags of files, and the files; an export says them itself."""
        if (own := item.creamtea) is not None:
            return item.src if own.source is None else own.source, tuple(own.media)
        return self.assets.read(item.src)

    def _tags(self, item: PearmutItem) -> Counter[str]:
        texts = (self._source(item)[0], item.ref or "", *item.tgt.values())
        what = "texts that show files (their tags stay in the text)"
        return Counter({what: sum(text.startswith(TAGS) for text in texts)})

    def _proposals(
        self, place: Place, item: PearmutItem, outputs: Mapping[str, str]
    ) -> dict[str, Any] | None:
        found = {}
        for system, output in outputs.items():
            if prefilled := item.prefilled(system):
                if self.protocol.marks_errors:
                    units = Units(output, self.without)
                    found[system] = [self._span(f"{place}: {system}", units, span) for span in prefilled]
                else:
                    self.left["pre-filled errors"] += len(prefilled)
        return found or None

    def _span(self, where: str, units: Units, span: PearmutSpan) -> dict[str, Any]:
        """As a payload has it. InputError for a place that the text does not have."""
        try:
            found = units.characters(span.start_i, span.end_i)
        except ValueError as error:
            raise InputError(f"{where}: {error}; allowed: characters of its output") from None
        self.left["marks on a second special token, kept as omissions"] += span.start_i > len(units)
        placed = {} if found is None else {"start": found[0], "end": found[1]}
        category = category_of(span.category)
        try:
            cost = given_cost(span.score)
        except CostError as error:
            raise InputError(f"{where}: {error}") from None
        severe = {"severity": span.severity or "undecided", **({"category": category} if category else {})}
        return {**placed, **severe, **cost}

    # ------------------------------------------------------------ answers

    def add_line(
        self, place: Place, line: Line, read: Sequence[PearmutItem], written: Sequence[Any], part: str = ""
    ) -> None:
        """The answers of a line to the items of its document."""
        if len(line.annotation) != len(read):
            raise InputError(
                f"{place}: found {counted(len(line.annotation), 'annotation')} of "
                f"{counted(len(read), 'segment')}; allowed: as many"
            )
        self.left["comments on whole documents"] += bool(line.comment.strip())
        count_unread(line, "lines", self.left)
        self.left["actions (their times are kept)"] += sum(
            action.creamtea is None and action.index is not None for action in line.actions
        )
        times = Times(place, line.actions, self.now)
        for index, (item, annotation) in enumerate(zip(read, line.annotation, strict=True)):
            if annotation is None:
                continue
            given = self._responses(place, f"annotation {index}", item, annotation)
            for systems in self._shown(item):
                known = self.items.get(
                    self._key(_segment_key(item, written[index]), _kind(item, part), item, systems)
                )
                answers = {
                    system: given[system] for system in item.tgt if system in given and system in systems
                }
                if known is None:
                    self.left["answers to practice and checks that any answer passes"] += len(answers)
                elif len(answers) == len(systems):
                    self._add_answer(place, line.user_id, known, item, answers, times.of(index, systems))
                else:
                    self.left["scores of segments on which another output has none"] += len(answers)

    def _responses(self, place: Place, what: str, item: PearmutItem, annotation: Any) -> dict[str, Response]:
        """By system, in the order on the page; only those that are whole."""
        if not isinstance(annotation, dict):
            raise InputError(f"{place}: {what}: allowed: an object with an answer for each system")
        read = {
            system: place.read(Response, answer, f"{what}.{system}") for system, answer in annotation.items()
        }
        if unknown := sorted(set(read) - set(item.tgt)):
            raise InputError(f"{place}: {what}: the item has no output of {unknown[0]!r}")
        for one in read.values():
            count_unread(one, "answers", self.left)
            self.evidence["scores"] += bool(one.score)
            self.evidence["errors"] += len(one.error_spans)
            self.evidence["categories"] += sum(bool(span.category) for span in one.error_spans)
        self.left["values of other scales (sliders)"] += sum(len(one.sliders or {}) for one in read.values())
        whole = {
            system: response
            for system, response in read.items()
            if response.score is not None or isinstance(self.protocol, Mqm)
        }
        self.left["outputs without a score"] += len(read) - len(whole)
        return {system: whole[system] for system in item.tgt if system in whole}

    def _add_answer(
        self,
        place: Place,
        rater: str,
        item: ItemContent,
        pearmut: PearmutItem,
        answers: Mapping[str, Response],
        moments: Moments,
    ) -> None:
        key = (rater, item.position)
        self._revisions[key] += 1
        first = self._firsts.setdefault(key, moments)
        comment, before = _comment(answers), self._comments.get(key, "")
        self.left["earlier texts of text fields"] += before not in ("", comment)
        self._comments[key] = comment
        for shown, (system, response) in enumerate(answers.items(), start=1):
            self.ratings.append(
                GivenRating(
                    place=place,
                    rater=rater,
                    item=item.position,
                    system=system,
                    shown=shown,
                    revision=self._revisions[key],
                    assigned_at=first.assigned_at,
                    submitted_at=first.rated_at,
                    rated_at=moments.rated_at,
                    active_ms=first.active_ms,
                    step=None if self.protocol.marks_errors else response.score,
                    payload=self._payload(place, item, pearmut, system, response),
                )
            )

    def _payload(
        self, place: Place, item: ItemContent, pearmut: PearmutItem, system: str, response: Response
    ) -> dict[str, Any] | None:
        """With the marked errors, where the protocol has some."""
        if not self.protocol.marks_errors:
            self.left["marked errors"] += len(response.error_spans)
            return None
        output = pearmut.tgt[system]
        units = Units(output, self.without)
        if pearmut.creamtea is None:
            self._look_for_line_feeds(output, response.error_spans)
        open_proposals = list(enumerate(pearmut.prefilled(system)))
        spans = []
        for span in response.error_spans:
            marked = self._span(f"{place}: {system}", units, span)
            if not ItemKind(item.kind).is_written:
                marked |= _proposed(span, open_proposals, pearmut.creamtea is not None)
            spans.append(marked)
        if isinstance(self.protocol, Mqm):
            self.left["scores beside errors of MQM, from which its score follows"] += (
                response.score is not None
            )
            return {"spans": spans}
        return {"score": response.score, "spans": spans}

    def _look_for_line_feeds(self, output: str, spans: Sequence[PearmutSpan]) -> None:
        if "\n" not in output:
            return
        units = CodeUnits(output)
        first = units.units(output.index("\n"), output.index("\n"))
        for place in (place for span in spans for place in (span.start_i, span.end_i)):
            self.behind_line_feeds += first is not None and place > first[0]
            self.on_line_feeds += 0 <= place < len(units) and output[units.character(place)] == "\n"

    def with_comments(self) -> list[GivenRating]:
        """The ratings, each with the last text that its rater wrote on the item."""
        return [replace(rating, comment=self._comments[rating.rater, rating.item]) for rating in self.ratings]


def _kind(item: PearmutItem, part: str) -> ItemKind:
    if item.creamtea is not None:
        return ItemKind(item.creamtea.kind)
    skippable = item.skippable or any(rule.allow_skip for rule in item.rules.values())
    if part == "welcome" or skippable:
        return ItemKind.TUTORIAL
    return ItemKind.ATTENTION if item.validation or part else ItemKind.RATED


def _proposed(span: PearmutSpan, proposals: list[tuple[int, PearmutSpan]], own: bool) -> dict[str, Any]:
    """Which proposal a mark came from: an export's tell, of others the one at its place. It is taken out of
    `proposals`."""
    for number, proposal in proposals:
        told = span.creamtea is not None and span.creamtea.proposed == number
        if told or (not own and (proposal.start_i, proposal.end_i) == (span.start_i, span.end_i)):
            proposals.remove((number, proposal))
            return {"proposed": number}
    return {}


def _comment(answers: Mapping[str, Response]) -> str:
    """The text fields: one as it is, several with their systems."""
    texts = {system: answer.textfield for system, answer in answers.items() if answer.textfield}
    if len(texts) < 2:
        return "".join(texts.values())
    return "\n".join(f"{system}: {text}" for system, text in texts.items())


def _segment_key(item: PearmutItem, written: Any) -> str:
    """Items of one segment have the same: the id and the source, or all but what differs between systems."""
    if item.creamtea is not None:
        return f"{item.creamtea.document} {item.creamtea.segment}"
    if item.item_id is not None:
        return f"{item.item_id} {item.src}"
    same = {name: value for name, value in written.items() if name not in ("tgt", "error_spans")}
    return json.dumps(same, sort_keys=True, ensure_ascii=False)


def guidance_of(
    kind: ItemKind,
    outputs: Mapping[str, str],
    rules: Mapping[str, Validation],
    protocol: Protocol,
    left: Counter[str],
) -> dict[str, Any] | None:
    """What creamtea keeps with an item of these outputs; None where any answer would pass."""
    systems = list(outputs)
    steps, spans, above, warnings = {}, {}, [], []
    for at, (system, text) in enumerate(outputs.items()):
        rule = rules.get(system) or Validation()
        warnings += [rule.warning] if rule.warning else []
        if rule.score is not None:
            if isinstance(protocol, MarksErrors) and not protocol.scored:
                left["accepted scores of checks, which the errors make"] += 1
            else:
                low, high = math.ceil(rule.score[0]), math.floor(rule.score[1])
                if low <= high:
                    steps[str(at)] = [low, high]
                else:
                    left["accepted scores of checks, between which no whole number lies"] += 1
        expected = [_expected(span, Units(text)) for span in rule.error_spans or ()]
        if not protocol.marks_errors or None in expected:
            left["expected errors of checks"] += len(expected)
        elif expected:
            spans[str(at)] = expected
        if rule.score_greaterthan is not None:
            if rule.score_greaterthan in systems:
                above.append([at, systems.index(rule.score_greaterthan)])
            else:
                left["comparisons of outputs in checks"] += 1
    if not (steps or spans or above):
        return None
    said = "\n".join(dict.fromkeys(warnings))
    if kind is ItemKind.TUTORIAL:
        left["comparisons of outputs in checks"] += len(above)
        return {"steps": steps, **({"spans": spans} if spans else {}), "explanation": said}
    return {"steps": steps, "spans": spans, "above": above, "warning": said or None}


def _expected(written: PearmutExpected, units: Units) -> dict[str, Any] | None:
    """As creamtea stores it; None for what it cannot say."""
    start, end = (_range(place, len(units)) for place in (written.start_i, written.end_i))
    omission = start[0] >= len(units)
    try:
        placed = (
            {} if omission else {"start": [*map(units.character, start)], "end": [*map(units.character, end)]}
        )
        span = ExpectedSpan.model_validate(
            {**placed, "severity": written.severity and written.severity.lower()}
        )
    except ValueError:  # pydantic's too
        return None
    return span.model_dump(mode="json", exclude_defaults=True)


def _range(written: int | list[int] | None, units: int) -> tuple[int, int]:
    """The lowest and the highest place, the text's last at most; one behind the text stays there."""
    low, high = (0, units) if written is None else (written, written) if isinstance(written, int) else written
    return max(low, 0), max(min(high, units - 1), 0)


def stand_in(
    items: Sequence[ItemContent], ratings: Sequence[GivenRating], left: Counter[str]
) -> tuple[tuple[str, ...], list[ItemContent], list[GivenRating]]:
    """The campaign's systems, and items and ratings in which its first ones stand for the outputs of practice
    and checks. Without those that have more outputs than there are systems: counted."""
    systems = tuple(
        dict.fromkeys(name for item in items if not ItemKind(item.kind).is_written for name in item.systems)
    )
    names: dict[int, dict[str, str]] = {}  # of practice and checks: what they call an output → who stands in
    kept = []
    for item in items:
        if ItemKind(item.kind).is_written:
            if len(item.systems) > len(systems):
                left["practice and checks with more outputs than there are systems"] += 1
                names[item.position] = {}
                continue
            names[item.position] = dict(zip(item.systems, systems, strict=False))
            item = replace(item, systems=systems[: len(item.systems)])
        kept.append(item)
    given = []
    for rating in ratings:
        known = names.get(rating.item)
        if known is None:
            given.append(rating)
        elif known:
            given.append(replace(rating, system=known[rating.system]))
    return systems, kept, given


Cell = tuple[int, str]  # segment of a line, system


@dataclass(frozen=True)
class Moments:
    """When an item was given and answered, and how long the rater was on it."""

    assigned_at: datetime
    rated_at: datetime
    active_ms: int | None


class Times:
    """When the cells of a line were given and answered, and how long the rater was on each: the time from one
    action to the next, at most a minute, belongs to what the next is about."""

    def __init__(self, place: Place, actions: Sequence[Action], now: datetime) -> None:
        self._place, self._now = place, now
        self._seconds: dict[Cell, float] = defaultdict(float)
        self._own: dict[Cell, Action] = {}
        self._ends = [action.time for action in actions]
        waiting = 0.0
        last: Cell | None = None
        for at, action in enumerate(actions):
            if at:
                waiting += min(max(action.time - actions[at - 1].time, 0.0), LONGEST_PAUSE)
            if action.index is not None and action.model is not None:
                last = (action.index, action.model)
            if last is not None:
                self._seconds[last] += waiting
                waiting = 0.0
                if action.creamtea:
                    self._own[last] = action

    def of(self, index: int, systems: Sequence[str]) -> Moments:
        """Of an answer; what an export says itself, or the first and the last action of the line."""
        given = rated = None
        active = None
        own = next((self._own[index, system] for system in systems if (index, system) in self._own), None)
        if own is not None and own.creamtea is not None:
            given, rated, active = own.creamtea.assigned_at, own.time, own.creamtea.active_ms
        elif self._ends:
            given, rated = self._ends[0], self._ends[-1]
            seconds = sum(self._seconds.get((index, system), 0.0) for system in systems)
            active = round(1000 * seconds) or None
        return Moments(self._moment(given), self._moment(rated), active)

    def _moment(self, seconds: float | None) -> datetime:
        try:
            return self._now if seconds is None else datetime.fromtimestamp(seconds, UTC)
        except (ValueError, OverflowError, OSError):
            raise InputError(
                f"{self._place}: actions: found the time {seconds}; allowed: seconds since 1970"
            ) from None


# what the files' layout says; `validations`: whether checks were passed, which follows from the answers
LAYOUT = {"campaign_id", "token", "assignment", "validations"}
MAX_NAME = 60  # characters of a key, in a message


def unread_settings(campaign: Campaign, protocol: Protocol) -> tuple[NotKept, ...]:
    """Name the settings that nothing here reads: instructions, sliders and the like, in one line. Severities
    and categories are only among them where they are not the protocol's usual ones."""
    usual = choices(protocol) if isinstance(protocol, MarksErrors) else {}
    own = campaign.info.model_extra or {}
    found = [
        name.removeprefix("info.")
        for name in unread_keys(campaign)
        if usual.get(name.removeprefix("info."), own) != own.get(name.removeprefix("info."))
    ]
    return (NotKept(len(found), f"settings of Pearmut: {', '.join(found)}"),) if found else ()


def unread_of_item(item: PearmutItem, kind: ItemKind) -> Counter[str]:
    """Count `instructions`, which are HTML above an item, keys that are only for logs, and what is marked or
    expected where no output is."""
    left: Counter[str] = Counter()
    for name in unread_keys(item):
        left["instructions of items" if name == "instructions" else f"values of {name!r} in items"] += 1
    marked = item.error_spans if isinstance(item.error_spans, dict) else {}
    shown = () if kind.is_written else item.tgt
    left["pre-filled errors"] += sum(len(spans) for name, spans in marked.items() if name not in shown)
    if item.creamtea is not None and item.creamtea.systems:
        left["outputs that an item of an export does not show"] += len(
            set(item.tgt) - set(item.creamtea.systems)
        )
    left["checks of outputs that are not there"] += len(set(item.rules) - set(item.tgt))
    rules = item.validation.values() if isinstance(item.validation, dict) else [item.validation]
    for name, values in (("error_spans", [item.error_spans]), ("validation", rules)):
        what = f"lists of {name!r}, as version 0 has them"
        left[what] += sum(isinstance(value, list) and bool(value) for value in values)
    return left


def count_unread(read: BaseModel, where: str, left: Counter[str]) -> None:
    """Count the keys that nothing here reads."""
    for name in unread_keys(read):
        left[f"values of {name!r} in {where}"] += 1


def unread_keys(read: Any) -> Iterator[str]:
    """Name each such key with the keys that lead to it, without the names of systems. Actions, which are
    counted as such, have many."""
    empty: Sequence[Any] = (None, "", [], {})
    if isinstance(read, BaseModel) and not isinstance(read, Action):
        for name in type(read).model_fields:
            yield from (f"{name}.{inner}"[:MAX_NAME] for inner in unread_keys(getattr(read, name)))
        for name, value in (read.model_extra or {}).items():
            if name not in LAYOUT and value not in empty:
                yield name[:MAX_NAME]
    elif isinstance(read, list | dict):
        for value in read if isinstance(read, list) else read.values():
            yield from unread_keys(value)
