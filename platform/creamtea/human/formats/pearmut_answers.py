"""Pearmut's items and answers, document by document, as those of a campaign (`pearmut` has the layout)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from creamtea.errors import InputError
from creamtea.human.formats.code_units import CodeUnits
from creamtea.human.formats.content import ItemContent
from creamtea.human.formats.elsewhere import CostError, given_cost
from creamtea.human.formats.files import Place
from creamtea.human.formats.pearmut import (
    Line,
    OwnItem,
    PearmutItem,
    PearmutSpan,
    Response,
    Units,
    category_of,
)
from creamtea.human.formats.pearmut_checks import guidance_of
from creamtea.human.formats.pearmut_tags import TAGS, Assets, Entries
from creamtea.human.formats.pearmut_times import Moments, Times
from creamtea.human.formats.pearmut_unread import count_unread, unread_of_item
from creamtea.human.formats.rows import GivenRating
from creamtea.human.making.tutorial import NO_SEGMENT
from creamtea.human.protocols import Protocol
from creamtea.human.protocols.spans import Mqm
from creamtea.store.item_kinds import ItemKind
from creamtea.wording import counted

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
