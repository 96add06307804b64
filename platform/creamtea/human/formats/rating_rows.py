"""A row per rating, with everything that a re-analysis needs except the probabilities of an adaptive or a
balanced design: items.jsonl has them.

docs/exchange.md explains each column. A skipped item has a row for each system with `skipped_at`, without
step, value, payload, revision and rated_at. Items in work (given out, but neither answered nor skipped) have
no rows.

`with_answers` turns rows into answers again: the first row describes the answer, and each revision has its
scores. Then the rows of the new campaign are compared with the given rows, which finds contradictions between
columns or rows. Other mistakes are checked one by one. `made_elsewhere` makes the campaign of a file that has
only items and ratings.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

from pydantic import ValidationError

from creamtea.error_spans import SEVERITIES, as_severity, is_no_error
from creamtea.errors import InputError, wrong_option
from creamtea.human.formats.base import FIRST_SEGMENT, ImportFacts, NotKept, counts
from creamtea.human.formats.columns import CheckedLine, Place, columns_of
from creamtea.human.protocols import Protocol, ScoredAnswer, find_protocol, usable_protocols
from creamtea.human.protocols.base import exact
from creamtea.human.protocols.scores import Da
from creamtea.human.protocols.spans import MAX_DECIMALS, MarkedErrors, MarksErrors, Mqm, spans_of
from creamtea.human.protocols.taxonomy import is_published
from creamtea.human.record import (
    AnswerContent,
    Content,
    Flag,
    Integer,
    ItemContent,
    JsonObject,
    KindName,
    Moment,
    Name,
    ProtocolName,
    RaterContent,
    ScoreContent,
    Segment,
    Text,
    Value,
    Weight,
    output_names,
)
from creamtea.languages import UNKNOWN
from creamtea.store.rows import check_json, from_row
from creamtea.store.tables import ItemKind
from creamtea.wording import counted, option


@dataclass(frozen=True, kw_only=True)
class RatingRow:
    """A row of an export. Other files of ratings may lack the fields that have a default."""

    campaign: Name = ""
    protocol: ProtocolName = ""
    rater: Name
    excluded: Flag = False
    item: Integer
    kind: KindName = ItemKind.RATED
    segment: Segment = 0
    document: Text = ""
    weight: Weight = 1.0
    original: Integer | None = None
    degraded: Name | None = None
    source: Text = ""
    system: Name
    output: Text = ""
    shown: Integer = 0  # the place on the page, 1 for the first; 0: in the order of the ratings
    step: Integer | None = None
    value: Value | None = None  # the step's label on the scale
    payload: JsonObject | None = None
    document_step: Integer | None = None
    revision: Integer | None = 1
    counts: Flag = True  # whether it is the last revision of a rater who is not excluded
    comment: Text = ""
    skip_reason: Text = ""
    assigned_at: Moment
    submitted_at: Moment | None = None  # of the first answer
    skipped_at: Moment | None = None
    rated_at: Moment | None = None  # of this score
    active_ms: Integer | None = None
    warned: Integer = 0  # wrong answers to a loud attention check that were not stored


COLUMNS = columns_of(RatingRow)


@dataclass(frozen=True, kw_only=True)
class GivenRating(RatingRow):
    """A rating of an import, with a `step`, `value` or `payload` unless the item was skipped."""

    place: Place
    columns: Collection[str] = ()  # columns of an export's row, which must agree with the others
    answer: ScoredAnswer | None = None  # the protocol's reading; None if the item was skipped

    def refuse(self, column: str, allowed: str) -> InputError:
        """Return an InputError about the value of a column."""
        return self.place.refuse(column, getattr(self, column), allowed)


def given_rating(record: CheckedLine, **others: Any) -> GivenRating:
    """Return a line with columns of an export as a rating; `others` are the values that it lacks."""
    return GivenRating(place=record.place, columns=record.values.keys(), **record.values | others)


# fields of the item and of the answer that a row repeats
OF_ITEM = ("kind", "segment", "document", "weight", "original", "degraded", "source")
OF_ANSWER = ("comment", "skip_reason", "assigned_at", "submitted_at", "skipped_at", "active_ms", "warned")


def rows_of(content: Content) -> Iterator[RatingRow]:
    """Yield the rows by item, rater, revision, place on the page and system."""
    items = {item.position: item for item in content.items}
    excluded, scale = content.excluded, find_protocol(content.protocol, content.settings).scale
    for answer in sorted(content.answers, key=lambda answer: (answer.item, answer.rater)):
        item, is_excluded = items[answer.item], answer.rater in excluded
        repeated = {name: getattr(item, name) for name in OF_ITEM}
        repeated |= {name: getattr(answer, name) for name in OF_ANSWER}
        outputs = dict(zip(item.systems, item.outputs, strict=True))
        places = [(shown, system) for shown, group in enumerate(answer.order, start=1) for system in group]
        places.sort(key=lambda place: (place[0], content.numbers[place[1]]))
        scores: dict[int | None, dict[str, ScoreContent]] = defaultdict(dict)
        for score in sorted(answer.scores, key=lambda score: score.revision):
            scores[score.revision][score.system] = score
        for revision, by_system in scores.items() or [(None, {})]:
            for shown, system in places:
                given = by_system.get(system)
                if by_system and given is None:
                    continue
                yield RatingRow(
                    campaign=content.name,
                    protocol=content.protocol,
                    rater=answer.rater,
                    excluded=is_excluded,
                    item=item.position,
                    system=system,
                    output=outputs[system],
                    shown=shown,
                    step=None if given is None else given.step,
                    value=None if given is None else scale.label(given.step),
                    payload=None if given is None else given.payload,
                    document_step=None if given is None else given.document_step,
                    revision=revision,
                    counts=given is not None and revision == answer.last_revision and not is_excluded,
                    rated_at=None if given is None else given.at,
                    **repeated,
                )


ANSWER_COLUMNS = ("step", "value", "payload")  # one of these columns is enough
Revisions = list[dict[str, GivenRating]]  # in their order; each revision by system


def checked_items(
    given: Sequence[tuple[Place, ItemContent]], systems: Sequence[str]
) -> tuple[ItemContent, ...]:
    """Return the items; InputError with the place of an item that contradicts the campaign."""
    originals = {None, *(item.position for _, item in given)}
    positions = sorted((item.position, item.page) for _, item in given if item.page is not None)
    pages = {page: position for position, page in reversed(positions)}  # position of each page's first item
    known = f"the campaign's systems: {', '.join(systems)}"
    seen: set[int] = set()
    for place, item in given:
        is_written = ItemKind(item.kind).is_written
        checks = (
            ("position", item.position not in seen, "each position once"),
            (
                "page",
                item.page is None or item.page == pages[item.page],
                "the position of the first item of its page",
            ),
            ("segment", item.segment >= 0 or is_written, f"0 or more for a {item.kind} item"),
            ("systems", set(item.systems) <= {*(output_names(systems) if is_written else systems)}, known),
            ("outputs", len(item.outputs) == len(item.systems), "one text for each of systems"),
            (
                "output_drawn",
                item.output_drawn is None or len(item.output_drawn) == len(item.systems),
                "one for each of systems",
            ),
            (
                "media",
                {None, *item.systems} >= {file.get("system") for file in item.media},
                "systems of the item",
            ),
            ("block", _is_block(item, systems), BLOCK),
            ("original", item.original in originals, "the position of an item"),
            ("original", item.original != item.position, "the position of another item"),
            ("degraded", item.degraded in (None, *systems), known),
            ("proposals", set(item.proposals or ()) <= set(item.systems), "by systems of the item"),
            ("proposals", _are_errors(item.proposals or {}), "lists of marked errors, as answers have them"),
        )
        for column, right, allowed in checks:
            if not right:
                raise place.refuse(column, getattr(item, column), allowed)
        seen.add(item.position)
    return tuple(item for _, item in given)


BLOCK = (
    "systems of the campaign, those that the item shows among them, and for each a list of chances above 0, "
    "at most 1"
)


def _is_block(item: ItemContent, systems: Sequence[str]) -> bool:
    if item.block is None:
        return True
    if item.block.keys() != {"systems", "chances"}:
        return False
    drawn, rows = item.block["systems"], item.block["chances"]
    return (
        isinstance(drawn, list)
        and set(item.shown) <= set(drawn) <= set(systems)
        and isinstance(rows, list)
        and [len(row) if isinstance(row, list) else 0 for row in rows] == [len(drawn)] * len(drawn)
        and all(type(chance) in (int, float) and 0 < chance <= 1 for row in rows for chance in row)
    )


def _are_errors(proposals: Mapping[str, Any]) -> bool:
    try:
        for spans in proposals.values():
            MarkedErrors.model_validate({"spans": spans})
    except ValidationError:
        return False
    return True


def with_answers(content: Content, ratings: Sequence[GivenRating]) -> Content:
    """Return the campaign, which has raters and items, with these answers.

    InputError with file, line, column, what was found and what is allowed: for ratings that contradict the
    campaign or each other, scores that the scale does not have, and answers that lack a system's score.
    """
    protocol = find_protocol(content.protocol, content.settings)
    items = {item.position: item for item in content.items}
    raters = {person.pseudonym for person in content.raters}
    groups: dict[tuple[int, str], list[GivenRating]] = defaultdict(list)
    for given in ratings:
        if given.rater not in raters:
            raise given.refuse("rater", "a pseudonym that the campaign knows")
        if given.item not in items:
            raise given.refuse("item", "the position of an item of the campaign")
        systems = items[given.item].shown
        if given.system not in systems:
            raise given.refuse("system", f"a system of the item: {', '.join(systems)}")
        groups[given.item, given.rater].append(_scored(given, protocol))
    revised = {key: _revisions(items[key[0]], group) for key, group in sorted(groups.items())}
    answers = (_answer(content, items[key[0]], protocol, revisions) for key, revisions in revised.items())
    content = replace(content, answers=tuple(answers))
    if not any(rating.columns for rating in ratings):
        return content  # only rows of an export repeat values that follow from others
    rows = {(row.item, row.rater, row.revision, row.system): row for row in rows_of(content)}
    for (position, rater), revisions in revised.items():
        for number, revision in enumerate(revisions, start=1):
            for system, given in revision.items():
                written = number if given.answer is not None else None
                _check_same(given, rows[position, rater, written, system], protocol)
    return content


def _scored(given: GivenRating, protocol: Protocol) -> GivenRating:
    """Return the rating with its answer, read from a step, a value or a payload."""
    step, column = given.step, "value"
    try:
        if given.value is not None:
            written = protocol.read_value(given.value)
            given = replace(given, value=protocol.scale.label(written.step))
            if given.payload is None and given.step is None:
                given = replace(given, payload=written.payload)
            step = written.step if step is None else step
        if given.payload is not None:
            column = "payload"
        elif given.step is not None:
            column = "step"
        if step is not None and given.payload is None and protocol.marks_errors:
            fits = "da or scores fits" if isinstance(protocol, Da) else "scores fits"
            raise ValueError(
                f"{protocol.name} needs the marked errors in a column payload; for scores alone {fits}"
            )
        answer = step if given.payload is None else given.payload
        scored = None if answer is None else protocol.read_answer(answer, given.output)
        if scored is not None:
            try:
                check_json(scored.payload)
            except ValueError as error:
                raise ValueError(f"found a text {error}; allowed: text that can be stored") from None
        if given.payload is not None and scored is not None:  # an answer may have several written forms
            given = replace(given, payload=scored.payload)
    except ValueError as error:
        # other tools' files have no such columns
        where = given.place.column(column) if column in given.columns else str(given.place)
        fits = " or ".join(kind.name for kind in usable_protocols() if given.payload and _reads(kind, given))
        raise InputError(f"{where}: {error}" + (f"; {fits} fits" if fits else "")) from None
    return replace(given, answer=scored)


def _reads(protocol: Protocol, given: GivenRating) -> bool:
    try:
        protocol.read_answer(given.payload, given.output)
    except ValueError:
        return False
    return True


def _revisions(item: ItemContent, group: Sequence[GivenRating]) -> Revisions:
    """Return the rows of one rater's item by revision, with one row for each system."""
    numbered: dict[int, dict[str, GivenRating]] = defaultdict(dict)
    skipped = all(given.answer is None and given.skipped_at for given in group)
    for given in group:
        if given.answer is None and not skipped:
            column = next((name for name in ANSWER_COLUMNS if name in given.columns), "step")
            raise given.refuse(column, f"a {column}; only a skipped item (skipped_at) has none")
        for column, moment in (("submitted_at", given.submitted_at), ("rated_at", given.rated_at)):
            if moment is None and not skipped:
                raise given.refuse(column, "a moment; the row has a score")
        known = numbered[given.revision or 0].setdefault(given.system, given)
        if known is not given:
            if "revision" not in given.columns and not skipped:
                raise InputError(
                    f"{given.place}: line {known.place.line} has another score of this rater for this "
                    "output; say in a column revision which is newer, or number both in a column item"
                )
            column = "step" if skipped else "revision"
            line = f"line {known.place.line} has this rater, item, system and revision"
            raise given.refuse(column, f"another revision: {line}")
    for revision in numbered.values():
        missing = [system for system in item.shown if system not in revision]
        if missing:
            allowed = f"a row for each system of the item in each revision: {', '.join(missing)} is missing"
            raise next(iter(revision.values())).refuse("system", allowed)
    return [numbered[revision] for revision in sorted(numbered)]


def _answer(content: Content, item: ItemContent, protocol: Protocol, revisions: Revisions) -> AnswerContent:
    """Return the answer that the first row describes, with the scores of each revision."""
    places: dict[tuple[int, str], list[str]] = defaultdict(list)
    outputs = dict(zip(item.systems, item.outputs, strict=True))
    for number, (system, given) in enumerate(revisions[0].items(), start=1):
        shown = given.shown or number
        places[shown, outputs[system]].append(system)
    order = [sorted(places[place], key=content.numbers.__getitem__) for place in sorted(places)]
    scores: list[ScoreContent] = []
    for number, revision in enumerate(revisions, start=1):
        # systems that share a place share the first one's answer; a skipped item has none
        answers = [answer for group in order if (answer := revision[group[0]].answer) is not None]
        place, column = revision[order[0][0]].place, "step"
        try:
            if answers:
                protocol.check_together([answer.step for answer in answers])
            for group, answer in zip(order, answers, strict=False):
                for rating in (revision[system] for system in group):
                    place, column = rating.place, "document_step"
                    document_step = rating.document_step and protocol.scale.check(rating.document_step)
                    assert rating.rated_at is not None  # as `_revisions` has checked
                    scores.append(
                        ScoreContent(
                            system=rating.system,
                            revision=number,
                            step=answer.step,
                            at=rating.rated_at,
                            payload=answer.payload,
                            document_step=document_step,
                        )
                    )
        except ValueError as error:
            raise InputError(f"{place.column(column)}: {error}") from None
    scores.sort(key=lambda score: (score.revision, content.numbers[score.system]))
    first = next(iter(revisions[0].values()))
    return from_row(AnswerContent, first, order=tuple(tuple(group) for group in order), scores=tuple(scores))


def _check_same(given: GivenRating, row: RatingRow, protocol: Protocol) -> None:
    """Raise InputError for the first column whose value differs from the row that an export would write."""
    # scores follow from the errors by weights, which the campaign may have changed
    by_usual_weights = isinstance(protocol, MarksErrors) and not protocol.scored and not protocol.taxonomy
    for column in given.columns:
        found, expected = getattr(given, column), getattr(row, column)
        one_is_enough = found is None and column in ("step", "value")
        if found != expected and not one_is_enough:
            allowed = "nothing" if expected is None else repr(expected)
            if column in ("step", "value") and by_usual_weights:
                why = (
                    "by the usual weights of errors. Scores of marked errors need the campaign's taxonomy: "
                    f"import the folder, or give {option('taxonomy')}"
                )
            elif column == "value" and given.step is not None:
                why = (
                    f"step {given.step} of {protocol.name}; if another protocol counted the steps, leave out "
                    "the column step"
                )
            else:
                why = "as the rest of the import says"
            raise given.refuse(column, f"{allowed}, {why}")


SegmentKey = TypeVar("SegmentKey")


def made_elsewhere(
    facts: ImportFacts,
    protocol: str,
    pair: tuple[str, str] | None,
    systems: Sequence[str],
    items: Sequence[ItemContent],
    ratings: Sequence[GivenRating],
    settings: Mapping[str, Any] | None = None,
) -> Content:
    """Make the campaign of these items and ratings, with the settings that the file determines.

    InputError as in `with_answers`, for an item with more or fewer systems than a relative protocol compares,
    and for errors of an unknown severity.
    """
    for rating in ratings:  # before they seem to be one rater's second scores
        if rating.campaign != ratings[0].campaign and rating.campaign and ratings[0].campaign:
            raise rating.refuse("campaign", f"{ratings[0].campaign!r} alone: import each campaign by itself")
    _check_compared(find_protocol(protocol), items, ratings)
    ratings = [_without_no_errors(rating) for rating in ratings]
    check_severities(_errors(ratings))
    first = min(rating.assigned_at for rating in ratings)
    last = max(rating.submitted_at or rating.assigned_at for rating in ratings)
    raters: dict[str, RaterContent] = {}
    rated_by: dict[int, set[str]] = defaultdict(set)
    for rating in ratings:
        rated_by[rating.item].add(rating.rater)
        excluded_at = last if rating.excluded else None
        rater = RaterContent(pseudonym=rating.rater, created_at=first, excluded_at=excluded_at)
        raters.setdefault(rating.rater, rater)
    facts = facts.for_systems(systems)
    rule = "esa" if facts.find_protocol(protocol).marks_errors else None  # of stats.wmt.RULES
    taxonomy = None if facts.taxonomy is None else facts.taxonomy.model_dump()
    planned = {"baseline": facts.baseline, "delta": facts.delta, "wmt": rule, "taxonomy": taxonomy}
    if protocol == Mqm.name:
        planned["decimals"] = _decimals(ratings)
    source, target = pair or (UNKNOWN, UNKNOWN)
    content = Content(
        name=ratings[0].campaign or facts.name,  # rows of an export keep its name
        test_set=facts.test_set or facts.name,
        protocol=protocol,
        systems=tuple(systems),
        source_language=source,
        target_language=target,
        ratings_per_item=max(map(len, rated_by.values())),
        settings={name: value for name, value in planned.items() if value is not None} | dict(settings or {}),
        created_at=first,
        launched_at=first,
        closed_at=last,
        raters=tuple(raters.values()),
        items=tuple(items),
    )
    return replace(with_answers(content, ratings), name=facts.name)


def check_protocol(
    protocol: Protocol, file: str, scores: int, errors: int, categories: int, can_mark: bool = True
) -> None:
    """Raise InputError if a file of another tool contradicts the protocol; it names the one that fits.

    `scores`: number of scores that are not 0. `errors`: number of marked errors; `categories`: how many of
    them have a category. `can_mark`: whether the file's lines have a place for marked errors.
    """
    why = fits = ""
    if protocol.marks_errors and not can_mark:
        why, fits = "its lines have no field for marked errors", "da or da-sqm"
    elif isinstance(protocol, Mqm):
        if scores and not categories:
            why = f"it has {counted(scores, 'score')} above 0, and no error with a category"
            fits = "esa" if errors else "esa, da or da-sqm"
    elif errors and not scores and (categories or not protocol.marks_errors):
        why, fits = f"no score is above 0, and the ratings are {counted(errors, 'marked error')}", "mqm"
    if why:
        raise wrong_option("protocol", f"{file} contradicts it: {why}; {fits} fits", protocol.name)


@dataclass(frozen=True)
class Numbering(Generic[SegmentKey]):
    """The places of a file's segments, named by keys, in the test set."""

    indices: Mapping[SegmentKey, int]  # 0 for the first
    renumbered: int = 0  # segments whose numbers in the file differ from the test set's
    first: int = 1  # the file's number of the first segment

    @classmethod
    def of_numbers(cls, numbers: Mapping[SegmentKey, int], kind: str, told: int | None = None) -> Self:
        """Number segments over the whole test set.

        The first has the number `told`, else 0 if there is a 0, else the usual number of this format.
        """
        first = 0 if 0 in numbers.values() else FIRST_SEGMENT[kind]
        first = first if told is None else told
        return cls({key: number - first for key, number in numbers.items()}, first=first)

    @property
    def settings(self) -> dict[str, int]:
        return {"first_segment": self.first} if self.first != 1 else {}

    @property
    def notes(self) -> tuple[NotKept, ...]:
        what = "segments numbered anew, document after document: the file counts them within documents"
        return counts({what: self.renumbered}, note=True)


def _without_no_errors(rating: GivenRating) -> GivenRating:
    """Drop the entries with which some files say that nothing is marked."""
    payload = rating.payload or {}
    spans = payload.get("spans")
    if not isinstance(spans, list):  # refused with its place when the rating is scored
        return rating
    marked = [span for span in spans if not (isinstance(span, dict) and is_no_error(span.get("severity")))]
    return rating if len(marked) == len(spans) else replace(rating, payload={**payload, "spans": marked})


def _errors(ratings: Sequence[GivenRating]) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield the marked errors of the file before they are checked."""
    for rating in ratings:
        spans = (rating.payload or {}).get("spans")
        for span in spans if isinstance(spans, list) else ():
            if isinstance(span, dict):
                yield rating.place, span


def check_severities(errors: Iterable[tuple[Place, Mapping[str, Any]]], others: Sequence[str] = ()) -> None:
    """Raise InputError that counts and names all unknown severities of errors.

    `others`: severities that the format knows besides.
    """
    unknown = [
        (place, severity[:60])
        for place, span in errors
        if isinstance(severity := span.get("severity"), str) and as_severity(severity) not in SEVERITIES
    ]
    if unknown:
        counts_of = Counter(severity for _, severity in unknown)
        found = ", ".join(f"{severity!r} ({count:,})" for severity, count in counts_of.most_common())
        raise InputError(
            f"{unknown[0][0]}: errors of unknown severities: {found}; allowed: "
            f"{', '.join((*others, *SEVERITIES))}, or no-error where nothing is marked"
        )


def _decimals(ratings: Sequence[GivenRating]) -> int | None:
    """Return the number of decimals that the file's MQM costs need; None for the usual one decimal."""
    needed = 1
    for _, span in _errors(ratings):
        if type(cost := span.get("cost")) in (int, float):
            try:
                fraction = exact(repr(cost))
            except ValueError:  # refused with its place when the rating is scored
                continue
            while needed < MAX_DECIMALS and (fraction * 10**needed).denominator != 1:
                needed += 1
    return needed if needed > 1 else None


def error_notices(content: Content) -> tuple[NotKept, ...]:
    """Count imported errors whose cost in the file differs from the weights, or whose category has none."""
    protocol = find_protocol(content.protocol, content.settings)
    if not isinstance(protocol, Mqm):
        return ()
    costs: Counter[str] = Counter()
    categories: Counter[str] = Counter()
    for answer in content.answers:
        for score in answer.scores:
            for span in spans_of(score.payload):
                name = "/".join(span.category) or "no category"
                if span.cost is not None:
                    usual = float(protocol.penalty(span))
                    costs[f"{name}, {span.severity}: {span.cost:g} instead of {usual:g}"] += 1
                elif protocol.taxonomy is None and not is_published(span.category):
                    categories[name] += 1
    weights = "the usual weights" if protocol.taxonomy is None else option("taxonomy")
    costly, unnamed = (
        "; ".join(f"{what[:80]} ({count:,})" for what, count in found.most_common())
        for found in (costs, categories)
    )
    return counts(
        {
            f"errors whose cost in the file, which counts, is not that of {weights}: {costly}": costs.total(),
            "errors of categories that the usual weights do not name (they cost what their severity "
            f"says; {option('taxonomy')} FILE gives others): {unnamed}": categories.total(),
        }
    )


def _check_compared(protocol: Protocol, items: Sequence[ItemContent], ratings: Sequence[GivenRating]) -> None:
    """Raise InputError for an item with more or fewer systems than the protocol compares."""
    if not protocol.relative:
        return
    # rows of a segment's pairs without a column `item` would be one item, with pairs that nobody compared
    for item in items:
        if not protocol.min_outputs <= len(item.systems) <= protocol.max_outputs:
            place = next(rating.place for rating in ratings if rating.item == item.position)
            raise InputError(
                f"{place}: an item of {counted(len(item.systems), 'system')} ({', '.join(item.systems)}), of "
                f"which {protocol.name} compares {protocol.max_outputs}; number the pairs in a column item"
            )
