"""Rows back into answers: each row must say what an export of the campaign that they make would say.

An answer is put together from what its first row says of it, and its scores from the rows of each revision.
Then the rows of this campaign (`rows_of`) are compared with those that were given: wherever two columns or
two rows contradict each other, something differs. What this cannot show is checked one by one: unknown names,
a step that is not on the scale, rows that are missing or there twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from creamtea.errors import InputError
from creamtea.human.formats.content import AnswerContent, Content, ItemContent, ScoreContent
from creamtea.human.formats.files import Place
from creamtea.human.formats.rows import GivenRating, RatingRow, rows_of
from creamtea.human.media.files import check_entries
from creamtea.human.protocols import Protocol, ScoredAnswer, find_protocol
from creamtea.human.protocols.da import Da
from creamtea.human.protocols.spans import MarkedErrors, MarksErrors
from creamtea.store.item_kinds import ItemKind
from creamtea.store.rows import from_row
from creamtea.wording import option


@dataclass(frozen=True)
class ScoredRating:
    """A rating with what the protocol makes of its answer; None where an item was skipped."""

    given: GivenRating
    answer: ScoredAnswer | None


ANSWERS = ("step", "value", "payload")  # columns, of which one is enough
Revisions = list[dict[str, ScoredRating]]  # in their order; each by system


def checked_items(
    given: Sequence[tuple[Place, ItemContent]], systems: Sequence[str]
) -> tuple[ItemContent, ...]:
    """The items. `given`: each with the place that it came from. InputError for one that contradicts the
    campaign."""
    originals = {None, *(item.position for _, item in given)}
    positions = sorted((item.position, item.page) for _, item in given if item.page is not None)
    pages = {page: position for position, page in reversed(positions)}  # its first item's
    known = f"the campaign's systems: {', '.join(systems)}"
    seen: set[int] = set()
    for place, item in given:
        checks = (
            ("position", item.position not in seen, "each position once"),
            (
                "page",
                item.page is None or item.page == pages[item.page],
                "the position of the first item of its page",
            ),
            (
                "segment",
                item.segment >= 0 or ItemKind(item.kind).is_written,
                f"0 or more for a {item.kind} item",
            ),
            ("systems", set(item.systems) <= set(systems), known),
            ("outputs", len(item.outputs) == len(item.systems), "one text for each of systems"),
            ("output_chances", _one_each(item, item.output_chances), "one for each of systems"),
            ("output_drawn", _one_each(item, item.output_drawn), "one for each of systems"),
            ("original", item.original in originals, "the position of an item"),
            ("original", item.original != item.position, "the position of another item"),
            ("degraded", item.degraded in (None, *systems), known),
            ("media", _are_files(item.media), "a list of files: digest, type, description"),
            ("proposals", set(item.proposals or ()) <= set(item.systems), "by systems of the item"),
            ("proposals", _are_errors(item.proposals or {}), "lists of marked errors, as answers have them"),
        )
        for column, right, allowed in checks:
            if not right:
                raise place.refuse(column, getattr(item, column), allowed)
        seen.add(item.position)
    return tuple(item for _, item in given)


def _one_each(item: ItemContent, given: Sequence[object] | None) -> bool:
    return given is None or len(given) == len(item.systems)


def _are_files(entries: Sequence[Any]) -> bool:
    try:
        check_entries(entries)
    except ValueError:
        return False
    return True


def _are_errors(proposals: Mapping[str, Any]) -> bool:
    try:
        for spans in proposals.values():
            MarkedErrors.model_validate({"spans": spans})
    except ValidationError:
        return False
    return True


def with_answers(content: Content, ratings: Sequence[GivenRating]) -> Content:
    """The campaign, whose raters and items are known, with these answers. Raises InputError with
    file, line, column, what was found and what is allowed: for ratings that contradict the campaign or each
    other, scores that the scale does not have, and answers without a score for each system.
    """
    protocol = find_protocol(content.protocol, content.settings)
    items = {item.position: item for item in content.items}
    raters = {person.pseudonym for person in content.raters}
    groups: dict[tuple[int, str], list[ScoredRating]] = defaultdict(list)
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
    rows = {(row.item, row.rater, row.revision, row.system): row for row in rows_of(content)}
    for (position, rater), revisions in revised.items():
        for number, revision in enumerate(revisions, start=1):
            for system, scored in revision.items():
                written = number if scored.answer is not None else None
                _check_same(scored.given, rows[position, rater, written, system], protocol)
    return content


def _scored(given: GivenRating, protocol: Protocol) -> ScoredRating:
    """The rating with its answer: of step, value and payload one is enough."""
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
        if given.payload is not None and scored is not None:  # a protocol may know one answer in several ways
            given = replace(given, payload=scored.payload)
    except ValueError as error:
        # other tools' files have no such columns
        where = given.place.column(column) if column in given.columns else str(given.place)
        raise InputError(f"{where}: {error}") from None
    return ScoredRating(given, scored)


def _revisions(item: ItemContent, group: Sequence[ScoredRating]) -> Revisions:
    """The rows of one rater's item by revision, each with a row for each of the item's systems.

    A skipped item has them once, without a score.
    """
    numbered: dict[int, dict[str, ScoredRating]] = defaultdict(dict)
    skipped = all(scored.answer is None and scored.given.skipped_at for scored in group)
    for scored in group:
        given = scored.given
        if scored.answer is None and not skipped:
            column = next((name for name in ANSWERS if name in given.columns), "step")
            raise given.refuse(column, f"a {column}; only a skipped item (skipped_at) has none")
        for column, moment in (("submitted_at", given.submitted_at), ("rated_at", given.rated_at)):
            if moment is None and not skipped:
                raise given.refuse(column, "a moment; the row has a score")
        known = numbered[given.revision or 0].setdefault(given.system, scored)
        if known is not scored:
            column = "step" if skipped else "revision"
            line = f"line {known.given.place.line} has this rater, item, system and revision"
            raise given.refuse(column, f"another revision: {line}")
    for revision in numbered.values():
        missing = [system for system in item.shown if system not in revision]
        if missing:
            allowed = f"a row for each system of the item in each revision: {', '.join(missing)} is missing"
            raise next(iter(revision.values())).given.refuse("system", allowed)
    return [numbered[revision] for revision in sorted(numbered)]


def _answer(content: Content, item: ItemContent, protocol: Protocol, revisions: Revisions) -> AnswerContent:
    """What the first row says of the answer, with the scores of each revision."""
    places: dict[tuple[int, str], list[str]] = defaultdict(list)
    outputs = dict(zip(item.systems, item.outputs, strict=True))
    for number, (system, scored) in enumerate(revisions[0].items(), start=1):
        shown = number if scored.given.shown is None else scored.given.shown
        places[shown, outputs[system]].append(system)
    order = [sorted(places[place], key=content.systems.index) for place in sorted(places)]
    scores = [
        score
        for number, revision in enumerate(revisions, start=1)
        for score in _scores(number, revision, order, protocol)
    ]
    scores.sort(key=lambda score: (score.revision, content.systems.index(score.system)))
    first = next(iter(revisions[0].values())).given
    return from_row(AnswerContent, first, order=tuple(tuple(group) for group in order), scores=tuple(scores))


def _scores(
    number: int, revision: dict[str, ScoredRating], order: Sequence[Sequence[str]], protocol: Protocol
) -> list[ScoreContent]:
    """The scores of a revision; systems that share a place share the first one's."""
    answers = [revision[group[0]].answer for group in order]
    given = [answer for answer in answers if answer is not None]
    if not given:
        return []
    try:
        protocol.check_together([answer.step for answer in given])
    except ValueError as error:
        place = revision[order[0][0]].given.place.column("step")
        raise InputError(f"{place}: {error}") from None
    scores = []
    for group, answer in zip(order, given, strict=True):
        for system in group:
            rating = revision[system].given
            assert rating.rated_at is not None  # as `_revisions` has checked
            scores.append(
                ScoreContent(
                    system=system,
                    revision=number,
                    step=answer.step,
                    at=rating.rated_at,
                    payload=answer.payload,
                    document_step=_document_step(rating, protocol),
                )
            )
    return scores


def _document_step(given: GivenRating, protocol: Protocol) -> int | None:
    step = given.document_step
    try:
        return None if step is None else protocol.scale.check(step)
    except ValueError as error:
        raise InputError(f"{given.place.column('document_step')}: {error}") from None


def _check_same(given: GivenRating, row: RatingRow, protocol: Protocol) -> None:
    """InputError with the first column in which a row is not what an export would write."""
    for column in given.columns:
        found, expected = given.found(column), getattr(row, column)
        one_is_enough = found is None and column in ("step", "value")
        if found != expected and not one_is_enough:
            allowed = "nothing" if expected is None else repr(expected)
            if column in ("step", "value") and _by_usual_weights(protocol):
                why = (
                    "by the usual weights of errors. Scores of marked errors need the campaign's taxonomy: "
                    f"import the folder, or give {option('taxonomy')}"
                )
            else:
                why = "as the rest of the import says"
            raise given.refuse(column, f"{allowed}, {why}")


def _by_usual_weights(protocol: Protocol) -> bool:
    """Whether scores follow from the errors by weights that the campaign may have had otherwise."""
    return isinstance(protocol, MarksErrors) and not protocol.scored and protocol.taxonomy is None
