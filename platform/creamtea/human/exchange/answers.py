"""Rows back into answers: what belongs together must agree, and every answer must be whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from creamtea.errors import InputError
from creamtea.human.exchange.content import AnswerContent, Content, ItemContent, ScoreContent
from creamtea.human.exchange.files import Record
from creamtea.human.exchange.rows import RatingRow
from creamtea.human.protocols import Protocol, find_protocol

# columns that say the same in every row of a rater's item
OF_ANSWER = ("assigned_at", "submitted_at", "skipped_at", "skip_reason", "comment", "active_ms")
OF_ITEM = ("kind", "segment", "document", "weight", "original", "degraded", "source")
SCORED = ("revision", "rated_at")  # what a score has, and a skipped item has not


@dataclass(frozen=True)
class PlacedRow:
    """A row and where it stands."""

    row: RatingRow
    record: Record

    def refuse(self, column: str, found: Any, allowed: str) -> InputError:
        shown = "nothing" if found is None else repr(found)
        return InputError(f"{self.record.place(column)}: found {shown}; allowed: {allowed}")


def checked_items(
    given: Sequence[tuple[Record, ItemContent]], systems: Sequence[str]
) -> tuple[ItemContent, ...]:
    """The items, each with the record that it came from. InputError for one that contradicts the campaign."""
    positions = {item.position for _, item in given}
    seen: set[int] = set()
    for record, item in given:
        unknown = [system for system in item.systems if system not in systems]
        if item.position in seen:
            column, wrong, allowed = "position", str(item.position), "each position once"
        elif unknown:
            column, wrong, allowed = "systems", unknown[0], f"the campaign's systems: {', '.join(systems)}"
        elif len(item.outputs) != len(item.systems):
            column, wrong = "outputs", f"{len(item.outputs)} texts"
            allowed = f"{len(item.systems)}, one for each of systems"
        elif item.original is not None and (item.original not in positions or item.original == item.position):
            column, wrong, allowed = "original", str(item.original), "the position of another item"
        elif item.degraded is not None and item.degraded not in systems:
            column, wrong, allowed = "degraded", item.degraded, f"one of {', '.join(systems)}"
        else:
            seen.add(item.position)
            continue
        raise InputError(f"{record.place(column)}: found {wrong}; allowed: {allowed}")
    return tuple(item for _, item in given)


def answers_of(records: Sequence[Record], content: Content) -> tuple[AnswerContent, ...]:
    """The answers in the rows of a campaign whose raters and items are known (`content`; its answers are
    not looked at).

    Raises InputError with file, line, column, what was found and what is allowed: rows that contradict the
    campaign or each other, scores that the scale does not have, and answers without a score for each system.
    """
    protocol = find_protocol(content.protocol)
    rows = [PlacedRow(_row(record, protocol), record) for record in records]
    _check_against(content, rows)
    groups: dict[tuple[int, str], list[PlacedRow]] = defaultdict(list)
    for placed in rows:
        groups[placed.row.item, placed.row.rater].append(placed)
    items = {item.position: item for item in content.items}
    return tuple(
        _answer(content, protocol, items[item], group) for (item, _), group in sorted(groups.items())
    )


def _row(record: Record, protocol: Protocol) -> RatingRow:
    """The row with both of step and value: one of them is enough, and a payload gives both."""
    values = dict(record.values)
    scale = protocol.scale
    step, value = values["step"], values["value"]
    if step is not None and step >= scale.steps:
        allowed = f"a whole number from 0 to {scale.steps - 1}"
        raise InputError(f"{record.place('step')}: found {step}; allowed: {allowed}")
    if value is not None:
        try:
            written = scale.step_of(value)
        except ValueError as error:
            raise InputError(f"{record.place('value')}: {error}") from None
        if step is not None and step != written:
            raise InputError(
                f"{record.place('value')}: found {value!r}, which is step {written}; "
                f"allowed: {scale.label(step)!r}, as step is {step}"
            )
        step = written
    values["step"] = _step_of_answer(record, protocol, step)
    if values["step"] is not None:
        values["value"] = scale.label(values["step"])
    return RatingRow(**values)


def _step_of_answer(record: Record, protocol: Protocol, step: int | None) -> int | None:
    """The score of the row's answer, which its protocol must have; None where the row has no answer."""
    payload = record.values["payload"]
    if payload is None and step is None:
        return None
    try:
        scored = protocol.read_answer(step if payload is None else payload, record.values["output"])
    except ValueError as error:
        column = "step" if payload is None else "payload"
        raise InputError(f"{record.place(column)}: {error}") from None
    if scored.payload != payload:
        raise InputError(
            f"{record.place('payload')}: found {payload!r}; allowed: {scored.payload!r}, as {protocol.name} "
            "stores it"
        )
    if step is not None and step != scored.step:
        raise InputError(
            f"{record.place('step')}: found {step}; allowed: {scored.step}, the score of this payload"
        )
    return scored.step


def _check_against(content: Content, rows: list[PlacedRow]) -> None:
    items = {item.position: item for item in content.items}
    excluded = {person.pseudonym: person.excluded_at is not None for person in content.raters}
    for placed in rows:
        row = placed.row
        for column, value, expected in (
            ("campaign", row.campaign, content.name),
            ("protocol", row.protocol, content.protocol),
        ):
            if value != expected:
                raise placed.refuse(column, value, f"{expected!r}, as the campaign has")
        if row.rater not in excluded:
            raise placed.refuse("rater", row.rater, "a pseudonym that the campaign knows")
        if row.excluded != excluded[row.rater]:
            raise placed.refuse(
                "excluded", row.excluded, f"{excluded[row.rater]}, as the campaign says of this rater"
            )
        item = items.get(row.item)
        if item is None:
            raise placed.refuse("item", row.item, "the position of an item of the campaign")
        for column in OF_ITEM:
            if getattr(row, column) != getattr(item, column):
                raise placed.refuse(
                    column, getattr(row, column), f"{getattr(item, column)!r}, as the item has"
                )
        if row.system not in item.systems:
            raise placed.refuse("system", row.system, f"a system of the item: {', '.join(item.systems)}")
        output = item.outputs[item.systems.index(row.system)]
        if row.output != output:
            raise placed.refuse("output", row.output, f"{output!r}, as the item has")


def _answer(content: Content, protocol: Protocol, item: ItemContent, group: list[PlacedRow]) -> AnswerContent:
    first = group[0]
    for placed in group:
        for column in OF_ANSWER:
            value, expected = getattr(placed.row, column), getattr(first.row, column)
            if value != expected:
                raise placed.refuse(
                    column, value, f"{expected!r}, as line {first.record.line} has for this rater and item"
                )
        _check_whole(placed)
    order = _order(content, item, group)
    revisions = _revisions(content, protocol, group, order)
    _check_counts(group, max(revisions, default=0))
    return AnswerContent(
        item=first.row.item,
        rater=first.row.rater,
        order=order,
        assigned_at=first.row.assigned_at,
        submitted_at=first.row.submitted_at,
        skipped_at=first.row.skipped_at,
        skip_reason=first.row.skip_reason,
        comment=first.row.comment,
        active_ms=first.row.active_ms,
        scores=tuple(score for _, scores in sorted(revisions.items()) for score in scores),
    )


def _check_whole(placed: PlacedRow) -> None:
    """A row has a score with all that belongs to it, or is of a skipped item."""
    row = placed.row
    for column in SCORED:
        value = getattr(row, column)
        if row.step is None and value is not None:
            raise placed.refuse(column, value, "nothing, as the row has no step")
        if row.step is not None and value is None:
            raise placed.refuse(column, value, "a value, as the row has a step")
    if row.step is None and row.skipped_at is None:
        raise placed.refuse("step", None, "a step; only a skipped item (skipped_at) has none")
    if row.step is not None and row.submitted_at is None:
        raise placed.refuse("submitted_at", None, "a moment; the row has a score")
    if row.revision == 0:
        raise placed.refuse("revision", 0, "1 or more")
    if row.shown == 0:
        raise placed.refuse("shown", 0, "1 or more")


def _order(content: Content, item: ItemContent, group: list[PlacedRow]) -> tuple[tuple[str, ...], ...]:
    """The systems by their place on the page, the same in each revision."""
    places: dict[str, int] = {}
    for placed in group:
        if places.setdefault(placed.row.system, placed.row.shown) != placed.row.shown:
            raise placed.refuse(
                "shown", placed.row.shown, f"{places[placed.row.system]}, as in another row of this answer"
            )
    missing = [system for system in item.systems if system not in places]
    if missing:
        raise group[0].refuse(
            "system", ", ".join(places), f"a row for each system of the item: {', '.join(missing)} is missing"
        )
    order = [
        tuple(system for system in content.systems if places.get(system) == shown)
        for shown in range(1, max(places.values()) + 1)
    ]
    outputs = dict(zip(item.systems, item.outputs, strict=True))
    for placed in group:
        equals = order[placed.row.shown - 1]
        if any(outputs[system] != placed.row.output for system in equals):
            raise placed.refuse(
                "shown", placed.row.shown, "a place of its own: only identical outputs share one"
            )
        if not all(order):
            raise placed.refuse("shown", placed.row.shown, "places without a gap: 1, 2, …")
    return tuple(order)


def _revisions(
    content: Content, protocol: Protocol, group: list[PlacedRow], order: tuple[tuple[str, ...], ...]
) -> dict[int, list[ScoreContent]]:
    """Each revision's scores in the campaign's order of systems; each is whole, and none is left out."""
    revised: dict[int, dict[str, PlacedRow]] = defaultdict(dict)
    for placed in group:
        row = placed.row
        if row.step is None:
            if any(
                other.row.step is not None or other.row.system == row.system
                for other in group
                if other is not placed
            ):
                raise placed.refuse("step", None, "a step, or one row per system for a skipped item")
            continue
        assert row.revision is not None
        if row.system in revised[row.revision]:
            before = revised[row.revision][row.system].record.line
            raise placed.refuse(
                "revision",
                row.revision,
                f"another revision: line {before} has this rater, item, system and revision",
            )
        revised[row.revision][row.system] = placed
    revisions = {}
    for number, revision in enumerate(sorted(revised), start=1):
        scored = revised[revision]
        placed = next(iter(scored.values()))
        if revision != number:
            raise placed.refuse("revision", revision, f"{number}: revisions are counted from 1 without a gap")
        for group_of_equals in order:
            for system in group_of_equals:
                if system not in scored:
                    raise placed.refuse("revision", revision, f"a score for each system; {system} has none")
            first, *others = (scored[system].row for system in group_of_equals)
            for other in others:
                if (other.step, other.payload) != (first.step, first.payload):
                    steps = sorted({str(first.step), str(other.step)})
                    raise placed.refuse("step", steps, "one score for outputs that are identical")
        try:
            protocol.check_together([scored[group_of_equals[0]].row.step or 0 for group_of_equals in order])
        except ValueError as error:
            raise placed.refuse("step", placed.row.step, str(error)) from None
        revisions[revision] = [
            _score(system, revision, scored[system].row) for system in content.systems if system in scored
        ]
    return revisions


def _score(system: str, revision: int, row: RatingRow) -> ScoreContent:
    assert row.step is not None  # the row is whole (`_check_whole`)
    assert row.rated_at is not None
    return ScoreContent(system, revision, row.step, row.rated_at, row.payload)


def _check_counts(group: list[PlacedRow], last: int) -> None:
    for placed in group:
        row = placed.row
        counts = row.step is not None and row.revision == last and not row.excluded
        if row.counts != counts:
            why = "the last revision of a rater who is not excluded counts"
            raise placed.refuse("counts", row.counts, f"{counts}: {why}")
