"""A campaign between the database and `Content`: columns and fields of one name hold the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import insert, or_, select
from sqlalchemy.orm import Session

from creamtea.access import audit
from creamtea.errors import InputError
from creamtea.human.formats.content import AnswerContent, Content, ItemContent, RaterContent, ScoreContent
from creamtea.human.formats.losses import NotKept
from creamtea.human.making.campaigns import check_length
from creamtea.human.media.keeping import store_media
from creamtea.store.columns import MAX_INDEXED
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.rows import from_row
from creamtea.store.tables import Assignment, Campaign, Item, Rater, Rating, StudyRow

BATCH = 2000  # rows per INSERT


def _without(content: Any, *names: str) -> dict[str, Any]:
    """The fields of a dataclass but these."""
    return {name: value for name, value in vars(content).items() if name not in names}


# ---------------------------------------------------------------- out of the database


def collect(database: Database, name: str) -> Content:
    """Everything of a campaign that an export holds, from one snapshot of the database.

    Raises InputError where there is no such campaign.
    """
    with database.session() as session:
        campaign = find_campaign(session, name)
        study = None if campaign.study_id is None else session.get_one(StudyRow, campaign.study_id).name
        items = session.scalars(
            select(Item).where(Item.campaign_id == campaign.id).order_by(Item.position)
        ).all()
        raters = session.scalars(
            select(Rater).where(Rater.campaign_id == campaign.id).order_by(Rater.id)
        ).all()
        positions = {item.id: item.position for item in items}
        pseudonyms = {rater.id: rater.pseudonym for rater in raters}
        return from_row(
            Content,
            campaign,
            study=study,
            systems=tuple(campaign.systems),
            raters=tuple(from_row(RaterContent, rater) for rater in raters),
            items=tuple(_item(item, campaign.systems, positions) for item in items),
            answers=tuple(_answers(session, campaign, positions, pseudonyms)),
        )


def _item(item: Item, systems: list[str], positions: dict[int, int]) -> ItemContent:
    return from_row(
        ItemContent,
        item,
        segment=item.segment_index,
        context=tuple(item.context),
        references=tuple(item.references),
        media=tuple(item.media),
        systems=tuple(systems[system] for system in item.systems),
        outputs=tuple(item.outputs),
        output_chances=item.output_chances and tuple(item.output_chances),
        output_drawn=item.output_drawn and tuple(item.output_drawn),
        original=None if item.original_id is None else positions[item.original_id],
        degraded=None if item.degraded is None else systems[item.degraded],
        proposals=item.proposals
        and {systems[int(system)]: spans for system, spans in item.proposals.items()},
    )


def _answers(
    session: Session, campaign: Campaign, positions: dict[int, int], pseudonyms: dict[int, str]
) -> list[AnswerContent]:
    """Answered and skipped items; what a rater is still on is nobody's answer yet."""
    names = campaign.systems
    scores: dict[int, list[ScoreContent]] = defaultdict(list)
    ratings = (
        select(Rating)
        .join(Assignment, Assignment.id == Rating.assignment_id)
        .join(Item, Item.id == Assignment.item_id)
        .where(Item.campaign_id == campaign.id)
        .order_by(Rating.revision, Rating.system)
    )
    for rating in session.scalars(ratings):
        score = from_row(ScoreContent, rating, system=names[rating.system], at=rating.created_at)
        scores[rating.assignment_id].append(score)
    ended = (
        select(Assignment)
        .join(Item, Item.id == Assignment.item_id)
        .where(
            Item.campaign_id == campaign.id,
            or_(Assignment.submitted_at.is_not(None), Assignment.skipped_at.is_not(None)),
        )
    )
    answers = [
        from_row(
            AnswerContent,
            assignment,
            item=positions[assignment.item_id],
            rater=pseudonyms[assignment.rater_id],
            order=tuple(tuple(names[system] for system in group) for group in assignment.order),
            assigned_at=assignment.created_at,
            scores=tuple(scores[assignment.id]),
        )
        for assignment in session.scalars(ended)
    ]
    return sorted(answers, key=lambda answer: (answer.item, answer.rater))


# ---------------------------------------------------------------- into the database


@dataclass(frozen=True)
class Imported:
    """How much was stored, or would be, and how much of what was not."""

    campaign: str
    systems: int
    items: int
    raters: int
    ratings: int  # scores in every revision
    not_kept: tuple[NotKept, ...] = ()
    notices: tuple[NotKept, ...] = ()  # what was read otherwise than its reader may expect


def amounts(
    content: Content, not_kept: tuple[NotKept, ...] = (), notices: tuple[NotKept, ...] = ()
) -> Imported:
    """What storing the campaign would store."""
    return Imported(
        campaign=content.name,
        systems=len(content.systems),
        items=len(content.items),
        raters=len(content.raters),
        ratings=content.ratings,
        not_kept=not_kept,
        notices=notices,
    )


def check_free(session: Session, name: str) -> None:
    """InputError where a campaign of this name exists."""
    if session.scalar(select(Campaign.id).where(Campaign.name == name)) is not None:
        raise InputError(f"campaign {name!r} already exists: import under another name", about="name")


def check_lengths(content: Content) -> None:
    """InputError where the campaign's name or a rater's pseudonym is too long for an index."""
    check_length(content.name)
    for rater in content.raters:
        if len(rater.pseudonym) > MAX_INDEXED:
            raise InputError(
                f"rater {rater.pseudonym[:40]!r}… has a pseudonym of {len(rater.pseudonym):,} characters; "
                f"allowed: at most {MAX_INDEXED}"
            )


def store_campaign(
    database: Database,
    content: Content,
    actor: str,
    origin: str,
    not_kept: tuple[NotKept, ...] = (),
    notices: tuple[NotKept, ...] = (),
    media_sizes: Mapping[str, int] | None = None,
) -> Imported:
    """Write a campaign that belongs to no study and is closed: it can be analysed, not rated.

    One transaction, all of it or nothing. `actor` and `origin` (a file's name) go into the audit log;
    `media_sizes`: the bytes of each file beside a source, by SHA-256. Raises InputError where a campaign of
    this name exists.
    """
    with database.transaction() as session:
        check_free(session, content.name)
        campaign = Campaign(**_without(content, "study", "raters", "items", "answers"))
        campaign.state, campaign.closed_at = "closed", content.closed_at or database.now(session)
        session.add(campaign)
        session.flush()
        raters = {
            person.pseudonym: Rater(campaign_id=campaign.id, **vars(person)) for person in content.raters
        }
        session.add_all(raters.values())
        items = _store_items(session, content, campaign)
        shown = (entry for item in content.items for entry in item.media)
        store_media(session, campaign.id, shown, media_sizes or {})
        ratings = _store_answers(session, content, raters, items)
        detail = {
            "file": origin,
            "items": len(items),
            "ratings": ratings,
            "left_out": [str(part) for part in not_kept],
            "notices": [str(part) for part in notices],
        }
        audit.record(session, campaign.id, actor, audit.IMPORTED, detail=detail)
    return amounts(content, not_kept, notices)


def _store_items(session: Session, content: Content, campaign: Campaign) -> dict[int, Item]:
    """Items first, then what controls were made from: an original may follow its control."""
    numbers = {system: number for number, system in enumerate(content.systems)}
    items = {
        item.position: Item(
            campaign_id=campaign.id,
            **_without(item, "segment", "systems", "original", "degraded", "proposals"),
            segment_index=item.segment,
            systems=[numbers[system] for system in item.systems],
            degraded=None if item.degraded is None else numbers[item.degraded],
            proposals=item.proposals
            and {str(numbers[system]): spans for system, spans in item.proposals.items()},
        )
        for item in content.items
    }
    session.add_all(items.values())
    session.flush()
    for item in content.items:
        if item.original is not None:
            items[item.position].original_id = items[item.original].id
    session.flush()
    return items


def _store_answers(
    session: Session, content: Content, raters: dict[str, Rater], items: dict[int, Item]
) -> int:
    """How many scores were stored."""
    numbers = {system: number for number, system in enumerate(content.systems)}
    assignments = [
        Assignment(
            **_without(answer, "item", "rater", "order", "assigned_at", "scores"),
            item_id=items[answer.item].id,
            rater_id=raters[answer.rater].id,
            order=[[numbers[system] for system in group] for group in answer.order],
            lease_until=answer.submitted_at or answer.skipped_at or answer.assigned_at,
            created_at=answer.assigned_at,
        )
        for answer in content.answers
    ]
    session.add_all(assignments)
    session.flush()
    scores = (
        _without(score, "system", "at")
        | {"assignment_id": assignment.id, "system": numbers[score.system], "created_at": score.at}
        for assignment, answer in zip(assignments, content.answers, strict=True)
        for score in answer.scores
    )
    stored = 0
    while batch := list(islice(scores, BATCH)):
        session.execute(insert(Rating), batch)
        stored += len(batch)
    return stored
