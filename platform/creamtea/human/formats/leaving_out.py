"""A campaign without some of its systems, as an import with --leave-out stores it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace

from creamtea.errors import InputError
from creamtea.human.formats.content import AnswerContent, Content, ItemContent
from creamtea.human.formats.losses import NotKept, counts
from creamtea.human.protocols import find_protocol
from creamtea.store.item_kinds import WRITTEN_KINDS
from creamtea.wording import option


def without_systems(content: Content, names: Collection[str]) -> tuple[Content, tuple[NotKept, ...]]:
    """The campaign without these systems, their ratings, the items that showed nothing else, raters who rated
    nothing else, and practice and checks, whose answers speak of systems by number. Where scores are
    relative, without every item that showed one: what is preferred to a system that is gone says nothing.
    Positions and page orders of the rest stay.

    InputError for a system that the campaign does not have, and where none would be left.
    """
    known = ", ".join(content.systems)
    for name in names:
        if name not in content.systems:
            raise InputError(
                f"{option('leave-out')} {name}: no such system; there are {known}", about="leave-out"
            )
        if name == content.settings.get("baseline"):
            raise InputError(
                f"{option('leave-out')} {name}: it is the baseline; choose another with {option('baseline')}",
                about="leave-out",
            )
    systems = tuple(system for system in content.systems if system not in names)
    if not systems:
        raise InputError(f"{option('leave-out')}: no system would be left of {known}", about="leave-out")
    relative = find_protocol(content.protocol, content.settings).relative
    kept = {
        item.position: item
        for item in content.items
        if _stays(item, names, relative) and item.kind not in WRITTEN_KINDS
    }
    items = tuple(_item(item, names) for item in kept.values() if _has_original(item, names, kept))
    if not items:
        raise InputError(
            f"{option('leave-out')} {', '.join(names)}: every item shows one of these, so that no rating "
            "would be left",
            about="leave-out",
        )
    pages = {item.page: item.position for item in reversed(items)}  # its first item names a page
    items = tuple(item if item.page is None else replace(item, page=pages[item.page]) for item in items)
    positions = {item.position for item in items}
    answers = tuple(
        _answer(answer, names)
        for answer in content.answers
        if answer.item in positions and any(set(group) - set(names) for group in answer.order)
    )
    busy = {answer.rater for answer in answers}
    idle = {answer.rater for answer in content.answers} - busy
    raters = tuple(person for person in content.raters if person.pseudonym not in idle)
    rated_by: dict[int, set[str]] = defaultdict(set)
    for answer in answers:
        rated_by[answer.item].add(answer.rater)
    references = [name for name in content.settings.get("references", []) if name not in names]
    settings = {**content.settings, "references": references} if "references" in content.settings else None
    written = {item.position for item in content.items if item.kind in WRITTEN_KINDS}
    practice = sum(len(answer.scores) for answer in content.answers if answer.item in written)
    before, after = (sum(len(answer.scores) for answer in each) for each in (content.answers, answers))
    left = counts(
        {
            f"ratings of systems left out ({', '.join(names)})": before - after - practice,
            "answers to practice and checks": practice,
            "raters of these alone": len(idle),
        }
    )
    return (
        replace(
            content,
            systems=systems,
            items=items,
            answers=answers,
            raters=raters,
            settings=content.settings if settings is None else settings,
            ratings_per_item=min(content.ratings_per_item, max(map(len, rated_by.values()), default=1)),
        ),
        left,
    )


def _stays(item: ItemContent, names: Collection[str], relative: bool) -> bool:
    left = set(item.systems) - set(names)
    return len(left) == len(item.systems) if relative else bool(left)


def _has_original(item: ItemContent, names: Collection[str], kept: Collection[int]) -> bool:
    """A control without its original, or without the system whose text was spoilt, controls nothing."""
    return (item.original is None or item.original in kept) and item.degraded not in names


def _item(item: ItemContent, names: Collection[str]) -> ItemContent:
    stays = [at for at, system in enumerate(item.systems) if system not in names]
    return replace(
        item,
        systems=tuple(item.systems[at] for at in stays),
        outputs=tuple(item.outputs[at] for at in stays),
        output_chances=item.output_chances and tuple(item.output_chances[at] for at in stays),
        output_drawn=item.output_drawn and tuple(item.output_drawn[at] for at in stays),
        proposals=item.proposals
        and {system: errors for system, errors in item.proposals.items() if system not in names},
    )


def _answer(answer: AnswerContent, names: Collection[str]) -> AnswerContent:
    order = (tuple(system for system in group if system not in names) for group in answer.order)
    return replace(
        answer,
        order=tuple(group for group in order if group),
        scores=tuple(score for score in answer.scores if score.system not in names),
    )
